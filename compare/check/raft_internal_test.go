package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestReplacedEntries: raft never replaces a committed entry; after a break of the chain the records are of another
// log.
func TestReplacedEntries(t *testing.T) {
	at := func(segment string, offset int64) dumplog.Pos { return dumplog.Pos{Segment: segment, Offset: offset} }
	for name, c := range map[string]struct {
		commit uint64
		damage *dumplog.DamageError
		want   Class
	}{
		"not committed": {11, nil, ""},
		"committed":     {12, nil, ClassDataDivergence},
		"the chain breaks before": {12, &dumplog.DamageError{Kind: dumplog.DamageChain, Pos: at("a", 900)},
			ClassWALDamage},
		"in the segment": {12, &dumplog.DamageError{Kind: dumplog.DamageChain, Pos: at("b", 49)},
			ClassWALDamage},
		"just there": {12, &dumplog.DamageError{Kind: dumplog.DamageChain, Pos: at("b", 50)},
			ClassWALDamage},
		"later in the segment": {12, &dumplog.DamageError{Kind: dumplog.DamageChain, Pos: at("b", 51)},
			ClassDataDivergence},
		"in a later segment": {12, &dumplog.DamageError{Kind: dumplog.DamageChain, Pos: at("c", 1)},
			ClassDataDivergence},
		"another kind of damage": {12, &dumplog.DamageError{Kind: dumplog.DamageCRC, Pos: at("a", 1)},
			ClassDataDivergence},
	} {
		m := withLog(member("n1"), 20)
		m.WAL.Summary.Overwrites = []dumplog.Overwrite{{Pos: at("b", 50), Term: 3, Index: 12, OldLast: 14, OldTerm: 2,
			Commit: c.commit}}
		if c.damage != nil {
			m.WAL.Summary.Damage = []*dumplog.DamageError{c.damage}
		}
		r := runCommittedKept(&Input{Members: Sources{member("n0"), m}})
		if (len(r.Findings) == 0) != (c.want == "") || len(r.Findings) > 0 && (r.Findings[0].Class != c.want ||
			r.Findings[0].At != (At{Term: 3, Index: 12})) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestWipedMembers: a log of a new member, of one that is known to have run.
func TestWipedMembers(t *testing.T) {
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		change func(m, o *evidence.Member, rp *replay.Result)
		want   bool
	}{
		"wiped": {func(_, _ *evidence.Member, _ *replay.Result) {}, true},
		"an empty log": {func(m, _ *evidence.Member, _ *replay.Result) {
			m.WAL.Summary.LastIndex, m.WAL.Conf = 0, nil
		}, true},
		"no log":       {func(m, _ *evidence.Member, _ *replay.Result) { m.WAL.Log = nil }, false},
		"no member ID": {func(m, _ *evidence.Member, _ *replay.Result) { m.MemberID = 0 }, false},
		"it has more":  {func(m, _ *evidence.Member, _ *replay.Result) { m.WAL.Summary.LastIndex = 4 }, false},
		"a later term": {func(m, _ *evidence.Member, _ *replay.Result) { m.WAL.Summary.LastTerm = 2 }, false},
		"a snapshot above": {func(m, _ *evidence.Member, _ *replay.Result) {
			m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: 9}}
		}, false},
		"two snapshots": {func(m, _ *evidence.Member, _ *replay.Result) {
			m.WAL.Summary.Snapshots = make([]dumplog.SnapshotRecord, 2)
		}, false},
		"of another cluster": {func(_, o *evidence.Member, _ *replay.Result) { o.ClusterID = 8 }, false},
		"the other has none": {func(_, o *evidence.Member, _ *replay.Result) { o.WAL.Log = nil }, false},
		"nothing more":       {func(_, o *evidence.Member, _ *replay.Result) { o.Commit = 3 }, false},
		"one entry more":     {func(_, o *evidence.Member, _ *replay.Result) { o.Commit = 4 }, true},
		"never started":      {func(_, _ *evidence.Member, rp *replay.Result) { rp.Survey.Starts = nil }, false},
		"copied before it started": {func(m, _ *evidence.Member, rp *replay.Result) {
			m.WAL.Summary.LastIndex, m.WAL.Conf = 0, nil
			rp.Survey.Starts[5][0].ID = startedAt(begun)
			writtenAt(m, begun.Add(-time.Hour))
		}, false},
		"copied while it started": {func(m, _ *evidence.Member, rp *replay.Result) {
			m.WAL.Summary.LastIndex, m.WAL.Conf = 0, nil
			rp.Survey.Starts[5][0].ID = startedAt(begun)
			writtenAt(m, begun.Add(madeWithin-time.Second))
		}, false},
		"of the first members": {func(m, o *evidence.Member, rp *replay.Result) {
			m.WAL.Summary.LastIndex, o.WAL.Conf, m.WAL.Conf = 0, m.WAL.Conf, nil
			rp.Survey.Starts[5][0].ID = startedAt(begun)
			writtenAt(m, begun.Add(madeWithin-time.Second))
		}, true},
		"bootstrapped while it started": {func(m, _ *evidence.Member, rp *replay.Result) {
			rp.Survey.Starts[5][0].ID = startedAt(begun)
			writtenAt(m, begun.Add(-time.Hour))
		}, true},
		"written after it started": {func(m, _ *evidence.Member, rp *replay.Result) {
			m.WAL.Summary.LastIndex, m.WAL.Conf = 0, nil
			rp.Survey.Starts[5][0].ID = startedAt(begun)
			writtenAt(m, begun.Add(madeWithin))
		}, true},
		"in the list": {func(_, o *evidence.Member, rp *replay.Result) {
			rp.Survey.Starts, o.Membership.Started = nil, map[dumplog.ID]bool{5: true}
		}, true},
	} {
		m, o := withLog(member("n1"), 3), withLog(member("n2"), 50)
		m.MemberID, o.MemberID, o.Commit, m.WAL.Summary.LastTerm = 5, 6, 50, 1
		m.WAL.Conf = []evidence.ConfEntry{founded(1, 5), founded(2, 6), founded(3, 7)}
		rp := &replay.Result{Survey: &replay.Survey{Starts: map[dumplog.ID][]replay.Start{5: {{Index: 9}}}}}
		c.change(m, o, rp)
		pv := (&Input{Members: Sources{m, o}, Replay: rp}).provenance()
		f := pv.wiped(m)
		if c.want && pv.lostLog(m) != "n1 was started as new under its old identity" {
			t.Errorf("%s: %q", name, pv.lostLog(m))
		}
		if (f != nil) != c.want || f != nil && (f.At.Index != m.WAL.Summary.LastIndex+1 || f.Kind != KindMemberWiped) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestMemberCameBack: a log that begins with a received snapshot, of a member that served clients before it.
func TestMemberCameBack(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *evidence.Member, rp *replay.Result)
		want   bool
	}{
		"came back":       {func(*evidence.Member, *replay.Result) {}, true},
		"no log":          {func(m *evidence.Member, _ *replay.Result) { m.WAL.Log = nil }, false},
		"no member ID":    {func(m *evidence.Member, _ *replay.Result) { m.MemberID = 0 }, false},
		"no survey":       {func(_ *evidence.Member, rp *replay.Result) { rp.Survey = nil }, false},
		"no snapshot":     {func(m *evidence.Member, _ *replay.Result) { m.WAL.Summary.Jumps = nil }, false},
		"no segment":      {func(m *evidence.Member, _ *replay.Result) { m.WAL.Summary.Segments = nil }, false},
		"a later segment": {func(m *evidence.Member, _ *replay.Result) { m.WAL.Summary.Segments[0].Seq = 1 }, false},
		"a damaged log": {func(m *evidence.Member, _ *replay.Result) {
			m.WAL.Summary.Damage = make([]*dumplog.DamageError, 1)
		}, false},
		"a restore": {func(m *evidence.Member, _ *replay.Result) {
			m.WAL.Summary.Start = dumplog.StartRestore
		}, false},
		"a later snapshot":  {func(m *evidence.Member, _ *replay.Result) { m.WAL.Summary.Jumps[0].From = 3 }, false},
		"after a bootstrap": {func(m *evidence.Member, _ *replay.Result) { m.WAL.Conf = m.WAL.Conf[:1] }, true},
		"with more entries": {func(m *evidence.Member, _ *replay.Result) {
			m.WAL.Summary.Start = dumplog.StartJoin
		}, false},
		"served after it": {func(_ *evidence.Member, rp *replay.Result) {
			rp.Survey.Served[5][0].Publish = 31
		}, false},
		"served at its end": {func(_ *evidence.Member, rp *replay.Result) {
			rp.Survey.Served[5][0].Publish = 30
		}, true},
		"at its beginning": {func(_ *evidence.Member, rp *replay.Result) { rp.Survey.Served[5][0].Publish = 2 }, true},
		"before it": {func(_ *evidence.Member, rp *replay.Result) {
			rp.Survey.Served[5][0].Publish = 1
		}, false},
		"held by no log": {func(_ *evidence.Member, rp *replay.Result) { rp.Survey.Served[5][0].Index = 90 }, false},
	} {
		m, o := withLog(member("n1"), 50), withLog(member("n2"), 50)
		m.MemberID, o.MemberID = 5, 6
		m.WAL.Conf, m.WAL.Summary.Start = []evidence.ConfEntry{founded(1, 5)}, dumplog.StartBootstrap
		m.WAL.Summary.Segments = make([]dumplog.Segment, 1)
		m.WAL.Summary.Jumps = []dumplog.Jump{{From: 2, To: 30}}
		o.WAL.LastByTerm = []evidence.TermEnd{{Term: 2, First: 1, Last: 50}}
		o.WAL.Summary.Terms = []dumplog.TermRange{{Term: 2, First: 1, Last: 50}}
		rp := &replay.Result{Survey: &replay.Survey{Served: map[dumplog.ID][]replay.Served{5: {{Publish: 20, Index: 22,
			What: "put"}}}}}
		c.change(m, rp)
		f := (&Input{Members: Sources{m, o}, Replay: rp}).provenance().recovered(m)
		if (f != nil) != c.want || f != nil && (f.At != (At{Term: 2, Index: 2}) || f.Evidence[1].Member != "n2") {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestOverlaps: two processes of one member that proposed at the same time.
func TestOverlaps(t *testing.T) {
	a, b := withLog(member("a"), 20), withLog(member("b"), 60)
	a.MemberID, b.MemberID, b.WAL.Summary.FirstIndex = 5, 6, 30
	for _, m := range []*evidence.Member{a, b} {
		m.WAL.LastByTerm = []evidence.TermEnd{{Term: 3, First: m.WAL.Summary.FirstIndex, Last: m.WAL.Summary.LastIndex}}
	}
	ss := Sources{member("none"), a, b}
	for _, c := range []struct {
		o              replay.Overlap
		name, old, new string
	}{
		{replay.Overlap{Member: 5, Publish: 10, Old: 12, New: 40}, "a", "a --index 12", "b --index 40"},
		{replay.Overlap{Member: 7, Publish: 10, Old: 20, New: 25}, "7", "a --index 20", ""},
		{replay.Overlap{Member: 7, Publish: 10, Old: 30, New: 60}, "7", "b --index 30", "b --index 60"},
		{replay.Overlap{Member: 7, Publish: 10, Old: 61, New: 1}, "7", "", "a --index 1"},
	} {
		f := overlapFinding(ss, c.o)
		for i, want := range []string{c.old, c.new} {
			if got := strings.TrimPrefix(f.Evidence[i].Show.String(), "etcd-medic dumplog "); got != want {
				t.Errorf("%+v: %q, want %q", c.o, got, want)
			}
		}
		if !slices.Equal(f.Members, []string{c.name}) || f.At.Index != c.o.Old ||
			!strings.HasPrefix(f.Evidence[0].Observed, "proposed by a process") {
			t.Errorf("%+v: %+v", c.o, f)
		}
	}
	in := &Input{Members: ss, Replay: &replay.Result{Overlaps: []replay.Overlap{{Member: 5}}}}
	if r := runOneHistory(in); len(r.Findings) != 1 || r.Findings[0].Kind != KindTwoProcesses || r.Outcome != Violated {
		t.Errorf("%+v", r)
	}
	// A database that contradicts one of the entries shows that it may have been altered.
	in.Replay.Overlaps[0] = replay.Overlap{Member: 5, Publish: 10, Old: 12, New: 40}
	for index, want := range map[uint64]Outcome{9: Violated, 10: NotChecked, 12: NotChecked, 40: NotChecked,
		41: Violated} {
		in.Replay.Events = []*replay.Event{{Index: index, Outcomes: []replay.Outcome{{}, {State: replay.Contradicted}}}}
		if r := runOneHistory(in); r.Outcome != want || want == NotChecked &&
			!strings.Contains(r.Reason, fmt.Sprintf("contradicts entry %d,", index)) {
			t.Errorf("entry %d is contradicted: %+v", index, r)
		}
	}
	in.Replay.Events = []*replay.Event{{Index: 12, Outcomes: []replay.Outcome{{State: replay.Applied}}}}
	if r := runOneHistory(in); r.Outcome != Violated {
		t.Errorf("nothing is contradicted: %+v", r)
	}
	in.Replay = nil
	if r := runOneHistory(in); r.Outcome == Holds || r.Reason == "" {
		t.Errorf("%+v", r)
	}
}

// TestStatesGone: a member that proposed, or took a snapshot, stored its term before.
func TestStatesGone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *evidence.Member, rp *replay.Result)
		want   uint64
	}{
		"it proposed": {func(*evidence.Member, *replay.Result) {}, 9},
		"a HardState": {func(m *evidence.Member, _ *replay.Result) {
			m.WAL.Summary.HardState = &dumplog.HardState{}
		}, 0},
		"damage": {func(m *evidence.Member, _ *replay.Result) {
			m.WAL.Summary.Damage = make([]*dumplog.DamageError, 1)
		}, 0},
		"no survey":        {func(_ *evidence.Member, rp *replay.Result) { rp.Survey = nil }, 0},
		"a snapshot":       {func(_ *evidence.Member, rp *replay.Result) { rp.Survey.Starts = nil }, 15},
		"purged before it": {func(_ *evidence.Member, rp *replay.Result) { rp.Survey.Starts[5][0].Index = 1 }, 15},
		"that of a restore": {func(m *evidence.Member, rp *replay.Result) {
			rp.Survey.Starts, m.WAL.Summary.Snapshots[0].Index = nil, 0
		}, 0},
		"a received one": {func(m *evidence.Member, rp *replay.Result) {
			rp.Survey.Starts, m.WAL.Summary.Snapshots[0].Index = nil, 1
		}, 0},
		"of another term": {func(m *evidence.Member, rp *replay.Result) {
			rp.Survey.Starts, m.WAL.Summary.Snapshots[0].Term = nil, 3
		}, 0},
	} {
		m := withLog(member("n1"), 20)
		m.MemberID = 5
		m.WAL.Summary.Terms = []dumplog.TermRange{{Term: 2, First: 5, Last: 20}}
		m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Term: 2, Index: 15}}
		rp := &replay.Result{Survey: &replay.Survey{Starts: map[dumplog.ID][]replay.Start{5: {{Index: 9}}}}}
		c.change(m, rp)
		f := statesGone(rp, m)
		if (f != nil) != (c.want > 0) || f != nil && f.At != (At{Term: 2, Index: c.want}) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if statesGone(nil, withLog(member("n1"), 20)) != nil {
		t.Error("without a replay")
	}
}

// TestVotes: one vote per member and term, whichever log shows it.
func TestVotes(t *testing.T) {
	vote := func(term uint64, to dumplog.ID, offset int64) dumplog.Vote {
		return dumplog.Vote{Term: term, For: to, Pos: dumplog.Pos{Segment: "s", Offset: offset}}
	}
	for name, c := range map[string]struct {
		change  func(a, b *evidence.Member)
		members []string
		reason  string
	}{
		"once": {func(_, _ *evidence.Member) {}, nil, ""},
		"twice in one log": {func(a, _ *evidence.Member) {
			a.WAL.Summary.Votes = append(a.WAL.Summary.Votes, vote(3, 6, 2))
		}, []string{"a"}, ""},
		"for the same": {func(a, _ *evidence.Member) {
			a.WAL.Summary.Votes = append(a.WAL.Summary.Votes, vote(3, 5, 2))
		}, nil, ""},
		"in another term": {func(a, _ *evidence.Member) {
			a.WAL.Summary.Votes = append(a.WAL.Summary.Votes, vote(4, 6, 2))
		}, nil, ""},
		"in two copies":      {func(_, b *evidence.Member) { b.MemberID = 5 }, []string{"a", "b"}, ""},
		"of another cluster": {func(_, b *evidence.Member) { b.MemberID, b.ClusterID = 5, 9 }, nil, ""},
		"odd in its log": {func(a, _ *evidence.Member) {
			a.WAL.Summary.Votes = append(a.WAL.Summary.Votes, vote(3, 6, 2))
			a.WAL.Summary.OddVotes = a.WAL.Summary.Votes[1:]
		}, nil, ""},
		"no votes": {func(a, b *evidence.Member) {
			a.WAL.Summary.Votes, b.WAL.Summary.Votes = nil, nil
		}, nil, "no log carries a vote"},
		"no member ID": {func(a, b *evidence.Member) { a.MemberID, b.MemberID = 0, 0 }, nil, "no log carries a vote"},
		"no logs":      {func(a, b *evidence.Member) { a.WAL.Log, b.WAL.Log = nil, nil }, nil, "no log carries a vote"},
	} {
		a, b := withLog(member("a"), 20), withLog(member("b"), 20)
		a.MemberID, b.MemberID = 5, 6
		a.WAL.Summary.Votes, b.WAL.Summary.Votes = []dumplog.Vote{vote(3, 5, 1)}, []dumplog.Vote{vote(3, 6, 1)}
		a.WAL.LastByTerm = []evidence.TermEnd{{Term: 3, First: 8, Last: 20}}
		b.WAL.LastByTerm = a.WAL.LastByTerm
		c.change(a, b)
		r := runOneVote(&Input{Members: Sources{a, b}})
		var members []string
		for _, f := range r.Findings {
			members = append(members, f.Members...)
			if f.At != (At{Term: 3, Index: 8}) || len(f.Evidence) != 2 {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if !slices.Equal(members, c.members) || r.Reason != c.reason {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if at := termStart(withLog(member("a"), 9), 4); at != (At{Term: 4}) {
		t.Errorf("%+v", at)
	}
}

// TestTermBeginnings: a term begins at one index; what a log does not show with the entry before it counts for nothing.
func TestTermBeginnings(t *testing.T) {
	m := withLog(member("a"), 30)
	m.WAL.LastByTerm = []evidence.TermEnd{{Term: 2, First: 1, Last: 9}, {Term: 3, First: 10, Last: 15},
		{Term: 4, First: 20, Last: 30}}
	var terms []uint64
	for _, b := range begunTerms(m) {
		terms = append(terms, b.Term)
	}
	if !slices.Equal(terms, []uint64{2, 3}) {
		t.Errorf("%v", terms)
	}
	m.WAL.Summary.Damage = []*dumplog.DamageError{{Kind: dumplog.DamageTermOrder}}
	if len(begunTerms(m)) > 0 {
		t.Error("terms that fall")
	}
	a, b, c := member("a"), member("b"), member("c")
	if begunTwice(3, []termBegin{{a, 9}, {b, 9}}) != nil {
		t.Error("one beginning")
	}
	f := begunTwice(3, []termBegin{{a, 12}, {b, 9}, {c, 12}})
	if f == nil || f.At != (At{Term: 3, Index: 9}) || !slices.Equal(f.Members, []string{"b", "a", "c"}) ||
		f.Evidence[0].Expected != "12, or another term" || f.Evidence[2].Expected != "9, or another term" {
		t.Errorf("%+v", f)
	}
}

// TestCommitOfQuorum: a committed entry is held by a majority, of the logs that provably reach that far.
func TestCommitOfQuorum(t *testing.T) {
	for name, c := range map[string]struct {
		change func(ss Sources)
		want   []string
		kind   Kind
		index  uint64
	}{
		"two of three end below": {func(Sources) {}, []string{"n2", "n3"}, KindBelowQuorum, 26},
		"one ends below":         {func(ss Sources) { ss[1].WAL.Summary.LastIndex = 30 }, nil, "", 0},
		"one is not at hand":     {func(ss Sources) { ss[1].MemberID = 9 }, nil, "", 0},
		"one was collected":      {func(ss Sources) { ss[1].Source.Collected = true }, nil, "", 0},
		"a gap": {func(ss Sources) {
			ss[1].WAL.Summary.LastIndex = 30
			ss[1].WAL.Summary.Damage = []*dumplog.DamageError{{LostFrom: 28, LostTo: 29}}
		}, []string{"n2"}, KindBelowQuorumLogsLost, 28},
		"a gap that is covered": {func(ss Sources) {
			ss[1].WAL.Summary.LastIndex = 30
			ss[1].WAL.Summary.Damage = []*dumplog.DamageError{{LostFrom: 8, LostTo: 9}}
			ss[1].WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: 10}}
		}, nil, "", 0},
		"its database has more": {func(ss Sources) {
			*ss[1].DB.Meta.ConsistentIndex = 26
		}, []string{"n2"}, KindBelowQuorumLogsLost, 26},
		"it stored a commit": {func(ss Sources) {
			ss[2].WAL.Summary.MaxCommit = 26
		}, []string{"n3"}, KindBelowQuorumLogsLost, 26},
		"a commit at its end": {func(ss Sources) {
			ss[2].WAL.Summary.MaxCommit = 25
		}, []string{"n2", "n3"}, KindBelowQuorum, 26},
		"both lost their ends": {func(ss Sources) {
			ss[1].WAL.Summary.MaxCommit, ss[2].WAL.Summary.MaxCommit = 26, 26
		}, []string{"n2", "n3"}, KindBelowQuorumLogsLost, 26},
		"the lower first": {func(ss Sources) {
			ss[1].WAL.Summary.LastIndex, *ss[1].DB.Meta.ConsistentIndex = 20, 20
		}, []string{"n2", "n3"}, KindBelowQuorum, 26},
	} {
		var ss Sources
		for i, name := range []string{"n1", "n2", "n3"} {
			m := withDB(withLog(member(name), 25), 25)
			m.MemberID, m.Commit = dumplog.ID(i+1), 25
			m.Membership = evidence.Membership{RaftKnown: true, Voters: []dumplog.ID{1, 2, 3}}
			ss = append(ss, m)
		}
		ss[0].WAL.Summary.LastIndex, ss[0].Commit = 30, 30
		c.change(ss)
		r := runCommitOnQuorum(&Input{Members: ss, Replay: &replay.Result{Survey: &replay.Survey{}}})
		if (r.Outcome == Violated) != (c.want != nil) {
			t.Fatalf("%s: %+v", name, r)
		}
		if c.want == nil {
			continue
		}
		f := r.Findings[0]
		if !slices.Equal(f.Members, c.want) || f.Kind != c.kind || f.At.Index != c.index ||
			f.Evidence[0].Field != belowQuorumFields[c.kind] || (f.Class == "") != (len(c.want) == 1) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	r := runCommitOnQuorum(&Input{Members: Sources{member("n1")}})
	if r.Reason != "no source shows raft's configuration" {
		t.Errorf("%+v", r)
	}
}

// TestBootstrapVoters: only a bootstrap or a restore begins a log with additions of its own.
func TestBootstrapVoters(t *testing.T) {
	other := founded(2, 6)
	other.Term = 2
	remove := founded(2, 6)
	remove.Change.Type = dumplog.ConfChangeRemoveNode
	for name, c := range map[string]struct {
		start dumplog.StartKind
		conf  []evidence.ConfEntry
		want  uint64
	}{
		"a bootstrap":         {dumplog.StartBootstrap, []evidence.ConfEntry{founded(1, 5), founded(2, 6)}, 2},
		"a restore":           {dumplog.StartRestore, []evidence.ConfEntry{founded(1, 5)}, 1},
		"a member that joins": {dumplog.StartJoin, []evidence.ConfEntry{founded(1, 5), founded(2, 6)}, 0},
		"a purged log":        {dumplog.StartPurged, []evidence.ConfEntry{founded(1, 5)}, 0},
		"a gap":               {dumplog.StartBootstrap, []evidence.ConfEntry{founded(1, 5), founded(3, 6)}, 1},
		"a request":           {dumplog.StartBootstrap, []evidence.ConfEntry{founded(1, 5), added(2, 6)}, 1},
		"a later term":        {dumplog.StartBootstrap, []evidence.ConfEntry{founded(1, 5), other}, 1},
		"a removal":           {dumplog.StartBootstrap, []evidence.ConfEntry{founded(1, 5), remove}, 1},
		"none":                {dumplog.StartBootstrap, nil, 0},
	} {
		m := withLog(member("n1"), 9)
		m.WAL.Summary.Start, m.WAL.Conf = c.start, c.conf
		if got := BootstrapVoters(m); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		begins := c.want > 0 && c.start == dumplog.StartBootstrap || c.start == dumplog.StartJoin
		if holdsBootstrap(m) != begins {
			t.Errorf("%s: begins with a bootstrap: %t", name, !begins)
		}
		if m.WAL.Summary.FirstIndex = 2; holdsBootstrap(m) != (begins && c.start == dumplog.StartBootstrap) {
			t.Errorf("%s, from the second entry on", name)
		}
	}
}

// TestForcedLearners: a learner from before a forced start is still one, unless it was added since.
func TestForcedLearners(t *testing.T) {
	m := withLog(member("n1"), 30)
	m.Membership.Learners = []dumplog.ID{7, 8, 9}
	m.WAL.Conf = []evidence.ConfEntry{added(9, 7), added(21, 8), added(20, 9)}
	fs := keptLearners(Sources{m}, &replay.Forced{Term: 3, First: 19, Last: 20})
	if len(fs) != 2 || string(fs[0].Evidence[0].Key) != "7" || string(fs[1].Evidence[0].Key) != "9" ||
		fs[0].At != (At{Term: 3, Index: 19}) {
		t.Errorf("%+v", fs)
	}
	m.WAL.Conf[1].Refused = true
	if fs := keptLearners(Sources{m}, &replay.Forced{First: 19, Last: 20}); len(fs) != 3 {
		t.Errorf("refused: %+v", fs)
	}
	m.WAL.Conf[1] = removedAt(21, 8)
	if fs := keptLearners(Sources{m}, &replay.Forced{First: 19, Last: 20}); len(fs) != 3 {
		t.Errorf("removed: %+v", fs)
	}
}

// TestLastWritten: the newest time of the log and the database, not of other files. It is unknown where the files have
// lost their times: older than etcd, or than a process that published itself in this log.
func TestLastWritten(t *testing.T) {
	day := firstRelease.AddDate(1, 0, 0)
	at := func(n int) time.Time { return day.Add(time.Duration(n) * time.Second) }
	m := withLog(member("n1"), 30)
	pv := &provenance{Members: Sources{m}}
	m.Source.Manifest = &evidence.Manifest{Files: []evidence.File{{Path: "member/snap/db", ModTime: at(5)},
		{Path: "member/wal/0.wal", ModTime: at(7)}, {Path: "member/wal/1.wal", ModTime: at(6)},
		{Path: "x", ModTime: at(9)}}}
	if got := pv.lastWritten(m); !got.Equal(at(7)) {
		t.Errorf("%v", got)
	}
	m.Source.Manifest.Files = m.Source.Manifest.Files[:1]
	if got := pv.lastWritten(m); !got.Equal(at(5)) {
		t.Errorf("%v", got)
	}
	unknown := func(what string) {
		t.Helper()
		if got := pv.lastWritten(m); time.Since(got) > time.Hour {
			t.Errorf("%s: %v", what, got)
		}
	}
	begun := func(ms, index uint64) { // the ID has the start of the process in milliseconds, without the high bits
		pv.Replay = &replay.Result{Survey: &replay.Survey{Starts: map[dumplog.ID][]replay.Start{
			0xa1: {{Index: index, ID: replay.RequestID(0xa1<<48 | ms<<8&(1<<48-1) | 1)}}}}}
	}
	m.Source.Manifest.Files[0].ModTime = time.UnixMilli(1763000000000)
	begun(1763000009000, 40)
	if got := pv.lastWritten(m); !got.Equal(time.UnixMilli(1763000000000)) {
		t.Errorf("a process that another log shows: %v", got)
	}
	begun(1763000009000, 20)
	unknown("a process of this log began later")
	pv.Replay = nil
	m.Source.Manifest.Files[0].ModTime = time.Unix(0, 0)
	unknown("older than etcd")
	for _, man := range []*evidence.Manifest{nil, {}} {
		m.Source.Manifest = man
		unknown("no times")
	}
}
