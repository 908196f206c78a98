package replay

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

func removalOf(id dumplog.ID) *dumplog.Request {
	return &dumplog.Request{Kind: dumplog.KindConfChange,
		ConfChange: &dumplog.ConfChange{Type: dumplog.ConfChangeRemoveNode, NodeID: id}}
}

func raise(kind int32) *dumplog.Request {
	return &dumplog.Request{Kind: dumplog.KindAlarm,
		Alarm: &dumplog.AlarmRequest{Action: 1, MemberID: 0xa1, Alarm: kind}}
}

func leaseRows(ids ...int64) (out []dumpdb.Lease) {
	for _, id := range ids {
		out = append(out, dumpdb.Lease{ID: dumpdb.ID(id), TTL: 60})
	}
	return out
}

// above makes the log go on above entry 10, up to which the member has applied.
func (b *bench) above(reqs []*dumplog.Request) *sim {
	s := b.sim
	s.m.AppliedMin, s.m.AppliedMax, s.committed = 10, 10, 100
	s.m.DB = &evidence.DB{}
	s.past = func(from uint64) iter.Seq2[*item, error] {
		return func(yield func(*item, error) bool) {
			for i, r := range reqs {
				it := &item{entry: dumplog.Entry{Term: 1, Index: uint64(11 + i)}, req: r}
				if r == nil {
					it.req, it.err = &dumplog.Request{}, errors.New("does not decode")
				}
				if it.entry.Index >= from && !yield(it, nil) {
					return
				}
			}
		}
	}
	return s
}

// TestReach: entries above the consistent index explain rows that the log up to the index does not, unless a key of an
// entry before them is not there.
func TestReach(t *testing.T) {
	leased := put("k", "v")
	leased.Put.Lease = 7
	for name, c := range map[string]struct {
		log    []*dumplog.Request
		change func(s *sim)
		// want are the entries and the rows that they explain.
		want string
	}{
		"a grant": {log: []*dumplog.Request{grantOf(7, 60, 0), grantOf(8, 60, 0)},
			change: func(s *sim) { s.m.DB.Leases = leaseRows(7) }, want: "11..11 lease/7"},
		"two grants": {log: []*dumplog.Request{grantOf(7, 60, 0), grantOf(8, 60, 0)},
			change: func(s *sim) { s.m.DB.Leases = leaseRows(7, 8) }, want: "11..12 lease/7 lease/8"},
		"nothing to explain": {log: []*dumplog.Request{grantOf(7, 60, 0)}},
		"a lease of no entry": {log: []*dumplog.Request{grantOf(7, 60, 0)},
			change: func(s *sim) { s.m.DB.Leases = leaseRows(9) }},
		"a grant, and a lease of no entry": {log: []*dumplog.Request{grantOf(7, 60, 0)},
			change: func(s *sim) { s.m.DB.Leases = leaseRows(7, 9) }, want: "11..11 lease/7"},
		"a revoke": {log: []*dumplog.Request{revokeOf(5)},
			change: func(s *sim) { s.Leases[5] = &apply.Lease{TTL: 60, Granted: 3} }, want: "11..11 lease/5"},
		"a revoke that deletes a key": {log: []*dumplog.Request{revokeOf(5)}, change: func(s *sim) {
			s.Leases[5] = &apply.Lease{TTL: 60, Granted: 3}
			s.Keys.Write([]apply.Write{{Key: "k", Lease: 5}}, apply.Key{Mod: 4})
		}},
		"after a key that is not there": {log: []*dumplog.Request{put("k", "v"), grantOf(7, 60, 0)},
			change: func(s *sim) { s.m.DB.Leases = leaseRows(7) }},
		"after a key that is there": {log: []*dumplog.Request{put("k", "v"), grantOf(7, 60, 0)}, change: func(s *sim) {
			s.m.DB.Leases, s.res.Ahead = leaseRows(7), &Stretch{From: 11, To: 11}
		}, want: "12..12 lease/7"},
		"below the last key that is there": {log: []*dumplog.Request{grantOf(7, 60, 0), put("k", "v")},
			change: func(s *sim) { s.m.DB.Leases, s.res.Ahead = leaseRows(7), &Stretch{From: 12, To: 12} },
			want:   "11..12 lease/7"},
		"below a key that is there": {log: []*dumplog.Request{grantOf(7, 60, 0), revokeOf(7), put("k", "v"), grantOf(7, 60, 0)},
			change: func(s *sim) { s.m.DB.Leases, s.res.Ahead = leaseRows(7), &Stretch{From: 13, To: 13} },
			want:   "11..14 lease/7"},
		"after a key that may be without effect": {log: []*dumplog.Request{leased, grantOf(8, 60, 0)},
			change: func(s *sim) { s.m.DB.Leases = leaseRows(8) }, want: "12..12 lease/8"},
		"an alarm": {log: []*dumplog.Request{raise(apply.AlarmNoSpace), put("k", "v"), raise(apply.AlarmCorrupt)},
			change: func(s *sim) {
				s.m.DB.Alarms = []dumpdb.Alarm{{MemberID: 0xa1, Type: apply.AlarmNoSpace}, {MemberID: 0xa1,
					Type: apply.AlarmCorrupt}}
			}, want: "11..13 alarm/CORRUPT of a1 alarm/NOSPACE of a1"},
		"roles": {log: []*dumplog.Request{roleAt(0, "q").Req, roleAt(0, "r").Req}, change: func(s *sim) {
			s.m.DB.Auth = dumpdb.Auth{HasRevision: true, Enabled: true, Revision: 8, Users: []dumpdb.User{{Name: "root",
				Roles: []string{"root"}}}, Roles: []dumpdb.Role{{Name: "q"}}}
		}, want: "11..11 auth/authRevision authRoles/q"},
		"a role, and a revision of no entry": {log: []*dumplog.Request{roleAt(0, "q").Req}, change: func(s *sim) {
			s.m.DB.Auth = dumpdb.Auth{HasRevision: true, Enabled: true, Revision: 7, Users: []dumpdb.User{{Name: "root",
				Roles: []string{"root"}}}, Roles: []dumpdb.Role{{Name: "q"}}}
		}},
		"a grant of a purged log": {log: []*dumplog.Request{grantOf(7, 60, 0)}, change: func(s *sim) {
			s.m.DB.Leases, s.StateKnown, s.ownGrants = leaseRows(7), false, map[int64]leaseGrant{7: {index: 11}}
		}, want: "11..11 lease/7"},
		"a grant of a purged log, with the leases of the database": {log: []*dumplog.Request{grantOf(7, 60, 0)},
			change: func(s *sim) {
				s.m.DB.Leases, s.StateKnown, s.ownGrants = leaseRows(7), false, map[int64]leaseGrant{7: {index: 11}}
				s.Leases = map[int64]*apply.Lease{7: {TTL: 60, Unsure: true}}
			}, want: "11..11 lease/7"},
		"a grant of a purged log, by a client": {log: []*dumplog.Request{grantOf(7, 60, 0)},
			change: func(s *sim) { s.m.DB.Leases, s.StateKnown = leaseRows(7), false }},
		"a removed member": {log: []*dumplog.Request{removalOf(9), grantOf(7, 60, 0)}, change: func(s *sim) {
			s.m.RemovalsAbove = []evidence.ConfEntry{{Index: 11, Change: *removalOf(9).ConfChange}}
		}, want: "11..11 members_removed/9"},
		"after an entry that does not decode": {log: []*dumplog.Request{nil, grantOf(7, 60, 0)},
			change: func(s *sim) { s.m.DB.Leases = leaseRows(7) }},
		"above what is committed": {log: []*dumplog.Request{grantOf(7, 60, 0)},
			change: func(s *sim) { s.m.DB.Leases, s.committed = leaseRows(7), 10 }},
		"an index that lags legally": {log: []*dumplog.Request{grantOf(7, 60, 0)},
			change: func(s *sim) { s.m.DB.Leases, s.Version = leaseRows(7), release.AnyOf(4) }},
		"applied in part": {log: []*dumplog.Request{grantOf(7, 60, 0)},
			change: func(s *sim) { s.m.DB.Leases, s.m.AppliedMax = leaseRows(7), 11 }},
	} {
		s := newBench(t, 6, -1).above(c.log)
		s.Auth = rooted()
		s.Auth.Known, s.Auth.Revision, s.res.AuthExpected, s.res.AuthExpectedMin = true, 7, 7, 7
		s.m.DB.Auth = dumpdb.Auth{HasRevision: true, Enabled: true, Revision: 7,
			Users: []dumpdb.User{{Name: "root", Roles: []string{"root"}}}}
		if c.change != nil {
			c.change(s)
		}
		s.findReach()
		got := ""
		if r := s.res.RowsAhead; r != nil {
			got = fmt.Sprintf("%d..%d", r.From, r.To)
			for _, d := range r.Rows {
				got += " " + strings.TrimSpace(d.Bucket+"/"+d.Key)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestReachIsBounded: so many entries are executed, and no more.
func TestReachIsBounded(t *testing.T) {
	for count, want := range map[int]bool{maxRowEntries: true, maxRowEntries + 1: false} {
		var log []*dumplog.Request
		for i := range count {
			log = append(log, grantOf(int64(1000+i), 60, 0))
		}
		s := newBench(t, 6, -1).above(log)
		s.committed, s.m.DB.Leases = 10_000, leaseRows(int64(999+count))
		for i := range count - 1 {
			s.Leases[int64(1000+i)] = &apply.Lease{TTL: 60}
			s.m.DB.Leases = append(s.m.DB.Leases, leaseRows(int64(1000+i))...)
		}
		if s.findReach(); (s.res.RowsAhead != nil) != want {
			t.Errorf("%d entries: %+v", count, s.res.RowsAhead)
		}
	}
}
