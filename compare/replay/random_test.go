package replay

import (
	"fmt"
	"math/rand/v2"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// randomStory is a sound cluster: few keys, written, guarded, deleted, leased and revoked in any order, with tries that
// had no effect between; purged and compacted somewhere. How it is drawn follows from the seed.
func randomStory(seed uint64) *story {
	rnd := rand.New(rand.NewPCG(seed, 0))
	s := newStory([]string{"3.4.0", "3.5.0", "3.6.0"}[seed%3])
	steps := 20 + rnd.IntN(60)
	purge, compact := rnd.IntN(steps), rnd.IntN(steps)
	live, held, granted := map[string]bool{}, map[string]int64{}, map[int64]bool{}
	next := int64(100)
	for i := range steps {
		if i == purge {
			s.purge()
			live["last before"] = true
		}
		if i == compact && s.rev > 2 {
			s.compact(2 + rnd.Int64N(s.rev-1))
		}
		key, value := fmt.Sprint("k", rnd.IntN(5)), fmt.Sprint(rnd.IntN(3))
		switch rnd.IntN(10) {
		case 0, 1:
			s.put(key, value)
			live[key], held[key] = true, 0
		case 2, 3:
			s.guarded(key, value)
			live[key], held[key] = true, 0
		case 4:
			s.failed(ifMod(key, s.mod[key]+1000, value))
		case 5:
			if live[key] {
				s.del(key)
				s.mod[key], live[key], held[key] = 0, false, 0
			} else {
				s.failed(&pb.InternalRaftRequest{DeleteRange: &pb.DeleteRangeRequest{Key: []byte(key)}})
			}
		case 6:
			if live[key] {
				s.failed(ifAbsent(key, value))
			} else {
				s.wrote(ifAbsent(key, value), key)
				live[key] = true
			}
		case 7:
			next++
			s.grant(next)
			granted[next] = true
		case 8:
			if granted[next] {
				s.held(key, next)
				live[key], held[key] = true, next
			}
		case 9:
			if granted[next] {
				s.end(next, live, held)
				delete(granted, next)
			}
		}
	}
	if s.Purged == 0 {
		s.purge()
	}
	return s
}

// end revokes a lease; without keys that makes no revision.
func (s *story) end(id int64, live map[string]bool, held map[string]int64) {
	before := s.rev
	s.revoke(id)
	s.rev = before
	for k, lease := range held {
		if lease == id {
			s.rev = before + 1
			live[k], held[k], s.mod[k] = false, 0, 0
		}
	}
}

// TestSoundHistories: whatever a sound cluster wrote, and wherever its log begins and its database was compacted,
// nothing is wrong.
func TestSoundHistories(t *testing.T) {
	judged := 0
	for seed := uint64(0); seed < 170; seed++ {
		s := randomStory(seed)
		m := run(t, open(t, s.Write(t, t.TempDir())[0]), Options{}).Members[0]
		if !m.Checked || m.Counts[Missing]+m.Counts[Contradicted]+m.Counts[NotApplied]+len(m.Extra)+len(m.Reruns)+
			m.BelowCount+len(m.StateDiffs)+len(m.LeaseFaults) > 0 {
			t.Errorf("seed %d: %s %+v", seed, told(m), m.LeaseFaults)
		}
		if m.Member.CurrentRevision() != s.rev {
			t.Fatalf("seed %d: the story is at revision %d, the database at %d", seed, s.rev,
				m.Member.CurrentRevision())
		}
		judged += m.Counts[Applied]
	}
	if judged < 300 {
		t.Errorf("only %d entries were judged in all", judged)
	}
}
