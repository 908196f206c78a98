package cause_test

import (
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// grown tells of a cluster on data of a version that adds learner a4, which publishes itself, and then does what more
// says.
func grown(storage string, more func(s *chronicle)) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := bootstrap(t, root)
		s.on(func(h *clustertest.Hand, index uint64) {
			h.Conf(s.term, index, clustertest.AddLearner(a4, clustertest.RequestID(a1, begin1, 210)))
		})
		s.publish(a4, begin1)
		more(s)
		for _, h := range s.hands {
			if storage != "" {
				h.Versions(storage)
			}
		}
		s.puts(3)
		s.done()
	}
}

func (s *chronicle) promote(learnerRow bool) {
	s.Helper()
	s.on(func(h *clustertest.Hand, index uint64) {
		h.Conf(s.term, index, clustertest.Promote(a4, clustertest.RequestID(a1, begin1, 211)))
		h.Member(a4, learnerRow, true)
	})
}

func TestLearnersAtAStart(t *testing.T) {
	const promotion, forced = "learner-promotion-replay-36", "force-new-cluster-learner-panic"
	promoted := func(s *chronicle) { s.promote(false) }
	quorumLost := func(s *chronicle) {
		for _, h := range s.hands {
			h.Member(a4, true, true)
		}
		for id := uint64(0xb1); id <= 0xb4; id++ {
			s.on(func(h *clustertest.Hand, index uint64) {
				h.Conf(s.term, index, clustertest.AddVoter(id, clustertest.RequestID(a1, begin1, id)))
				h.Member(id, false, false)
			})
		}
	}
	runTales(t, []tale{
		{name: "a promotion behind the snapshot on 3.6", tell: grown("3.6.0", promoted), class: "healthy",
			causes: []string{promotion}, not: []string{forced}},
		{name: "on 3.5", tell: grown("", promoted), class: "healthy", not: []string{promotion}},
		{name: "on 3.7", tell: grown("3.7.0", promoted), class: "healthy", not: []string{promotion}},
		{name: "a snapshot behind the promotion", tell: grown("3.6.0", func(s *chronicle) {
			s.promote(false)
			s.commit()
			for _, h := range s.hands {
				h.Snapshot(s.term, s.index, a1, a2, a3, a4)
			}
		}), class: "healthy", not: []string{promotion}},
		{name: "two real learners", tell: grown("3.6.0", func(s *chronicle) {
			for _, h := range s.hands {
				h.Member(a4, true, true)
			}
		}), class: "healthy", not: []string{promotion, "stuck-learner"}},
		{name: "the bucket still shows the learner", tell: grown("3.6.0", func(s *chronicle) { s.promote(true) }),
			class: "membership", cause: "learner-promotion-not-persisted", not: []string{promotion}},
		{name: "quorum lost on 3.4 with a learner", tell: on34(grown("", quorumLost)), class: "membership",
			cause: "quorum-lost-after-member-add", causes: []string{forced}},
		{name: "quorum lost on 3.5 with a learner", tell: grown("", quorumLost), class: "membership",
			cause: "quorum-lost-after-member-add", not: []string{forced}},
		{name: "a learner on 3.4, quorum up", tell: on34(grown("", func(s *chronicle) {
			for _, h := range s.hands {
				h.Member(a4, true, true)
			}
		})), class: "healthy", not: []string{forced}},
	})
}

// on34 takes the marks of 3.5 from the databases.
func on34(tell func(t *testing.T, root string)) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		tell(t, root)
		dirs, err := filepath.Glob(filepath.Join(root, "*", "member"))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			editDB(func(tx *bbolt.Tx) error {
				if err := tx.Bucket([]byte("meta")).Delete([]byte("term")); err != nil {
					return err
				}
				return tx.Bucket([]byte("cluster")).Put([]byte("clusterVersion"), []byte("3.4.0"))
			})(t, dir)
		}
	}
}

// updated is the update of a learner's peer URL.
func updated(request uint64) raftpb.ConfChange {
	cc := clustertest.AddVoter(a4, request)
	cc.Type = raftpb.ConfChangeUpdateNode
	return cc
}

// TestLearnerFlagDropped: bucket members says voter of a learner; an update in the log proves why, a whole log without
// one excludes it.
func TestLearnerFlagDropped(t *testing.T) {
	const id = "member-update-drops-learner"
	voter := func(s *chronicle) {
		for _, h := range s.hands {
			h.Member(a4, false, true)
		}
	}
	runTales(t, []tale{
		{name: "with the update", class: "membership", cause: id, certainty: "proof", checks: []string{"M07"},
			tell: grown("", func(s *chronicle) {
				s.on(func(h *clustertest.Hand, index uint64) {
					h.Conf(s.term, index, updated(clustertest.RequestID(a1, begin1, 212)))
				})
				voter(s)
			})},
		{name: "a whole log without one", class: "membership", checks: []string{"M07"}, not: []string{id},
			tell: grown("", voter)},
		{name: "logs torn after the last entry", class: "membership", cause: "wal-torn-tail",
			checks: []string{"M07"}, not: []string{id}, tell: endsLost(grown("", voter))},
	})
}

// endsLost cuts all logs inside of their last record, a HardState.
func endsLost(tell func(t *testing.T, root string)) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		tell(t, root)
		dirs, err := filepath.Glob(filepath.Join(root, "*", "member"))
		if err != nil || len(dirs) == 0 {
			t.Fatal(dirs, err)
		}
		for _, dir := range dirs {
			cutWAL(-2, 12)(t, dir)
		}
	}
}

// TestQuorumFromBucket37: on 3.7 only IDs and learner flags move the quorum.
func TestQuorumFromBucket37(t *testing.T) {
	const id = "members-bucket-is-quorum-37"
	differs := func(row string) func(t *testing.T, root string) {
		return grown("3.7.0", func(s *chronicle) {
			s.promote(false)
			if row != "" {
				s.hands[1].Row("members", "a4", row)
			}
		})
	}
	runTales(t, []tale{
		{name: "equal", tell: differs(""), class: "healthy", not: []string{id}},
		{name: "another peer URL", tell: differs(`{"id":164,"peerURLs":["http://elsewhere:2380"],"name":"node4","clientURLs":["http://127.0.0.1:2379"]}`), class: "membership", checks: []string{"M02"}, not: []string{id}},
		{name: "a learner on one", tell: differs(`{"id":164,"peerURLs":["http://127.0.0.1:164"],"isLearner":true,"name":"node4","clientURLs":["http://127.0.0.1:2379"]}`), class: "membership",
			cause: "learner-promotion-not-persisted", causes: []string{id}, checks: []string{"M02", "M07"}},
	})
}
