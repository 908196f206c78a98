package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// longStory is a cluster of 30 puts, of which the log holds what comes after the one given.
func longStory(puts, purged int) *story {
	s := newStory("3.5.0")
	for i := range puts {
		n := s.put(fmt.Sprint("k", i%7), fmt.Sprint(i))
		if i+1 == purged {
			s.Purged = n
		}
	}
	return s
}

// move puts the log or the database of one data dir in the place of another's.
func move(t *testing.T, what, from, to string) {
	t.Helper()
	to = filepath.Join(to, "member", what)
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(from, "member", what), to); err != nil {
		t.Fatal(err)
	}
}

// TestHole: a member that lags has a log that ends before those of the others begin. What it has applied is judged by
// its own log, what the others have applied by theirs, and no index between is known of both.
func TestHole(t *testing.T) {
	long := longStory(30, 20)
	dirs := long.Write(t, t.TempDir())
	short := longStory(12, 0)
	dirs[1] = short.Write(t, t.TempDir())[1]
	r := run(t, open(t, dirs...), Options{Each: true})
	for i, want := range []string{"from 21, applied 10", "from 0, applied 12, not-applied 10", "from 21, applied 10"} {
		if got := told(r.Members[i]); got != want {
			t.Errorf("node%d: %s, want %s", i+1, got, want)
		}
	}
	lags, stands := short.Index(4+12), long.Index(4+30)
	if got := r.Members[1].Levels; len(got) != 1 || got[lags] != 13 {
		t.Errorf("revisions of the member that lags: %v", got)
	}
	for _, i := range []int{0, 2} {
		if got := r.Members[i].Levels; len(got) != 1 || got[stands] != 31 {
			t.Errorf("revisions of node%d: %v, want one at %d", i+1, got, stands)
		}
	}
	if want := []Gap{{lags + 1, long.Index(4 + 20)}}; !slices.Equal(r.Gaps, want) {
		t.Errorf("gaps %v, want %v", r.Gaps, want)
	}
}

// TestLevels: the revision of a member is known at every index at which another one stands, from its place on and up to
// its own.
func TestLevels(t *testing.T) {
	s := longStory(30, 10)
	s.Of[1] = clustertest.ScriptMember{AppliedUntil: 4 + 20}
	s.Of[2] = clustertest.ScriptMember{AppliedUntil: 4 + 25}
	r := run(t, open(t, s.Write(t, t.TempDir())...), Options{Each: true})
	at := func(put int) uint64 { return s.Index(4 + put) }
	for i, want := range []map[uint64]int64{{at(20): 21, at(25): 26, at(30): 31}, {at(20): 21},
		{at(20): 21, at(25): 26}} {
		got := r.Members[i].Levels
		if len(got) != len(want) {
			t.Errorf("node%d: %v, want %v", i+1, got, want)
		}
		for index, rev := range want {
			if got[index] != rev {
				t.Errorf("node%d at %d: revision %d, want %d", i+1, index, got[index], rev)
			}
		}
		if rev := r.Members[i].RevisionAt; rev != 21 {
			t.Errorf("node%d: revision %d at the common index, want 21", i+1, rev)
		}
	}
	if r.KeyCommon != at(20) {
		t.Errorf("common index %d, want %d", r.KeyCommon, at(20))
	}
}

// TestLogEndsEarly: what the entries that the log has lost did is nobody's fault, and the member's own revision is
// known.
func TestLogEndsEarly(t *testing.T) {
	for _, purged := range []int{0, 6} {
		dirs := longStory(30, purged).Write(t, t.TempDir())
		s := longStory(12, purged)
		move(t, "wal", s.Write(t, t.TempDir())[0], dirs[0])
		r := run(t, open(t, dirs[0]), Options{})
		m := r.Members[0]
		want := "from 0, applied 12"
		if purged > 0 {
			want = fmt.Sprintf("from %d, applied %d", purged+1, 12-purged)
		}
		if got := told(m); got != want {
			t.Errorf("purged %d: %s, want %s", purged, got, want)
		}
		if at := s.Index(4 + 30); len(m.Levels) != 1 || m.Levels[at] != 31 {
			t.Errorf("purged %d: %v, want the revision of the database at %d", purged, m.Levels, at)
		}
	}
}

// TestLogEndsEarlyAndAlike: what the entries that the log has lost wrote may be what entries before them wrote as well.
// That is neither a second execution nor the place where log and database meet.
func TestLogEndsEarlyAndAlike(t *testing.T) {
	tell := func(rounds, compacted int) *story {
		s := newStory("3.5.0")
		for i := range rounds {
			s.put(fmt.Sprint("k", i%7), fmt.Sprint(i%7))
		}
		if compacted > 0 {
			s.compact(int64(compacted))
		}
		s.Start(0)
		return s
	}
	for compacted, want := range map[int]string{0: "from 0, applied 12", 10: "from 10, applied 3", 28: "from 31"} {
		dirs := tell(30, compacted).Write(t, t.TempDir())
		short := tell(12, 0)
		move(t, "wal", short.Write(t, t.TempDir())[0], dirs[0])
		r := run(t, open(t, dirs[0]), Options{})
		if got := told(r.Members[0]); got != want {
			t.Errorf("compacted at %d: %s, want %s", compacted, got, want)
		}
	}
}

// TestHoleBelowTheMember: the log of a member ends early, those of the others begin below what it has applied. Nobody
// knows what it did between, and none of it is a fault.
func TestHoleBelowTheMember(t *testing.T) {
	for puts, want := range map[int]string{21: "from 21, applied 1, not-applied 9",
		25: "from 21, applied 5, not-applied 5"} {
		dirs := longStory(30, 20).Write(t, t.TempDir())
		dirs[1] = longStory(puts, 0).Write(t, t.TempDir())[1]
		move(t, "wal", longStory(12, 0).Write(t, t.TempDir())[1], dirs[1])
		r := run(t, open(t, dirs...), Options{Each: true})
		if got := told(r.Members[1]); got != want {
			t.Errorf("%d applied: %s, want %s", puts, got, want)
		}
	}
}
