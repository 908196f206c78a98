package check

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestBlameAlike: where nothing else decides, the logs that were altered elsewhere are those that were altered here, if
// only one version is left that none of them holds.
func TestBlameAlike(t *testing.T) {
	known := altered{diffs: []replay.LogDiff{{Index: 7}}, odd: []int{1}, why: "shown"}
	open := func(versions ...[]int) altered {
		return altered{diffs: []replay.LogDiff{{Index: 9, Versions: versions}}}
	}
	believed := known
	believed.believes = true
	for name, c := range map[string]struct {
		as  []altered
		odd []int
	}{
		"the same log":               {[]altered{known, open([]int{0, 2}, []int{1})}, []int{1}},
		"found before it":            {[]altered{open([]int{1}, []int{0, 2}), known}, []int{1}},
		"a version of it and others": {[]altered{known, open([]int{0}, []int{1, 2})}, nil},
		"two sound versions":         {[]altered{known, open([]int{0}, []int{2}, []int{1})}, nil},
		"of other logs":              {[]altered{known, open([]int{0}, []int{2})}, nil},
		"no sound version":           {[]altered{known, open([]int{1})}, nil},
		"its database believes it":   {[]altered{believed, open([]int{0, 2}, []int{1})}, nil},
		"nothing is known elsewhere": {[]altered{open([]int{0, 2}, []int{1}), open([]int{0}, []int{1})}, nil},
	} {
		blameAlike(c.as)
		at := slices.IndexFunc(c.as, func(a altered) bool { return a.diffs[0].Index == 9 })
		if got := c.as[at]; !slices.Equal(got.odd, c.odd) || (got.why != "") != (c.odd != nil) ||
			c.odd != nil && got.why != "this log was altered at entry 7 too" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestAllDiffs: the indexes at which logs differ, each once and in order.
func TestAllDiffs(t *testing.T) {
	rp := &replay.Result{LogDiffs: []replay.LogDiff{{Index: 5}, {Index: 9}},
		SameTerm: []replay.LogDiff{{Index: 9}, {Index: 3}, {Index: 7}}}
	var got []uint64
	for _, d := range allDiffs(rp) {
		got = append(got, d.Index)
	}
	if !slices.Equal(got, []uint64{3, 5, 7, 9}) || len(rp.LogDiffs) != 2 {
		t.Errorf("%v of %d", got, len(rp.LogDiffs))
	}
}

// TestTellCut: which pages a file has lost with its end, and what can be reached in the rest.
func TestTellCut(t *testing.T) {
	sound := filepath.Join(t.TempDir(), "db")
	clustertest.Synth{Members: 1, Entries: 20, Keys: 5, Value: 10}.WriteDB(t, sound)
	content, err := os.ReadFile(sound)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := dumpdb.Open(sound)
	if err != nil {
		t.Fatal(err)
	}
	pages, page := int64(whole.Meta().HighWater), int64(whole.PageSize())
	if err := whole.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		size       int64
		unreadable bool
		want       string
	}{
		"whole": {pages * page, false, ""},
		"a byte": {pages*page - 1, false,
			fmt.Sprintf("pages %d..%d of %d are lost; the buckets", pages-1, pages-1, pages)},
		"a page": {(pages - 1) * page, true,
			fmt.Sprintf("pages %d..%d of %d are lost, the root page", pages-1, pages-1, pages)},
		"all but meta pages": {2 * page, true,
			fmt.Sprintf("pages 2..%d of %d are lost: only meta pages", pages-1, pages)},
	} {
		path := filepath.Join(t.TempDir(), "db")
		if err := os.WriteFile(path, content[:min(c.size, int64(len(content)))], 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := dumpdb.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		m := member("n1")
		m.DB = &evidence.DB{Handle: h, Buckets: make([]dumpdb.Bucket, 1)}
		if c.unreadable {
			m.DB.Buckets, m.DB.Damage = nil, make([]*dumpdb.DamageError, 1)
		}
		f := Finding{Title: "damaged"}
		tellCut(&f, m)
		if !strings.HasPrefix(f.Explanation, c.want) || (c.want == "") != (f.Title == "damaged") ||
			(c.want == "") != (f.Explanation == "") {
			t.Errorf("%s: %s: %s, want %q", name, f.Title, f.Explanation, c.want)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestExplainNoMeta: what a server makes of a database without its meta pages depends on the size, and on what the log
// names.
func TestExplainNoMeta(t *testing.T) {
	for want, change := range map[string]func(m *evidence.Member){
		"not even the first meta page":            func(m *evidence.Member) { m.DB.Size = 1 },
		"would start with an empty key space$":    func(m *evidence.Member) { m.WAL.Log = nil },
		"empty key space and apply the log again": func(*evidence.Member) {},
		"The log names a snapshot at index 40: whil": func(m *evidence.Member) {
			m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: 40}}
		},
		"with an empty key space$": func(m *evidence.Member) { m.WAL.Summary.FirstIndex = 2 },
	} {
		m := withDB(withLog(member("n1"), 90), 40)
		change(m)
		title, text := explainNoMeta(m)
		end, exact := strings.CutSuffix(want, "$")
		if !strings.Contains(text, end) || exact && !strings.HasSuffix(text, end) || (m.DB.Size == 0) !=
			strings.Contains(title, "(0 bytes)") {
			t.Errorf("%s: %s, want %q", title, text, want)
		}
	}
}

// TestComesUp: a configuration was raft's if one of the changes that servers accepted left exactly it.
func TestComesUp(t *testing.T) {
	change := func(kind dumplog.ConfChangeType, id dumplog.ID) evidence.ConfEntry {
		return evidence.ConfEntry{Change: dumplog.ConfChange{Type: kind, NodeID: id}}
	}
	refused := change(dumplog.ConfChangeRemoveNode, 2)
	refused.Refused = true
	log := []evidence.ConfEntry{change(dumplog.ConfChangeAddNode, 1), change(dumplog.ConfChangeAddNode, 2), refused,
		change(dumplog.ConfChangeUpdateNode, 9), change(dumplog.ConfChangeAddLearnerNode, 3),
		change(dumplog.ConfChangeAddNode, 3), change(dumplog.ConfChangeRemoveNode, 1)}
	for name, c := range map[string]struct {
		voters, learners []dumpdb.ID
		want             bool
	}{
		"the first":                  {[]dumpdb.ID{1}, nil, true},
		"after the second":           {[]dumpdb.ID{2, 1}, nil, true},
		"with a learner":             {[]dumpdb.ID{1, 2}, []dumpdb.ID{3}, true},
		"it is promoted":             {[]dumpdb.ID{1, 2, 3}, nil, true},
		"the last":                   {[]dumpdb.ID{2, 3}, nil, true},
		"what a refused one left":    {[]dumpdb.ID{1, 3}, nil, false},
		"a learner that is a voter":  {[]dumpdb.ID{1}, []dumpdb.ID{2}, false},
		"a voter that was a learner": {[]dumpdb.ID{1, 3}, []dumpdb.ID{2}, false},
		"one that was never there":   {[]dumpdb.ID{1, 9}, nil, false},
		"none":                       {nil, nil, false},
	} {
		m := member("n1")
		m.WAL.Conf = log
		if got := wasConfigured(m, &dumpdb.ConfState{Voters: c.voters, Learners: c.learners}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	cs := func(voters, learners []dumpdb.ID) *dumpdb.ConfState {
		return &dumpdb.ConfState{Voters: voters, Learners: learners}
	}
	if !sameConfState(cs([]dumpdb.ID{1, 2}, []dumpdb.ID{3}), cs([]dumpdb.ID{2, 1}, []dumpdb.ID{3})) ||
		sameConfState(cs([]dumpdb.ID{1}, []dumpdb.ID{3}), cs([]dumpdb.ID{1}, nil)) ||
		sameConfState(cs([]dumpdb.ID{1, 2}, nil), cs([]dumpdb.ID{1}, nil)) {
		t.Error("configurations are compared as sets of voters and of learners")
	}
	if !comesUp(map[dumplog.ID]bool{1: false}, nil, cs([]dumpdb.ID{1}, nil)) ||
		comesUp(map[dumplog.ID]bool{1: true}, nil, cs([]dumpdb.ID{1}, nil)) {
		t.Error("the configuration before the changes counts")
	}
}

// TestCellText: a row of bucket key is shown by its numbers, never its value.
func TestCellText(t *testing.T) {
	c := &diff.Cell{Text: "text", Mod: 5, Create: 3, Version: 2, ValueLen: 9, ValueDigest: "ab"}
	for want, x := range map[string]struct {
		bucket string
		lease  int64
	}{
		"text": {"lease", 7}, "mod 5 create 3 version 2 value <len 9 digest ab>": {"key", 0},
		"mod 5 create 3 version 2 value <len 9 digest ab> lease 1f": {"key", 0x1f},
	} {
		if c.Lease = x.lease; cellText(x.bucket, c) != want {
			t.Errorf("%q, want %q", cellText(x.bucket, c), want)
		}
	}
}

// TestOnlyVote: a log shows whom a member voted for in a term if it has one vote of that term, and no odd ones.
func TestOnlyVote(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *evidence.Member)
		want   dumplog.ID
	}{
		"one": {func(*evidence.Member) {}, 5},
		"of two terms": {func(m *evidence.Member) {
			m.WAL.Summary.Votes = append(m.WAL.Summary.Votes, dumplog.Vote{Term: 4, For: 6})
		}, 5},
		"two of a term": {func(m *evidence.Member) {
			m.WAL.Summary.Votes = append(m.WAL.Summary.Votes, dumplog.Vote{Term: 3, For: 6})
		}, 0},
		"odd votes": {func(m *evidence.Member) { m.WAL.Summary.OddVotes = make([]dumplog.Vote, 1) }, 0},
		"no log":    {func(m *evidence.Member) { m.WAL.Log = nil }, 0},
		"none":      {func(m *evidence.Member) { m.WAL.Summary.Votes = nil }, 0},
	} {
		m := withLog(member("n1"), 90)
		m.WAL.Summary.Votes = []dumplog.Vote{{Term: 3, For: 5}}
		c.change(m)
		if v, ok := onlyVote(m, 3); ok != (c.want != 0) || ok && v.For != c.want {
			t.Errorf("%s: %+v, %t", name, v, ok)
		}
	}
}

// TestAddedAt: the newest addition of a member that is committed and that servers accepted.
func TestAddedAt(t *testing.T) {
	change := func(index uint64, kind dumplog.ConfChangeType, id dumplog.ID, refused bool) evidence.ConfEntry {
		return evidence.ConfEntry{Term: 2, Index: index, Refused: refused,
			Change: dumplog.ConfChange{Type: kind, NodeID: id}}
	}
	const learner, voter, gone = dumplog.ConfChangeAddLearnerNode, dumplog.ConfChangeAddNode,
		dumplog.ConfChangeRemoveNode
	for name, c := range map[string]struct {
		conf []evidence.ConfEntry
		want uint64
	}{
		"as a learner":             {[]evidence.ConfEntry{change(5, learner, 7, false)}, 5},
		"as a voter":               {[]evidence.ConfEntry{change(5, voter, 7, false)}, 5},
		"promoted":                 {[]evidence.ConfEntry{change(5, learner, 7, false), change(8, voter, 7, false)}, 8},
		"the last committed entry": {[]evidence.ConfEntry{change(9, learner, 7, false)}, 9},
		"not committed": {[]evidence.ConfEntry{change(5, learner, 7, false), change(10, voter, 7, false)},
			5},
		"refused": {[]evidence.ConfEntry{change(5, learner, 7, false), change(8, learner, 7, true)},
			5},
		"another": {[]evidence.ConfEntry{change(5, learner, 8, false)}, 0},
		"removed": {[]evidence.ConfEntry{change(5, learner, 7, false), change(8, gone, 7, false)}, 5},
	} {
		m := withLog(member("n1"), 20)
		m.WAL.Conf, m.Commit = c.conf, 9
		if at := addedAt(m, 7); at.Index != c.want || (at.Term == 2) != (c.want > 0) {
			t.Errorf("%s: %+v", name, at)
		}
	}
	for last, want := range map[uint64]bool{89: true, 90: false, 100: false} {
		top := withLog(member("n1"), 100)
		top.Commit = 100
		if got := behindForPromotion(withLog(member("n2"), last), top); got != want {
			t.Errorf("a log of %d of 100 entries lags: %t", last, got)
		}
	}
}

// TestLostChange: the conf change that an old row misses stands in the log of another member of the cluster, after the
// end of the member's own.
func TestLostChange(t *testing.T) {
	for name, c := range map[string]struct {
		kind    Kind
		learner bool
		change  func(o *evidence.Member)
		want    bool
	}{
		"a voter":            {KindMemberZombie, false, func(*evidence.Member) {}, true},
		"a promotion":        {KindLearnerListedAsVoter, false, func(*evidence.Member) {}, true},
		"a learner, no such": {KindMemberZombie, true, func(*evidence.Member) {}, false},
		"a learner": {KindMemberZombie, true,
			func(o *evidence.Member) { o.WAL.Conf[0].Change.Type = dumplog.ConfChangeAddLearnerNode }, true},
		"another kind": {KindMemberUnknown, false, func(*evidence.Member) {}, false},
		"refused": {KindMemberZombie, false, func(o *evidence.Member) { o.WAL.Conf[0].Refused = true },
			false},
		"another member": {KindMemberZombie, false,
			func(o *evidence.Member) { o.WAL.Conf[0].Change.NodeID = 8 }, false},
		"in its own log": {KindMemberZombie, false, func(o *evidence.Member) { o.WAL.Conf[0].Index = 20 },
			false},
		"another cluster": {KindMemberZombie, false, func(o *evidence.Member) { o.ClusterID = 9 }, false},
		"a log without an entry": {KindMemberZombie, false, func(o *evidence.Member) { o.WAL.Summary.LastIndex = 0 },
			false},
		"removed, not added": {KindMemberZombie, false,
			func(o *evidence.Member) { o.WAL.Conf[0].Change.Type = dumplog.ConfChangeRemoveNode }, false},
	} {
		m, o := withLog(member("n1"), 20), withLog(member("n2"), 30)
		o.WAL.Conf = []evidence.ConfEntry{{Index: 21,
			Change: dumplog.ConfChange{Type: dumplog.ConfChangeAddNode, NodeID: 7}}}
		c.change(o)
		mb := (&Input{Members: Sources{m, o}}).Membership()
		got, ok := mb.lostChangeOf(c.kind, m, &dumpdb.Member{ID: 7, IsLearner: c.learner})
		if ok != c.want || ok && (got.m != m || got.holder != o || got.entry.Index != 21) {
			t.Errorf("%s: %+v, %t", name, got, ok)
		}
	}
}

// TestLostLogs: what shows that a log which ends before a commit index lost entries, and is no earlier copy.
func TestLostLogs(t *testing.T) {
	for want, change := range map[string]func(m *evidence.Member){
		"":                                  func(*evidence.Member) {},
		"the database of n1 has applied 21": func(m *evidence.Member) { withDB(m, 21) },
		"n1 has stored commit 21":           func(m *evidence.Member) { m.WAL.Summary.MaxCommit = 21 },
		"the log of n1 is damaged": func(m *evidence.Member) {
			m.WAL.Summary.Damage = []*dumplog.DamageError{{Err: errors.New("crc")}}
		},
		"- at its end": func(m *evidence.Member) { withDB(m, 20); m.WAL.Summary.MaxCommit = 20 },
	} {
		m := withLog(member("n1"), 20)
		change(m)
		pv := (&Input{Members: Sources{m, withLog(member("n2"), 30)}}).provenance()
		got, named := pv.lostLog(m), pv.lostEnds([]*evidence.Member{m})
		kind, why := pv.lostLogs([]*evidence.Member{m})
		if strings.HasPrefix(want, "-") {
			want = ""
		}
		if got != want || why != want || (kind == KindBelowQuorumLogsLost) != (want != "") ||
			len(named) != min(1, len(want)) {
			t.Errorf("%q, %s %q, %v; want %q", got, kind, why, named, want)
		}
	}
}

// TestSmallAnswers: what has no name, no place or no row.
func TestSmallAnswers(t *testing.T) {
	for i, s := range []Severity{Info, Warning, Error, Critical} {
		if s.Rank() != i {
			t.Errorf("%s has rank %d", s, s.Rank())
		}
	}
	if Severity("none").Rank() != -1 || Kind("none").Check() != "" || KindMemberZombie.Check() == "" {
		t.Error("a name that is none has a rank or a check")
	}
	if got := appendNew(appendNew(appendNew(nil, "a"), "b"), "a"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%q", got)
	}
	falls := []dumplog.CommitFall{{Pos: dumplog.Pos{Segment: "1.wal", Offset: 5}}, {},
		{Pos: dumplog.Pos{Segment: "2.wal", Offset: 7}}}
	if got := fallRanges(falls); got != "from segment 1.wal offset 5 to segment 2.wal offset 7" {
		t.Errorf("%q", got)
	}
	m := member("n1")
	if bucketVoter(m, 7) || snapFileAt(m, 5) != nil {
		t.Error("something of files that are not there")
	}
	m.DB = &evidence.DB{Members: []dumpdb.Member{{ID: 7}, {ID: 8, IsLearner: true}}}
	if !bucketVoter(m, 7) || bucketVoter(m, 8) || bucketVoter(m, 9) {
		t.Error("a voter is who the bucket lists, and not as a learner")
	}
}
