package cause_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// forcedStart tells of a member that was killed with its commit index one behind what it had applied, and was forced
// into a new cluster. The removals begin that many entries before its end.
type forcedStart struct {
	back uint64
	// skipped is true if the first removal is not in its database.
	skipped bool
	// replaced are the members in whose places new ones joined, which left again if left is true. more is true if the
	// others have committed one more write, which the first one lacks.
	replaced   []uint64
	left, more bool
	// tail is how many of the others hold a write above their commit index.
	tail int
}

func (f forcedStart) tell(t *testing.T, root string) {
	t.Helper()
	s := bootstrap(t, root)
	h := s.hands[0]
	h.State(s.term, a1, s.index-1)
	first := s.index + 1 - f.back
	h.Conf(s.term, first, clustertest.RemoveMember(a2, 0))
	h.Conf(s.term, first+1, clustertest.RemoveMember(a3, 0))
	h.State(s.term+1, a1, first+1)
	h.Request(s.term+1, first+2, nil)
	h.Publish(s.term+1, first+3, a1, clustertest.RequestID(a1, begin2, 1))
	h.Put(s.term+1, first+4, clustertest.RequestID(a1, begin2, 2), "/k/new", "after", true)
	last := first + 4
	for n, old := range f.replaced {
		id := old + 0x70000
		row := fmt.Appendf(nil, `{"id":%d,"peerURLs":["http://127.0.0.1:%d"]}`, id, old)
		last += 2
		h.Conf(s.term+1, last-1, raftpb.ConfChange{ID: clustertest.RequestID(a1, begin2, uint64(3+n)),
			Type: raftpb.ConfChangeAddNode, NodeID: id, Context: row})
		h.Publish(s.term+1, last, id, clustertest.RequestID(id, begin1, 1))
		if f.left {
			last++
			h.Conf(s.term+1, last, clustertest.RemoveMember(id, clustertest.RequestID(a1, begin2, uint64(10+n))))
			h.Removed(id)
			continue
		}
		h.Row("members", fmt.Sprintf("%x", id), fmt.Sprintf(`{"id":%d,"peerURLs":["http://127.0.0.1:%d"],`+
			`"name":%q,"clientURLs":["http://127.0.0.1:2379"]}`, id, old, clustertest.HandName(id)))
	}
	h.State(s.term+1, a1, last)
	h.Member(a1, false, true)
	if f.skipped {
		h.Member(a2, false, true)
	} else {
		h.Removed(a2)
	}
	h.Removed(a3)
	h.Close(last, s.term+1)
	if f.more {
		s.puts(1, 1, 2)
	}
	for i, o := range s.hands[1:] {
		if i < f.tail {
			o.Put(s.term, s.index+1, clustertest.RequestID(a1, begin1, 900), "/k/tail", "v", false)
		}
		o.State(s.term, a1, s.index)
		o.Member(a1, false, true)
		o.Member(a2, false, true)
		o.Member(a3, false, true)
		o.Close(s.index, s.term)
	}
}

func TestForcedClusters(t *testing.T) {
	runTales(t, []tale{
		{name: "an applied entry was cut off", of: []string{"node1"},
			tell:  forcedStart{back: 1, skipped: true}.tell,
			class: "db-damage", cause: "force-new-cluster-drops-applied-entries", certainty: "proof",
			checks: []string{"M11"}, causes: []string{"force-new-cluster-used"}},
		{name: "nothing was cut off", of: []string{"node1"},
			tell: forcedStart{}.tell, class: "healthy", causes: []string{"force-new-cluster-used"},
			not: []string{"force-new-cluster-drops-applied-entries", "removed-member-data-dir"}},
		{name: "other survivors", tell: forcedStart{}.tell,
			class: "membership", cause: "force-new-cluster-used", certainty: "proof",
			not: []string{"committed-entry-below-quorum", "removed-member-data-dir",
				"force-new-cluster-drops-applied-entries"}},
		{name: "survivors whose places are taken", tell: forcedStart{replaced: []uint64{a2, a3}}.tell,
			class: "healthy", checks: []string{"M08"}, holds: []string{"M11"},
			causes: []string{"force-new-cluster-used"}},
		{name: "survivors whose places were taken for a while",
			tell:  forcedStart{replaced: []uint64{a2, a3}, left: true}.tell,
			class: "healthy", checks: []string{"M08"}, holds: []string{"M11"}},
		{name: "one survivor whose place is taken", tell: forcedStart{replaced: []uint64{a2}}.tell,
			class: "membership", cause: "force-new-cluster-used", certainty: "proof", checks: []string{"M08", "M11"}},
		{name: "survivors hold more", tell: forcedStart{more: true}.tell,
			class: "membership", cause: "force-new-cluster-used", certainty: "proof", checks: []string{"R01", "M11"},
			not: []string{"log-entry-altered"}},
		{name: "survivors whose places are taken hold more",
			tell:  forcedStart{replaced: []uint64{a2, a3}, more: true}.tell,
			class: "membership", cause: "force-new-cluster-used", certainty: "proof",
			checks: []string{"R01", "M11", "K01"}, not: []string{"log-entry-altered"}},
		{name: "survivors whose places are taken hold a write on a majority",
			tell:  forcedStart{replaced: []uint64{a2, a3}, tail: 2}.tell,
			class: "membership", cause: "force-new-cluster-used", certainty: "proof", checks: []string{"M11"}},
		{name: "one survivor whose place is taken holds a write that nothing shows to be committed",
			tell:  forcedStart{replaced: []uint64{a2, a3}, tail: 1}.tell,
			class: "healthy", checks: []string{"M08"}, holds: []string{"M11"}},
		{name: "a client removed the members", of: []string{"node1"}, tell: func(t *testing.T, root string) {
			s := bootstrap(t, root)
			for n, id := range []uint64{a3, a2} {
				s.on(func(h *clustertest.Hand, index uint64) {
					h.Conf(s.term, index, clustertest.RemoveMember(id,
						clustertest.RequestID(a1, begin1, uint64(200+n))))
				})
				for _, h := range s.hands {
					h.Removed(id)
				}
			}
			s.ids = []uint64{a1}
			s.puts(3)
			s.done()
		}, class: "healthy", not: []string{"force-new-cluster-used"}},
		{name: "a learner survived", of: []string{"node1"},
			tell:  func(t *testing.T, root string) { forcedLearner(t, root, false) },
			class: "membership", cause: "force-new-cluster-keeps-learners", certainty: "proof"},
		{name: "a learner was added afterwards", of: []string{"node1"},
			tell:  func(t *testing.T, root string) { forcedLearner(t, root, true) },
			class: "healthy", not: []string{"force-new-cluster-keeps-learners", "stuck-learner"}},
	})
}

func forcedLearner(t *testing.T, root string, later bool) {
	t.Helper()
	s := bootstrap(t, root)
	for _, h := range s.hands[1:] {
		h.Close(s.index, s.term)
	}
	s.hands, s.ids = s.hands[:1], []uint64{a1}
	learner := func() {
		s.on(func(h *clustertest.Hand, index uint64) {
			h.Conf(s.term, index, clustertest.AddLearner(a4, clustertest.RequestID(a1, begin1, 300)))
			h.Member(a4, true, true)
		})
		s.publish(a4, begin1)
	}
	if !later {
		learner()
	}
	s.commit()
	for _, id := range []uint64{a2, a3} {
		s.on(func(h *clustertest.Hand, index uint64) {
			h.Conf(s.term, index, clustertest.RemoveMember(id, 0))
			h.Removed(id)
		})
	}
	if later {
		learner()
	}
	s.puts(2)
	s.done()
}

func restoredWith(before ...int) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := tell(t, root, true, before, a1, a2, a3)
		s.elect()
		s.puts(20)
		s.done()
	}
}

func unstarted(before ...int) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		tell(t, root, true, before, a1, a2, a3).done()
	}
}

// twice tells of two clusters with the same IDs in root/ and root/twin: the members at the positions of the second
// replace those of the first under their names, or stand beside them as twin.
func twice(restored bool, begin uint64, ids ...uint64) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := tell(t, root, restored, []int{9, 9, 9}[:len(ids)], ids...)
		s.elect()
		s.puts(12)
		s.done()
		o := tell(t, root+"/twins", restored, []int{9, 9, 9}[:len(ids)], ids...)
		o.begin = begin
		o.elect()
		o.puts(15)
		o.done()
	}
}

// restoredWhole: all members of a cluster were restored; their dirs from before are in the folder "before".
func restoredWhole(t *testing.T, root string) {
	t.Helper()
	o := tell(t, root+"/before", false, []int{0, 0, 0}, a1, a2, a3)
	o.elect()
	o.puts(12)
	o.done()
	s := tell(t, root, true, []int{9, 9, 9}, a1, a2, a3)
	s.begin = begin2
	s.elect()
	s.puts(15)
	s.done()
}

func TestRestoredClusters(t *testing.T) {
	runTales(t, []tale{
		{name: "different backups, not started", tell: unstarted(10, 14, 10), class: "data-divergence",
			cause: "restore-from-different-snapshots", certainty: "proof"},
		{name: "one backup, not started", tell: unstarted(10, 10, 10), class: "freshly-restored"},
		{name: "different backups, running", tell: restoredWith(10, 14, 10), class: "data-divergence",
			cause: "restore-from-different-snapshots", certainty: "proof",
			not: []string{"same-token-twin-clusters", "restored-one-member-only"}},
		{name: "one backup, running", tell: restoredWith(10, 10, 10), class: "healthy",
			not: []string{"restore-from-different-snapshots", "restore-without-revision-bump"}},
		{name: "an entry was skipped behind the restore", tell: func(t *testing.T, root string) {
			s := tell(t, root, true, []int{10, 10, 10}, a1, a2, a3)
			s.elect()
			s.puts(10)
			s.n++
			s.on(func(h *clustertest.Hand, index uint64) {
				h.Put(s.term, index, clustertest.RequestID(a1, begin1, 99), "/k/99", "lost on node2", h.ID != a2)
			})
			s.puts(10)
			s.done()
		}, class: "data-divergence", cause: "unexplained-first-divergence",
			not: []string{"restore-from-different-snapshots"}},
		{name: "twins, one of each", of: []string{"node1", "twins/node2", "twins/node3"},
			tell: twice(true, begin2, a1, a2, a3), class: "foreign-cluster", cause: "same-token-twin-clusters",
			certainty: "proof",
			checks:    []string{"M12"}, not: []string{"restored-one-member-only"}},
		{name: "twins, both of one member", of: []string{"node1", "twins/node1"}, tell: twice(true, begin2, a1, a2, a3),
			class: "foreign-cluster", cause: "same-token-twin-clusters", certainty: "proof",
			not: []string{"data-dir-cloned-running-twice"}},
		{name: "bootstrapped twins", of: []string{"node1", "twins/node2"}, tell: twice(false, begin2, a1, a2, a3),
			class: "foreign-cluster", cause: "same-token-twin-clusters", certainty: "proof"},
		{name: "each host its own cluster, equal IDs", of: []string{"node1", "twins/node1"},
			tell: twice(true, begin2, a1), class: "foreign-cluster", cause: "restore-split-into-single-clusters",
			certainty: "proof"},
		{name: "one member restored, not started", tell: restoredAlone(false), class: "member-lost-data",
			cause: "restored-one-member-only", certainty: "proof",
			not: []string{"restore-from-different-snapshots", "same-token-twin-clusters"}},
		{name: "one member restored and started", tell: restoredAlone(true), class: "member-lost-data",
			cause: "restored-one-member-only", certainty: "proof", not: []string{"same-token-twin-clusters"}},
		{name: "restored as a whole, one dir from before", of: []string{"node1", "node2", "before/node3"},
			tell: restoredWhole, class: "foreign-cluster", cause: "same-token-twin-clusters", certainty: "proof",
			checks: []string{"M12"}, not: []string{"restored-one-member-only", "restored-base-missing-on-joiners"}},
		{name: "a joiner without the base", tell: joiner(false), class: "data-divergence",
			cause: "restored-base-missing-on-joiners", certainty: "proof"},
		{name: "a joiner that received the base", tell: joiner(true), class: "healthy"},
		{name: "old members kept", tell: keptMembers(false), class: "membership", cause: "zombie-members-v3-bucket",
			certainty: "proof", causes: []string{"restore-keeps-old-members"}},
		{name: "a member was added after the restore", tell: keptMembers(true), class: "healthy",
			not: []string{"restore-keeps-old-members"}},
	})
}

// ofTheirOwn: every host restored a cluster of so many voters, each with an ID of its own.
func ofTheirOwn(restored bool, voters ...uint64) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		for n, dir := range []string{"x", "y", "z"} {
			s := tellOf(t, filepath.Join(root, dir), 0xc1+uint64(n), restored, []int{9, 9, 9}[:len(voters)], voters...)
			s.elect()
			s.puts(5 + n)
			s.done()
		}
	}
}

// otherToken: node3 was restored with another token while node1 and node2 went on; stale is whether its meta/confState
// still names the old members, ahead how many revisions the old cluster has made since the backup.
func otherToken(restored, stale bool, ahead int) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := tell(t, root, false, none(3), a1, a2, a3)
		s.elect()
		s.puts(ahead)
		s.done()
		if err := os.RemoveAll(filepath.Join(root, "node3")); err != nil {
			t.Fatal(err)
		}
		o := tellOf(t, filepath.Join(root, "new"), 0xc2, restored, []int{12, 12, 12}, a1, a2, a3)
		for _, h := range o.hands {
			if stale {
				h.Row("meta", "confState", `{"voters":[161,162,163],"auto_leave":false}`)
			}
		}
		o.done()
	}
}

// foreignLog: a restored cluster whose node2 has the log of a member of the cluster before, which has another ID.
func foreignLog(t *testing.T, root string) {
	t.Helper()
	s := tell(t, root, true, []int{10, 10, 10}, a1, a2, a3)
	s.elect()
	s.puts(10)
	s.done()
	o := tellOf(t, filepath.Join(root, "old"), 0xc2, false, none(3), 0xb1, 0xb2, 0xb3)
	o.elect()
	o.puts(30)
	o.done()
	wal := filepath.Join(root, "node2", "member", "wal")
	if err := os.RemoveAll(wal); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(root, "old", "node2", "member", "wal"), wal); err != nil {
		t.Fatal(err)
	}
}

func TestRestoredIntoOtherClusters(t *testing.T) {
	own := []string{"x/node1", "y/node1", "z/node1"}
	old := []string{"node1", "node2", "new/node3"}
	runTales(t, []tale{
		{name: "each host its own cluster", of: own, tell: ofTheirOwn(true, a1), class: "foreign-cluster",
			cause: "restore-split-into-single-clusters", certainty: "proof", causes: []string{"foreign-cluster"}},
		{name: "three clusters of three", of: own, tell: ofTheirOwn(true, a1, a2, a3), class: "foreign-cluster",
			cause: "foreign-cluster", not: []string{"restore-split-into-single-clusters", "restored-one-member-only"}},
		{name: "three that were bootstrapped", of: own, tell: ofTheirOwn(false, a1), class: "foreign-cluster",
			cause: "foreign-cluster", not: []string{"restore-split-into-single-clusters"}},
		{name: "one member restored with another token", of: old, tell: otherToken(true, false, 40),
			class: "foreign-cluster", cause: "restored-one-member-only", certainty: "proof",
			not: []string{"restore-without-revision-bump"}},
		{name: "a member of a bootstrapped cluster", of: old, tell: otherToken(false, false, 40),
			class: "foreign-cluster", cause: "foreign-cluster", not: []string{"restored-one-member-only"}},
		{name: "the log of another cluster", of: []string{"node1", "node2"}, tell: foreignLog, class: "foreign-cluster",
			cause: "foreign-cluster", not: []string{"restored-one-member-only"}},
		{name: "revisions went back", of: old, tell: otherToken(true, true, 40), class: "foreign-cluster",
			cause: "restored-one-member-only", causes: []string{"restore-without-revision-bump"}},
		{name: "revisions did not go back", of: old, tell: otherToken(true, true, 5), class: "foreign-cluster",
			cause: "restored-one-member-only", not: []string{"restore-without-revision-bump"}},
	})
}

func keptMembers(added bool) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := tell(t, root, true, []int{10, 10, 10}, a1, a2, a3)
		s.elect()
		if added {
			s.on(func(h *clustertest.Hand, index uint64) {
				h.Conf(s.term, index, clustertest.AddVoter(0xb7, clustertest.RequestID(a1, begin1, 77)))
			})
			s.publish(0xb7, begin1)
		}
		s.puts(20)
		for _, h := range s.hands {
			h.Member(0xb7, false, true)
			h.Versions("3.6.0")
		}
		s.done()
	}
}

// restoredAlone: node3 is restored, and perhaps started, while node1 and node2 go on.
func restoredAlone(started bool) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := &chronicle{T: t, ids: []uint64{a1, a2, a3}, term: 1, index: 3, begin: begin1}
		for _, id := range s.ids {
			h := clustertest.NewHand(t, root, clustertest.HandName(id), id, c1)
			if id == a3 {
				base(h, 12)
			}
			h.Found(id == a3, s.ids...)
			s.hands = append(s.hands, h)
		}
		alone := s.hands[2]
		s.hands = s.hands[:2]
		s.elect()
		s.puts(20)
		s.done()
		last := uint64(3)
		if started {
			alone.State(2, a3, 3)
			alone.Request(2, 4, nil)
			alone.Publish(2, 5, a3, clustertest.RequestID(a3, begin2, 1))
			alone.State(2, a3, 5)
			last = 5
		}
		for _, id := range s.ids {
			alone.Member(id, false, true)
		}
		alone.Close(last, min(last, 2))
	}
}

// joiner: node1 was restored alone; node2 joins it, by replaying the log from its start or by a snapshot.
func joiner(received bool) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := tell(t, root, true, []int{12}, a1)
		s.elect()
		add := clustertest.AddVoter(a2, clustertest.RequestID(a1, begin1, 50))
		s.on(func(h *clustertest.Hand, index uint64) { h.Conf(s.term, index, add) })
		h := clustertest.NewHand(t, root, "node2", a2, c1)
		h.State(2, 0, 0)
		if received {
			base(h, 12)
			h.Snapshot(s.term, s.index, a1, a2)
		} else {
			h.Conf(1, 1, clustertest.AddVoter(a1, 0))
			h.Request(2, 2, nil)
			h.Publish(2, 3, a1, clustertest.RequestID(a1, begin1, 1))
			h.Conf(2, 4, add)
		}
		s.hands, s.ids = append(s.hands, h), []uint64{a1, a2}
		s.publish(a2, begin1)
		s.puts(20)
		s.done()
	}
}
