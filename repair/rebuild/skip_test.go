package rebuild_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// TestSkip leaves a mistake out: a later transaction that looked at it goes the other way, one that looked at a later revision does not.
func TestSkip(t *testing.T) {
	r, dir := small(t)
	out := filepath.Join(t.TempDir(), "out.db")
	bare := filepath.Join(t.TempDir(), "bare.db")
	res, err := run(t, rebuild.Options{Logs: []evidence.Spec{{Where: dir}}, To: rebuild.Target{Last: true}, Skip: []uint64{r.points[1].index}, Out: out, DBOut: bare})
	if err != nil {
		t.Fatal(err)
	}
	want := []kv{{"a", "last", 2, 6, 2, 0}, {"b", "1", 4, 4, 1, 0}, {"d", "otherwise", 5, 5, 1, 0}, {"e", "2", 7, 8, 2, 0}}
	if d := cmp.Diff(want, held(t, out, true)); d != "" {
		t.Error(d)
	}
	c := res.Consequences
	if c.EntryCount != 1 || c.Entries[0].Index != r.points[3].index || c.KeyCount != 2 || len(c.EmptyRevisions) != 1 || c.EmptyRevisions[0] != 3 {
		t.Errorf("%+v", c)
	}
	if c.Keys[0].Key.Printable() && string(c.Keys[0].Key) != "c" || string(c.Keys[1].Key) != "d" {
		t.Errorf("%+v", c.Keys)
	}
	if st, err := os.Stat(bare); err != nil || st.Size()%512 != 0 {
		t.Errorf("%v %v", st, err)
	}
}
