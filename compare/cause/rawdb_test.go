package cause_test

import (
	"fmt"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// restoredFrom tells of an old member whose log has committed three writes beyond its database, and of a cluster that
// was restored with so many of its revisions and has written on.
func restoredFrom(revisions, tail, since int) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		old := tell(t, root, false, none(1), a1)
		old.elect()
		key, value := func(n int) string { return fmt.Sprintf("/k/%d", n%4) },
			func(n int) string { return fmt.Sprint("value ", n) }
		for n := range 10 {
			old.on(func(h *clustertest.Hand, index uint64) {
				h.Put(old.term, index, clustertest.RequestID(a1, begin1, uint64(20+n)), key(n), value(n), true)
			})
		}
		applied := old.index
		for n := 10; n < 10+tail; n++ {
			old.on(func(h *clustertest.Hand, index uint64) {
				h.Put(old.term, index, clustertest.RequestID(a1, begin1, uint64(20+n)), key(n), value(n), false)
			})
		}
		old.commit()
		old.list(a1)
		old.hands[0].Close(applied, old.term)
		next := tellOf(t, root, 0xc2, true, none(1), a4)
		for n := range revisions {
			next.hands[0].Revision(key(n), value(n))
		}
		next.hands[0].Row("meta", "confState", `{"voters":[161],"auto_leave":false}`)
		next.elect()
		next.puts(since)
		next.done()
	}
}

func TestRestoredFromRawDatabase(t *testing.T) {
	const id = "restored-from-raw-db"
	runTales(t, []tale{
		{name: "of the database alone", tell: restoredFrom(10, 3, 0), class: "foreign-cluster",
			cause: "foreign-cluster", causes: []string{id}},
		{name: "and written to since", tell: restoredFrom(10, 3, 4), class: "foreign-cluster", cause: "foreign-cluster",
			causes: []string{id}},
		{name: "of a backup saved later", tell: restoredFrom(12, 3, 0), class: "foreign-cluster",
			cause: "foreign-cluster", not: []string{id}},
		{name: "of a backup saved earlier", tell: restoredFrom(8, 3, 0), class: "foreign-cluster",
			cause: "foreign-cluster", not: []string{id}},
		{name: "nothing was beyond the database", tell: restoredFrom(10, 0, 0), class: "foreign-cluster",
			cause: "foreign-cluster", not: []string{id}},
	})
}
