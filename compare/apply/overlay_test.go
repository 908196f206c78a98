package apply

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// steps executes the operations one after the other on a plain list of keys, as a server does, and returns the records.
func steps(live []string, ops []dumplog.RequestOp) (out []string) {
	for _, op := range ops {
		if p := op.Put; p != nil {
			if key := string(p.Key); !slices.Contains(live, key) {
				live = append(live, key)
			}
			out = append(out, "put "+string(p.Key))
			continue
		}
		slices.Sort(live)
		d := op.DeleteRange
		live = slices.DeleteFunc(live, func(key string) bool {
			in := InRange(key, d.Key, d.RangeEnd)
			if in {
				out = append(out, "delete "+key)
			}
			return in
		})
	}
	return out
}

// TestOverlay: any order of puts and deletes in one transaction writes the records that a server writes.
func TestOverlay(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	name := func() string {
		if rnd.IntN(20) == 0 {
			return []string{"", "\x00", "\x00\x00"}[rnd.IntN(3)]
		}
		return fmt.Sprintf("%c%c", 'a'+rnd.IntN(5), 'a'+rnd.IntN(3))[:1+rnd.IntN(2)]
	}
	for round := range 5000 {
		m := NewModel(modelOf("3.5").Version)
		var live []string
		for range rnd.IntN(12) {
			if key := name(); m.Keys.Get(key) == nil {
				m.Keys.Put(Key{Name: key, Mod: 1, Create: 1, Version: 1})
				live = append(live, key)
			}
		}
		var ops []dumplog.RequestOp
		for range 1 + rnd.IntN(12) {
			switch rnd.IntN(5) {
			case 0, 1:
				ops = append(ops, opPut(name(), "v"))
			case 2:
				ops = append(ops, opDelete(name(), ""))
			case 3:
				ops = append(ops, opDelete(name(), "\x00"))
			default:
				ops = append(ops, opDelete(name(), name()))
			}
		}
		var got []string
		for _, w := range m.Evaluate(txnRequest(txn(ops...))).Writes {
			if w.Delete {
				got = append(got, "delete "+w.Key)
			} else {
				got = append(got, "put "+w.Key)
			}
		}
		if want := steps(slices.Clone(live), ops); !slices.Equal(got, want) {
			t.Fatalf("round %d, keys %q:\n%q, want\n%q", round, live, got, want)
		}
	}
}

// TestManyOperations: puts and range deletes in one transaction take time in proportion to their number, however they
// lie, and so do range deletes of a key space that is empty since the first.
func TestManyOperations(t *testing.T) {
	const n = 60_000
	m := modelOf("3.5")
	for i := range n {
		m.Keys.Put(Key{Name: fmt.Sprintf("k%06d", i), Mod: 1, Create: 1, Version: 1})
	}
	for name, op := range map[string]func(i int) []dumplog.RequestOp{
		"puts, each with a delete of another range": func(i int) []dumplog.RequestOp {
			return []dumplog.RequestOp{opPut(fmt.Sprintf("n%06d", i), ""),
				opDelete(fmt.Sprintf("m%06d", i), fmt.Sprintf("m%06d~", i))}
		},
		"deletes of everything": func(i int) []dumplog.RequestOp {
			return []dumplog.RequestOp{opDelete("k", "l"), opPut(fmt.Sprintf("n%06d", i), "")}
		},
		"deletes, each of one key more": func(i int) []dumplog.RequestOp {
			return []dumplog.RequestOp{opDelete("k", fmt.Sprintf("k%06d~", i))}
		},
	} {
		var ops []dumplog.RequestOp
		for i := range n {
			ops = append(ops, op(i)...)
		}
		begin := time.Now()
		m.Evaluate(txnRequest(txn(ops...)))
		if took := time.Since(begin); took > time.Minute { // less than a second on an idle machine
			t.Errorf("%s: %v", name, took)
		}
	}
}
