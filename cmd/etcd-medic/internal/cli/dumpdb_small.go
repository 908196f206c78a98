package cli

import (
	"strings"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

func metaRows(m *dumpdb.MetaBucket) []render.Row {
	var rows []render.Row
	add := func(name, text string, n uint64) {
		rows = append(rows, render.DBFact{Bucket: "meta", Name: name, Text: text, Num: n})
	}
	if c := m.ConfState; c != nil {
		add("confState", confStateText(c), 0)
	}
	if m.ConsistentIndex != nil {
		add("consistent_index", "", *m.ConsistentIndex)
	}
	if m.FinishedCompact != nil {
		add("finishedCompactRev", m.FinishedCompact.String(), 0)
	}
	if m.ScheduledCompact != nil {
		add("scheduledCompactRev", m.ScheduledCompact.String(), 0)
	}
	if m.StorageVersion != "" {
		add("storageVersion", m.StorageVersion, 0)
	}
	if m.Term != nil {
		add("term", "", *m.Term)
	}
	return append(rows, unknownRows(m.Unknown)...)
}

// unknownRows returns the rows with keys that no supported etcd version writes.
func unknownRows(unknown []dumpdb.Row) []render.Row {
	rows := make([]render.Row, len(unknown))
	for i := range unknown {
		rows[i] = render.DBRow{Row: &unknown[i]}
	}
	return rows
}

func confStateText(c *dumpdb.ConfState) string {
	list := func(name string, ids []dumpdb.ID) string {
		s := make([]string, len(ids))
		for i, id := range ids {
			s[i] = id.String()
		}
		return name + "=" + strings.Join(s, ",")
	}
	parts := []string{list("voters", c.Voters)}
	if len(c.Learners) > 0 {
		parts = append(parts, list("learners", c.Learners))
	}
	if len(c.VotersOutgoing) > 0 {
		parts = append(parts, list("votersOutgoing", c.VotersOutgoing))
	}
	if len(c.LearnersNext) > 0 {
		parts = append(parts, list("learnersNext", c.LearnersNext))
	}
	if c.AutoLeave {
		parts = append(parts, "autoLeave")
	}
	return strings.Join(parts, " ")
}

func authRows(a *dumpdb.Auth) []render.Row {
	enabled := "false"
	if a.Enabled {
		enabled = "true"
	}
	rows := []render.Row{render.DBFact{Bucket: "auth", Name: "authEnabled", Text: enabled}}
	if a.HasRevision {
		rows = append(rows, render.DBFact{Bucket: "auth", Name: "authRevision", Num: a.Revision})
	}
	return append(rows, unknownRows(a.Unknown)...)
}

func clusterRows(c *dumpdb.Cluster) []render.Row {
	var rows []render.Row
	if c.Version != "" {
		rows = append(rows, render.DBFact{Bucket: "cluster", Name: "clusterVersion", Text: c.Version})
	}
	if c.DowngradeEnabled || c.DowngradeTarget != "" {
		text := "not enabled"
		if c.DowngradeEnabled {
			text = "enabled, to " + c.DowngradeTarget
		}
		rows = append(rows, render.DBFact{Bucket: "cluster", Name: "downgrade", Text: text})
	}
	return append(rows, unknownRows(c.Unknown)...)
}
