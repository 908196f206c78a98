package cause_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// putBack tells of node2, whose data dir was copied in term 2 and put back after it had been restarted and had gone on
// as told.
func putBack(after func(s *chronicle)) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := bootstrap(t, root)
		s.commit()
		s.list(a1, a2, a3)
		s.closeOnly(1)
		after(s)
		s.puts(4)
		s.finish()
	}
}

// stores writes a HardState with a vote into the log of each of the remaining members; 0 is none.
func (s *chronicle) stores(term uint64, votes ...uint64) {
	s.Helper()
	s.term = term
	for i, h := range s.hands {
		h.State(term, votes[i], s.index)
	}
	s.on(func(h *clustertest.Hand, index uint64) { h.Request(s.term, index, nil) })
}

// writtenIn gives all files a time, as copies that keep times have one.
func writtenIn(t *testing.T, root string, year int) {
	t.Helper()
	when := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
	err := filepath.WalkDir(root, func(p string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(p, when, when))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// later gives the files that a tale writes a time after all of its processes began.
func later(tell func(t *testing.T, root string)) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		tell(t, root)
		writtenIn(t, root, replay.StartTime(replay.RequestID(clustertest.RequestID(a2, begin2, 1))).Year()+1)
	}
}

// restarted tells of node1, which published itself, ended and began once more.
func (s *chronicle) restarted() {
	s.Helper()
	s.publish(a1, begin1)
	s.publish(a1, begin2)
}

// TestRolledBack: the other logs show that a log once went further, by what the member served or by a vote that it
// must have given.
func TestRolledBack(t *testing.T) {
	const id = "data-dir-rolled-back"
	old := tale{class: "member-lost-data", cause: id, certainty: "strong", checks: []string{"R10"}}
	lag := tale{class: "lagging", not: []string{id, "committed-entry-below-quorum"}}
	served := putBack(func(s *chronicle) {
		s.publish(a2, begin2)
		s.put(a2, begin2)
	})
	with := func(name string, c tale, after func(s *chronicle)) tale {
		c.name, c.tell = name, putBack(after)
		return c
	}
	runTales(t, []tale{
		{name: "it served clients", class: old.class, cause: id, certainty: "strong", checks: old.checks,
			tell: later(served)},
		{name: "its files are older than that process", class: "lagging", not: []string{id}, checks: []string{"R10"},
			tell: func(t *testing.T, root string) {
				t.Helper()
				served(t, root)
				writtenIn(t, root, replay.StartTime(replay.RequestID(clustertest.RequestID(a2, begin2, 1))).Year()-1)
			}},
		with("it published itself and was not heard of again", lag, func(s *chronicle) { s.publish(a2, begin2) }),
		with("an old process of it had served before", lag, func(s *chronicle) { s.put(a2, begin1) }),
		{name: "its vote was needed, and its files were written after that", class: old.class, cause: id,
			certainty: "strong", checks: old.checks, tell: later(putBack(func(s *chronicle) {
				s.stores(3, a1, 0)
				s.restarted()
			}))},
		{name: "its vote was needed, and nothing shows whether it was copied before", class: "inconclusive",
			not: []string{id}, checks: old.checks, tell: later(putBack(func(s *chronicle) { s.stores(3, a1, 0) }))},
		with("it was copied before its vote was needed", tale{class: "lagging", not: lag.not, checks: old.checks},
			func(s *chronicle) { s.stores(3, a1, 0) }),
		with("the others elected the leader", lag, func(s *chronicle) { s.stores(3, a1, a1) }),
		with("the votes of the others are not known", lag, func(s *chronicle) {
			s.term = 3
			s.hands[0].State(3, a1, s.index)
			s.on(func(h *clustertest.Hand, index uint64) { h.Request(s.term, index, nil) })
		}),
		{name: "two of three were put back, and one of them voted", class: "member-lost-data",
			cause: "committed-entry-below-quorum", certainty: "strong", checks: []string{"R07"},
			tell: later(putBack(func(s *chronicle) {
				s.closeOnly(1)
				s.stores(3, a1)
				s.restarted()
				s.puts(3)
				s.hands[0].State(3, a1, s.index)
			}))},
		{name: "two of three may have been copied before one of them voted", class: "inconclusive",
			checks: []string{"R07"}, not: []string{id}, tell: later(putBack(func(s *chronicle) {
				s.closeOnly(1)
				s.stores(3, a1)
				s.puts(3)
				s.hands[0].State(3, a1, s.index)
			}))},
		{name: "two of three were copied before the third", class: "inconclusive", checks: []string{"R07"},
			causes: []string{"committed-entry-below-quorum"}, not: []string{id}, tell: putBack(func(s *chronicle) {
				s.closeOnly(1)
				s.puts(3)
				s.commit()
			})},
	})
}
