package replay

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// finish compares the end state of the model with the small buckets and records what no entry explained.
func (s *sim) finish() {
	if !s.met {
		s.below.comeLate()
	}
	s.below.recall()
	s.matcher.finishRuns()
	// Entries that every log has lost can have written the rest of the database. It is therefore not unexplained.
	lost := s.outran()
	s.res.PastLogs = lost && s.meet.index > s.logEnd // it begins above them
	for g := s.cur.take(); g != nil; g = s.cur.take() {
		switch {
		case g.main <= s.Revision:
		case lost:
			s.res.PastLogs = true
		default:
			s.matcher.extra(g)
		}
	}
	if lost {
		s.res.AuthEndLost = true
		return
	}
	s.keyAhead()
	s.auth.finishAuth()
	s.leases.leaseFacts()
	s.leases.finishLeases()
	s.leases.leaseFaults()
	// A restart of another member can have repeated what none of this one has.
	s.auth.usedOwnRestarts = s.auth.usedOwnRestarts ||
		len(s.res.StateDiffs) > 0 && !s.follows(release.IndexWithEveryEntry)
	s.finishAlarms()
	s.findReach()
}

// keyAhead: up to 3.4 the index does not move with entries that write no key, but it is stored with every one that does
// (mvcc/kvstore_txn.go, End). If an entry above it wrote the newest record, one of the two was changed.
func (s *sim) keyAhead() {
	r := s.res
	switch {
	case !s.Version.Known() || s.follows(release.IndexWithEveryEntry) || r.Ahead != nil || s.wrote <= s.m.AppliedMin ||
		s.Revision != s.m.CurrentRevision():
		return
	case r.Counts[Missing]+r.Counts[Contradicted] > 0 || len(r.Extra)+len(r.Reruns) > 0:
		return // the model and the database are not in step
	case !s.m.HasWAL():
		return
	}
	r.Ahead = &Stretch{From: s.wrote, To: s.wrote, First: s.Revision, Last: s.Revision}
}

func (su *subject) diff(bucket, key, expected, observed string) {
	su.res.StateDiffs = append(su.res.StateDiffs,
		StateDiff{Bucket: bucket, Key: key, Expected: expected, Observed: observed})
}

// extraRow notes a row that the log has deleted.
func (su *subject) extraRow(bucket, key string) {
	su.res.StateDiffs = append(su.res.StateDiffs,
		StateDiff{Bucket: bucket, Key: key, Expected: "absent", Observed: "present", Surplus: true})
}

// expected returns the lowest and the highest auth revision that the log gives, with all explained rises.
func (aw *authWatch) expected() (low, high int64, known bool) {
	if !aw.m.DB.Auth.HasRevision || !aw.Auth.Known && len(aw.res.Jumps) == 0 {
		return 0, 0, false // it is unknown how many auth entries succeeded, and what the revision was before them
	}
	var jumped uint64
	for _, j := range aw.res.Jumps {
		jumped += min(j.Extra, j.Possible)
	}
	return int64(aw.res.AuthExpectedMin + jumped), int64(aw.res.AuthExpected + jumped), true
}

// finishAuth compares the auth revision without all explained rises, then users and roles.
func (aw *authWatch) finishAuth() {
	low, high, known := aw.expected()
	if !known {
		return
	}
	switch have := int64(aw.m.DB.Auth.Revision); {
	case have > high && have-high <= aw.authBeyond:
		aw.res.AuthExpected += uint64(have - high)
	case have > high:
		aw.res.Unexplained = have - high
	case have < low:
		aw.res.Unexplained = have - low
	}
	aw.finishRows()
}

// finishRows compares users, roles and whether auth is on, where the log says what they must be.
func (aw *authWatch) finishRows() {
	db := &aw.m.DB.Auth
	if !db.HasRevision || !aw.Auth.Known {
		return
	}
	aw.finishUsers()
	aw.finishRoles()
	if aw.Auth.Enabled != db.Enabled && !aw.authTouched("auth", "authEnabled") {
		aw.diff("auth", "authEnabled", fmt.Sprint(aw.Auth.Enabled), fmt.Sprint(db.Enabled))
	}
}

func (aw *authWatch) finishUsers() {
	seen := map[string]bool{}
	for _, u := range aw.m.DB.Auth.Users {
		seen[u.Name] = true
		if aw.authTouched("authUsers", u.Name) {
			continue
		}
		want := aw.Auth.Users[u.Name]
		switch {
		case want == nil:
			aw.extraRow("authUsers", u.Name)
		case !slices.Equal(want.Roles, u.Roles):
			aw.diff("authUsers", u.Name, fmt.Sprintf("roles %v", want.Roles), fmt.Sprintf("roles %v", u.Roles))
		}
	}
	for _, name := range sortedKeys(aw.Auth.Users) {
		if !seen[name] && !aw.authTouched("authUsers", name) {
			aw.diff("authUsers", name, "present", "absent")
		}
	}
}

func (aw *authWatch) finishRoles() {
	seen := map[string]bool{}
	for _, r := range aw.m.DB.Auth.Roles {
		seen[r.Name] = true
		if aw.authTouched("authRoles", r.Name) {
			continue
		}
		want, ok := aw.Auth.Roles[r.Name]
		if !ok {
			aw.extraRow("authRoles", r.Name)
			continue
		}
		var perms []apply.Permission
		for _, p := range r.Perms {
			perms = append(perms, apply.Permission{Type: p.Type, Key: string(p.Key), End: string(p.RangeEnd)})
		}
		mixed := aw.Auth.Mixed[r.Name]
		have, expect := permTexts(perms, mixed), permTexts(want, mixed)
		if !slices.Equal(have, expect) {
			aw.diff("authRoles", r.Name, fmt.Sprintf("%d permissions %q", len(expect), expect),
				fmt.Sprintf("%d permissions %q", len(have), have))
		}
	}
	for _, name := range sortedKeys(aw.Auth.Roles) {
		if !seen[name] && !aw.authTouched("authRoles", name) {
			aw.diff("authRoles", name, "present", "absent")
		}
	}
}

// permTexts are the permissions of a role in order. In a mixed one the types of several from one key are not known, nor
// how often each is there.
func permTexts(perms []apply.Permission, mixed bool) []string {
	ends := map[string]map[string]bool{}
	for _, p := range perms {
		if ends[p.Key] == nil {
			ends[p.Key] = map[string]bool{}
		}
		ends[p.Key][p.End] = true
	}
	var out []string
	for _, p := range perms {
		text := fmt.Sprintf("%d %q %q", p.Type, p.Key, p.End)
		if mixed && len(ends[p.Key]) > 1 {
			text = fmt.Sprintf("%q %q", p.Key, p.End)
		}
		out = append(out, text)
	}
	slices.Sort(out)
	if mixed {
		out = slices.Compact(out)
	}
	return out
}

// finishLeases compares lease IDs; TTLs legally differ (each server raises them to its own minimum).
func (lw *leaseWatch) finishLeases() {
	if !lw.StateKnown || lw.m.DamageHidesChanges("lease") {
		return
	}
	have := map[int64]bool{}
	for _, l := range lw.m.DB.Leases {
		have[int64(l.ID)] = true
		if lw.MayHaveForgotten(int64(l.ID)) {
			continue
		}
		if lw.Leases[int64(l.ID)] == nil && !lw.touched[leaseKey(int64(l.ID))] {
			lw.extraRow("lease", l.ID.String())
		}
	}
	for _, id := range sortedKeys(lw.Leases) {
		if !have[id] && !lw.touched[leaseKey(id)] && !lw.Leases[id].Unsure {
			lw.diff("lease", dumplog.ID(id).String(), "present", "absent")
		}
	}
}

func (su *subject) finishAlarms() {
	if !su.StateKnown || su.touched["alarm"] {
		return
	}
	have := map[apply.Alarm]bool{}
	for _, a := range su.m.DB.Alarms {
		k := apply.Alarm{Member: dumplog.ID(a.MemberID), Type: a.Type}
		have[k] = true
		if _, ok := su.Alarms[k]; !ok {
			su.extraRow("alarm", alarmText(k))
		}
	}
	for k := range su.Alarms {
		if !have[k] {
			su.diff("alarm", alarmText(k), "present", "absent")
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
