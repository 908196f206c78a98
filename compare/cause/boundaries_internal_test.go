package cause

import (
	"errors"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// sources is an input of members with a log of 100 entries and a database, without findings.
func sources(names ...string) *Input {
	in := &Input{Input: &check.Input{Replay: &replay.Result{Survey: &replay.Survey{
		Starts: map[dumplog.ID][]replay.Start{}}}}, Findings: map[check.ID][]check.Finding{}}
	for i, name := range names {
		m := &evidence.Member{Source: &evidence.Source{Name: name}, MemberID: dumplog.ID(i + 1),
			WAL: evidence.WAL{Log: &dumplog.Log{}, Summary: dumplog.Summary{FirstIndex: 1, LastIndex: 100}},
			DB:  &evidence.DB{Handle: &dumpdb.DB{}, KV: &dumpdb.KVStats{}}}
		in.Members = append(in.Members, m)
		in.Replay.Members = append(in.Replay.Members, &replay.MemberResult{Member: m, Checked: true})
	}
	return in
}

// TestHiddenEntries: damage may have held an entry of a range if it lost one of them, or comes after one before
// its end.
func TestHiddenEntries(t *testing.T) {
	for name, c := range map[string]struct {
		damage dumplog.DamageError
		want   bool
	}{
		"lost before":              {dumplog.DamageError{LostFrom: 1, LostTo: 9}, false},
		"lost up to the first":     {dumplog.DamageError{LostFrom: 1, LostTo: 10}, true},
		"lost from the last on":    {dumplog.DamageError{LostFrom: 20, LostTo: 25}, true},
		"lost after":               {dumplog.DamageError{LostFrom: 21, LostTo: 25}, false},
		"everything lost from one": {dumplog.DamageError{LostFrom: 5}, true},
		"everything lost after":    {dumplog.DamageError{LostFrom: 21}, false},
		"before the last":          {dumplog.DamageError{After: 19}, true},
		"after the last":           {dumplog.DamageError{After: 20}, false},
	} {
		if got := mayHideEntry(&c.damage, 10, 20); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		s := &dumplog.Summary{FirstIndex: 1, LastIndex: 100, Damage: []*dumplog.DamageError{{After: 50}, &c.damage}}
		if got := hasEveryEntry(s, 10, 20); got == c.want {
			t.Errorf("%s: every entry %t", name, got)
		}
	}
	gap := func(from, to uint64) dumplog.Summary {
		return dumplog.Summary{FirstIndex: 1, LastIndex: 30, Jumps: []dumplog.Jump{{From: from, To: to}}}
	}
	for name, c := range map[string]struct {
		log   dumplog.Summary
		back  bool
		every bool
	}{
		"all of it":         {dumplog.Summary{FirstIndex: 10, LastIndex: 20}, true, true},
		"the first purged":  {dumplog.Summary{FirstIndex: 11, LastIndex: 20}, false, false},
		"it ends before":    {dumplog.Summary{FirstIndex: 10, LastIndex: 19}, true, false},
		"not known in full": {dumplog.Summary{FirstIndex: 10, LastIndex: 20, Unmarked: true}, false, false},
		"a gap at its end":  {gap(20, 22), false, false},
		"a gap after it":    {gap(21, 22), true, true},
		"a gap before it":   {gap(5, 9), true, true},
		"a gap up to its start": {gap(5, 10), false,
			false},
	} {
		back, every := reachesBack(&c.log, 10, 20), hasEveryEntry(&c.log, 10, 20)
		if back != c.back || every != c.every {
			t.Errorf("%s: reaches back %t, has every entry %t", name, back, every)
		}
	}
}

// TestUpdatesOfLearners: what the logs show of an update of a learner, from its addition to what the databases have
// applied.
func TestUpdatesOfLearners(t *testing.T) {
	change := func(index uint64, kind dumplog.ConfChangeType, id dumplog.ID) evidence.ConfEntry {
		return evidence.ConfEntry{Index: index, Change: dumplog.ConfChange{Type: kind, NodeID: id}}
	}
	const learner, update7 = dumplog.ConfChangeAddLearnerNode, dumplog.ConfChangeUpdateNode
	refused := change(30, update7, 7)
	refused.Refused = true
	for name, c := range map[string]struct {
		conf   []evidence.ConfEntry
		change func(m *evidence.Member)
		want   update
	}{
		"updated":            {[]evidence.ConfEntry{change(20, learner, 7), change(30, update7, 7)}, nil, updated},
		"updated before":     {[]evidence.ConfEntry{change(10, update7, 7), change(20, learner, 7)}, nil, excluded},
		"another is updated": {[]evidence.ConfEntry{change(20, learner, 7), change(30, update7, 8)}, nil, excluded},
		"refused":            {[]evidence.ConfEntry{change(20, learner, 7), refused}, nil, excluded},
		"added again": {[]evidence.ConfEntry{change(20, learner, 7), change(25, learner, 7), change(30, update7, 7)}, nil,
			updated},
		"never added": {[]evidence.ConfEntry{change(20, learner, 8)}, nil, unseen},
		"no log":      {[]evidence.ConfEntry{change(20, learner, 7)}, func(m *evidence.Member) { m.WAL.Log = nil }, unseen},
		"damaged": {[]evidence.ConfEntry{change(20, learner, 7)}, func(m *evidence.Member) {
			m.WAL.Summary.Damage = []*dumplog.DamageError{{LostFrom: 30, LostTo: 31}}
		}, damaged},
		"damaged above": {[]evidence.ConfEntry{change(20, learner, 7)}, func(m *evidence.Member) {
			m.WAL.Summary.Damage = []*dumplog.DamageError{{LostFrom: 61, LostTo: 62}}
		}, excluded},
		"its end lost": {[]evidence.ConfEntry{change(20, learner, 7)}, func(m *evidence.Member) {
			m.WAL.Summary.LastIndex = 59
		}, damaged},
		"the applied entry is its last": {[]evidence.ConfEntry{change(20, learner, 7)}, func(m *evidence.Member) {
			m.WAL.Summary.LastIndex = 60
		}, excluded},
		"a gap in it": {[]evidence.ConfEntry{change(20, learner, 7)}, func(m *evidence.Member) {
			m.WAL.Summary.Jumps = []dumplog.Jump{{From: 40, To: 50}}
		}, unseen},
	} {
		in := sources("n1", "n2")
		in.Members[0].WAL.Log = nil
		in.Members[0].AppliedMax, in.Members[1].AppliedMax = 60, 90
		in.Members[1].WAL.Conf = c.conf
		if c.change != nil {
			c.change(in.Members[1])
		}
		if got := updateOf(in, 7, []string{"n1"}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		if !slices.Contains([]update{updated, excluded, damaged}, c.want) {
			continue
		}
		in.Findings[check.M07] = []check.Finding{{ID: "M07-1", Members: []string{"n1"},
			Facts: check.Facts{About: []dumplog.ID{7}}}, {ID: "M07-2", Members: []string{"n1"},
			Facts: check.Facts{About: []dumplog.ID{9}}}}
		if got := updatedAfterAdd(in, &Match{Because: []string{"M07-1"}}); got != c.want {
			t.Errorf("%s: of one finding %d, want %d", name, got, c.want)
		}
	}
}

// TestRangesOfFacts: a range follows a rule of the release table, or names releases, and anything else is an error.
func TestRangesOfFacts(t *testing.T) {
	rule := "rule " + release.TermInMeta.ID
	v34, v35 := release.Of("3.4.0"), release.Of("3.5.0")
	for fact, c := range map[string]struct {
		in34, in35 bool
		note       string
	}{
		rule:                     {false, true, ""},
		"not " + rule:            {true, false, ""},
		rule + " (with auth)":    {false, true, "with auth"},
		"3.4.0 - 3.4.9 (before)": {true, false, "before"},
	} {
		r, err := rangeOf(fact)
		if err != nil || r.In.Include(v34).Certain() != c.in34 || r.In.Include(v35).Certain() != c.in35 ||
			r.Note != c.note {
			t.Errorf("%s: %+v, %v", fact, r, err)
		}
	}
	if _, err := rangeOf("rule none-such"); err == nil {
		t.Error("a rule that is not there has a range")
	}
	before := errTexts
	errTexts = nil
	if out := ranges("x", []string{rule, "rule none-such"}); len(out) != 2 || errTexts == nil {
		t.Errorf("%v, %v", out, errTexts)
	}
	errTexts = errors.Join(before)
}

// TestRowsOnOneMember: a row that exactly one of the compared members lacks, and that is older than its compaction.
func TestRowsOnOneMember(t *testing.T) {
	x := &diff.Cell{Mod: 5}
	for name, c := range map[string]struct {
		cells []*diff.Cell
		out   map[int]string
		want  int
	}{
		"on the last": {[]*diff.Cell{x, x, nil}, nil, 2}, "on the first": {[]*diff.Cell{nil, x, x}, nil, 0},
		"on none": {[]*diff.Cell{x, x, x}, nil, -1}, "on two": {[]*diff.Cell{nil, x, nil}, nil, -1},
		"on one that was compared": {[]*diff.Cell{nil, x, nil}, map[int]string{0: "damaged"}, 2},
	} {
		d := &diff.Result{Members: make([]*evidence.Member, 3), NotCompared: c.out,
			Buckets: []diff.Bucket{{Name: "key", Equal: release.No}}}
		if got := missingOn(d, diff.Row{Cells: c.cells}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	m := sources("n1").Members[0]
	if compactedBelow(m, diff.Row{Cells: []*diff.Cell{x, nil}}) {
		t.Error("never compacted")
	}
	for at, want := range map[int64]bool{4: false, 5: true, 6: true} {
		m.DB.Meta.FinishedCompact = &dumpdb.Rev{Main: at}
		if got := compactedBelow(m, diff.Row{Cells: []*diff.Cell{nil, x}}); got != want {
			t.Errorf("compacted at %d: %t", at, got)
		}
	}
}

// TestReplayedWrong: whether anything in a database contradicts the log.
func TestReplayedWrong(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *Input)
		want   bool
	}{
		"nothing":        {func(*Input) {}, false},
		"no replay":      {func(in *Input) { in.Replay = nil }, false},
		"extra records":  {func(in *Input) { in.Replay.Members[1].Extra = []int64{5} }, true},
		"another row":    {func(in *Input) { in.Replay.Members[1].StateDiffs = make([]replay.StateDiff, 1) }, true},
		"no other state": {func(in *Input) { in.Replay.Members[1].Kept = make([]replay.KeptLease, 1) }, false},
	} {
		in := sources("n1", "n2")
		c.change(in)
		if got := replayedWrong(in); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestSnapshotsOpenSpans: a received snapshot is the start of a span of refusals if it came after the last write that
// took effect and before the first that did not.
func TestSnapshotsOpenSpans(t *testing.T) {
	for name, c := range map[string]struct {
		span replay.ShutSpan
		to   uint64
		want bool
	}{
		"between":            {replay.ShutSpan{Begin: 5, LastApplied: 10, First: 20}, 15, true},
		"at the last write":  {replay.ShutSpan{Begin: 5, LastApplied: 10, First: 20}, 10, true},
		"before it":          {replay.ShutSpan{Begin: 5, LastApplied: 10, First: 20}, 9, false},
		"before the span":    {replay.ShutSpan{Begin: 12, LastApplied: 10, First: 20}, 11, false},
		"right before first": {replay.ShutSpan{LastApplied: 10, First: 20}, 19, true},
		"at the first":       {replay.ShutSpan{LastApplied: 10, First: 20}, 20, false},
	} {
		in := sources("n1")
		in.Members[0].WAL.Summary.Jumps = []dumplog.Jump{{From: 1, To: c.to}}
		if got := snapshotOpens(in, 0, c.span); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		in.Members[0].WAL.Log = nil
		if snapshotOpens(in, 0, c.span) {
			t.Errorf("%s: without a log", name)
		}
	}
}

// TestPartsOfTransactions: a server that panics in the middle of a transaction starts again after it.
func TestPartsOfTransactions(t *testing.T) {
	part, whole := replay.Outcome{State: replay.Contradicted, Partial: true}, replay.Outcome{State: replay.Contradicted}
	for name, c := range map[string]struct {
		outcome replay.Outcome
		start   uint64
		want    bool
	}{
		"a part, and a start":         {part, 21, true},
		"a part, and none after it":   {part, 20, false},
		"another value":               {whole, 21, false},
		"it fits":                     {replay.Outcome{State: replay.Applied}, 1, true},
		"a part elsewhere is no part": {replay.Outcome{State: replay.Missing, Partial: true}, 1, true},
	} {
		in := sources("n1")
		in.Replay.Survey.Starts[1] = []replay.Start{{Index: c.start}}
		in.Replay.Events = []*replay.Event{{Index: 20, Outcomes: []replay.Outcome{c.outcome}}}
		if got := onlyPartial(in, 0); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestIndexBeyondDoubt: no log can have reached an index that is very far above its end.
func TestIndexBeyondDoubt(t *testing.T) {
	for stored, want := range map[uint64]bool{100 + 1<<32: true, 99 + 1<<32: false} {
		in := sources("n1")
		in.Members[0].DB.Meta.ConsistentIndex = &stored
		if got := beyondDoubt(in, in.Members[0]); got != want {
			t.Errorf("index %d: %t", stored, got)
		}
	}
}

// TestConfiguredMembers: a finding is about a member of raft's configuration if one of its sources has it as a voter or
// a learner. A log that is not there holds any change.
func TestConfiguredMembers(t *testing.T) {
	for name, c := range map[string]struct {
		ms    evidence.Membership
		about []dumplog.ID
		want  bool
	}{
		"a voter":       {evidence.Membership{Voters: []dumplog.ID{7}}, []dumplog.ID{8, 7}, true},
		"a learner":     {evidence.Membership{Learners: []dumplog.ID{7}}, []dumplog.ID{7}, true},
		"in the bucket": {evidence.Membership{Bucket: []dumplog.ID{7}}, []dumplog.ID{7}, false},
		"about none":    {evidence.Membership{Voters: []dumplog.ID{7}}, nil, false},
	} {
		in := sources("n1", "n2")
		in.Members[1].Membership = c.ms
		f := check.Finding{Members: []string{"n1", "n2"}, Facts: check.Facts{About: c.about}}
		if got := configured(in, f); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	m := sources("n1").Members[0]
	for name, c := range map[string]struct {
		change func(e *evidence.ConfEntry)
		want   bool
	}{
		"an addition": {func(*evidence.ConfEntry) {}, true},
		"refused":     {func(e *evidence.ConfEntry) { e.Refused = true }, false},
		"of another":  {func(e *evidence.ConfEntry) { e.Change.NodeID = 9 }, false},
		"of a learner": {func(e *evidence.ConfEntry) {
			e.Change.Type = dumplog.ConfChangeAddLearnerNode
		}, false},
	} {
		e := evidence.ConfEntry{Change: dumplog.ConfChange{Type: dumplog.ConfChangeAddNode, NodeID: 7}}
		c.change(&e)
		m.WAL.Conf = []evidence.ConfEntry{e}
		if got := holdsChanges(m, []dumplog.ID{8, 7}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if m.WAL.Log = nil; !holdsChanges(m, []dumplog.ID{8}) {
		t.Error("without a log a change is known not to be in it")
	}
	in := sources("n1")
	in.Findings[check.M03] = []check.Finding{{ID: "M03-1", Members: []string{"n1"}}}
	if got := membersOfID(in, "M03-1"); !slices.Equal(got, []string{"n1"}) || membersOfID(in, "M03-2") != nil {
		t.Errorf("members of a finding: %q", got)
	}
}

// TestCopiesOfDatabases: a database that does not open is no copy that bbolt wrote, nor zeros at its end.
func TestCopiesOfDatabases(t *testing.T) {
	in := sources("n1")
	m := in.Members[0]
	for _, db := range []*evidence.DB{nil, {}} {
		if m.DB = db; savedSnapshot(m) || zeroTail(in, m) {
			t.Errorf("%+v is a copy, or ends in zeros", db)
		}
	}
	in.Findings[check.D02] = []check.Finding{{Members: []string{"n2"}, Facts: check.Facts{Page: new(uint64)}},
		{Members: []string{"n1"}}}
	if !pagesOfAFile(in, m) {
		t.Error("damage of another member, and one without a page, speak against a page of a file")
	}
}
