package check_test

import (
	"fmt"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// TestDataRemoved: an entry without data in the middle of a term was altered, unless a conf change may have been
// refused there. Up to 3.3 a leader refuses them longer.
func TestDataRemoved(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		at      []uint64
		title   string
	}{
		"after some batches":                  {"3.6.0", []uint64{10}, "node1: the data of entry 10 was removed"},
		"several":                             {"3.4.0", []uint64{10, 11, 12}, "node1: the data of entry 10 was removed"},
		"right after the beginning of a term": {"3.6.0", []uint64{5}, ""},
		"of 3.3":                              {"3.3.0", []uint64{10}, ""},
		"none":                                {"3.6.0", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			empty := map[uint64]bool{}
			for _, i := range c.at {
				empty[i] = true
			}
			h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
			h.Found(false, 0xa1)
			h.Request(2, 2, nil)
			h.State(2, 0xa1, 2)
			for n := uint64(3); n <= 20; n++ {
				if empty[n] {
					h.Request(2, n, nil)
				} else {
					h.Put(2, n, clustertest.RequestID(0xa1, 1763000000000, n), fmt.Sprint("k", n), "v", true)
				}
				h.State(2, 0xa1, n)
			}
			h.Member(0xa1, false, true)
			h.Versions(c.version)
			in := dirInput(t, h.Close(20, 2))
			if c.title == "" {
				wantOutcome(t, in, "R08", check.Holds)
				return
			}
			fs := run(t, in, "R08").Findings
			if len(fs) != len(c.at) {
				t.Fatalf("%+v", fs)
			}
			f := fs[0]
			if f.Title != c.title || f.Kind != check.KindEntryEmptied || f.Class != "wal-damage" ||
				f.At.Index != c.at[0] || f.Evidence[0].Offset == nil {
				t.Errorf("%+v", f)
			}
		})
	}
}
