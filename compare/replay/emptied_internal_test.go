package replay

import (
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestBatches: an entry without data is raft's where the leader may not have applied the conf change before it, or the
// first entry of its term.
func TestBatches(t *testing.T) {
	for name, c := range map[string]struct {
		records string
		emptied bool
	}{
		"three batches after the conf change":     {"e c s e s e s e s 0", true},
		"three batches after the term began":      {"e n s e s e s e s 0", true},
		"two batches":                             {"e c s e s e s 0", false},
		"the conf change was not committed first": {"e c e s e s e s 0", false},
		"two entries in one batch":                {"e c s e s e e s 0", false},
		"a HardState that commits nothing new":    {"e c s e s e u s e s 0", true},
		"HardStates that do not commit them":      {"e c s e u e u e u 0", false},
		"another conf change right before":        {"e c s e s e s e s c 0", false},
		"a conf change long before":               {"c s e c s e s e s e s e s e s 0", true},
		"so large that a message was split":       {"e c s e s b s e s 0", false},
		"a large entry before them":               {"e c s b s e s e s e s 0", true},
		"entries are missing before":              {"e c s e s e s e s g 0", false},
		"a new term":                              {"e c s e s e s e s n 0", false},
		"it begins the term":                      {"e c s e s e s e s n", false},
		"an entry with data":                      {"e c s e s e s e s e", false},
	} {
		var b batches
		index, term, got := uint64(10), uint64(2), false
		for _, r := range strings.Fields(c.records) {
			e := dumplog.Entry{Type: dumplog.EntryNormal, Data: []byte("x")}
			switch r {
			case "s":
				b.add(batchMark{commit: index})
				continue
			case "u":
				b.add(batchMark{commit: 10})
				continue
			case "c":
				e.Type = dumplog.EntryConfChange
			case "b":
				e.Data = make([]byte, maxBatch)
			case "g":
				index += 3
			case "n":
				term, e.Data = term+1, nil
			case "0":
				e.Data = nil
			}
			index++
			e.Index, e.Term = index, term
			got = b.next(&e)
		}
		if got != c.emptied {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestBatchesStayFew: a long log without conf changes needs no more memory, and what was forgotten is not needed.
func TestBatchesStayFew(t *testing.T) {
	var b batches
	for i := uint64(1); i < 10*maxBatchMarks; i++ {
		b.next(&dumplog.Entry{Index: i, Term: 1, Type: dumplog.EntryNormal, Data: []byte("x")})
		b.add(batchMark{commit: i})
		if len(b.marks) > maxBatchMarks {
			t.Fatalf("%d records", len(b.marks))
		}
	}
	if !b.next(&dumplog.Entry{Index: 10 * maxBatchMarks, Term: 1, Type: dumplog.EntryNormal}) {
		t.Error("an entry at the end of a long log was not found")
	}
}
