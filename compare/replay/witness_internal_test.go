package replay

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestFromAbsentLeader: a received database is that of the leader which proposed the entry, if the member knows no
// later term, and that leader is none of the others, if each voted for another member.
func TestFromAbsentLeader(t *testing.T) {
	member := func(id dumplog.ID, term uint64, s dumplog.Summary) *MemberResult {
		s.HardState, s.LastIndex = &dumplog.HardState{Term: term}, 50
		return &MemberResult{Member: &evidence.Member{MemberID: id, WAL: evidence.WAL{Log: &dumplog.Log{}, Summary: s}}}
	}
	received := func(term uint64, jumps ...dumplog.Jump) *MemberResult {
		return member(1, term, dumplog.Summary{Jumps: jumps})
	}
	voted := func(term uint64, who dumplog.ID) *MemberResult {
		return member(2, term, dumplog.Summary{Votes: []dumplog.Vote{{Term: 2, For: 2}, {Term: term, For: who}}})
	}
	jump := dumplog.Jump{From: 20, To: 40}
	backup := &MemberResult{Member: &evidence.Member{}}
	bare := &MemberResult{Member: &evidence.Member{MemberID: 2}}
	for name, c := range map[string]struct {
		of     *MemberResult
		others []*MemberResult
		want   bool
	}{
		"the other one voted for a third":     {received(3, jump), []*MemberResult{voted(3, 9)}, true},
		"a backup has no vote":                {received(3, jump), []*MemberResult{voted(3, 9), backup}, true},
		"the other one voted for itself":      {received(3, jump), []*MemberResult{voted(3, 2)}, false},
		"it voted for a third in a later one": {received(3, jump), []*MemberResult{voted(4, 9)}, false},
		"it stored no vote":                   {received(3, jump), []*MemberResult{voted(3, 0)}, false},
		"another one has no log":              {received(3, jump), []*MemberResult{voted(3, 9), bare}, false},
		"the member knows a later term":       {received(4, jump), []*MemberResult{voted(3, 9)}, false},
		"it received none":                    {received(3), []*MemberResult{voted(3, 9)}, false},
		"it received an earlier one": {received(3, dumplog.Jump{From: 20, To: 29}),
			[]*MemberResult{voted(3, 9)}, false},
		"the last one ends with the entry": {received(3, jump, dumplog.Jump{From: 25, To: 30}),
			[]*MemberResult{voted(3, 9)}, true},
	} {
		r := &Result{Members: append([]*MemberResult{c.of}, c.others...)}
		if got := r.fromAbsentLeader(0, entryID{Index: 30, Term: 3}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	for name, m := range map[string]*MemberResult{"a backup": backup, "without a log": bare} {
		r := &Result{Members: []*MemberResult{m}}
		if r.fromAbsentLeader(0, entryID{Index: 30, Term: 3}) {
			t.Errorf("%s received one", name)
		}
	}
}
