package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// begun gives a member a log whose first entries a bootstrap or a restore of that many voters wrote, and whose first
// request is at an index.
func begun(m *evidence.Member, start dumplog.StartKind, voters int, first uint64) *evidence.Member {
	withLog(m, 30).WAL.Summary.Start = start
	for i := range uint64(voters) {
		m.WAL.Conf = append(m.WAL.Conf, evidence.ConfEntry{Index: i + 1, Term: 1,
			Change: dumplog.ConfChange{Type: dumplog.ConfChangeAddNode, NodeID: dumplog.ID(i + 1)}})
	}
	m.WAL.First = evidence.FirstRequest{Index: first, ID: dumplog.RequestID(first)}
	return m
}

// TestTwinFinding: logs that share only their beginning are of two clusters with one ID. A restore of a majority left
// the others behind; of one that was restored by itself another check says more.
func TestTwinFinding(t *testing.T) {
	const boot, restore = dumplog.StartBootstrap, dumplog.StartRestore
	for name, c := range map[string]struct {
		starts [3]dumplog.StartKind
		change func(ms Sources, rp *replay.Result)
		want   string
	}{
		"two founded":         {[3]dumplog.StartKind{boot, boot, boot}, nil, "founded with the same names"},
		"all restored":        {[3]dumplog.StartKind{restore, restore, restore}, nil, "founded with the same names"},
		"a majority restored": {[3]dumplog.StartKind{restore, restore, boot}, nil, "a majority of the voters began"},
		"one restored":        {[3]dumplog.StartKind{restore, boot, boot}, nil, ""},
		"nothing differs": {[3]dumplog.StartKind{boot, boot, boot},
			func(_ Sources, rp *replay.Result) { rp.LogDiffs = nil }, ""},
		"more in common": {[3]dumplog.StartKind{boot, boot, boot},
			func(ms Sources, _ *replay.Result) { ms[1].WAL.First.Index = 4 }, ""},
		"no beginning": {[3]dumplog.StartKind{boot, boot, boot},
			func(ms Sources, _ *replay.Result) { ms[1].WAL.Conf = nil }, ""},
	} {
		var ms Sources
		by := map[int]string{}
		for i, start := range c.starts {
			m := begun(member("n"+string(rune('1'+i))), start, 3, 5)
			m.MemberID, by[i] = dumplog.ID(i+1), "put"
			ms = append(ms, m)
		}
		rp := &replay.Result{LogDiffs: []replay.LogDiff{{Index: 5, By: by}}}
		if c.change != nil {
			c.change(ms, rp)
		}
		f := (&Input{Members: ms, Replay: rp}).provenance().twinFinding()
		if (f != nil) != (c.want != "") || f != nil && (!strings.Contains(f.Explanation, c.want) || f.At.Index != 5 ||
			!slices.Equal(f.Members, []string{"n1", "n2", "n3"}) || len(f.Evidence) != 3) {
			t.Errorf("%s: %+v, want %q", name, f, c.want)
		}
	}
}

// TestForkFinding: two copies of one data dir that both continued broke each other's promises, unless they were two
// clusters from the beginning.
func TestForkFinding(t *testing.T) {
	const boot, restore = dumplog.StartBootstrap, dumplog.StartRestore
	for name, c := range map[string]struct {
		start  dumplog.StartKind
		voters int
		at     uint64
		want   Kind
		class  Class
	}{
		"copied later":             {boot, 3, 20, KindDataDirCloned, ClassMemberLostData},
		"from the beginning":       {boot, 3, 4, KindTwinClusters, ClassForeignCluster},
		"restored, of three":       {restore, 3, 4, KindTwinClusters, ClassForeignCluster},
		"restored, of one":         {restore, 1, 4, KindClusterRestoredTwice, ClassForeignCluster},
		"founded, of one":          {boot, 1, 4, KindTwinClusters, ClassForeignCluster},
		"the beginning is not all": {boot, 3, 2, KindDataDirCloned, ClassMemberLostData},
		"no begin of a log":        {boot, 0, 4, KindDataDirCloned, ClassMemberLostData},
		"after the first request":  {boot, 3, 5, KindDataDirCloned, ClassMemberLostData},
	} {
		a, b := begun(member("a"), c.start, c.voters, 5), begun(member("b"), c.start, c.voters, 5)
		f := forkFinding(Sources{a, b}, replay.Copies{A: 0, B: 1, Index: c.at})
		if f.Kind != c.want || f.Class != c.class || f.At.Index != c.at+1 || len(f.Evidence) != 2 ||
			!slices.Equal(f.Members, []string{"a", "b"}) {
			t.Errorf("%s: %+v, want %s", name, f, c.want)
		}
	}
}

// TestLastChangeOf: the newest addition or removal of a member that is committed and applied, and that servers
// accepted, in any log.
func TestLastChangeOf(t *testing.T) {
	change := func(index uint64, kind dumplog.ConfChangeType, id dumplog.ID, refused bool) evidence.ConfEntry {
		return evidence.ConfEntry{Index: index, Refused: refused, Change: dumplog.ConfChange{Type: kind, NodeID: id}}
	}
	const add, remove, update = dumplog.ConfChangeAddNode, dumplog.ConfChangeRemoveNode, dumplog.ConfChangeUpdateNode
	for name, c := range map[string]struct {
		a, b []evidence.ConfEntry
		want uint64
	}{
		"none":        {nil, nil, 0},
		"one":         {[]evidence.ConfEntry{change(3, add, 7, false)}, nil, 3},
		"a later one": {[]evidence.ConfEntry{change(3, add, 7, false), change(8, remove, 7, false)}, nil, 8},
		"in another log": {[]evidence.ConfEntry{change(3, add, 7, false)},
			[]evidence.ConfEntry{change(8, remove, 7, false)}, 8},
		"in the first log": {[]evidence.ConfEntry{change(8, remove, 7, false)},
			[]evidence.ConfEntry{change(3, add, 7, false)}, 8},
		"an update":           {[]evidence.ConfEntry{change(3, add, 7, false), change(8, update, 7, false)}, nil, 3},
		"refused":             {[]evidence.ConfEntry{change(3, add, 7, false), change(8, remove, 7, true)}, nil, 3},
		"of another":          {[]evidence.ConfEntry{change(3, add, 8, false)}, nil, 0},
		"the last applied":    {[]evidence.ConfEntry{change(10, add, 7, false)}, nil, 10},
		"not applied":         {[]evidence.ConfEntry{change(11, add, 7, false)}, nil, 0},
		"the last committed":  {nil, []evidence.ConfEntry{change(9, add, 7, false)}, 9},
		"not committed there": {nil, []evidence.ConfEntry{change(10, add, 7, false)}, 0},
	} {
		a, b := withLog(member("n1"), 30), withLog(member("n2"), 30)
		a.WAL.Conf, b.WAL.Conf, a.Commit, b.Commit = c.a, c.b, 30, 9
		got := uint64(0)
		if x := (Sources{member("n0"), a, b}).logs().lastChangeOf("7", 10); x != nil {
			got = x.Index
		}
		if got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestConfStateOfAnother: a stored configuration that differs from that of a member with the same conf changes was
// edited, unless it is the one from before a received snapshot.
func TestConfStateOfAnother(t *testing.T) {
	cs := func(voters ...dumpdb.ID) *dumpdb.ConfState { return &dumpdb.ConfState{Voters: voters} }
	for name, c := range map[string]struct {
		own  *dumpdb.ConfState
		jump []dumplog.Jump
		want Severity
	}{
		"the same": {cs(2, 1), nil, ""}, "another": {cs(1), nil, Error},
		"of before a snapshot": {cs(1), []dumplog.Jump{{From: 5, To: 9}}, Warning},
		"of no time":           {cs(8), []dumplog.Jump{{From: 5, To: 9}}, Error},
	} {
		m, o := withDB(begun(member("n1"), dumplog.StartBootstrap, 2, 5), 20), withDB(withLog(member("n2"), 30), 20)
		m.DB.Meta.ConfState, o.DB.Meta.ConfState, m.WAL.Summary.Jumps = c.own, cs(1, 2), c.jump
		mb := (&Input{Members: Sources{m, o}}).Membership()
		f := mb.confStateDiffers(m, o)
		if (f != nil) != (c.want != "") || f != nil &&
			(f.Severity != c.want || (f.Class == "") != (c.want == Warning) ||
				strings.Contains(f.Title, "older than") != (c.want == Warning) || f.At.Index != 20) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestSameTerm: entries of one term that differ are of two leaders, unless a finding of that term says so already.
func TestSameTerm(t *testing.T) {
	a, b := withLog(member("n1"), 30), withLog(member("n2"), 30)
	for _, m := range []*evidence.Member{a, b} {
		m.WAL.LastByTerm = []evidence.TermEnd{{Term: 4, First: 1, Last: 30}}
	}
	a.MemberID, b.MemberID = 1, 2
	var diffs []replay.LogDiff
	for index := uint64(29); index <= 30; index++ {
		diffs = append(diffs, replay.LogDiff{Index: index, By: map[int]string{0: "x", 1: "y"},
			Versions: [][]int{{0}, {1}}})
	}
	in := &Input{Members: Sources{a, b}, Replay: &replay.Result{SameTerm: diffs, Last: 30}}
	fs := sameTermFindings(in, map[uint64]bool{3: true})
	if len(fs) != 1 || fs[0].At != (At{Term: 4, Index: 29}) || !strings.Contains(fs[0].Title, "(2 such indexes)") ||
		!slices.Equal(fs[0].Members, []string{"n1", "n2"}) || len(fs[0].Evidence) != 2 {
		t.Errorf("%+v", fs)
	}
	if fs := sameTermFindings(in, map[uint64]bool{4: true}); len(fs) > 0 {
		t.Errorf("told already: %+v", fs)
	}
	in.Replay.SameTerm = nil
	if fs := sameTermFindings(in, nil); len(fs) > 0 {
		t.Errorf("nothing differs: %+v", fs)
	}
	in.Replay = nil
	if fs := sameTermFindings(in, nil); len(fs) > 0 {
		t.Errorf("no replay: %+v", fs)
	}
}
