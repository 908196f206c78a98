package cause_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// The IDs of the synthetic clusters, and the millisecond at which their processes begin.
const (
	c1     = 0xc1
	a1     = 0xa1
	a2     = 0xa2
	a3     = 0xa3
	a4     = 0xa4
	begin1 = 763_000_000_000
	begin2 = begin1 + 60_000
)

// chronicle is a cluster whose members' data dirs are written entry by entry.
type chronicle struct {
	*testing.T
	hands []*clustertest.Hand
	ids   []uint64
	term  uint64
	index uint64
	n     uint64
	begin uint64
}

// tell begins a cluster of the given members: bootstrapped or restored, each with so many revisions from before.
func tell(t *testing.T, root string, restored bool, before []int, ids ...uint64) *chronicle {
	t.Helper()
	return tellOf(t, root, c1, restored, before, ids...)
}

// tellOf is tell for a cluster of another ID.
func tellOf(t *testing.T, root string, cluster uint64, restored bool, before []int, ids ...uint64) *chronicle {
	t.Helper()
	s := &chronicle{T: t, ids: ids, term: 1, index: uint64(len(ids)), begin: begin1}
	for i, id := range ids {
		h := clustertest.NewHand(t, root, clustertest.HandName(id), id, cluster)
		base(h, before[i])
		h.Found(restored, ids...)
		s.hands = append(s.hands, h)
	}
	return s
}

// base writes revisions from before the log.
func base(h *clustertest.Hand, n int) {
	for i := range n {
		h.Revision(fmt.Sprintf("/old/%02d", i%7), fmt.Sprint("old value ", i))
	}
}

func none(n int) []int { return make([]int, n) }

// bootstrap tells of three members that have elected a leader, published themselves and written 20 keys.
func bootstrap(t *testing.T, root string) *chronicle {
	t.Helper()
	s := tell(t, root, false, none(3), a1, a2, a3)
	s.elect()
	s.puts(20)
	return s
}

// on writes the next entry into the logs of the members at those positions, all without any.
func (s *chronicle) on(write func(h *clustertest.Hand, index uint64), pos ...int) {
	s.Helper()
	s.index++
	for i, h := range s.hands {
		if len(pos) == 0 || slices.Contains(pos, i) {
			write(h, s.index)
		}
	}
}

// elect begins a term with the first member as leader; all publish themselves.
func (s *chronicle) elect() {
	s.Helper()
	s.term++
	for _, h := range s.hands {
		h.State(s.term, s.ids[0], s.index)
	}
	s.on(func(h *clustertest.Hand, index uint64) { h.Request(s.term, index, nil) })
	for _, id := range s.ids {
		s.publish(id, s.begin)
	}
}

func (s *chronicle) publish(id, begin uint64) {
	s.Helper()
	s.on(func(h *clustertest.Hand, index uint64) {
		h.Publish(s.term, index, id, clustertest.RequestID(id, begin, 1))
	})
}

// puts writes n puts of the first member, applied by all that have them.
func (s *chronicle) puts(n int, pos ...int) {
	s.Helper()
	for range n {
		s.put(s.ids[0], s.begin, pos...)
	}
}

func (s *chronicle) put(proposer, begin uint64, pos ...int) {
	s.Helper()
	s.n++
	s.on(func(h *clustertest.Hand, index uint64) {
		h.Put(s.term, index, clustertest.RequestID(proposer, begin, 10+s.n), fmt.Sprintf("/k/%02d", s.n%9),
			fmt.Sprint("value ", s.n), true)
	}, pos...)
}

// commit stores the commit index.
func (s *chronicle) commit(pos ...int) {
	for i, h := range s.hands {
		if len(pos) == 0 || slices.Contains(pos, i) {
			h.State(s.term, s.ids[0], s.index)
		}
	}
}

// list writes the member list of started voters into the databases.
func (s *chronicle) list(ids ...uint64) {
	for _, h := range s.hands {
		for _, id := range ids {
			h.Member(id, false, true)
		}
	}
}

// done ends the story at its last index: all have applied everything.
func (s *chronicle) done() {
	s.commit()
	s.list(s.ids...)
	s.finish()
}

// finish closes the data dirs as they are.
func (s *chronicle) finish() {
	for _, h := range s.hands {
		h.Close(s.index, s.term)
	}
}

// closeOnly closes the data dir at that position, which takes no further part.
func (s *chronicle) closeOnly(pos int) {
	s.hands[pos].Close(s.index, s.term)
	s.hands = slices.Delete(s.hands, pos, pos+1)
}

// judged diagnoses every data dir below root and proves that they are unchanged.
func judged(t *testing.T, root string, names ...string) *compare.Report {
	t.Helper()
	if len(names) == 0 {
		entries, err := os.ReadDir(root)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
	}
	var specs []evidence.Spec
	for _, n := range names {
		specs = append(specs, evidence.Spec{Name: n, Where: filepath.Join(root, n)})
	}
	evidencetest.Unchanged(t, root)
	r := diagnose(t, specs)
	everyFindingHasEvidence(t, r)
	return r
}

// tale is a story and what the diagnosis must say about it.
type tale struct {
	name string
	tell func(t *testing.T, root string)
	// class and cause of the verdict; cause "" is none. certainty is looked at when given.
	class, cause, certainty string
	// checks must be violated, holds must not; causes must be listed, not must not.
	checks, holds, causes, not []string
	// of names the sources, all when empty.
	of []string
}

func (c *tale) check(t *testing.T) {
	t.Helper()
	root := t.TempDir()
	c.tell(t, root)
	r := judged(t, root, c.of...)
	cause, certainty := "", ""
	if r.Verdict.Cause != nil {
		cause, certainty = string(*r.Verdict.Cause), string(*r.Verdict.Certainty)
	}
	if string(r.Verdict.Class) != c.class || cause != c.cause || c.certainty != "" && certainty != c.certainty {
		t.Errorf("class %s cause %q %s, want %s %q %s: %s", r.Verdict.Class, cause, certainty, c.class, c.cause,
			c.certainty, r.Verdict.Summary)
		for _, f := range r.Findings {
			t.Logf("%s %s %s %v at %d: %s", f.ID, f.Severity, f.Class, f.Members, f.At.Index, f.Title)
		}
	}
	for _, id := range c.checks {
		if got := outcome(r, id); got != check.Violated {
			t.Errorf("%s %s, want violated", id, got)
		}
	}
	for _, id := range c.holds {
		if got := outcome(r, id); got != check.Holds {
			t.Errorf("%s %s, want holds: %+v", id, got, findings(r, "", id))
		}
	}
	listed := map[string]bool{}
	for _, k := range r.Causes {
		listed[string(k.ID)] = true
		if k.RefutedBy == "" || len(k.Members) == 0 {
			t.Errorf("cause %s names no members or nothing that would refute it", k.ID)
		}
	}
	for _, id := range c.causes {
		if !listed[id] {
			t.Errorf("cause %s is not listed: %v", id, listed)
		}
	}
	for _, id := range c.not {
		if listed[id] {
			t.Errorf("cause %s is listed", id)
		}
	}
}

func runTales(t *testing.T, all []tale) {
	t.Helper()
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}
