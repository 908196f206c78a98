package check_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// snapshots writes the data dir of one of two members with snapshots at 10, 20, 30 and 40.
func snapshots(t *testing.T) string {
	t.Helper()
	h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
	h.Found(false, 0xa1, 0xa2)
	h.Request(2, 3, nil)
	for i := uint64(4); i <= 45; i++ {
		h.Put(2, i, clustertest.RequestID(0xa1, 1763000000000, i), fmt.Sprintf("k%d", i), "v", true)
		h.State(2, 0xa1, i)
		if i%10 == 0 {
			h.Snapshot(2, i, 0xa1, 0xa2)
		}
	}
	h.Member(0xa1, false, true)
	h.Member(0xa2, false, true)
	return h.Close(45, 2)
}

// alterSnapshot changes the snapshot record at an index.
func alterSnapshot(t *testing.T, dir string, index uint64, edit func(*walpb.Snapshot)) {
	t.Helper()
	done := false
	casetest.RewriteLog(t, dir, func(rec *walpb.Record) {
		var s walpb.Snapshot
		if rec.Type != 5 || s.Unmarshal(rec.Data) != nil || s.Index != index {
			return
		}
		done = true
		edit(&s)
		rec.Data, _ = s.Marshal()
	})
	if !done {
		t.Fatalf("no snapshot record at %d", index)
	}
}

func dropSnapFiles(t *testing.T, dir string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "member", "snap", "*.snap"))
	if err != nil {
		t.Fatal(err)
	}
	removed(t, names...)
}

func TestSnapshotRecords(t *testing.T) {
	otherConf := func(s *walpb.Snapshot) { s.ConfState = &raftpb.ConfState{Voters: []uint64{0xa1, 0xa2, 0xa7}} }
	for name, c := range map[string]struct {
		index   uint64
		edit    func(*walpb.Snapshot)
		files   bool
		id      check.ID
		kind    check.Kind
		outcome check.Outcome
		blamed  uint64
	}{
		"nothing": {index: 20, edit: func(*walpb.Snapshot) {}, files: true, id: "W06",
			outcome: check.Holds},
		"no files": {index: 20, edit: func(*walpb.Snapshot) {}, id: "W06",
			outcome: check.Holds},
		"term": {index: 20, edit: func(s *walpb.Snapshot) { s.Term++ }, files: true,
			id: "W01", kind: check.KindLogDamaged, outcome: check.Violated, blamed: 0},
		"index beyond the log": {index: 20, edit: func(s *walpb.Snapshot) { s.Index += 1 << 20 },
			files: true, id: "W01", kind: check.KindLogDamaged, outcome: check.Violated},
		"index within the log": {index: 20, edit: func(s *walpb.Snapshot) { s.Index -= 3 }, files: true,
			id: "W06", kind: check.KindRecordIndexAltered, outcome: check.Violated, blamed: 17},
		"newest index within the log": {index: 40, edit: func(s *walpb.Snapshot) { s.Index -= 8 }, files: true,
			id: "W06", kind: check.KindRecordIndexAltered, outcome: check.Violated, blamed: 32},
		"configuration beside its file": {index: 20, edit: otherConf, files: true, id: "W06",
			kind: check.KindRecordConfAltered, outcome: check.Violated, blamed: 20},
		"configuration without files": {index: 20, edit: otherConf, id: "W06", kind: check.KindRecordConfAltered,
			outcome: check.Violated, blamed: 20},
		"first configuration without files": {index: 10, edit: otherConf, id: "W06", kind: check.KindRecordConfAltered,
			outcome: check.Violated, blamed: 10},
		"last configuration without files": {index: 40, edit: otherConf, id: "W06", kind: check.KindRecordConfAltered,
			outcome: check.Violated, blamed: 40},
	} {
		t.Run(name, func(t *testing.T) {
			dir := snapshots(t)
			alterSnapshot(t, dir, c.index, c.edit)
			if !c.files {
				dropSnapFiles(t, dir)
			}
			in := dirInput(t, dir)
			if c.outcome == check.Holds {
				wantOutcome(t, in, "W06", check.Holds)
				wantOutcome(t, in, "W01", check.Holds)
				return
			}
			f := wantFinding(t, in, string(c.id), []string{"node1"})
			if f.Class != "wal-damage" || f.Kind != c.kind || f.Kind == check.KindLogDamaged &&
				f.Facts.LogDamage != dumplog.DamageSnapshotRecord || c.blamed > 0 && f.At.Index != c.blamed {
				t.Errorf("%s, %s at %d: %s", f.Class, f.Kind, f.At.Index, f.Title)
			}
		})
	}
}

// A snapshot file without a record, as a crash leaves it, and a record without its file alone accuse nobody.
func TestSnapshotFileOrRecordAlone(t *testing.T) {
	dir := snapshots(t)
	clustertest.SaveSnap(t, filepath.Join(dir, "member", "snap"), 2, 43, clustertest.V2{}, 0xa1, 0xa2)
	wantOutcome(t, dirInput(t, dir), "W06", check.Holds)
	dir = snapshots(t)
	removed(t, filepath.Join(dir, "member", "snap", fmt.Sprintf("%016x-%016x.snap", 2, 20)))
	wantOutcome(t, dirInput(t, dir), "W06", check.Holds)
}

// TestSnapshotRecordBesideNewerFile: a newer file without a record, as a crash leaves it, hides no altered record.
func TestSnapshotRecordBesideNewerFile(t *testing.T) {
	dir := snapshots(t)
	clustertest.SaveSnap(t, filepath.Join(dir, "member", "snap"), 2, 43, clustertest.V2{}, 0xa1, 0xa2)
	alterSnapshot(t, dir, 20, func(s *walpb.Snapshot) { s.Index-- })
	f := wantFinding(t, dirInput(t, dir), "W06", []string{"node1"})
	if f.Kind != check.KindRecordIndexAltered || f.At.Index != 19 {
		t.Errorf("%s at %d: %s", f.Kind, f.At.Index, f.Title)
	}
}

// TestSnapshotRecordsGone: every log has the record that it was created with, or that of the snapshot a purge went by.
func TestSnapshotRecordsGone(t *testing.T) {
	drop := func(dir string, drops func(*walpb.Snapshot) bool) string {
		casetest.RewriteLog(t, dir, func(rec *walpb.Record) {
			var s walpb.Snapshot
			if rec.Type == 5 && s.Unmarshal(rec.Data) == nil && drops(&s) {
				rec.Type = casetest.LeftOut
			}
		})
		return dir
	}
	all := func(*walpb.Snapshot) bool { return true }
	f := wantFinding(t, dirInput(t, drop(snapshots(t), all)), "W06", []string{"node1"}, "lacks every snapshot record")
	if f.Class != "wal-damage" || f.Kind != check.KindRecordsGone {
		t.Errorf("%s, %s", f.Class, f.Kind)
	}
	newest := func(s *walpb.Snapshot) bool { return s.Index > 0 }
	dir := drop(snapshots(t), newest)
	dropSnapFiles(t, dir)
	wantOutcome(t, dirInput(t, dir), "W06", check.Holds)
	first := func(s *walpb.Snapshot) bool { return s.Index == 0 }
	wantOutcome(t, dirInput(t, drop(snapshots(t), first)), "W06", check.Holds)
}

// votesOf writes three members; each stores the votes of the term, in order. What further adds to each log comes after.
func votesOf(t *testing.T, votes [3][]uint64, further ...func(h *clustertest.Hand, index uint64)) []string {
	t.Helper()
	return votesOfTwins(t, votes, -1, further...)
}

// votesOfTwins is votesOf with one member of another cluster that was founded alike.
func votesOfTwins(t *testing.T, votes [3][]uint64, other int,
	further ...func(h *clustertest.Hand, index uint64)) []string {
	t.Helper()
	root := t.TempDir()
	var dirs []string
	for i := range votes {
		h := clustertest.NewHand(t, root, fmt.Sprintf("node%d", i+1), 0xa1+uint64(i), 0xc1)
		h.Found(false, 0xa1, 0xa2, 0xa3)
		for n, v := range votes[i] {
			h.State(2, v, 3+uint64(n))
			if n == 0 {
				h.Request(2, 4, nil)
			}
			key := "k"
			if i == other {
				key = "another"
			}
			h.Put(2, 5+uint64(n), clustertest.RequestID(0xa1, 1763000000000, uint64(n)), key, "v", true)
		}
		last := 4 + uint64(len(votes[i]))
		for _, add := range further {
			last++
			add(h, last)
		}
		h.State(2, votes[i][len(votes[i])-1], last)
		for id := uint64(0xa1); id <= 0xa3; id++ {
			h.Member(id, false, true)
		}
		dirs = append(dirs, h.Close(last, 2))
	}
	return dirs
}

func TestVotes(t *testing.T) {
	const a, b, c, stranger = 0xa1, 0xa2, 0xa3, 0xa9
	for name, k := range map[string]struct {
		votes   [3][]uint64
		r08     string // words of the finding about node2
		outcome check.Outcome
	}{
		"all for the leader":            {votes: [3][]uint64{{a, a}, {a, a}, {a, a}}, outcome: check.Holds},
		"one for itself":                {votes: [3][]uint64{{a, a}, {b, b}, {a, a}}, outcome: check.Holds},
		"one for a candidate that lost": {votes: [3][]uint64{{a, a}, {c, c}, {c, c}}, outcome: check.Holds},
		"one before its vote":           {votes: [3][]uint64{{a, a}, {0, a}, {a, a}}, outcome: check.Holds},
		"one for a stranger": {votes: [3][]uint64{{a, a}, {stranger, stranger}, {a, a}},
			r08: "never a member", outcome: check.Violated},
		"one for a stranger in between": {votes: [3][]uint64{{a, a, a}, {a, stranger, a}, {a, a, a}},
			r08: "between others", outcome: check.Violated},
		"one taken back": {votes: [3][]uint64{{a, a, a}, {a, 0, a}, {a, a, a}}, r08: "between others",
			outcome: check.Violated},
		"one for another in between": {votes: [3][]uint64{{a, a, a}, {a, c, a}, {a, a, a}}, r08: "between others",
			outcome: check.Violated},
		"one for a member that voted": {votes: [3][]uint64{{a, a}, {c, c}, {a, a}}, r08: "no candidate",
			outcome: check.Violated},
	} {
		t.Run(name, func(t *testing.T) {
			in := dirInput(t, votesOf(t, k.votes)...)
			wantOutcome(t, in, "R06", check.Holds)
			if k.outcome == check.Holds {
				wantOutcome(t, in, "R08", check.Holds)
				return
			}
			f := wantFinding(t, in, "R08", []string{"node2"}, k.r08)
			if f.Class != "wal-damage" || f.Kind != check.KindVoteAltered {
				t.Errorf("%s %s", f.Class, f.Kind)
			}
		})
	}
}

// TestVoteInATermWithoutEntries: a candidate of a term that no log at hand continues to can have been added after the
// logs end, unless these are the logs of all voters.
func TestVoteInATermWithoutEntries(t *testing.T) {
	root := t.TempDir()
	var dirs []string
	for i := range 3 {
		h := clustertest.NewHand(t, root, fmt.Sprintf("node%d", i+1), 0xa1+uint64(i), 0xc1)
		h.Found(false, 0xa1, 0xa2, 0xa3)
		h.State(2, 0xa1, 3)
		h.Request(2, 4, nil)
		h.Put(2, 5, clustertest.RequestID(0xa1, 1763000000000, 1), "k", "v", true)
		h.State(2, 0xa1, 5)
		if i == 1 {
			h.State(3, 0xa9, 5)
		}
		for id := uint64(0xa1); id <= 0xa3; id++ {
			h.Member(id, false, true)
		}
		dirs = append(dirs, h.Close(5, 2))
	}
	wantFinding(t, dirInput(t, dirs...), "R08", []string{"node2"}, "never a member")
	wantOutcome(t, dirInput(t, dirs[0], dirs[1]), "R08", check.Holds)
	wantOutcome(t, dirInput(t, dirs[1]), "R08", check.Holds)
}

// A conf change that every server refuses may name any ID: that does not make it a member.
func TestVoteForARefusedMember(t *testing.T) {
	const a, stranger = 0xa1, 0xa9
	votes := [3][]uint64{{a, a}, {stranger, stranger}, {a, a}}
	request := clustertest.RequestID(a, 1763000000000, 77)
	refused := func(h *clustertest.Hand, index uint64) {
		h.Conf(2, index, clustertest.RemoveMember(stranger, request))
	}
	in := dirInput(t, votesOf(t, votes, refused)...)
	for _, m := range in.Members {
		if last := m.WAL.Conf[len(m.WAL.Conf)-1]; !last.Refused {
			t.Fatalf("%s: the change is not refused: %+v", m.Label(), last)
		}
	}
	wantFinding(t, in, "R08", []string{"node2"}, "never a member")
	added := func(h *clustertest.Hand, index uint64) {
		h.Conf(2, index, raftpb.ConfChange{ID: request, Type: raftpb.ConfChangeAddNode, NodeID: stranger,
			Context: []byte(`{"id":169,"peerURLs":["http://a9"]}`)})
	}
	wantOutcome(t, dirInput(t, votesOf(t, votes, added)...), "R08", check.Holds)
}

// A vote that stays another one was given twice: that is no altered record.
func TestSecondVoteStays(t *testing.T) {
	in := dirInput(t, votesOf(t, [3][]uint64{{0xa1, 0xa1, 0xa1}, {0xa1, 0xa3, 0xa3}, {0xa3, 0xa3, 0xa3}})...)
	wantFinding(t, in, "R06", []string{"node2"}, "voted for a1 and for a3")
	wantOutcome(t, in, "R08", check.Holds)
}

// Votes of another cluster with the same IDs accuse nobody: its terms are others.
func TestVotesOfTwinClusters(t *testing.T) {
	const a, c = 0xa1, 0xa3
	votes := [3][]uint64{{c, c}, {a, a}, {c, c}}
	wantFinding(t, dirInput(t, votesOf(t, votes)...), "R08", []string{"node2"}, "no candidate")
	in := dirInput(t, votesOfTwins(t, votes, 1)...)
	wantOutcome(t, in, "R08", check.Holds)
	if f := wantFinding(t, in, "M12", []string{"node1", "node2", "node3"}); f.Class != "foreign-cluster" {
		t.Errorf("class %s: %s", f.Class, f.Title)
	}
	// Two dirs of one member, one of each cluster.
	dirs := votesOfTwins(t, [3][]uint64{{a, a}, {a, a}, {a, a}}, -1)
	twin := votesOfTwins(t, [3][]uint64{{c, c}, {c, c}, {c, c}}, 1)
	wantOutcome(t, dirInput(t, dirs[1], twin[1]), "R06", check.Holds)
}

func TestSegmentRenamed(t *testing.T) {
	dirs := inSegments(t, many(), 16<<10)
	names := segmentsOf(t, dirs[1])
	var seq, first uint64
	if _, err := fmt.Sscanf(filepath.Base(names[1]), "%016x-%016x.wal", &seq, &first); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{fmt.Sprintf("%016x-%016x.wal", seq, first+16),
		fmt.Sprintf("%016x-%016x.wal", seq, first-16)} {
		renamed := filepath.Join(walOf(dirs[1]), to)
		if err := os.Rename(names[1], renamed); err != nil {
			t.Fatal(err)
		}
		in := dirInput(t, dirs...)
		f := wantFinding(t, in, "W03", []string{"node2"}, "wrong-name", "refuses to start")
		if f.Class != "wal-damage" {
			t.Errorf("class %s", f.Class)
		}
		wantOutcome(t, in, "R01", check.Holds)
		if err := os.Rename(renamed, names[1]); err != nil {
			t.Fatal(err)
		}
	}
}

// Of a purged log the first segment can be compared with the snapshots only.
func TestFirstSegmentOfAPurgedLogRenamed(t *testing.T) {
	s := many()
	s.Purged = 300
	dirs := inSegments(t, s, 16<<10)
	wantOutcome(t, dirInput(t, dirs...), "W05", check.Holds)
	name := segmentsOf(t, dirs[1])[0]
	in := dirInput(t, dirs[1])
	sum := in.Members[0].WAL.Summary
	to := fmt.Sprintf("%016x-%016x.wal", sum.Segments[0].Seq, sum.Snapshots[len(sum.Snapshots)-1].Index+3)
	if err := os.Rename(name, filepath.Join(filepath.Dir(name), to)); err != nil {
		t.Fatal(err)
	}
	wantFinding(t, dirInput(t, dirs...), "W05", []string{"node2"}, "named for index", "no segment to start from")
}

// TestSnapshotFileGone: without the newest .snap file a server starts from the whole log, unless the snapshot was
// received in the place of entries.
func TestSnapshotFileGone(t *testing.T) {
	for name, received := range map[string]bool{"of its own": false, "received": true} {
		t.Run(name, func(t *testing.T) {
			h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
			h.Found(false, 0xa1)
			h.State(2, 0xa1, 1)
			h.Request(2, 2, nil)
			last := uint64(2)
			put := func() {
				last++
				h.Put(2, last, clustertest.RequestID(0xa1, 1763000000000, last), "k", fmt.Sprint(last), true)
			}
			for last < 20 && !received {
				put()
			}
			if !received {
				h.State(2, 0xa1, last)
			}
			last = 20
			h.Snapshot(2, 20, 0xa1)
			put()
			h.State(2, 0xa1, last)
			h.Member(0xa1, false, true)
			dir := h.Close(last, 2)
			wantOutcome(t, dirInput(t, dir), "X03", check.Holds)
			removed(t, filepath.Join(dir, "member", "snap", fmt.Sprintf("%016x-%016x.snap", 2, 20)))
			f, want := wantFinding(t, dirInput(t, dir), "X03", []string{"node1"}), check.Warning
			if received {
				want = check.Error
			}
			if f.Severity != want {
				t.Errorf("%s, want %s: %s", f.Severity, want, f.Explanation)
			}
		})
	}
}

// loneMember writes the data dir of a single member with 12 entries and a snapshot at 10. It returns a function that
// names the .snap file of an index.
func loneMember(t *testing.T) (dir string, snap func(index int) string) {
	t.Helper()
	h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
	h.Found(false, 0xa1)
	h.State(2, 0xa1, 1)
	h.Request(2, 2, nil)
	for i := uint64(3); i <= 12; i++ {
		h.Put(2, i, clustertest.RequestID(0xa1, 1763000000000, i), "k", fmt.Sprintf("value %d", i), true)
		h.State(2, 0xa1, i)
	}
	h.Snapshot(2, 10, 0xa1)
	h.Member(0xa1, false, true)
	dir = h.Close(12, 2)
	return dir, func(index int) string {
		return filepath.Join(dir, "member", "snap", fmt.Sprintf("%016x-%016x.snap", 2, index))
	}
}

// newerSnap writes a sound .snap file of that index, which the log of its folder does not name.
func newerSnap(t *testing.T, file string, index uint64) {
	t.Helper()
	h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
	h.Snapshot(2, index, 0xa1)
	b, err := os.ReadFile(filepath.Join(h.Close(index, 2), "member", "snap", filepath.Base(file)))
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestSnapshotFileOfLostEnd: a log that lost its end names an older snapshot as its newest, whose file was purged
// since.
func TestSnapshotFileOfLostEnd(t *testing.T) {
	dir, snap := loneMember(t)
	removed(t, snap(10))
	wantFinding(t, dirInput(t, dir), "X03", []string{"node1"}, "index 10) is gone")
	newerSnap(t, snap(30), 30)
	wantOutcome(t, dirInput(t, dir), "X03", check.Holds)
}

// TestSnapshotFileOfLostRecord: so does a log of which a part is damaged, and with it the record of a newer file.
func TestSnapshotFileOfLostRecord(t *testing.T) {
	dir, snap := loneMember(t)
	removed(t, snap(10))
	newerSnap(t, snap(11), 11)
	wantFinding(t, dirInput(t, dir), "X03", []string{"node1"}, "index 10) is gone")
	wal := filepath.Join(dir, "member", "wal", "0000000000000000-0000000000000000.wal")
	b, err := os.ReadFile(wal)
	if err == nil {
		b[bytes.Index(b, []byte("value 11"))]++
		err = os.WriteFile(wal, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, dirInput(t, dir), "X03", check.Holds)
	removed(t, snap(11))
	wantFinding(t, dirInput(t, dir), "X03", []string{"node1"}, "index 10) is gone")
}

// TestLogWithoutHardStates: who proposed an entry had stored a term before, and who took a snapshot the commit index.
// One that joined and wrote nothing yet had not, even if it received a snapshot.
func TestLogWithoutHardStates(t *testing.T) {
	for name, c := range map[string]struct {
		proposer uint64
		snapshot uint64
		state    bool
		gone     bool
	}{"its own proposal": {proposer: 0xa1, gone: true}, "another's": {proposer: 0xa2},
		"its own snapshot":      {proposer: 0xa2, snapshot: 4, gone: true},
		"a received snapshot":   {proposer: 0xa2, snapshot: 9},
		"a snapshot and states": {proposer: 0xa2, snapshot: 4, state: true},
		"stored":                {proposer: 0xa1, state: true}} {
		t.Run(name, func(t *testing.T) {
			h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
			for i, id := range []uint64{0xa1, 0xa2} {
				h.Conf(1, uint64(i+1), clustertest.AddVoter(id, 0))
				h.Member(id, false, true)
			}
			h.Request(2, 3, nil)
			h.Publish(2, 4, c.proposer, clustertest.RequestID(c.proposer, 1763000000000, 1))
			if c.state {
				h.State(2, 0xa1, 4)
			}
			if c.snapshot > 0 {
				h.Snapshot(2, c.snapshot, 0xa1, 0xa2)
			}
			in := dirInput(t, h.Close(4, 2))
			if !c.gone {
				wantOutcome(t, in, "R08", check.Holds)
				return
			}
			if f := wantFinding(t, in, "R08", []string{"node1"}, "lacks every HardState"); f.Class != "wal-damage" {
				t.Error(f.Class)
			}
		})
	}
}

// TestVoteForAMemberThatWasWiped: a candidate that lost its data, and its vote for itself with them, may vote for
// another member in the same term. The member that it once asked for its vote did nothing wrong.
func TestVoteForAMemberThatWasWiped(t *testing.T) {
	const a, b, c = 0xa1, 0xa2, 0xa3
	for name, wiped := range map[string]bool{"its log was empty": true, "its log was whole": false} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			var dirs []string
			for i, vote := range []uint64{a, c, a} {
				h := clustertest.NewHand(t, root, fmt.Sprintf("node%d", i+1), a+uint64(i), 0xc1)
				h.Found(false, a, b, c)
				before := func() {
					h.Request(2, 4, nil)
					h.Put(2, 5, clustertest.RequestID(a, 1763000000000, 1), "k", "v", true)
				}
				if late := wiped && i == 2; late {
					h.State(3, vote, 3)
					before()
				} else {
					h.State(2, a, 3)
					before()
					h.State(3, vote, 5)
				}
				h.Request(3, 6, nil)
				h.State(3, vote, 6)
				for id := uint64(a); id <= c; id++ {
					h.Member(id, false, true)
				}
				dirs = append(dirs, h.Close(6, 3))
			}
			if wiped {
				wantOutcome(t, dirInput(t, dirs...), "R08", check.Holds)
			} else {
				wantFinding(t, dirInput(t, dirs...), "R08", []string{"node2"}, "no candidate")
			}
		})
	}
}
