package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

// againstBuckets compares the member list of the database with the v2 store in the newest snapshot and the entries
// after it. From 3.6 on servers write both from one list. False if that cannot be compared.
func (in v2Lists) againstBuckets(m *evidence.Member) ([]Finding, bool) {
	snap := m.NewestSnap()
	at := m.AppliedMin
	kept := func(v release.Version) bool { return !v.Has(release.V2StoreKept).Excluded() }
	if !m.HasDB() || !m.HasLog() || at < snap.Index || !in.Replay.Covers(snap.Index, at) ||
		m.WAL.Summary.FirstIndex > snap.Index+1 || m.WAL.Summary.LastIndex < at {
		return nil, false
	}
	if kept(m.Version.Release()) || kept(release.Of(snap.V2.Version)) {
		rows, compared := in.sameMembers(m, snap)
		return in.bucketFindings(m, snap, m.WAL.Summary.LastIndex, rows), compared
	}
	if at != m.AppliedMax {
		return nil, false
	}
	held := &dumplog.V2Store{} // X04 compares the version
	for i := range m.DB.Members {
		row := &m.DB.Members[i]
		held.Members = append(held.Members, dumplog.V2Member{ID: dumplog.ID(row.ID), Name: row.Name,
			PeerURLs: row.PeerURLs, ClientURLs: row.ClientURLs, IsLearner: row.IsLearner})
	}
	for _, id := range m.DB.Removed {
		held.Removed = append(held.Removed, dumplog.ID(id))
	}
	upTo := func(to uint64) []v2Difference {
		w := newV2World(m.Version.Release())
		w.load(snap.V2)
		w.run(in.Input, m, snap.Index, to)
		held.Version = w.version
		rows, _ := w.differences(held)
		return rows
	}
	rows := upTo(at)
	if end := m.WAL.Summary.LastIndex; len(rows) > 0 && end > at && len(upTo(end)) == 0 {
		return nil, true // the database is of a later entry than its index says: M16
	}
	return in.bucketFindings(m, snap, at, rows), true
}

// sameMembers compares the rows of members that both lists have and that no entry after the snapshot changes, up to the
// end of the log: up to 3.4 a database contains changes above its index. Which members are listed can differ, as
// servers up to 3.5 write each list by itself, until a member has published itself: that writes the whole row
// (server/etcdserver/api/membership/cluster.go, UpdateAttributes, 3.3 to 3.5). False if there is no such row.
func (in v2Lists) sameMembers(m *evidence.Member, snap *dumplog.SnapFile) (out []v2Difference, compared bool) {
	changes := in.Membership().confEntries(m)
	for i := range snap.V2.Members {
		listed := &snap.V2.Members[i]
		id := listed.ID
		if slices.ContainsFunc(changes, func(c evidence.ConfEntry) bool {
			return c.Index > snap.Index && c.Change.NodeID == id
		}) {
			continue
		}
		note := func(have, want string) {
			if compared = true; have != want {
				out = append(out, v2Difference{"member " + id.String(), want, have})
			}
		}
		at := slices.IndexFunc(m.DB.Members, func(x dumpdb.Member) bool { return dumplog.ID(x.ID) == id })
		if at < 0 {
			if len(listed.ClientURLs) > 0 && !m.RowsHidden("members") {
				note("name "+listed.Name+", client URLs "+sortedText(listed.ClientURLs), "absent")
			}
			continue
		}
		row := &m.DB.Members[at]
		note("peer URLs "+sortedText(listed.PeerURLs), "peer URLs "+sortedText(row.PeerURLs))
		if len(listed.ClientURLs) > 0 && len(row.ClientURLs) > 0 && !slices.ContainsFunc(in.Replay.Survey.Starts[id],
			func(s replay.Start) bool { return s.Index > snap.Index }) {
			note("name "+listed.Name+", client URLs "+sortedText(listed.ClientURLs),
				"name "+row.Name+", client URLs "+sortedText(row.ClientURLs))
		}
	}
	return out, compared
}

func sortedText(list []string) string { return strings.Join(slices.Sorted(slices.Values(list)), ",") }

// bucketFindings is one finding for all rows that differ, with the database's value as the one observed there.
func (in v2Lists) bucketFindings(m *evidence.Member, snap *dumplog.SnapFile, at uint64, rows []v2Difference) []Finding {
	if len(rows) == 0 {
		return nil
	}
	f := Finding{Kind: KindV2MembersAgainstBucket, Severity: Error, Class: ClassMembership,
		Members: []string{m.Label()},
		At:      At{Term: snap.Term, Index: snap.Index},
		Title: fmt.Sprintf("%s: the member list of the v2 store of the newest snapshot differs from the database in %s",
			m.Label(), plural.Of(len(rows), "place", "places")),
		Explanation: fmt.Sprintf("servers write each change into both, and no entry in %d..%d explains the "+
			"difference: %s or the database was changed by other means", snap.Index+1, at, snap.File)}
	for _, r := range rows {
		in.add(&f, func() Evidence {
			return Evidence{Member: m.Label(), File: snap.File, Key: Bytes(r.key), Field: "v2 member list",
				Observed: r.expected, Expected: r.observed + ", as the database has it", Show: showLogAs(m, "--snaps")}
		})
	}
	return []Finding{f}
}
