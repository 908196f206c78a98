package cause_test

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// parted tells of three members whose logs part behind 20 common puts: node1 and node2 go on in one term, node3 in
// another, each knowing its own entries to be committed.
func parted(otherTerm uint64) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := bootstrap(t, root)
		s.commit()
		from := s.index
		s.puts(5, 0, 1)
		s.commit(0, 1)
		last := s.index
		s.index, s.term = from, otherTerm
		s.begin = begin2
		s.hands[2].State(otherTerm, a1, from)
		s.puts(5, 2)
		s.hands[2].State(otherTerm, a1, last)
		s.list(a1, a2, a3)
		s.hands[0].Close(last, 2)
		s.hands[1].Close(last, 2)
		s.hands[2].Close(last, otherTerm)
	}
}

func TestRaftSafety(t *testing.T) {
	runTales(t, []tale{
		{name: "committed entries of two terms", tell: parted(3), class: "data-divergence",
			cause: "raft-log-divergence", certainty: "proof", checks: []string{"R01"},
			not: []string{"two-leaders-one-term", "same-token-twin-clusters"}},
		{name: "committed entries of one term", tell: parted(2), class: "data-divergence",
			cause: "two-leaders-one-term", certainty: "proof", checks: []string{"R01", "R05"},
			causes: []string{"raft-log-divergence"}},
		{name: "uncommitted tails of two terms", tell: tails(3), class: "uncommitted-tail",
			not: []string{"two-leaders-one-term", "raft-log-divergence", "committed-entry-below-quorum"}},
		{name: "uncommitted tails of one term", tell: tails(2), class: "data-divergence", cause: "two-leaders-one-term",
			certainty: "proof", checks: []string{"R05"}, not: []string{"raft-log-divergence"}},
		{name: "one term begun twice", tell: begunTwice, class: "data-divergence", cause: "two-leaders-one-term",
			checks: []string{"R05"}},
		{name: "two votes in one log", tell: votes(3, a1, a2), class: "member-lost-data", cause: "double-vote",
			certainty: "proof", checks: []string{"R06"}},
		{name: "a vote behind none", tell: votes(3, 0, a2), class: "healthy", not: []string{"double-vote"}},
		{name: "votes in two terms", tell: votes(0, a1, a2), class: "healthy", not: []string{"double-vote"}},
		{name: "the commit index falls", tell: commits(20, 12), class: "wal-damage", cause: "hardstate-regress",
			certainty: "proof", checks: []string{"R08"}},
		{name: "the commit index repeats", tell: commits(20, 20), class: "healthy", not: []string{"hardstate-regress"}},
		{name: "a joint configuration", tell: joint(`{"voters":[161,162,163],"voters_outgoing":[161,162],"auto_leave":true}`), class: "membership", cause: "joint-config-left", certainty: "strong", checks: []string{"R09"}},
		{name: "a simple configuration", tell: joint(`{"voters":[161,162,163],"auto_leave":false}`), class: "healthy",
			not: []string{"joint-config-left"}},
		{name: "two of three logs end early", tell: early(1, 2), class: "inconclusive", checks: []string{"R07"},
			causes: []string{"committed-entry-below-quorum"}},
		{name: "two of three logs end early, one database does not",
			tell: earlyThen(func(h *clustertest.Hand, index uint64) { h.Close(index+5, 2) }), class: "wal-damage",
			cause: "wal-tail-lost", checks: []string{"R07", "D04"}, causes: []string{"committed-entry-below-quorum"}},
		{name: "one of three logs ends early", tell: early(2), class: "lagging",
			not: []string{"committed-entry-below-quorum"}},
		{name: "one of two is not at hand", of: []string{"node1", "node2"}, tell: early(1, 2), class: "lagging",
			not: []string{"committed-entry-below-quorum"}},
	})
}

// tails: node1 and node3 hold entries that nobody knows to be committed.
func tails(otherTerm uint64) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := bootstrap(t, root)
		s.commit()
		s.list(a1, a2, a3)
		from := s.index
		tail := func(pos int, term, begin uint64) {
			for n := range uint64(3) {
				s.hands[pos].Put(term, from+1+n, clustertest.RequestID(a1, begin, 90+n), "/tail", "x", false)
			}
		}
		tail(0, s.term, begin1)
		tail(2, otherTerm, begin2)
		s.finish2(from)
	}
}

// finish2 closes the data dirs with that index applied.
func (s *chronicle) finish2(index uint64) {
	for _, h := range s.hands {
		h.Close(index, s.term)
	}
}

// begunTwice: term 3 begins behind the common entries on node1 and two entries later on node3; none is known to be
// committed.
func begunTwice(t *testing.T, root string) {
	t.Helper()
	s := bootstrap(t, root)
	s.commit()
	s.list(a1, a2, a3)
	s.hands[0].Request(3, s.index+1, nil)
	for n := range uint64(2) {
		s.hands[2].Put(2, s.index+1+n, clustertest.RequestID(a1, begin1, 90+n), "/tail", "x", false)
	}
	s.hands[2].Request(3, s.index+3, nil)
	s.finish()
}

// votes: node2 stores votes for two candidates, in the given term or, with 0, in two.
func votes(term, first, second uint64) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := bootstrap(t, root)
		s.commit()
		s.list(a1, a2, a3)
		one, two := term, term
		if term == 0 {
			one, two = 3, 4
		}
		s.hands[1].State(one, first, s.index)
		s.hands[1].State(two, second, s.index)
		s.finish()
	}
}

func commits(one, two uint64) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := bootstrap(t, root)
		s.hands[1].State(s.term, a1, one)
		s.hands[1].State(s.term, a1, two)
		s.done()
	}
}

func joint(confState string) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := bootstrap(t, root)
		for _, h := range s.hands {
			h.Row("meta", "confState", confState)
		}
		s.done()
	}
}

// early: the logs at those positions end before ten entries that the others have committed.
func early(pos ...int) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := bootstrap(t, root)
		s.commit()
		s.list(a1, a2, a3)
		for n := len(pos) - 1; n >= 0; n-- {
			s.closeOnly(pos[n])
		}
		s.puts(10)
		s.commit()
		s.finish()
	}
}

// earlyThen: node2 and node3 end before ten entries that node1 has committed, and node3's data dir is closed as told.
func earlyThen(end func(h *clustertest.Hand, index uint64)) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := bootstrap(t, root)
		s.commit()
		s.list(a1, a2, a3)
		end(s.hands[2], s.index)
		s.hands = s.hands[:2]
		s.closeOnly(1)
		s.puts(10)
		s.commit()
		s.finish()
	}
}
