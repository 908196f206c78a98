package backup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// layer is one part of a backup: the checks that decide it, and its text if they hold.
type layer struct {
	name   string
	checks []check.ID
	says   func(r *compare.Report, m *evidence.Facts) string
}

// layers are in the order in which a restore depends on them. To add a layer, add a line here.
var layers = []layer{
	{"trailer", []check.ID{check.B01}, func(r *compare.Report, _ *evidence.Facts) string {
		return "sha256 " +
			r.Backup.ExpectedSHA256
	}},
	{"size", []check.ID{check.B02}, func(r *compare.Report, _ *evidence.Facts) string {
		return plural.Size(r.Backup.Size)
	}},
	{"metas", []check.ID{check.D01}, sayMetas},
	{"pages", []check.ID{check.D02}, func(_ *compare.Report, m *evidence.Facts) string {
		return fmt.Sprintf("%s in use, pages of %d bytes", plural.Size(m.DB.InUse), m.DB.PageSize)
	}},
	{"buckets", []check.ID{check.B03, check.D03}, func(_ *compare.Report, m *evidence.Facts) string {
		return plural.Of(len(m.DB.Buckets), "bucket", "buckets")
	}},
	{"mvcc", []check.ID{check.K04}, sayMVCC},
	{"auth", []check.ID{check.B05}, sayAuth},
	{"members", []check.ID{check.B04}, sayMembers},
	{"leases", []check.ID{check.L02}, func(_ *compare.Report, m *evidence.Facts) string {
		return plural.Of(len(m.Leases), "lease", "leases")
	}},
	{"alarms", []check.ID{check.M06}, func(*compare.Report, *evidence.Facts) string { return "none raised" }},
	{"storage-version", []check.ID{check.B06}, sayVersions},
	{"taken-by", nil, sayTakenBy},
	{layerRevision, []check.ID{check.B07}, sayRevision},
	{layerDeltas, []check.ID{check.B10}, sayChain},
}

// layerRevision is unknown if a newer record may be in what cannot be read.
const layerRevision = "revision"

// layerDeltas exists only for full snapshots with deltas.
const layerDeltas = "deltas"

// ofRows are the layers about rows. They are unknown if no bucket can be reached.
var ofRows = []string{"mvcc", "auth", "members", "leases", "alarms", "storage-version", layerRevision}

// Layers derives the verdict of each layer from the report of a backup.
func Layers(r *compare.Report) []compare.Layer {
	if len(r.Members) == 0 || r.Backup == nil {
		return nil
	}
	m := &r.Members[0]
	var out []compare.Layer
	for _, l := range layers {
		if l.name == layerDeltas && !asked(r, check.B10) {
			continue
		}
		v := compare.Layer{Name: l.name, Checks: l.checks}
		v.Outcome, v.Says = judge(r, l.checks)
		if v.Outcome != check.Violated && m.Auth == nil && m.DB != nil && slices.Contains(ofRows, l.name) {
			v.Outcome, v.Says = check.NotChecked, "no bucket can be reached"
		}
		if v.Says == "" && m.DB != nil && m.DB.PageSize > 0 || l.checks == nil || v.Says == "" && l.name == "trailer" {
			v.Says = l.says(r, m)
		}
		switch {
		case l.checks == nil && v.Says == "":
			v.Outcome, v.Says = check.NotChecked, "the file does not show it"
		case l.name == layerRevision && v.Outcome == check.Holds && m.DB != nil && m.DB.EndUnread:
			v.Outcome = check.NotChecked
			v.Says = "the newest record that can be read has revision " + strconv.FormatInt(*m.DB.CurrentRevision, 10)
		case l.name == "trailer" && r.Backup.Trailer == "absent":
			v.Outcome, v.Says = check.NotChecked, "absent: nothing proves the bytes of the file"
		}
		out = append(out, v)
		if l.name == "buckets" {
			out = append(out, bucketLayers(r, m)...)
		}
	}
	return out
}

// judge combines the outcomes of several checks: one violated decides; otherwise one not checked does.
func judge(r *compare.Report, ids []check.ID) (check.Outcome, string) {
	out, says := check.Holds, ""
	for _, c := range r.Checks {
		if !slices.Contains(ids, c.ID) || out == check.Violated {
			continue
		}
		switch c.Outcome {
		case check.Violated:
			out, says = check.Violated, titles(r, c.ID, "")
		case check.Holds:
		default:
			out, says = check.NotChecked, c.Reason
		}
	}
	return out, says
}

// titles returns the titles of a check's findings, of one bucket if it is given, without the name of the backup.
func titles(r *compare.Report, id check.ID, bucket string) string {
	var s []string
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Check != id || bucket != "" && f.Facts.Bucket != bucket {
			continue
		}
		if s = append(s, f.BareTitle()); len(s) == 3 {
			break
		}
	}
	return strings.Join(s, "; ")
}

// bucketLayers returns a layer for each bucket: its pages and rows are intact if they have no damage.
func bucketLayers(r *compare.Report, m *evidence.Facts) []compare.Layer {
	var out []compare.Layer
	if m.DB == nil {
		return nil
	}
	for _, b := range m.DB.Buckets {
		v := compare.Layer{Name: "bucket " + b, Outcome: check.Holds, Says: rows(m, b),
			Checks: []check.ID{check.D02, check.D03}}
		if bad := titles(r, check.D02, b) + titles(r, check.D03, b); bad != "" {
			v.Outcome, v.Says = check.Violated, bad
		}
		out = append(out, v)
	}
	return out
}

// rows describes the content of a bucket.
func rows(m *evidence.Facts, bucket string) string {
	switch bucket {
	case "key":
		if m.DB.Revisions != nil {
			return plural.Of(*m.DB.Revisions, "record", "records")
		}
	case "lease":
		return plural.Of(len(m.Leases), "row", "rows")
	case "alarm":
		return plural.Of(len(m.Alarms), "row", "rows")
	case "authUsers":
		return plural.Of(len(m.Auth.Users), "row", "rows")
	case "authRoles":
		return plural.Of(len(m.Auth.Roles), "row", "rows")
	case "members":
		return plural.Of(len(m.Membership.Members), "row", "rows")
	case "members_removed":
		return plural.Of(len(m.Membership.Removed), "row", "rows")
	}
	return "readable"
}

func sayMetas(_ *compare.Report, m *evidence.Facts) string {
	for _, p := range m.DB.Metas {
		if p.Used {
			return fmt.Sprintf("transaction %d", p.Txid)
		}
	}
	return ""
}

func sayMVCC(_ *compare.Report, m *evidence.Facts) string {
	d := m.DB
	if d.Keys == nil {
		return ""
	}
	return plural.Of(*d.Keys, "key", "keys") + ", " + plural.Of(*d.Revisions, "record", "records") + ", " +
		plural.Of(*d.Tombstones, "tombstone", "tombstones")
}

func sayAuth(_ *compare.Report, m *evidence.Facts) string {
	state := "off"
	if m.Auth.Enabled {
		state = "on"
	}
	return fmt.Sprintf("%s, %s, %s, auth revision %d", state, plural.Of(len(m.Auth.Users), "user", "users"),
		plural.Of(len(m.Auth.Roles), "role", "roles"), m.Auth.Revision)
}

func sayMembers(_ *compare.Report, m *evidence.Facts) string {
	var s []string
	for _, v := range m.Membership.Members {
		n := v.Name
		if n == "" {
			n = v.ID.String()
		}
		s = append(s, n)
	}
	return fmt.Sprintf("%d: %s", len(s), strings.Join(s, ", "))
}

func sayVersions(_ *compare.Report, m *evidence.Facts) string {
	storage := "absent, as up to 3.5"
	if v := m.DB.StorageVersion; v != nil {
		storage = *v
	}
	s := "storage version " + storage
	if m.ClusterVersion != "" {
		s += ", cluster version " + m.ClusterVersion
	}
	if m.Downgrade != "" {
		s += ", a downgrade to " + m.Downgrade + " is under way"
	}
	return s
}

func sayTakenBy(r *compare.Report, m *evidence.Facts) string {
	var s []string
	if m.WroteBy.Etcd != nil {
		s = append(s, fmt.Sprintf("etcd %s (%s)", *m.WroteBy.Etcd, m.WroteBy.Because))
	}
	switch r.Backup.Origin {
	case compare.OriginSnapshot:
		s = append(s, "written as one transaction by a server (snapshot save)")
	case compare.OriginRaw:
		s = append(s, "copied as a file, not written by snapshot save")
	}
	if m.DB != nil && m.DB.ConsistentIndex != nil {
		at := fmt.Sprintf("at raft index %d", *m.DB.ConsistentIndex)
		if m.DB.Term != nil {
			at += fmt.Sprintf(", term %d", *m.DB.Term)
		}
		s = append(s, at)
	}
	return strings.Join(s, ", ")
}

func sayRevision(_ *compare.Report, m *evidence.Facts) string {
	d := m.DB
	if d.CurrentRevision == nil {
		return ""
	}
	s := fmt.Sprintf("revision %d, never compacted", *d.CurrentRevision)
	if d.CompactRevision != nil && *d.CompactRevision >= 0 {
		s = fmt.Sprintf("revision %d, compacted at %d", *d.CurrentRevision, *d.CompactRevision)
	}
	if d.ScheduledCompact != nil && (d.FinishedCompact == nil || *d.FinishedCompact < *d.ScheduledCompact) {
		s += ", that compaction is unfinished"
	}
	return s
}

// asked reports whether an optional check was requested.
func asked(r *compare.Report, id check.ID) bool {
	return slices.ContainsFunc(r.Checks, func(c compare.CheckOutcome) bool { return c.ID == id })
}
