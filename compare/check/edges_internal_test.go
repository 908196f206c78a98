package check

import (
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestV2ListOf36: from 3.6 on servers write both lists from one, so that all rows are compared at the applied index.
func TestV2ListOf36(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(m *evidence.Member)
		compared bool
		rows     int
	}{
		"equal":           {func(*evidence.Member) {}, true, 0},
		"other peer URLs": {func(m *evidence.Member) { m.DB.Members[0].PeerURLs = []string{"q"} }, true, 1},
		"one more":        {func(m *evidence.Member) { m.DB.Members = append(m.DB.Members, dumpdb.Member{ID: 9}) }, true, 1},
		"one is removed":  {func(m *evidence.Member) { m.DB.Removed = []dumpdb.ID{9} }, true, 1},
		"it may have applied more": {func(m *evidence.Member) {
			m.DB.Members[0].PeerURLs, m.AppliedMax = []string{"q"}, 19
		}, false, 0},
		"changed by the last entry that is applied": {func(m *evidence.Member) {
			m.DB.Members[0].PeerURLs = []string{"q"}
			m.WAL.Conf = []evidence.ConfEntry{updated(18, 1, "q")}
		}, true, 0},
		"changed by a later entry": {func(m *evidence.Member) {
			m.DB.Members[0].PeerURLs = []string{"q"}
			m.WAL.Conf = []evidence.ConfEntry{updated(19, 1, "q")}
		}, true, 0},
		"changed otherwise by a later entry": {func(m *evidence.Member) {
			m.DB.Members[0].PeerURLs = []string{"q"}
			m.WAL.Conf = []evidence.ConfEntry{updated(19, 1, "r")}
		}, true, 1},
	} {
		m := withDB(addSnap(withLog(withSnapDir(t, "n1"), 20), 15, &dumplog.V2Store{Version: "3.6.0",
			Members: []dumplog.V2Member{{ID: 1, Name: "n1", PeerURLs: []string{"a"}, ClientURLs: []string{"c"}}}}), 18)
		m.Version, m.Commit = evidence.Version{Minor: 6, Text: "3.6.x"}, 20
		m.DB.Members = []dumpdb.Member{{ID: 1, Name: "n1", PeerURLs: []string{"a"}, ClientURLs: []string{"c"}}}
		rp := &replay.Result{First: 1, Last: 20, Survey: &replay.Survey{}}
		c.change(m)
		fs, compared := (&Input{Members: Sources{m}, Replay: rp, MaxRows: 20}).v2Lists().againstBuckets(m)
		rows := 0
		for _, f := range fs {
			rows += len(f.Evidence)
			if !strings.Contains(f.Explanation, "no entry in 16..18 explains") {
				t.Errorf("%s: %s", name, f.Explanation)
			}
		}
		if compared != c.compared || rows != c.rows {
			t.Errorf("%s: compared %t, %+v", name, compared, fs)
		}
	}
}

// TestLearnerJustAdded: a learner that never started is no more than new if its addition is the last committed entry.
func TestLearnerJustAdded(t *testing.T) {
	for commit, want := range map[uint64]Kind{9: KindLearnerJustAdded, 10: KindLearnerNeverStarted} {
		m := withLog(member("n1"), 20)
		m.Commit, m.MemberID = commit, 1
		m.Membership = evidence.Membership{RaftKnown: true, Voters: []dumplog.ID{1}, Learners: []dumplog.ID{7}}
		m.WAL.Conf = []evidence.ConfEntry{{Index: 9, Term: 2,
			Change: dumplog.ConfChange{Type: dumplog.ConfChangeAddLearnerNode, NodeID: 7}}}
		r := runLearnersMove(&Input{Members: Sources{m}})
		if len(r.Findings) != 1 || r.Findings[0].Kind != want || r.Outcome != Violated ||
			strings.Contains(r.Findings[0].Explanation, "it may only need time") != (want == KindLearnerJustAdded) {
			t.Errorf("committed up to %d: %+v", commit, r)
		}
	}
}

// TestBurstsOfRevokes: whether the member that revoked leases led before, and whether it did so soon after its
// election.
func TestBurstsOfRevokes(t *testing.T) {
	leaders := map[uint64]dumplog.ID{3: 7, 5: 8}
	for term, want := range map[uint64]bool{3: false, 4: true, 9: true} {
		if got := ledBefore(leaders, replay.RevokeBurst{Term: term, Proposer: 7}); got != want {
			t.Errorf("term %d: led before %t", term, got)
		}
	}
	if ledBefore(leaders, replay.RevokeBurst{Term: 9, Proposer: 6}) {
		t.Error("one that never led")
	}
	m := withLog(member("n1"), 1000)
	m.WAL.LastByTerm = []evidence.TermEnd{{Term: 2, First: 1, Last: 99}, {Term: 3, First: 100, Last: 1000}}
	for first, want := range map[uint64]bool{100: true, 100 + earlyInTerm: true, 101 + earlyInTerm: false} {
		if got := isEarlyInTerm(Sources{member("n0"), m}, replay.RevokeBurst{Term: 3, First: first}); got != want {
			t.Errorf("entry %d: early %t", first, got)
		}
	}
	if isEarlyInTerm(Sources{m}, replay.RevokeBurst{Term: 4, First: 100}) {
		t.Error("a term that no log has")
	}
	m.WAL.Log = nil
	if isEarlyInTerm(Sources{m}, replay.RevokeBurst{Term: 3, First: 100}) {
		t.Error("without a log")
	}
}

// TestVersionBelowStorage: the storage version follows the cluster version, which a downgrade lowers first.
func TestVersionBelowStorage(t *testing.T) {
	for name, c := range map[string]struct {
		storage, cluster string
		damage           string
		want             bool
	}{
		"the same":             {"3.6.0", "3.6.0", "none", false},
		"a downgrade":          {"3.7.0", "3.6.0", "none", false},
		"two lines below":      {"3.7.0", "3.5.0", "none", true},
		"no cluster version":   {"3.6.0", "", "none", true},
		"no storage version":   {"", "3.4.0", "none", false},
		"damage of cluster":    {"3.7.0", "3.5.0", "cluster", false},
		"damage of meta":       {"3.7.0", "3.5.0", "meta", false},
		"damage of all":        {"3.7.0", "3.5.0", "", false},
		"damage of bucket key": {"3.7.0", "3.5.0", "key", true},
	} {
		m := withDB(member("n1"), 9)
		m.DB.Handle = buckets(t, "cluster", "meta", "key")
		m.DB.Meta.StorageVersion, m.DB.Cluster.Version = c.storage, c.cluster
		if c.damage != "none" {
			damagedBucket(c.damage)(m)
		}
		fs := versionBelowStorage(m)
		if (len(fs) > 0) != c.want || c.want && fs[0].Kind != KindClusterVersionTooLow {
			t.Errorf("%s: %+v", name, fs)
		}
	}
	m := withDB(member("n1"), 9)
	m.DB.Handle = buckets(t, "meta")
	if m.DB.Meta.StorageVersion = "3.6.0"; len(versionBelowStorage(m)) > 0 {
		t.Error("without bucket cluster")
	}
}

// TestHeldEntries: a log holds its entries up to damage that no later snapshot makes up for.
func TestHeldEntries(t *testing.T) {
	for name, c := range map[string]struct {
		damage dumplog.DamageError
		want   uint64
	}{
		"none lost":               {dumplog.DamageError{}, 60},
		"lost to the end":         {dumplog.DamageError{LostFrom: 50}, 60},
		"lost after a snapshot":   {dumplog.DamageError{LostFrom: 50, LostTo: 55}, 49},
		"lost up to the snapshot": {dumplog.DamageError{LostFrom: 35, LostTo: 40}, 34},
		"lost before it":          {dumplog.DamageError{LostFrom: 35, LostTo: 39}, 60},
	} {
		m := withLog(member("n1"), 60)
		m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: 40}}
		m.WAL.Summary.Damage = []*dumplog.DamageError{&c.damage}
		if got := heldUpTo(m); got != c.want {
			t.Errorf("%s: up to %d, want %d", name, got, c.want)
		}
	}
}

// TestRevokesAfterSnapshots: a leader that received a snapshot before its term revokes no lease until a start or a
// change of auth.
func TestRevokesAfterSnapshots(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *evidence.Member, s *replay.Survey)
		want   uint64
	}{
		"a snapshot": {func(*evidence.Member, *replay.Survey) {}, 20},
		"no log":     {func(m *evidence.Member, _ *replay.Survey) { m.WAL.Log = nil }, 0},
		"in the term": {func(m *evidence.Member, _ *replay.Survey) {
			m.WAL.Summary.Jumps = []dumplog.Jump{{From: 25, To: 30}}
		}, 0},
		"right before it": {func(m *evidence.Member, _ *replay.Survey) {
			m.WAL.Summary.Jumps = []dumplog.Jump{{From: 25, To: 29}, {From: 5, To: 6}}
		}, 29},
		"a start since":        {start(21), 0},
		"a start at it":        {start(20), 20},
		"a start in the term":  {start(49), 0},
		"a start at its end":   {start(50), 20},
		"a change of auth":     {authEntry(21), 0},
		"one before it":        {authEntry(20), 20},
		"one in the term":      {authEntry(49), 0},
		"one after the leases": {authEntry(50), 20},
	} {
		m := withLog(member("n1"), 60)
		m.MemberID = 7
		m.WAL.Summary.Jumps = []dumplog.Jump{{From: 15, To: 20}}
		s := &replay.Survey{Starts: map[dumplog.ID][]replay.Start{8: {{Index: 25}}}}
		c.change(m, s)
		if got := recoveredBefore(&replay.Result{Survey: s}, m, replay.LeaseTerm{First: 30, Last: 50}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func start(index uint64) func(*evidence.Member, *replay.Survey) {
	return func(_ *evidence.Member, s *replay.Survey) { s.Starts[7] = []replay.Start{{Index: index}} }
}

func authEntry(index uint64) func(*evidence.Member, *replay.Survey) {
	return func(_ *evidence.Member, s *replay.Survey) { s.Auth = []replay.AuthEntry{{Index: index}} }
}

// TestNoCandidate: a member that voted for another one, which voted for itself, was no candidate in that term.
func TestNoCandidate(t *testing.T) {
	type votes = []dumplog.Vote
	own := func(m *evidence.Member) *votes { return &m.WAL.Summary.Votes }
	twice := func(_, c, _ *evidence.Member, _ *dumplog.Vote) { *own(c) = append(*own(c), (*own(c))[0]) }
	for name, c := range map[string]struct {
		change func(m, c, o *evidence.Member, v *dumplog.Vote)
		want   bool
	}{
		"it voted for another": {func(_, _, _ *evidence.Member, _ *dumplog.Vote) {}, true},
		"it is not at hand":    {func(_, c, _ *evidence.Member, _ *dumplog.Vote) { c.MemberID = 9 }, false},
		"for itself":           {func(_, c, _ *evidence.Member, _ *dumplog.Vote) { (*own(c))[0].For = 2 }, false},
		"it has no vote":       {func(_, c, _ *evidence.Member, _ *dumplog.Vote) { *own(c) = nil }, false},
		"it has two":           {twice, false},
		"in another term":      {func(_, c, _ *evidence.Member, _ *dumplog.Vote) { (*own(c))[0].Term = 4 }, false},
		"with a shorter log":   {func(_, _, _ *evidence.Member, v *dumplog.Vote) { v.After = 13 }, false},
		"with one as long":     {func(_, _, _ *evidence.Member, v *dumplog.Vote) { v.After = 12 }, true},
		"the other is not at hand": {func(_, _, o *evidence.Member, _ *dumplog.Vote) { o.MemberID = 9 },
			false},
		"the other voted for it":      {func(_, _, o *evidence.Member, _ *dumplog.Vote) { (*own(o))[0].For = 2 }, false},
		"the other has no vote":       {func(_, _, o *evidence.Member, _ *dumplog.Vote) { *own(o) = nil }, false},
		"it voted for the voter":      {func(_, c, _ *evidence.Member, _ *dumplog.Vote) { (*own(c))[0].For = 1 }, false},
		"the vote is for the voter":   {func(_, _, _ *evidence.Member, v *dumplog.Vote) { v.For = 1 }, false},
		"candidate of other cluster":  {func(_, c, _ *evidence.Member, _ *dumplog.Vote) { c.ClusterID = 8 }, false},
		"the other of other clusters": {func(_, _, o *evidence.Member, _ *dumplog.Vote) { o.ClusterID = 8 }, false},
	} {
		var ss Sources
		for i, vote := range []dumplog.Vote{{Term: 3, For: 2, After: 10}, {Term: 3, For: 3, After: 12},
			{Term: 3, For: 3, After: 12}} {
			m := withLog(member([]string{"n1", "n2", "n3"}[i]), 60)
			m.MemberID, m.ClusterID, m.WAL.Summary.Votes = dumplog.ID(i+1), 5, votes{vote}
			ss = append(ss, m)
		}
		v := ss[0].WAL.Summary.Votes[0]
		c.change(ss[0], ss[1], ss[2], &v)
		if got := (&Input{Members: ss}).provenance().wasNoCandidate(ss[0], v); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
