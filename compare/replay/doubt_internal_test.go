package replay

import (
	"fmt"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestImplausibleIndex: a stored index beyond the log is implausible if it is one bit away from an index of the log, or
// if no majority can have had it, and nothing explains it: neither a lost end of the log without effect, nor damage.
func TestImplausibleIndex(t *testing.T) {
	of := func(first, last, stored uint64) func(*evidence.Member, *Result) {
		return func(m *evidence.Member, r *Result) {
			m.WAL.Summary.FirstIndex, m.WAL.Summary.LastIndex, m.DB.Meta.ConsistentIndex = first, last, &stored
			r.Last, r.Survey.LastChange = last, last
		}
	}
	oneBit := of(1, 1000, 3048) // without bit 2048: 1000
	alone := func(m *evidence.Member, r *Result) {
		of(950, 1000, 1064)(m, r)
		m.Membership.Voters = []dumplog.ID{1}
	}
	reaching := func(m *evidence.Member, r *Result) { // another log reaches the stored index
		oneBit(m, r)
		r.Last = 3048
	}
	writeAt := func(index uint64) func(*evidence.Member, *Result) {
		return func(_ *evidence.Member, r *Result) {
			r.Survey.noteKeyWrite(&item{entry: dumplog.Entry{Index: index}, req: put("a", "1")})
		}
	}
	idle := func(change uint64) func(*evidence.Member, *Result) {
		return func(_ *evidence.Member, r *Result) { r.Survey.LastChange = change }
	}
	revision := func(rev int64) func(*evidence.Member, *Result) {
		return func(m *evidence.Member, _ *Result) { m.DB.KV.CurrentRev = rev }
	}
	type edits []func(*evidence.Member, *Result)
	for name, c := range map[string]struct {
		edits edits
		want  uint64
	}{
		"one bit":                       {edits{oneBit}, 1000},
		"one bit, commit at the end":    {edits{oneBit, func(m *evidence.Member, _ *Result) { m.WAL.Summary.MaxCommit = 1000 }}, 1000},
		"its log knows of more":         {edits{oneBit, func(m *evidence.Member, _ *Result) { m.WAL.Summary.MaxCommit = 1001 }}, 0},
		"an alarm":                      {edits{oneBit, func(m *evidence.Member, _ *Result) { m.DB.Alarms = make([]dumpdb.Alarm, 1) }}, 0},
		"a damaged log":                 {edits{oneBit, func(m *evidence.Member, _ *Result) { m.WAL.Summary.Damage = []*dumplog.DamageError{{}} }}, 0},
		"no survey":                     {edits{oneBit, func(_ *evidence.Member, r *Result) { r.Survey = nil }}, 0},
		"no database":                   {edits{oneBit, func(m *evidence.Member, _ *Result) { m.DB.Handle = nil }}, 0},
		"no records":                    {edits{oneBit, func(m *evidence.Member, _ *Result) { m.DB.KV = nil }}, 0},
		"damaged records":               {edits{oneBit, func(m *evidence.Member, _ *Result) { m.DB.KVDamaged = true }}, 0},
		"no log":                        {edits{of(0, 0, 2048)}, 0},
		"the end of the log":            {edits{of(1, 1000, 1000)}, 0},
		"it idled long before":          {edits{oneBit, idle(488)}, 0},
		"it idled not as long":          {edits{oneBit, idle(489)}, 1000},
		"nothing ever changed":          {edits{oneBit, idle(0)}, 0},
		"another log without writes":    {edits{reaching}, 0},
		"another log with the first":    {edits{reaching, writeAt(1001)}, 1000},
		"another log with the last":     {edits{reaching, writeAt(3048)}, 1000},
		"another log with one before":   {edits{reaching, writeAt(1000)}, 0},
		"another log with one after":    {edits{reaching, writeAt(3049)}, 0},
		"a small bit":                   {edits{of(1, 1030, 1056)}, 0},
		"the smallest bit":              {edits{of(1, 1030, 1088)}, 1024},
		"below the beginning of a log":  {edits{of(950, 1000, 1064)}, 1000},
		"one step less":                 {edits{of(950, 1000, 1063)}, 0},
		"a majority may have it":        {edits{alone}, 0},
		"another log reaches it":        {edits{of(950, 1000, 1064), func(_ *evidence.Member, r *Result) { r.Last = 1064 }}, 0},
		"a revision of each entry":      {edits{of(2, 1000, 3048), revision(1001)}, 1000},
		"more revisions than entries":   {edits{of(2, 1000, 3048), revision(1002)}, 0},
		"the same, and the whole log":   {edits{oneBit, revision(1002)}, 1000},
		"beyond reason":                 {edits{of(1, 1000, 1000|1<<40), idle(0)}, 1000},
		"beyond reason by several bits": {edits{of(1, 1000, 3<<40), idle(0)}, 1000},
	} {
		m := &evidence.Member{MemberID: 1, DB: &evidence.DB{Handle: &dumpdb.DB{}, KV: &dumpdb.KVStats{}},
			WAL: evidence.WAL{Log: &dumplog.Log{}}}
		m.Membership.Voters = []dumplog.ID{1, 2, 3}
		members := []*evidence.Member{m, {MemberID: 2}, {MemberID: 3}}
		for _, o := range members[1:] {
			o.WAL.Log, o.WAL.Summary.LastIndex = &dumplog.Log{}, 900
		}
		r := &Result{Survey: &Survey{}}
		for _, edit := range c.edits {
			edit(m, r)
		}
		if got := r.instead(m, members); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestIndexesToTry: the index to use, then the last committed one, which the database may end with; then the stored
// one, unless that is beyond all reason.
func TestIndexesToTry(t *testing.T) {
	for name, c := range map[string]struct {
		stored, first, commit uint64
		want                  string
	}{
		"no commit index":             {3048, 1, 0, "[1000 0 0]"},
		"a lower commit index":        {3048, 1, 990, "[1000 990 0]"},
		"the commit index is the end": {3048, 1, 1000, "[1000 0]"},
		"before the log":              {3048, 992, 990, "[1000 0]"},
		"right before the log":        {3048, 991, 990, "[1000 990 0]"},
		"beyond reason":               {1000 | 1<<40, 1, 1000, "[1000 1000]"},
		"plausible":                   {1000, 1, 1000, "[]"},
	} {
		m := &evidence.Member{MemberID: 1, DB: &evidence.DB{Handle: &dumpdb.DB{}, KV: &dumpdb.KVStats{}},
			WAL: evidence.WAL{Log: &dumplog.Log{}}}
		m.DB.Meta.ConsistentIndex = &c.stored
		m.WAL.Summary.FirstIndex, m.WAL.Summary.LastIndex, m.WAL.Summary.MaxCommit = c.first, 1000, c.commit
		r := &Result{Last: 1000, Survey: &Survey{LastChange: 1000}}
		doubts := r.doubts([]*evidence.Member{m})
		got := "[]"
		if d := doubts[m]; d != nil {
			got = fmt.Sprint(d.candidates)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
