package replay

import (
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
