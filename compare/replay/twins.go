package replay

import (
	"errors"
	"maps"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// errNotEquivalent says that the replay of one member is not valid for another one after all.
var errNotEquivalent = errors.New("members have to be replayed one by one")

// equivalentMembers returns for each member the member that is replayed in its place; a member that maps to itself is
// replayed. One replay is valid for two members if all of its inputs are equal for both. These are every record of
// bucket key byte for byte, the other buckets by meaning, the indexes, the rules, and the log at every index that any
// member has. The remaining difference is a member's own restarts. They matter only to auth revisions up to 3.4, to
// auth revisions of 3.5 that are too high, to leases that contradict the log, and to records that the log does not
// explain. Such records are found while replaying: then the replay stops, and all members are replayed (sim.apart).
func equivalentMembers(r *Result, each bool) []int {
	out := make([]int, len(r.Members))
	for i := range r.Members {
		out[i] = i
		for j := 0; j < i && !each && !r.disputed && len(r.Shifts) == 0 && out[i] == i; j++ {
			if out[j] == j && r.equivalentMembers(r.Members[j].Member, r.Members[i].Member) {
				out[i] = j
			}
		}
	}
	return out
}

func (r *Result) equivalentMembers(a, b *evidence.Member) bool {
	return a.HasDB() && b.HasDB() && sameRules(a, b) && sameRecords(a.DB, b.DB) && sameSmall(a.DB, b.DB) &&
		r.plain(a) && r.plain(b)
}

func sameRules(a, b *evidence.Member) bool {
	return a.Version.Release() == b.Version.Release() && a.AppliedMin == b.AppliedMin && a.AppliedMax == b.AppliedMax &&
		a.IndexFrozen() == b.IndexFrozen()
}

func sameRecords(a, b *evidence.DB) bool {
	return a.RecordsHash != "" && a.RecordsHash == b.RecordsHash && a.KV != nil && b.KV != nil && len(a.Damage) == 0 &&
		len(b.Damage) == 0 &&
		a.KV.CurrentRev == b.KV.CurrentRev && a.KV.CompactRev == b.KV.CompactRev && a.KV.BumpMarker == b.KV.BumpMarker
}

func sameSmall(a, b *evidence.DB) bool {
	return sameAuth(&a.Auth, &b.Auth) &&
		slices.EqualFunc(a.Leases, b.Leases, func(x, y dumpdb.Lease) bool {
			return x.ID == y.ID && x.TTL == y.TTL && x.RemainingTTL == y.RemainingTTL
		}) &&
		slices.EqualFunc(a.Alarms, b.Alarms, func(x, y dumpdb.Alarm) bool {
			return x.MemberID == y.MemberID &&
				x.Type == y.Type
		})
}

// sameAuth leaves out passwords, which the rules do not look at.
func sameAuth(a, b *dumpdb.Auth) bool {
	return a.Enabled == b.Enabled && a.Revision == b.Revision && a.HasRevision == b.HasRevision &&
		slices.EqualFunc(a.Users, b.Users, func(x, y dumpdb.User) bool {
			return x.Name == y.Name && x.NoPassword == y.NoPassword && x.HasOptions == y.HasOptions &&
				slices.Equal(x.Roles, y.Roles)
		}) &&
		slices.EqualFunc(a.Roles, b.Roles, func(x, y dumpdb.Role) bool {
			return x.Name == y.Name && slices.EqualFunc(x.Perms, y.Perms, func(p, q dumpdb.Permission) bool {
				return p.Type == q.Type && slices.Equal(p.Key, q.Key) && slices.Equal(p.RangeEnd, q.RangeEnd)
			})
		})
}

// plain reports whether nothing in the member's own past affects the replay: no snapshot of another member that
// replaced its database or is ahead of it, and no restart that may have applied auth entries twice.
func (r *Result) plain(m *evidence.Member) bool {
	if m.HasWAL() {
		if len(m.WAL.Summary.Jumps) > 0 || slices.ContainsFunc(m.WAL.Summary.Snapshots,
			func(s dumplog.SnapshotRecord) bool { return s.Index > m.AppliedMax }) {
			return false
		}
	}
	always := m.Version.Follows(release.IndexWithAuth) && lastWithout(r.Survey.Versions, release.IndexWithAuth) == 0
	return always || len(r.Survey.Auth) == 0 && len(r.Survey.Stamps) == 0 &&
		m.DB.Auth.Revision <= 1
}

// take copies the result of a twin's replay, except for the results of comparing members: those belong to each member.
func (m *MemberResult) take(o *MemberResult) {
	own := *m
	*m = *o
	m.Member, m.firstBad = own.Member, own.firstBad
	m.Lacks, m.LacksAcked, m.LacksKeys, m.Surplus = own.Lacks, own.LacksAcked, own.LacksKeys, own.Surplus
	m.Unique, m.UniqueKeys = own.Unique, own.UniqueKeys
	m.Jumps, m.Extra, m.Reruns, m.StateDiffs = slices.Clone(o.Jumps), slices.Clone(o.Extra), slices.Clone(o.Reruns),
		slices.Clone(o.StateDiffs)
	m.Leases, m.Kept, m.Beyond, m.Shut = slices.Clone(o.Leases), slices.Clone(o.Kept), slices.Clone(o.Beyond),
		slices.Clone(o.Shut)
	m.Below, m.Curve.Points = slices.Clone(o.Below), slices.Clone(o.Curve.Points)
	m.LeaseFaults, m.Repeats = slices.Clone(o.LeaseFaults), maps.Clone(o.Repeats)
}

// blank clears the result of a replay that was stopped.
func (r *Result) blank() {
	for i, m := range r.Members {
		clear(m.LacksKeys)
		clear(m.UniqueKeys)
		r.Members[i] = &MemberResult{Member: m.Member, LacksKeys: m.LacksKeys, UniqueKeys: m.UniqueKeys}
	}
	r.Events, r.EventCount, r.Watched, r.WatchedCount, r.KeyCommon = nil, 0, nil, 0, r.Common
}
