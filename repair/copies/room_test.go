package copies_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/copies"
)

// TestRoom: the file system of the nearest folder that exists is asked.
func TestRoom(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		where  string
		need   int64
		knows  bool
		refuse bool
	}{
		{dir, 100, true, false},
		{dir, 101, true, true},
		{filepath.Join(dir, "a", "b"), 101, true, true},
		{dir, 101, false, false},
	} {
		asked := ""
		err := copies.Enough(tc.where, tc.need, func(d string) (int64, bool) { asked = d; return 100, tc.knows },
			"free some")
		var r *refusal.Error
		if errors.As(err, &r) != tc.refuse || !tc.refuse && err != nil || tc.refuse && r.Hint != "free some" ||
			asked != dir {
			t.Errorf("%+v: %v, asked about %s", tc, err, asked)
		}
	}
}

// TestBytes: the copies take what the sources take, and a log of each server.
func TestBytes(t *testing.T) {
	c, set := of(t, "a-auth-revision-replay")
	var want int64
	for _, m := range set.Members {
		p := m.Source.Parts()
		for _, d := range []string{p.WAL, p.Snap} {
			files, err := os.ReadDir(d)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				st, err := f.Info()
				if err != nil {
					t.Fatal(err)
				}
				want += st.Size()
			}
		}
		want += 128 << 20
	}
	if n, err := c.Bytes(); err != nil || n != want {
		t.Errorf("%d bytes, want %d: %v", n, want, err)
	}
	for voters, want := range map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3} {
		if got := (&copies.Cluster{Voters: voters}).Quorum(); got != want {
			t.Errorf("the quorum of %d voters is %d", voters, got)
		}
	}
}
