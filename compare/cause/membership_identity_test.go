package cause_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// cloned tells of a member whose data dir was copied after 20 puts: node1 and the copy in twins/ go on with so many
// records each.
func cloned(original, clone int) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		for dir, more := range map[string]int{root: original, filepath.Join(root, "twins"): clone} {
			s := bootstrap(t, dir)
			s.commit()
			if dir != root {
				s.begin = begin2
			}
			s.puts(more)
			s.done()
		}
	}
}

// twoProcesses tells of node3 of which an older process proposes an entry behind the publish entry of a newer one, and
// the newer one again if it goes on.
func twoProcesses(goesOn bool, id uint64) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := tell(t, root, false, none(3), a1, a2, id)
		s.elect()
		s.put(id, begin1)
		s.publish(id, begin2)
		s.put(id, begin2)
		s.put(id, begin1)
		if goesOn {
			s.put(id, begin2)
		}
		s.puts(3)
		s.done()
	}
}

func TestIdentities(t *testing.T) {
	runTales(t, []tale{
		{name: "a clone that went on", of: []string{"node1", "twins/node1"}, tell: cloned(5, 4),
			class: "member-lost-data", cause: "data-dir-cloned-running-twice", certainty: "proof",
			checks: []string{"M12", "X01"}, not: []string{"same-token-twin-clusters"}},
		{name: "an older copy", of: []string{"node1", "twins/node1"}, tell: olderCopy, class: "lagging",
			checks: []string{"X01"}, not: []string{"data-dir-cloned-running-twice"}},
		{name: "two processes at once", tell: twoProcesses(true, a3), class: "member-lost-data",
			cause: "data-dir-cloned-running-twice", certainty: "proof", checks: []string{"M12"}},
		{name: "a clock that was set back", tell: twoProcesses(false, a3), class: "healthy",
			not: []string{"data-dir-cloned-running-twice"}},
		{name: "two members with the same low bits", tell: twoProcesses(true, 0xf00a1), class: "healthy",
			not: []string{"data-dir-cloned-running-twice"}},
		{name: "a removed member among the sources", tell: removedMember(true), class: "healthy",
			causes: []string{"removed-member-data-dir"}, checks: []string{"M08"}},
		{name: "a removed member among the sources, which does not know", tell: removedMember(false), class: "healthy",
			causes: []string{"removed-member-data-dir"}, checks: []string{"M08"}},
		{name: "a removed member left out", of: []string{"node1", "node2"}, tell: removedMember(true), class: "healthy",
			not: []string{"removed-member-data-dir"}},
		{name: "a removed member alone, before it knows", of: []string{"node3"}, tell: removedMember(false),
			class: "healthy", not: []string{"removed-member-data-dir"}},
		{name: "a removed member alone, when it knows", of: []string{"node3"}, tell: removedMember(true),
			class: "membership", cause: "removed-member-data-dir", certainty: "proof"},
		{name: "a log of a stranger", tell: stranger, class: "membership", cause: "member-identity-mismatch",
			certainty: "proof", checks: []string{"M09"}},
		{name: "swapped volumes", tell: swapped, class: "healthy", checks: []string{"M09"},
			causes: []string{"member-identity-mismatch"}},
		{name: "sources with names of their own", tell: renamed, of: []string{"east", "west", "north"},
			class: "healthy", not: []string{"member-identity-mismatch"}},
	})
}

func olderCopy(t *testing.T, root string) {
	t.Helper()
	old := bootstrap(t, filepath.Join(root, "twins"))
	old.commit()
	old.done()
	s := bootstrap(t, root)
	s.commit()
	s.commit() // what done wrote into the older copy
	s.puts(5)
	s.done()
}

func removedMember(knows bool) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := bootstrap(t, root)
		s.commit()
		gone := s.hands[2]
		s.list(a1, a2)
		if !knows {
			gone.Member(a3, false, true)
			s.closeOnly(2)
		}
		s.ids = nil
		s.on(func(h *clustertest.Hand, index uint64) {
			h.Conf(s.term, index, clustertest.RemoveMember(a3, clustertest.RequestID(a1, begin1, 200)))
			h.Removed(a3)
		})
		s.ids = []uint64{a1}
		if knows {
			gone.State(s.term, a1, s.index)
			s.closeOnly(2)
		}
		s.puts(5)
		s.ids = nil
		s.finish()
	}
}

// stranger: node3's dir carries an ID that nobody ever added.
func stranger(t *testing.T, root string) {
	t.Helper()
	s := &chronicle{T: t, ids: []uint64{a1, a2, a3}, term: 1, index: 3, begin: begin1}
	for _, id := range s.ids {
		own := id
		if id == a3 {
			own = 0xb3
		}
		h := clustertest.NewHand(t, root, clustertest.HandName(id), own, c1)
		h.Found(false, s.ids...)
		s.hands = append(s.hands, h)
	}
	s.elect()
	s.puts(10)
	s.done()
}

func swapped(t *testing.T, root string) {
	t.Helper()
	s := bootstrap(t, root)
	s.done()
	for _, mv := range [][2]string{{"node2", "x"}, {"node3", "node2"}, {"x", "node3"}} {
		if err := os.Rename(filepath.Join(root, mv[0]), filepath.Join(root, mv[1])); err != nil {
			t.Fatal(err)
		}
	}
}

func renamed(t *testing.T, root string) {
	t.Helper()
	bootstrap(t, root).done()
	for _, mv := range [][2]string{{"node1", "east"}, {"node2", "west"}, {"node3", "north"}} {
		if err := os.Rename(filepath.Join(root, mv[0]), filepath.Join(root, mv[1])); err != nil {
			t.Fatal(err)
		}
	}
}

// addLearner adds node4 as a learner; it may publish itself and have a data dir that ends at the last or the first
// index.
func addLearner(published bool, dir string, after int) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := bootstrap(t, root)
		add := clustertest.AddLearner(a4, clustertest.RequestID(a1, begin1, 200))
		s.on(func(h *clustertest.Hand, index uint64) { h.Conf(s.term, index, add) })
		for _, h := range s.hands {
			h.Member(a4, true, published)
		}
		if published {
			s.publish(a4, begin1)
		}
		if dir != "" {
			h := clustertest.NewHand(t, root, "node4", a4, c1)
			if dir == "level" {
				h.State(s.term, 0, 0)
				base(h, 0)
				h.Snapshot(s.term, s.index, a1, a2, a3)
				for range 20 {
					h.Revision("/gap", "x")
				}
			}
			h.Member(a4, true, published)
			s.list(a1)
			h.Close(0, 0)
		}
		s.puts(after)
		s.done()
	}
}

func TestLearners(t *testing.T) {
	runTales(t, []tale{
		{name: "never started", tell: addLearner(false, "", 10), class: "membership", cause: "stuck-learner",
			certainty: "proof", checks: []string{"M10"}, not: []string{"quorum-lost-after-member-add"}},
		{name: "added just now", tell: addLearner(false, "", 0), class: "membership", cause: "stuck-learner",
			certainty: "strong"},
		{name: "published, not among the sources", tell: addLearner(true, "", 10), class: "healthy",
			not: []string{"stuck-learner"}},
		{name: "started and holds nothing", tell: addLearner(false, "empty", 10), class: "membership",
			cause: "stuck-learner", certainty: "proof", checks: []string{"M10"}},
		{name: "promoted and never started", tell: promoted(false), class: "membership",
			cause: "nonstarted-learner-promoted", certainty: "strong", checks: []string{"M05"},
			causes: []string{"quorum-lost-after-member-add"}},
		{name: "promoted and running", tell: promoted(true), class: "healthy",
			not: []string{"nonstarted-learner-promoted"}},
		{name: "wrong flag by snapshot", tell: wrongFlag(true, ""), class: "membership",
			cause: "learner-promotion-not-persisted", causes: []string{"learner-promotion-propagated"},
			not: []string{"members-bucket-is-quorum-37"}},
		{name: "wrong flag by the log", tell: wrongFlag(false, ""), class: "membership",
			cause: "learner-promotion-not-persisted", not: []string{"learner-promotion-propagated"}},
		{name: "a zombie on 3.5", tell: zombie(""), class: "membership", cause: "zombie-members-v3-bucket",
			certainty: "proof", checks: []string{"M07", "M03"}},
		{name: "a zombie on 3.6", tell: zombie("3.6.0"), class: "membership", cause: "zombie-members-v3-bucket",
			certainty: "proof", checks: []string{"M07", "M03"}},
		{name: "wrong flag on 3.7", tell: wrongFlag(false, "3.7.0"), class: "membership",
			cause: "learner-promotion-not-persisted", causes: []string{"members-bucket-is-quorum-37"},
			checks: []string{"M07"}},
	})
}

// zombie: bucket members of all lists a member that raft does not know.
func zombie(storage string) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := bootstrap(t, root)
		for _, h := range s.hands {
			h.Member(0xb9, false, true)
			if storage != "" {
				h.Versions(storage)
			}
		}
		s.done()
	}
}

func promoted(started bool) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := tell(t, root, false, none(2), a1, a2)
		s.elect()
		s.puts(5)
		for n, cc := range []raftpb.ConfChange{clustertest.AddLearner(a3, 0), clustertest.Promote(a3, 0),
			clustertest.AddLearner(a4, 0), clustertest.Promote(a4, 0)} {
			cc.ID = clustertest.RequestID(a1, begin1, uint64(200+n))
			s.on(func(h *clustertest.Hand, index uint64) { h.Conf(s.term, index, cc) })
		}
		for _, id := range []uint64{a3, a4} {
			for _, h := range s.hands {
				h.Member(id, false, started)
			}
			if started {
				s.publish(id, begin1)
			}
		}
		s.done()
	}
}

// wrongFlag: node3 was promoted, and bucket members still says learner. With joiner, node2's log begins behind the
// promotion.
func wrongFlag(joiner bool, storage string) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := tell(t, root, false, none(2), a1, a2)
		s.elect()
		add, promote := clustertest.AddLearner(a3, clustertest.RequestID(a1, begin1, 200)),
			clustertest.Promote(a3, clustertest.RequestID(a1, begin1, 201))
		s.on(func(h *clustertest.Hand, index uint64) { h.Conf(s.term, index, add) })
		s.publish(a3, begin1)
		s.puts(5)
		s.on(func(h *clustertest.Hand, index uint64) { h.Conf(s.term, index, promote) })
		if joiner {
			late := clustertest.NewHand(t, root, "node3", a3, c1)
			late.State(s.term, 0, 0)
			for n := range 5 {
				late.Revision("/k/"+[]string{"01", "02", "03", "04", "05"}[n],
					"value "+[]string{"1", "2", "3", "4", "5"}[n])
			}
			late.Snapshot(s.term, s.index, a1, a2, a3)
			s.hands = append(s.hands, late)
		}
		s.puts(5)
		for _, h := range s.hands {
			h.Member(a3, true, true)
			if storage != "" {
				h.Versions(storage)
			}
		}
		s.done()
	}
}
