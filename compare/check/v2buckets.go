package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

// bucketsAgainstV2 compares the member list of the database with the v2 store in the newest snapshot and the entries
// after it. From 3.6 on servers write both from one list. False if that cannot be compared.
func (in *Input) bucketsAgainstV2(m *evidence.Member) ([]Finding, bool) {
	snap := m.NewestSnap()
	at := m.AppliedMin
	kept := func(v release.Version) bool { return !v.Has(release.V2StoreKept).Excluded() }
	if !m.HasDB() || !m.HasLog() || kept(m.Version.Release()) || kept(release.Of(snap.V2.Version)) ||
		at != m.AppliedMax || at < snap.Index || !in.Replay.Covers(snap.Index, at) ||
		m.WAL.Summary.FirstIndex > snap.Index+1 || m.WAL.Summary.LastIndex < at {
		return nil, false
	}
	w := newV2World(m.Version.Release())
	w.load(snap.V2)
	w.run(in, m, snap.Index, at)
	held := &dumplog.V2Store{Version: w.version} // X04 compares the version
	for i := range m.DB.Members {
		row := &m.DB.Members[i]
		held.Members = append(held.Members, dumplog.V2Member{ID: dumplog.ID(row.ID), Name: row.Name,
			PeerURLs: row.PeerURLs, ClientURLs: row.ClientURLs, IsLearner: row.IsLearner})
	}
	for _, id := range m.DB.Removed {
		held.Removed = append(held.Removed, dumplog.ID(id))
	}
	rows, _ := w.differences(held)
	if len(rows) == 0 {
		return nil, true
	}
	f := Finding{Kind: KindV2MembersAgainstBucket, Severity: Error, Class: ClassMembership,
		Members: []string{m.Label()},
		At:      At{Term: snap.Term, Index: snap.Index},
		Title: fmt.Sprintf("%s: the member list of the v2 store of the newest snapshot differs from the database in %s",
			m.Label(), plural.Of(len(rows), "place", "places")),
		Explanation: fmt.Sprintf("the server writes both from one list, and no entry in %d..%d explains the "+
			"difference: %s or the database was changed by other means", snap.Index+1, at, snap.File)}
	for _, r := range rows {
		in.add(&f, func() Evidence {
			return Evidence{Member: m.Label(), File: snap.File, Key: Bytes(r.key), Field: "v2 member list",
				Observed: r.expected, Expected: r.observed + ", as the database has it", Show: showLogAs(m, "--snaps")}
		})
	}
	return []Finding{f}, true
}
