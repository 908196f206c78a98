package replay

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// sameLog: reading each index from one log gives what reading all logs side by side gives, from every place on; and the
// survey, which is told by sums where it may do so, misses no difference.
func sameLog(t *testing.T, r *Result, set *evidence.Set) {
	t.Helper()
	list := func(log iter.Seq2[*item, error], from uint64) (out []string) {
		for it, err := range log {
			if err != nil {
				t.Fatal(err)
			}
			if it.entry.Index >= from {
				out = append(out, fmt.Sprintf("%d/%d at %v: %x, %d others", it.entry.Term, it.entry.Index, it.entry.Pos,
					apply.SumOf(it.entry.Data), len(it.others)))
			}
		}
		return out
	}
	if want, got := list(merged(context.Background(), logSet{members: set.Members}), 0),
		list(r.first(context.Background()), 0); !slices.Equal(want, got) {
		t.Errorf("survey: %d entries, want %d", len(got), len(want))
	}
	for _, from := range []uint64{0, r.First + 1, (r.First + r.Last) / 2, r.Last} {
		want, got := list(merged(context.Background(), logSet{members: set.Members}), from),
			list(r.log(context.Background(), from), from)
		if !slices.Equal(want, got) {
			t.Errorf("from %d: %d entries, want %d", from, len(got), len(want))
		}
	}
}

// TestStretches: blocks in which one log holds another entry, or lacks one, are not agreed on.
func TestStretches(t *testing.T) {
	log := func(from, to uint64, edit func(*dumplog.Entry) bool) *MemberResult {
		l := evidence.NewLogSums()
		for i := from; i <= to; i++ {
			e := dumplog.Entry{Term: 1, Index: i, Data: []byte("data")}
			if edit == nil || edit(&e) {
				l.Note(&e)
			}
		}
		return &MemberResult{Member: &evidence.Member{WAL: evidence.WAL{Log: &dumplog.Log{}, Sums: l}}}
	}
	at := func(index uint64, change func(*dumplog.Entry) bool) func(*dumplog.Entry) bool {
		return func(e *dumplog.Entry) bool { return e.Index != index || change(e) }
	}
	all := []stretch{{0, 1007, true}}
	middle := []stretch{{0, 287, true}, {288, 303, false}, {304, 1007, true}}
	for name, c := range map[string]struct {
		other *MemberResult
		want  []stretch
	}{
		"equal": {log(1, 1000, nil), all},
		"data": {log(1, 1000, at(300, func(e *dumplog.Entry) bool { e.Data = []byte("dbta"); return true })),
			middle},
		"term":          {log(1, 1000, at(300, func(e *dumplog.Entry) bool { e.Term = 2; return true })), middle},
		"type":          {log(1, 1000, at(300, func(e *dumplog.Entry) bool { e.Type = 1; return true })), middle},
		"index":         {log(1, 1000, at(300, func(e *dumplog.Entry) bool { e.Index = 301; return true })), middle},
		"lacks one":     {log(1, 1000, at(300, func(*dumplog.Entry) bool { return false })), middle},
		"begins later":  {log(300, 1000, nil), []stretch{{288, 303, false}, {304, 1007, true}}},
		"ends earlier":  {log(1, 600, nil), []stretch{{0, 591, true}, {592, 607, false}, {608, 1007, true}}},
		"no sums":       {&MemberResult{Member: &evidence.Member{WAL: evidence.WAL{Log: &dumplog.Log{}}}}, nil},
		"no log at all": {&MemberResult{Member: &evidence.Member{}}, all},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Result{Members: []*MemberResult{log(1, 1000, nil), c.other, log(1, 1000, nil)}}
			got := r.stretches()
			if name == "begins later" {
				got = got[1:] // what only the others hold
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestParts(t *testing.T) {
	member := func(terms ...dumplog.TermRange) *MemberResult {
		return &MemberResult{Member: &evidence.Member{WAL: evidence.WAL{Log: &dumplog.Log{},
			Summary: dumplog.Summary{Terms: terms}}}}
	}
	r := &Result{Members: []*MemberResult{
		member(dumplog.TermRange{Term: 2, First: 50, Last: 60}, dumplog.TermRange{Term: 3, First: 61, Last: 80}),
		{Member: &evidence.Member{}},
		member(dumplog.TermRange{Term: 1, First: 20, Last: 30}, dumplog.TermRange{Term: 2, First: 31, Last: 55},
			dumplog.TermRange{Term: 3, First: 70, Last: 90}),
		member(dumplog.TermRange{Term: 1, First: 1, Last: 10}, dumplog.TermRange{Term: 3, First: 60, Last: 100}),
	}}
	want := []part{{3, 1, 10}, {2, 20, 49}, {0, 50, 80}, {2, 81, 90}, {3, 91, 100}}
	if got := r.parts(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
