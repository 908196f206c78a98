package htmlreport

import (
	"fmt"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestSegments: what is missing between two segments, and after the last one, is listed as lost.
func TestSegments(t *testing.T) {
	one := dumplog.Segment{Name: "a", Seq: 4, First: 11, FirstEntry: 11, LastEntry: 20}
	two := dumplog.Segment{Name: "b", Seq: 5, First: 21, FirstEntry: 21, LastEntry: 30}
	// Its number has a gap, but its entries follow those of the first, or come before its end.
	renamed := dumplog.Segment{Name: "r", Seq: 9, First: 21, FirstEntry: 21, LastEntry: 30}
	again := dumplog.Segment{Name: "g", Seq: 9, First: 16, FirstEntry: 16, LastEntry: 30}
	nameless := dumplog.Segment{Name: "n", Seq: 9, FirstEntry: 16, LastEntry: 30}
	three := dumplog.Segment{Name: "c", Seq: 6, First: 31, FirstEntry: 31, LastEntry: 40}
	for name, c := range map[string]struct {
		segments []dumplog.Segment
		commit   uint64
		damaged  string
		want     string
	}{
		"whole":          {[]dumplog.Segment{one, two}, 30, "", "a 11-20, b 21-30"},
		"purged":         {[]dumplog.Segment{three}, 40, "", "c 31-40"},
		"one is missing": {[]dumplog.Segment{one, three}, 40, "", "a 11-20, lost 21-30, c 31-40"},
		"no last one":    {[]dumplog.Segment{one, two}, 39, "", "a 11-20, b 21-30, lost 31-39"},
		"a damaged one":  {[]dumplog.Segment{one, two}, 30, "b", "a 11-20, b 21-30 bad"},
		"only a number":  {[]dumplog.Segment{one, renamed}, 30, "", "a 11-20, r 21-30"},
		"overlapping":    {[]dumplog.Segment{one, again}, 30, "", "a 11-20, g 16-30"},
		"no first index": {[]dumplog.Segment{one, nameless}, 30, "", "a 11-20, n 16-30"},
		"none":           {nil, 30, "", ""},
	} {
		w := &evidence.WALFacts{Segments: c.segments}
		if n := len(c.segments); n > 0 {
			w.FirstIndex, w.LastIndex = c.segments[0].FirstEntry, c.segments[n-1].LastEntry
		}
		if c.damaged != "" {
			w.Damage = []evidence.DamageFacts{{File: c.damaged, OnStart: dumplog.StartUnnoticed}}
		}
		got := ""
		for i, s := range segmentsOf(&evidence.Facts{WAL: w, Commit: c.commit}) {
			if i > 0 {
				got += ", "
			}
			what := s.Name
			if s.Lost {
				what = "lost"
			}
			got += fmt.Sprintf("%s %d-%d", what, s.First, s.Last)
			if s.Bad {
				got += " bad"
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := segmentsOf(&evidence.Facts{}); got != nil {
		t.Errorf("no log: %+v", got)
	}
}
