package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// added, updated and removed are conf changes as a server proposes them.
func added(index uint64, id dumplog.ID, urls ...string) evidence.ConfEntry {
	return evidence.ConfEntry{Term: 2, Index: index, Change: dumplog.ConfChange{ID: 9, NodeID: id,
		Type: dumplog.ConfChangeAddNode, Member: &dumplog.MemberContext{ID: id, PeerURLs: urls}}}
}

func updated(index uint64, id dumplog.ID, urls ...string) evidence.ConfEntry {
	c := added(index, id, urls...)
	c.Change.Type = dumplog.ConfChangeUpdateNode
	return c
}

func removedAt(index uint64, id dumplog.ID) evidence.ConfEntry {
	return evidence.ConfEntry{Term: 2, Index: index, Change: dumplog.ConfChange{ID: 9, NodeID: id,
		Type: dumplog.ConfChangeRemoveNode}}
}

// founded is a conf change of a bootstrap.
func founded(index uint64, id dumplog.ID, urls ...string) evidence.ConfEntry {
	c := added(index, id, urls...)
	c.Term, c.Change.ID = 1, 0
	return c
}

// TestListByLog: the peer URLs that conf changes give, by the rules of servers.
func TestListByLog(t *testing.T) {
	type urls = map[dumplog.ID]string
	began := func(cs ...evidence.ConfEntry) []evidence.ConfEntry {
		return append([]evidence.ConfEntry{founded(1, 1, "a")}, cs...)
	}
	for name, c := range map[string]struct {
		conf   []evidence.ConfEntry
		newest urls
		open   int
		later  int
		whole  bool
	}{
		"a bootstrap":              {began(founded(2, 2, "b")), urls{1: "a", 2: "b"}, 0, 0, true},
		"without its beginning":    {[]evidence.ConfEntry{added(5, 2, "b")}, urls{2: "b"}, 0, 0, false},
		"an update":                {began(updated(5, 1, "x")), urls{1: "x"}, 0, 0, true},
		"an update of no member":   {began(updated(5, 2, "x")), urls{1: "a"}, 0, 0, true},
		"of one added before":      {[]evidence.ConfEntry{updated(5, 2, "x")}, urls{2: "x"}, 0, 0, false},
		"a second addition":        {began(added(5, 1, "x")), urls{1: "a"}, 0, 0, true},
		"the URL of another":       {began(added(5, 2, "a", "x")), urls{1: "a"}, 0, 0, true},
		"its own URL":              {began(updated(5, 1, "a", "x")), urls{1: "a,x"}, 0, 0, true},
		"the URL of a removed one": {began(removedAt(4, 1), added(5, 2, "a")), urls{1: "a", 2: "a"}, 0, 0, true},
		"a removed ID":             {began(removedAt(4, 1), added(5, 1, "x")), urls{1: "a"}, 0, 0, true},
		"no URLs":                  {began(updated(5, 1)), urls{1: "a"}, 0, 0, true},
		"a forced start":           {began(founded(5, 1, "x")), urls{1: "a"}, 1, 0, true},
		"maybe applied":            {began(updated(11, 1, "x")), urls{1: "a"}, 1, 0, true},
		"certainly applied":        {began(updated(10, 1, "x")), urls{1: "x"}, 0, 0, true},
		"not applied": {began(updated(13, 1, "x"), removedAt(14, 1), updated(15, 1)), urls{1: "a"}, 0, 1,
			true},
	} {
		m := withDB(withLog(member("n1"), 20), 10)
		m.AppliedMax, m.WAL.Conf = 12, c.conf
		l := (&Membership{Members: Sources{m}, Replay: &replay.Result{First: 1, Last: 20}}).listOf(m)
		got := map[dumplog.ID]string{}
		for id, x := range l.newest {
			got[id] = joinURLs(x.Change.Member.PeerURLs)
		}
		open := 0
		for _, urls := range l.open {
			open += len(urls)
		}
		equal := len(got) == len(c.newest)
		for id, urls := range c.newest {
			equal = equal && got[id] == urls
		}
		if !equal || open != c.open || len(l.later) != c.later || l.whole != c.whole {
			t.Errorf("%s: %v, %d open, %d later, whole %t", name, got, open, len(l.later), l.whole)
		}
	}
}

// TestRowsOfPeerURLs: a row of bucket members with other peer URLs than the log gives.
func TestRowsOfPeerURLs(t *testing.T) {
	base := []evidence.ConfEntry{founded(1, 1, "a"), founded(2, 2, "b"), updated(5, 1, "x")}
	then := func(c evidence.ConfEntry) []evidence.ConfEntry { return append(slices.Clone(base), c) }
	const against = KindMemberRowAgainstLog
	for name, c := range map[string]struct {
		conf     []evidence.ConfEntry
		row      []string
		minor    int
		others   string
		severity Severity
		kind     Kind
		checked  bool
	}{
		"as the log says":         {base, []string{"x"}, 7, "b", "", "", true},
		"in another order":        {then(updated(6, 1, "x", "y")), []string{"y", "x"}, 7, "b", "", "", true},
		"edited":                  {base, []string{"q"}, 7, "b", Error, against, true},
		"an older value":          {base, []string{"a"}, 7, "b", Warning, against, true},
		"an older value of 3.5":   {base, []string{"a"}, 5, "b", "", "", true},
		"edited on 3.5":           {base, []string{"q"}, 5, "b", Error, against, true},
		"on 3.5, a purged log":    {base[2:], []string{"q"}, 5, "b", "", "", true},
		"a purged log":            {base[2:], []string{"q"}, 7, "b", Error, against, true},
		"taken by another":        {base[2:], []string{"q"}, 7, "x", "", "", true},
		"taken, the log is whole": {base, []string{"q"}, 7, "x", Error, against, true},
		"maybe applied":           {then(updated(11, 1, "q")), []string{"q"}, 7, "b", "", "", true},
		"of a later entry": {then(updated(15, 1, "q")), []string{"q"}, 7, "b", Error, KindMemberRowAboveIndex,
			true},
		"of a later one, as once": {then(updated(15, 1, "a")), []string{"a"}, 7, "b", Warning, against, true},
		"of a later one of 2":     {then(updated(15, 2, "q")), []string{"q"}, 7, "b", Error, against, true},
		"not in the log":          {base[1:2], []string{"q"}, 7, "b", "", "", false},
	} {
		m := withDB(withLog(member("n1"), 20), 10)
		m.AppliedMax, m.WAL.Conf, m.Version.Minor = 12, c.conf, c.minor
		m.DB.Members = []dumpdb.Member{{ID: 1, PeerURLs: c.row}, {ID: 2, PeerURLs: []string{c.others}}}
		in := &Input{Members: Sources{m}, Replay: &replay.Result{First: 1, Last: 20}}
		w := &rowFindings{in: in, by: map[string]*Finding{}}
		checked := w.peers(m, in.Membership().listOf(m), &m.DB.Members[0])
		var f Finding
		for _, x := range w.by {
			f = *x
		}
		if checked != c.checked || f.Severity != c.severity || f.Kind != c.kind || len(w.by) > 1 {
			t.Errorf("%s: checked %t, %+v", name, checked, f)
		}
		if c.kind == against && (!strings.Contains(f.Explanation, "the update of member 1 in entry 2/5") ||
			f.At != (At{Term: 2, Index: 5}) || (f.Class == "") != (c.severity == Warning)) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if got := what(&evidence.ConfEntry{Term: 2, Index: 3, Change: dumplog.ConfChange{NodeID: 4}}); got !=
		"the addition of member 4 in entry 2/3" {
		t.Errorf("%q", got)
	}
}

// TestLastUnseen: the highest entry that a member has applied and that no log shows.
func TestLastUnseen(t *testing.T) {
	for name, c := range map[string]struct {
		rp   *replay.Result
		want uint64
	}{
		"all are seen":     {&replay.Result{Last: 30}, 0},
		"a gap":            {&replay.Result{Last: 30, Gaps: []replay.Gap{{From: 5, To: 7}}}, 7},
		"a gap at its end": {&replay.Result{Last: 30, Gaps: []replay.Gap{{From: 12, To: 15}}}, 15},
		"a gap after it":   {&replay.Result{Last: 30, Gaps: []replay.Gap{{From: 13, To: 15}}}, 0},
		"two gaps":         {&replay.Result{Last: 30, Gaps: []replay.Gap{{From: 3, To: 4}, {From: 6, To: 8}}}, 8},
		"logs end at it":   {&replay.Result{Last: 10}, 0},
		"logs end before":  {&replay.Result{Last: 9}, 10},
		"no replay":        {nil, 6},
		"logs that differ": {&replay.Result{Last: 9, LogDiffs: make([]replay.LogDiff, 1)}, 6},
	} {
		m := withDB(withLog(member("n1"), 20), 10)
		m.AppliedMax = 12
		m.WAL.Summary.Jumps = []dumplog.Jump{{From: 4, To: 6}, {From: 13, To: 14}}
		if got := (&Membership{Members: Sources{m}, Replay: c.rp}).lastUnseen(m); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	m := withDB(withLog(member("n1"), 20), 10)
	m.AppliedMax = 12
	m.WAL.Summary.Jumps = []dumplog.Jump{{From: 12, To: 14}}
	if got := (&Membership{Members: Sources{m}}).lastUnseen(m); got != 14 {
		t.Errorf("a received snapshot at its end: %d", got)
	}
	m.WAL.Summary.Damage = []*dumplog.DamageError{{LostFrom: 12, LostTo: 16}, {LostFrom: 13, LostTo: 18}}
	if got := (&Membership{Members: Sources{m}}).lastUnseen(m); got != 16 {
		t.Errorf("damage at its end: %d", got)
	}
}

// TestConfChangesOfOthers: where a member's log holds no entry, the logs of others of its cluster show the changes.
func TestConfChangesOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m, o *evidence.Member)
		want   []uint64
	}{
		"before and after": {func(_, _ *evidence.Member) {}, []uint64{3, 12, 25}},
		"where a snapshot stands": {func(m, _ *evidence.Member) {
			m.WAL.Summary.Jumps = []dumplog.Jump{{From: 14, To: 16}}
		}, []uint64{3, 12, 15, 25}},
		"where damage lost entries": {func(m, _ *evidence.Member) {
			m.WAL.Summary.Damage = []*dumplog.DamageError{{LostFrom: 14, LostTo: 16}}
		}, []uint64{3, 12, 15, 25}},
		"where damage lost others": {func(m, _ *evidence.Member) {
			m.WAL.Summary.Damage = []*dumplog.DamageError{{LostFrom: 13, LostTo: 14}, {LostFrom: 16}}
		}, []uint64{3, 12, 25}},
		"of another cluster": {func(_, o *evidence.Member) { o.ClusterID = 9 }, []uint64{12}},
		"no log":             {func(_, o *evidence.Member) { o.WAL.Log = nil }, []uint64{12}},
		"not committed":      {func(_, o *evidence.Member) { o.Commit = 24 }, []uint64{3, 12}},
		"refused":            {func(_, o *evidence.Member) { o.WAL.Conf[0].Refused = true }, []uint64{12, 25}},
		"at the ends": {func(m, _ *evidence.Member) {
			m.WAL.LastByTerm = []evidence.TermEnd{{Term: 2, First: 3, Last: 25}}
		}, []uint64{12}},
	} {
		m, o := withLog(member("n1"), 20), withLog(member("n2"), 30)
		m.WAL.LastByTerm, o.Commit = []evidence.TermEnd{{Term: 2, First: 10, Last: 20}}, 30
		m.WAL.Conf = []evidence.ConfEntry{added(12, 1)}
		o.WAL.Conf = []evidence.ConfEntry{added(3, 1), added(15, 1), added(25, 1)}
		c.change(m, o)
		var got []uint64
		mb := &Membership{Members: Sources{m, o, o}, Replay: &replay.Result{Last: 30}}
		for _, x := range mb.confChanges(m) {
			got = append(got, x.Index)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestRemovedBy: a change that removes a member counts if it is committed, accepted, and no later one adds it.
func TestRemovedBy(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m, o *evidence.Member)
		want   bool
	}{
		"by a log":           {func(_, _ *evidence.Member) {}, true},
		"of another cluster": {func(_, o *evidence.Member) { o.ClusterID = 9 }, false},
		"not committed":      {func(_, o *evidence.Member) { o.Commit = 11 }, false},
		"just committed":     {func(_, o *evidence.Member) { o.Commit = 12 }, true},
		"refused":            {func(_, o *evidence.Member) { o.WAL.Conf[0].Refused = true }, false},
		"another member":     {func(_, o *evidence.Member) { o.WAL.Conf[0].Change.NodeID = 6 }, false},
		"added again": {func(_, o *evidence.Member) {
			o.WAL.Conf = append(o.WAL.Conf, added(13, 5))
		}, false},
		"added before": {func(_, o *evidence.Member) {
			o.WAL.Conf = append(o.WAL.Conf, added(11, 5))
		}, true},
		"no removal":               {func(_, o *evidence.Member) { o.WAL.Conf = nil }, false},
		"in a list":                {listsRemoved(nil, nil), true},
		"in a list, and a voter":   {listsRemoved([]dumplog.ID{5}, nil), false},
		"in a list, and a learner": {listsRemoved(nil, []dumplog.ID{5}), false},
		"without a member ID":      {func(m, _ *evidence.Member) { m.MemberID = 0 }, false},
	} {
		m, o := withLog(member("n1"), 20), withLog(member("n2"), 30)
		m.MemberID, o.MemberID, o.Commit, o.WAL.Conf = 5, 7, 30, []evidence.ConfEntry{removedAt(12, 5)}
		c.change(m, o)
		mb := &Membership{Members: Sources{m, o}}
		if got := mb.IsRemoved(m); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		if mb.allRemoved() {
			t.Errorf("%s: all are removed", name)
		}
		if mb := (&Membership{Members: Sources{o}}); mb.allRemoved() {
			t.Errorf("%s: the other one is removed", name)
		}
	}
	m, o := withLog(member("n1"), 20), withLog(member("n2"), 30)
	m.MemberID, o.MemberID, o.Commit, o.WAL.Conf = 5, 7, 30, []evidence.ConfEntry{removedAt(12, 5), removedAt(13, 7)}
	forced := func(of int) *replay.Result {
		return &replay.Result{Forced: []replay.Forced{{Member: of, First: 12, Last: 12, Removed: []dumplog.ID{5}}}}
	}
	if mb := (&Membership{Members: Sources{m, o}, Replay: forced(1)}); mb.IsRemoved(m) || !mb.forcedBefore(o, 12) ||
		mb.forcedBefore(o, 11) || mb.forcedBefore(m, 12) {
		t.Error("a forced start")
	}
	if mb := (&Membership{Members: Sources{m, o}, Replay: forced(0)}); !mb.IsRemoved(m) || !mb.allRemoved() {
		t.Error("a forced start of another member")
	}
}

func listsRemoved(voters, learners []dumplog.ID) func(m, o *evidence.Member) {
	return func(_, o *evidence.Member) {
		o.WAL.Conf = nil
		o.Membership = evidence.Membership{Removed: []dumplog.ID{5}, Voters: voters, Learners: learners}
	}
}

// afterTerm is a replay that shows the files of a member to be written after a term began: after it, a member was
// started twice, the second time before the files were written.
func afterTerm(m *evidence.Member, first uint64) *replay.Result {
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	writtenAt(m, begun.Add(time.Hour))
	starts := []replay.Start{{Index: first + 1, ID: startedAt(begun.Add(-time.Hour))},
		{Index: first + 2, ID: startedAt(begun)}}
	return &replay.Result{Survey: &replay.Survey{Starts: map[dumplog.ID][]replay.Start{1: starts}}}
}

// writtenAt gives the member's log a time.
func writtenAt(m *evidence.Member, when time.Time) {
	m.Source.Manifest = &evidence.Manifest{Files: []evidence.File{{Path: "member/wal/0.wal", ModTime: when}}}
}

// startedAt is the ID of a request of a process that began then.
func startedAt(begun time.Time) dumplog.RequestID {
	return dumplog.RequestID(0xa1<<48 | (uint64(begun.UnixMilli())&(1<<40-1))<<8)
}

// TestVoteMissing: a log without a vote that its member gave is older than the member, if its files were written after
// the term began. If they were written before, or nothing shows when, the source may have been copied before the
// others.
func TestVoteMissing(t *testing.T) {
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	type starts = []replay.Start
	for name, c := range map[string]struct {
		written  time.Time
		starts   starts
		served   []replay.Served
		severity Severity
		class    Class
		copied   bool
	}{
		"nothing shows when": {begun, nil, nil, Warning, ClassInconclusive, false},
		"before a process that published itself before the term": {begun.Add(-time.Second),
			starts{{Index: 20, ID: startedAt(begun)}}, nil, Warning, "", true},
		"after it": {begun.Add(time.Second), starts{{Index: 20, ID: startedAt(begun)}}, nil, Warning,
			ClassInconclusive, false},
		"before a process that published itself in the term": {begun.Add(-time.Second),
			starts{{Index: 22, ID: startedAt(begun)}}, nil, Warning, ClassInconclusive, false},
		"after the second process of the term": {begun.Add(time.Second), starts{{Index: 22, ID: startedAt(begun)},
			{Index: 25, ID: startedAt(begun)}}, nil, Critical, ClassMemberLostData, false},
		"at its time": {replay.StartTime(startedAt(begun)), starts{{Index: 22, ID: startedAt(begun)},
			{Index: 25, ID: startedAt(begun)}}, nil, Warning, ClassInconclusive, false},
		"after a process that served in the term ended": {begun.Add(time.Second), starts{{Index: 25,
			ID: startedAt(begun)}}, []replay.Served{{Publish: 2, Index: 23}}, Critical, ClassMemberLostData, false},
		"after one that served before the term": {begun.Add(time.Second), starts{{Index: 25,
			ID: startedAt(begun)}}, []replay.Served{{Publish: 2, Index: 20}}, Warning, ClassInconclusive, false},
	} {
		ss := lackingVote()
		ss[2].WAL.Summary.LastIndex = 19 // the process published itself after that
		writtenAt(ss[2], c.written)
		pv := (&Input{Members: ss, Replay: &replay.Result{Survey: &replay.Survey{
			Starts: map[dumplog.ID][]replay.Start{1: c.starts},
			Served: map[dumplog.ID][]replay.Served{1: c.served}}}}).provenance()
		f := pv.voteMissing(ss[2])
		if f == nil || f.Severity != c.severity || f.Class != c.class || pv.copiedEarly(ss[2]) != c.copied {
			t.Errorf("%s: %+v, copied early %t", name, f, pv.copiedEarly(ss[2]))
		}
	}
	ss := lackingVote()
	pv := (&Input{Members: ss, Replay: &replay.Result{Survey: &replay.Survey{}}}).provenance()
	if f := pv.voteMissing(ss[2]); f == nil || f.Class != ClassInconclusive {
		t.Errorf("files without times: %+v", f)
	}
}

// lackingVote are three members of which the third knows no term 3, in which the first was elected with its vote.
func lackingVote() Sources {
	var ss Sources
	for i := range 3 {
		m := withLog(member([]string{"n1", "n2", "n3"}[i]), 30)
		m.MemberID, m.Commit = dumplog.ID(i+1), 30-uint64(i)
		m.Membership = evidence.Membership{RaftKnown: true, Voters: []dumplog.ID{1, 2, 3}}
		m.WAL.LastByTerm = []evidence.TermEnd{{Term: 2, First: 1, Last: 20}, {Term: 3, First: 21, Last: 30}}
		m.WAL.Summary.StateTerms = []uint64{2, 3}
		m.WAL.Summary.LastTerm = 3
		ss = append(ss, m)
	}
	ss[0].WAL.Summary.Votes = []dumplog.Vote{{Term: 3, For: 1}}
	ss[2].WAL.LastByTerm, ss[2].WAL.Summary.LastTerm, ss[2].WAL.Summary.LastIndex = ss[2].WAL.LastByTerm[:1], 2, 20
	return ss
}

// TestMissingVotes: an election for which the logs of the other voters hold too few votes.
func TestMissingVotes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(ss Sources)
		want   bool
	}{
		"one too few": {func(Sources) {}, true},
		"enough": {func(ss Sources) {
			ss[1].WAL.Summary.Votes = []dumplog.Vote{{Term: 3, For: 1}}
		}, false},
		"two candidates": {func(ss Sources) {
			ss[1].WAL.Summary.Votes = []dumplog.Vote{{Term: 3, For: 2}}
		}, false},
		"a vote of another term": {func(ss Sources) {
			ss[1].WAL.Summary.Votes = []dumplog.Vote{{Term: 2, For: 2}}
		}, true},
		"a vote for no member": {func(ss Sources) { ss[1].WAL.Summary.Votes = []dumplog.Vote{{Term: 3}} }, true},
		"two too few":          {func(ss Sources) { ss[0].WAL.Summary.Votes = nil }, false},
		"it knows the term": {func(ss Sources) {
			ss[2].WAL.Summary.HardState = &dumplog.HardState{Term: 3}
		}, false},
		"a log without the term":   {func(ss Sources) { ss[1].WAL.Summary.StateTerms = []uint64{2} }, false},
		"a log is not at hand":     {func(ss Sources) { ss[1].MemberID = 9 }, false},
		"it is no voter":           {func(ss Sources) { ss[2].MemberID = 9 }, false},
		"a term that is not there": {func(ss Sources) { ss[0].WAL.Summary.StateTerms = []uint64{2} }, false},
		"committed in another":     {func(ss Sources) { ss[1].WAL.LastByTerm[1].Term = 4 }, false},
		"not committed":            {func(ss Sources) { ss[0].Commit, ss[1].Commit, ss[2].Commit = 20, 19, 18 }, false},
	} {
		ss := lackingVote()
		c.change(ss)
		x := ss.elections().missingVotes(ss[2])
		if (x != nil) != c.want || x != nil && (x.leader != 1 || x.votes != 1 || x.need != 2 || x.term.Term != 3 ||
			x.top != ss[0]) {
			t.Errorf("%s: %+v", name, x)
		}
		pv := (&Input{Members: ss, Replay: afterTerm(ss[2], 21)}).provenance()
		if kind, why := pv.lostLogs(Sources{ss[2]}); (kind == KindBelowQuorumLogsOlder) != c.want ||
			c.want && !strings.HasSuffix(why, "the others hold 1 of 2 votes that are needed") {
			t.Errorf("%s: %s, %q", name, kind, why)
		}
	}
	ss := lackingVote()
	if ss.elections().missingVotes(ss[0]) != nil {
		t.Error("of the newest one itself")
	}
	ss[1].WAL.Summary.Votes = []dumplog.Vote{{Term: 3, For: 1}, {Term: 2, For: 2}}
	if got := ss.elections().leaders(); len(got) != 1 || got[3] != 1 {
		t.Errorf("leaders %v", got)
	}
	ss[1].MemberID = 1
	if got := ss.elections().leaders(); len(got) != 0 {
		t.Errorf("leaders by two copies of one log: %v", got)
	}
}

// TestRevisionFalls: a member that has applied as much as another one has its revision at least.
func TestRevisionFalls(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *Input)
		want   bool
	}{
		"lower":                  {func(*Input) {}, true},
		"equal":                  {func(in *Input) { in.Members[1].DB.KV.CurrentRev = 9 }, false},
		"applied less":           {func(in *Input) { in.Members[1].AppliedMin = 19 }, false},
		"maybe applied more":     {func(in *Input) { in.Members[0].AppliedMax = 21 }, false},
		"not read":               {func(in *Input) { in.Members[1].DB.KV = nil }, false},
		"damaged":                {func(in *Input) { in.Members[0].DB.KVDamaged = true }, false},
		"left out":               {func(in *Input) { in.Diff.NotCompared = map[int]string{1: "x"} }, false},
		"ahead of its index":     {func(in *Input) { in.Replay.Members[1].Ahead = &replay.Stretch{} }, false},
		"another term":           {func(in *Input) { in.Members[1].WAL.LastByTerm[0].Term = 3 }, false},
		"a log that ends before": {func(in *Input) { in.Members[1].WAL.Summary.LastIndex = 19 }, false},
		"a log that ends there":  {func(in *Input) { in.Members[1].WAL.Summary.LastIndex = 20 }, true},
		"a received snapshot": {func(in *Input) {
			in.Members[1].WAL.Summary.Jumps = []dumplog.Jump{{From: 25, To: 30}}
		}, false},
		"one was restored": {func(in *Input) { in.Members[1].WAL.Summary.Start = dumplog.StartRestore }, false},
		"logs differ":      {func(in *Input) { in.Replay.LogDiffs = make([]replay.LogDiff, 1) }, false},
		"logs are shifted": {func(in *Input) { in.Replay.Shifts = []*replay.Shift{{}} }, false},
		"no replay":        {func(in *Input) { in.Replay = nil }, false},
	} {
		in := threeMembers(release.Unknown)
		in.Members, in.Replay.Members = in.Members[:2], in.Replay.Members[:2]
		in.Diff = &diff.Result{Members: in.Members}
		for i, m := range in.Members {
			m.WAL.Summary.LastIndex, m.WAL.LastByTerm = 30, []evidence.TermEnd{{Term: 2, First: 1, Last: 30}}
			m.DB.KV.CurrentRev = 9 - int64(i)
		}
		c.change(in)
		f := in.contents().revisionFalls()
		if (f != nil) != c.want {
			t.Errorf("%s: %+v", name, f)
		}
		if f != nil && (!slices.Equal(f.Members, []string{"n1", "n2"}) || f.At.Index != 20 ||
			f.Evidence[0].Observed != "9" || f.Evidence[1].Observed != "8" || f.Evidence[1].Expected != "at least 9") {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestLaggingMemberDecides: a member that lags shows which of two others has a revision that is too low, unless it is
// an older copy, or what it has reached excludes neither, or both.
func TestLaggingMemberDecides(t *testing.T) {
	for name, c := range map[string]struct {
		revs   [3]int64
		change func(in *Input)
		want   []string
	}{
		"above one of them": {[3]int64{9, 9, 8}, func(*Input) {}, []string{"n3"}},
		"between them":      {[3]int64{9, 10, 8}, func(*Input) {}, []string{"n3"}},
		"above neither":     {[3]int64{8, 9, 8}, func(*Input) {}, nil},
		"above both":        {[3]int64{9, 8, 7}, func(*Input) {}, nil},
		"it does not lag":   {[3]int64{9, 9, 8}, func(in *Input) { in.Members[0].AppliedMax = 20 }, nil},
		"damaged":           {[3]int64{9, 9, 8}, func(in *Input) { in.Members[0].DB.KVDamaged = true }, nil},
		"logs differ": {[3]int64{9, 9, 8}, func(in *Input) {
			in.Replay.LogDiffs = make([]replay.LogDiff, 1)
		}, nil},
		"of another term": {[3]int64{9, 9, 8}, func(in *Input) { in.Members[0].WAL.LastByTerm[0].Term = 3 }, nil},
		"restored, not as they": {[3]int64{9, 9, 8}, func(in *Input) {
			in.Members[0].WAL.Summary.Start = dumplog.StartRestore
		}, nil},
	} {
		in := threeMembers(release.No)
		for i, m := range in.Members {
			m.WAL.Summary.LastIndex, m.WAL.LastByTerm = 30, []evidence.TermEnd{{Term: 2, First: 1, Last: 30}}
			m.DB.KV.CurrentRev = c.revs[i]
		}
		in.Members[0].AppliedMin, in.Members[0].AppliedMax = 15, 15
		in.Diff.Revs, in.Diff.KeysNotCompared = c.revs[:], map[int]string{0: "it lags"}
		c.change(in)
		r := in.contents().revisionsAtOneIndex()
		if len(r.Findings) != 1 || !slices.Equal(r.Findings[0].Odd, c.want) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestRevisionFallsInAnyOrder: of several members with a lower revision the finding names the first by name.
func TestRevisionFallsInAnyOrder(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		in := threeMembers(release.Unknown)
		for i, m := range in.Members {
			m.WAL.Summary.LastIndex, m.WAL.LastByTerm = 30, []evidence.TermEnd{{Term: 2, First: 1, Last: 30}}
			m.DB.KV.CurrentRev = 9 - int64(min(i, 1))
		}
		members, results := slices.Clone(in.Members), slices.Clone(in.Replay.Members)
		for to, from := range order {
			in.Members[to], in.Replay.Members[to] = members[from], results[from]
		}
		in.Diff = &diff.Result{Members: in.Members}
		if f := in.contents().revisionFalls(); f == nil || !slices.Equal(f.Members, []string{"n1", "n2"}) {
			t.Errorf("%v: %+v", order, f)
		}
	}
}
