package replay

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// revisionsOf yields one-key records "MAIN.SUB" and holes "FROM..TO" as a database does; either bound may be missing.
func revisionsOf(words string) iter.Seq2[dumpdb.Revision, error] {
	return func(yield func(dumpdb.Revision, error) bool) {
		for w := range strings.FieldsSeq(words) {
			from, to, hole := strings.Cut(w, "..")
			if hole {
				d := &dumpdb.DamageError{FirstKey: boundKey(from), LastKey: boundKey(to)}
				if !yield(dumpdb.Revision{}, d) {
					return
				}
				continue
			}
			rev, _ := dumpdb.ParseRev(w)
			if !yield(dumpdb.Revision{Rev: rev, KV: dumpdb.KeyValue{Key: []byte("k")}}, nil) {
				return
			}
		}
	}
}

func boundKey(s string) []byte {
	rev, err := dumpdb.ParseRev(s)
	if err != nil {
		return nil
	}
	return rev.Bytes()
}

// TestHolesDivideRevisions: of a revision with records in unreadable pages no record is used.
func TestHolesDivideRevisions(t *testing.T) {
	for rows, want := range map[string]string{
		"2.0 3.0 3.1 4.0":                 "2:1 3:2 4:1",
		"2.0 3.0 4.0..6.0 6.0":            "2:1 3:1 6:1h",
		"2.0 3.0 3.1..6.0 6.0 7.0":        "2:1 6:1h 7:1",
		"2.0 3.0..6.1 6.1 6.2 7.0":        "2:1 7:1h",
		"2.0 3.0 3.1..3.4 3.4 4.0":        "2:1 4:1h",
		"2.0 3.0 3.1..4.0 4.0..6.0 6.0":   "2:1 6:1h",
		"2.0 3.0 3.1..4.0 4.0..5.1 5.1 6": "2:1 6:1h",
		"2.0 3.0 3.1..":                   "2:1 h",
		"..3.1 3.1 4.0":                   "4:1h",
		"2.0 2.1..":                       "h",
	} {
		c := &cursor{rows: startPrefetch(rowsIn(revisionsOf(rows), dumpdb.Rev{}, nil), nil)}
		var got []string
		for g := c.take(); g != nil; g = c.take() {
			s := fmt.Sprintf("%d:%d", g.main, len(g.records))
			if g.hole {
				s += "h"
			}
			got = append(got, s)
		}
		if c.hole {
			got = append(got, "h")
		}
		c.stop()
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %q, want %s", rows, got, want)
		}
	}
}

// TestRowsOfADatabase: records that restore left, and those before an error, which ends them. What is not asked for is
// not read.
func TestRowsOfADatabase(t *testing.T) {
	broken := errors.New("broken")
	ending := func(yield func(dumpdb.Revision, error) bool) {
		for rev := range revisionsOf("2.0 3.0 4.0") {
			if !yield(rev, nil) {
				return
			}
		}
		if yield(dumpdb.Revision{}, broken) {
			yield(dumpdb.Revision{Rev: dumpdb.Rev{Main: 9}}, nil)
		}
	}
	for name, c := range map[string]struct {
		bump dumpdb.Rev
		stop int
		want string
	}{
		"all":              {want: "2 3 4 broken"},
		"a mark":           {bump: dumpdb.Rev{Main: 3}, want: "2 4 broken"},
		"another mark":     {bump: dumpdb.Rev{Main: 3, Sub: 1}, want: "2 3 4 broken"},
		"as far as needed": {stop: 2, want: "2 3"},
	} {
		var got []string
		for row := range rowsIn(ending, c.bump, nil) {
			if row.err != nil {
				got = append(got, row.err.Error())
				continue
			}
			if got = append(got, fmt.Sprint(row.rev.Main)); len(got) == c.stop {
				break
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	c := &cursor{rows: startPrefetch(rowsIn(ending, dumpdb.Rev{}, nil), nil)}
	defer c.stop()
	n := 0
	for g := c.take(); g != nil; g = c.take() {
		n++
	}
	if n != 3 || !errors.Is(c.err, broken) {
		t.Errorf("%d revisions, %v", n, c.err)
	}
	s := newBench(t, 6, -1).sim
	s.cur.err = broken
	if err := (&walker{r: &Result{}, sims: []*sim{nil, s}}).finish(); !errors.Is(err, broken) {
		t.Errorf("a database that cannot be read: %v", err)
	}
}
