package replay

import (
	"fmt"
	"slices"
	"sort"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// finish compares the end state of the model with the small buckets and records what no entry explained.
func (s *sim) finish() {
	if !s.met {
		s.comeLate()
	}
	s.recall()
	s.finishRuns()
	// Entries that every log has lost can have written the rest of the database. It is therefore not unexplained.
	lost := s.logEnd > 0 && s.m.AppliedMin > s.logEnd
	for g := s.cur.take(); g != nil; g = s.cur.take() {
		if g.main > s.Revision && !lost {
			s.extra(g)
		}
	}
	if lost {
		return
	}
	s.keyAhead()
	s.finishAuth()
	s.leaseFacts()
	s.finishLeases()
	s.leaseFaults()
	s.usedOwnRestarts = s.usedOwnRestarts || len(s.res.Repeats) > 0 && len(s.res.StateDiffs) > 0
	s.finishAlarms()
}

// keyAhead: up to 3.4 the index does not move with entries that write no key, but it is stored with every one that does
// (mvcc/kvstore_txn.go, End). If an entry above it wrote the newest record, one of the two was changed.
func (s *sim) keyAhead() {
	r := s.res
	switch {
	case !s.Version.Known() || s.follows(release.IndexWithEveryEntry) || r.Ahead != nil || s.saved <= s.m.AppliedMin ||
		s.Revision != s.m.CurrentRevision():
		return
	case r.Counts[Missing]+r.Counts[Contradicted] > 0 || len(r.Extra)+len(r.Reruns) > 0:
		return // the model and the database are not in step
	case !s.m.HasWAL() || slices.ContainsFunc(s.m.WAL.Summary.Snapshots,
		func(x dumplog.SnapshotRecord) bool { return x.Index >= s.saved }):
		return // a snapshot stores the index too
	}
	r.Ahead = &Stretch{From: s.saved, To: s.saved, First: s.Revision, Last: s.Revision}
}

func (s *sim) diff(bucket, key, expected, observed string) {
	s.res.StateDiffs = append(s.res.StateDiffs,
		StateDiff{Bucket: bucket, Key: key, Expected: expected, Observed: observed})
}

// extraRow notes a row that the log has deleted.
func (s *sim) extraRow(bucket, key string) {
	s.res.StateDiffs = append(s.res.StateDiffs,
		StateDiff{Bucket: bucket, Key: key, Expected: "absent", Observed: "present", Surplus: true})
}

// finishAuth compares the auth revision without all explained rises, then users and roles.
func (s *sim) finishAuth() {
	db := &s.m.DB.Auth
	if !db.HasRevision {
		return
	}
	var jumped uint64
	for _, j := range s.res.Jumps {
		jumped += min(j.Extra, j.Possible)
	}
	if !s.Auth.Known && len(s.res.Jumps) == 0 {
		return // it is unknown how many of the auth entries succeeded, and what the revision was before them
	}
	lo, hi := int64(s.res.AuthExpectedMin+jumped), int64(s.res.AuthExpected+jumped)
	switch have := int64(db.Revision); {
	case have > hi && s.authAhead(uint64(have-hi)):
	case have > hi && have-hi <= s.authBeyond:
		s.res.AuthExpected += uint64(have - hi)
	case have > hi:
		s.res.Unexplained = have - hi
	case have < lo:
		s.res.Unexplained = have - lo
	}
	if !s.Auth.Known || s.touched["auth"] {
		return
	}
	s.finishUsers()
	s.finishRoles()
	if s.Auth.Enabled != db.Enabled {
		s.diff("auth", "authEnabled", fmt.Sprint(s.Auth.Enabled), fmt.Sprint(db.Enabled))
	}
}

func (s *sim) finishUsers() {
	seen := map[string]bool{}
	for _, u := range s.m.DB.Auth.Users {
		seen[u.Name] = true
		want := s.Auth.Users[u.Name]
		switch {
		case want == nil:
			s.extraRow("authUsers", u.Name)
		case !slices.Equal(want.Roles, u.Roles):
			s.diff("authUsers", u.Name, fmt.Sprintf("roles %v", want.Roles), fmt.Sprintf("roles %v", u.Roles))
		}
	}
	for _, name := range sortedKeys(s.Auth.Users) {
		if !seen[name] {
			s.diff("authUsers", name, "present", "absent")
		}
	}
}

func (s *sim) finishRoles() {
	seen := map[string]bool{}
	for _, r := range s.m.DB.Auth.Roles {
		seen[r.Name] = true
		want, ok := s.Auth.Roles[r.Name]
		if !ok {
			s.extraRow("authRoles", r.Name)
			continue
		}
		var have []string
		for _, p := range r.Perms {
			have = append(have, permText(apply.Permission{Type: p.Type, Key: string(p.Key), End: string(p.RangeEnd)}))
		}
		var expect []string
		for _, p := range want {
			expect = append(expect, permText(p))
		}
		sort.Strings(have)
		sort.Strings(expect)
		if !slices.Equal(have, expect) {
			s.diff("authRoles", r.Name, fmt.Sprintf("%d permissions %q", len(expect), expect),
				fmt.Sprintf("%d permissions %q", len(have), have))
		}
	}
	for _, name := range sortedKeys(s.Auth.Roles) {
		if !seen[name] {
			s.diff("authRoles", name, "present", "absent")
		}
	}
}

func permText(p apply.Permission) string { return fmt.Sprintf("%d %q %q", p.Type, p.Key, p.End) }

// tailTorn reports whether the log ends with an incomplete record, in a release whose consistent index does not count
// entries that write no key. The lost entries may have granted and revoked leases.
func (s *sim) tailTorn() bool {
	return s.Version.Known() && !s.follows(release.IndexWithEveryEntry) && s.m.HasWAL() &&
		slices.ContainsFunc(s.m.WAL.Summary.Damage, func(d *dumplog.DamageError) bool {
			return d.Kind == dumplog.DamageTornTail || d.Kind == dumplog.DamageTail
		})
}

// finishLeases compares lease IDs; TTLs legally differ (each server raises them to its own minimum).
func (s *sim) finishLeases() {
	if !s.StateKnown || s.tailTorn() {
		return
	}
	have := map[int64]bool{}
	for _, l := range s.m.DB.Leases {
		have[int64(l.ID)] = true
		if s.MayHaveForgotten(int64(l.ID)) {
			continue
		}
		if s.Leases[int64(l.ID)] == nil && !s.touched[leaseKey(int64(l.ID))] {
			s.extraRow("lease", l.ID.String())
		}
	}
	for _, id := range sortedKeys(s.Leases) {
		if !have[id] && !s.touched[leaseKey(id)] && !s.Leases[id].Unsure {
			s.diff("lease", dumplog.ID(id).String(), "present", "absent")
		}
	}
}

func (s *sim) finishAlarms() {
	if !s.StateKnown || s.touched["alarm"] {
		return
	}
	have := map[apply.Alarm]bool{}
	for _, a := range s.m.DB.Alarms {
		k := apply.Alarm{Member: dumplog.ID(a.MemberID), Type: a.Type}
		have[k] = true
		if _, ok := s.Alarms[k]; !ok {
			s.extraRow("alarm", alarmText(k))
		}
	}
	for k := range s.Alarms {
		if !have[k] {
			s.diff("alarm", alarmText(k), "present", "absent")
		}
	}
}

func alarmText(k apply.Alarm) string { return evidence.AlarmName(k.Type) + " of " + k.Member.String() }

func sortedKeys[K interface{ ~string | ~int64 }, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
