package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestHoldsAll: a log holds all entries of a range if neither its ends, a received snapshot nor damage takes one away.
func TestHoldsAll(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(s *dumplog.Summary)
		from, to uint64
		want     bool
	}{
		"within":    {func(*dumplog.Summary) {}, 12, 18, true},
		"all of it": {func(*dumplog.Summary) {}, 9, 30, true},
		"before it": {func(*dumplog.Summary) {}, 8, 30, false},
		"after it":  {func(*dumplog.Summary) {}, 9, 31, false},
		"no entry":  {func(s *dumplog.Summary) { s.FirstIndex = 0 }, 12, 18, false},
		"a jump at its end": {func(s *dumplog.Summary) {
			s.Jumps = []dumplog.Jump{{From: 18, To: 20}}
		}, 12, 18, false},
		"a jump after it": {func(s *dumplog.Summary) {
			s.Jumps = []dumplog.Jump{{From: 19, To: 20}}
		}, 12, 18, true},
		"a jump up to it": {func(s *dumplog.Summary) {
			s.Jumps = []dumplog.Jump{{From: 10, To: 12}}
		}, 12, 18, true},
		"a jump into it": {func(s *dumplog.Summary) {
			s.Jumps = []dumplog.Jump{{From: 10, To: 13}}
		}, 12, 18, false},
		"lost at its end":    {damaged(18, 20), 12, 18, false},
		"lost after it":      {damaged(19, 20), 12, 18, true},
		"lost up to it":      {damaged(10, 12), 12, 18, true},
		"lost into it":       {damaged(10, 13), 12, 18, false},
		"lost from there on": {damaged(10, 0), 12, 18, false},
		"damaged, not lost":  {damaged(0, 0), 12, 18, true},
	} {
		m := withLog(member("n1"), 30)
		m.WAL.Summary.FirstIndex = 10
		c.change(&m.WAL.Summary)
		if got := holdsAll(m, c.from, c.to); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func damaged(from, to uint64) func(*dumplog.Summary) {
	return func(s *dumplog.Summary) { s.Damage = []*dumplog.DamageError{{LostFrom: from, LostTo: to}} }
}

// TestHoldersOfLostEntries: the members whose log still has what another one lost.
func TestHoldersOfLostEntries(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(o *evidence.Member)
		from, to uint64
		want     string
	}{
		"one":                {func(*evidence.Member) {}, 12, 12, "n2 holds it"},
		"several":            {func(*evidence.Member) {}, 10, 30, "n2 holds them"},
		"before its log":     {func(*evidence.Member) {}, 9, 12, "no other source holds them"},
		"after its log":      {func(*evidence.Member) {}, 12, 31, "no other source holds them"},
		"from there on":      {func(*evidence.Member) {}, 12, 0, "n2 holds them"},
		"nothing":            {func(*evidence.Member) {}, 0, 0, ""},
		"no log":             {func(o *evidence.Member) { o.WAL.Log = nil }, 12, 12, "no other source holds it"},
		"of another cluster": {func(o *evidence.Member) { o.ClusterID = 9 }, 12, 12, "no other source holds it"},
		"a jump into it":     {jumps(8, 12), 12, 14, "no other source holds them"},
		"a jump before it":   {jumps(8, 11), 12, 14, "n2 holds them"},
		"a jump at its end":  {jumps(14, 20), 12, 14, "no other source holds them"},
		"a jump after it":    {jumps(15, 20), 12, 14, "n2 holds them"},
		"lost there too":     {lost(8, 12), 12, 14, "no other source holds them"},
		"lost before it":     {lost(8, 11), 12, 14, "n2 holds them"},
		"lost at its end":    {lost(14, 20), 12, 14, "no other source holds them"},
		"lost after it":      {lost(15, 20), 12, 14, "n2 holds them"},
		"lost for good":      {lost(8, 0), 12, 14, "no other source holds them"},
		"damaged, not lost":  {lost(0, 0), 12, 14, "n2 holds them"},
	} {
		m, o := withLog(member("n1"), 40), withLog(member("n2"), 30)
		o.WAL.Summary.FirstIndex = 10
		c.change(o)
		if got := (Sources{m, o}).logs().holders(m, c.from, c.to); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func jumps(from, to uint64) func(*evidence.Member) {
	return func(m *evidence.Member) { m.WAL.Summary.Jumps = []dumplog.Jump{{From: from, To: to}} }
}

func lost(from, to uint64) func(*evidence.Member) {
	return func(m *evidence.Member) { damaged(from, to)(&m.WAL.Summary) }
}

// TestSameConf: two configurations are equal in whatever order they name their members.
func TestSameConf(t *testing.T) {
	ids := func(ids ...dumplog.ID) []dumplog.ID { return ids }
	a := dumplog.ConfState{Voters: ids(1, 2), Learners: ids(3), VotersOutgoing: ids(4), LearnersNext: ids(5)}
	for name, c := range map[string]struct {
		b    dumplog.ConfState
		want bool
	}{
		"in another order": {dumplog.ConfState{Voters: ids(2, 1), Learners: ids(3), VotersOutgoing: ids(4),
			LearnersNext: ids(5)}, true},
		"voters": {dumplog.ConfState{Voters: ids(1), Learners: ids(3), VotersOutgoing: ids(4), LearnersNext: ids(5)},
			false},
		"learners":        {dumplog.ConfState{Voters: ids(2, 1), VotersOutgoing: ids(4), LearnersNext: ids(5)}, false},
		"outgoing voters": {dumplog.ConfState{Voters: ids(2, 1), Learners: ids(3), LearnersNext: ids(5)}, false},
		"next learners":   {dumplog.ConfState{Voters: ids(2, 1), Learners: ids(3), VotersOutgoing: ids(4)}, false},
	} {
		if got := sameConf(&a, &c.b); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if sameConf(&a, nil) || sameConf(nil, &a) || !sameConf(nil, nil) {
		t.Error("without a configuration")
	}
	if got := confText(&dumplog.ConfState{Voters: ids(0xa, 0xb)}); got != "voters [a b]" {
		t.Errorf("%q", got)
	}
	if got := confText(&dumplog.ConfState{Voters: ids(0xa), Learners: ids(0xc)}); got != "voters [a], learners [c]" {
		t.Errorf("%q", got)
	}
}

// TestSnapshotRecords: records that are gone, and records whose configuration or index was altered.
func TestSnapshotRecords(t *testing.T) {
	cs := func(ids ...dumplog.ID) *dumplog.ConfState { return &dumplog.ConfState{Voters: ids} }
	record := func(index uint64, c *dumplog.ConfState) dumplog.SnapshotRecord {
		return dumplog.SnapshotRecord{Term: 2, Index: index, ConfState: c}
	}
	file := func(index uint64, c *dumplog.ConfState) *dumplog.SnapFile {
		return &dumplog.SnapFile{File: fmt.Sprint(index), Term: 2, Index: index, ConfState: *c}
	}
	records := func(rs ...dumplog.SnapshotRecord) []dumplog.SnapshotRecord { return rs }
	files := func(fs ...*dumplog.SnapFile) []*dumplog.SnapFile { return fs }
	one, two := cs(1), cs(1, 2)
	for name, c := range map[string]struct {
		records []dumplog.SnapshotRecord
		files   []*dumplog.SnapFile
		change  func(m *evidence.Member)
		kind    Kind
		index   uint64
	}{
		"equal":              {records(record(5, one), record(9, one)), nil, nil, "", 0},
		"the second differs": {records(record(5, one), record(9, two)), nil, nil, KindRecordConfAltered, 9},
		"the first of three": {records(record(5, one), record(9, two), record(12, two)), nil, nil,
			KindRecordConfAltered, 5},
		"the second of three": {records(record(5, one), record(9, two), record(12, one)), nil, nil,
			KindRecordConfAltered, 9},
		"the third of three": {records(record(5, one), record(9, one), record(12, two)), nil, nil,
			KindRecordConfAltered, 12},
		"a change between": {records(record(5, one), record(9, two)), nil, func(m *evidence.Member) {
			m.WAL.Conf = []evidence.ConfEntry{added(9, 2)}
		}, "", 0},
		"a change before": {records(record(5, one), record(9, two)), nil, func(m *evidence.Member) {
			m.WAL.Conf = []evidence.ConfEntry{added(5, 2)}
		}, KindRecordConfAltered, 9},
		"a change after": {records(record(5, one), record(9, two)), nil, func(m *evidence.Member) {
			m.WAL.Conf = []evidence.ConfEntry{added(10, 2)}
		}, KindRecordConfAltered, 9},
		"entries are missing": {records(record(5, one), record(9, two)), nil, func(m *evidence.Member) {
			m.WAL.Summary.FirstIndex = 7
		}, "", 0},
		"index 0":                {records(record(0, one), record(9, two)), nil, nil, "", 0},
		"without configurations": {records(record(5, nil), record(9, two)), nil, nil, "", 0},
		"like its file":          {records(record(9, two)), files(file(9, two)), nil, "", 0},
		"unlike its file": {records(record(9, one)), files(file(9, two)), nil,
			KindRecordConfAltered, 9},
		"unlike another file": {records(record(9, one)), files(file(8, two)), nil,
			KindRecordIndexAltered, 9},
		"above its file": {records(record(5, one), record(9, one)), files(file(5, one), file(8, one)), nil,
			KindRecordIndexAltered, 9},
		"a file between": {records(record(7, one), record(9, one)), files(file(5, one), file(7, one)), nil,
			"", 0},
		"a purged file": {records(record(5, one), record(9, one)), files(file(8, one), file(9, one)), nil,
			"", 0},
		"a file above the log": {records(record(9, one)), files(file(5, one), file(40, one)), func(m *evidence.Member) {
			m.WAL.Summary.Snapshots = append(m.WAL.Summary.Snapshots, record(5, one))
		}, "", 0},
		"a damaged file": {records(record(9, one)), files(file(8, one)), func(m *evidence.Member) {
			m.Snap.Files[0].Damage = &dumplog.DamageError{}
		}, "", 0},
		"a file set aside": {records(record(9, one)), files(file(8, one)), func(m *evidence.Member) {
			m.Snap.Files[0].Broken = true
		}, "", 0},
		"gone": {nil, nil, func(m *evidence.Member) { m.WAL.Summary.Records = nil }, KindRecordsGone, 1},
		"gone with damage": {nil, nil, func(m *evidence.Member) {
			m.WAL.Summary.Records, m.WAL.Summary.Damage = nil, []*dumplog.DamageError{{}}
		}, "", 0},
		"gone, empty log": {nil, nil, func(m *evidence.Member) {
			m.WAL.Summary.Records, m.WAL.Summary.LastIndex = nil, 0
		}, "", 0},
		"none is effective": {nil, nil, nil, "", 0},
	} {
		m := withLog(withSnapDir(t, "n1"), 30)
		m.WAL.Summary.Snapshots, m.Snap.Files = c.records, c.files
		m.WAL.Summary.Records = map[dumplog.RecordType]int{dumplog.RecordSnapshot: 1}
		if c.change != nil {
			c.change(m)
		}
		r := runSnapRecordsFit(&Input{Members: Sources{member("n0"), m}})
		if (len(r.Findings) > 0) != (c.kind != "") {
			t.Errorf("%s: %+v", name, r)
		}
		if c.kind == "" || len(r.Findings) == 0 {
			continue
		}
		f := r.Findings[0]
		if f.Kind != c.kind || c.kind != KindRecordsGone && (f.At.Index != c.index ||
			f.Evidence[0].Field != recordFields[c.kind]) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestVotesForNobody: a vote for an ID that no source knows, although one would have to.
func TestVotesForNobody(t *testing.T) {
	v := dumplog.Vote{Term: 3, For: 9}
	for name, c := range map[string]struct {
		change func(m, o *evidence.Member)
		want   bool
	}{
		"unknown":            {func(_, _ *evidence.Member) {}, true},
		"a voter":            {func(_, o *evidence.Member) { o.Membership.Voters = []dumplog.ID{9} }, false},
		"removed":            {func(_, o *evidence.Member) { o.Membership.Removed = []dumplog.ID{9} }, false},
		"added once":         {func(_, o *evidence.Member) { o.WAL.Conf = []evidence.ConfEntry{added(3, 9)} }, false},
		"at hand":            {func(_, o *evidence.Member) { o.MemberID = 9 }, false},
		"of another cluster": {func(_, o *evidence.Member) { o.MemberID, o.ClusterID = 9, 8 }, true},
		"logs end before": {func(m, o *evidence.Member) {
			m.WAL.Summary.LastTerm, o.WAL.Summary.LastTerm = 2, 2
		}, false},
		"all logs are at hand": {func(m, o *evidence.Member) {
			m.WAL.Summary.LastTerm, o.WAL.Summary.LastTerm = 2, 2
			m.Membership.Voters, o.Membership.Voters = []dumplog.ID{1, 2}, []dumplog.ID{1, 2}
		}, true},
		"one log is not": {func(m, o *evidence.Member) {
			m.WAL.Summary.LastTerm, o.WAL.Summary.LastTerm = 2, 2
			m.Membership.Voters, o.Membership.Voters = []dumplog.ID{1, 2, 3}, []dumplog.ID{1, 2, 3}
		}, false},
		"purged logs": {func(m, o *evidence.Member) {
			m.WAL.Summary.FirstIndex, o.WAL.Summary.FirstIndex = 2, 2
		}, false},
		"purged, one database": {func(m, o *evidence.Member) {
			m.WAL.Summary.FirstIndex, o.WAL.Summary.FirstIndex = 2, 2
			withDB(o, 9)
		}, true},
		"no configuration": {func(m, o *evidence.Member) {
			m.Membership.RaftKnown, o.Membership.RaftKnown = false, false
		}, false},
	} {
		m, o := withLog(member("n1"), 20), withLog(member("n2"), 20)
		for i, x := range []*evidence.Member{m, o} {
			x.MemberID, x.ClusterID, x.WAL.Summary.LastTerm, x.Membership.RaftKnown = dumplog.ID(i+1), 7, 3, true
			x.Membership.Voters = []dumplog.ID{1, 2, 3}
		}
		c.change(m, o)
		if got := (&Input{Members: Sources{m, o}}).provenance().neverAMember(m, v); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestAlteredTerms: one entry whose term is above or below those of its neighbors.
func TestAlteredTerms(t *testing.T) {
	terms := func(ts ...uint64) (out []dumplog.TermRange) { // TERM, FIRST, LAST
		for i := 0; i < len(ts); i += 3 {
			out = append(out, dumplog.TermRange{Term: ts[i], First: ts[i+1], Last: ts[i+2]})
		}
		return out
	}
	for name, c := range map[string]struct {
		terms  []dumplog.TermRange
		states []uint64
		after  uint64
		want   uint64
		says   string
	}{
		"above both":         {terms(2, 1, 4, 7, 5, 5, 2, 6, 9), []uint64{2}, 5, 5, "term 2"},
		"above, a new term":  {terms(2, 1, 4, 7, 5, 5, 3, 6, 9), []uint64{2, 3}, 5, 5, "term 2 to 3"},
		"a HardState of it":  {terms(2, 1, 4, 7, 5, 5, 2, 6, 9), []uint64{2, 7}, 5, 0, ""},
		"two entries":        {terms(2, 1, 4, 7, 5, 6, 2, 7, 9), []uint64{2}, 6, 0, ""},
		"the first of a log": {terms(7, 5, 5, 2, 6, 9), []uint64{2}, 5, 0, ""},
		"above one":          {terms(3, 1, 4, 7, 5, 5, 2, 6, 9), []uint64{2}, 5, 0, ""},
		"below both":         {terms(3, 1, 4, 1, 5, 5, 3, 6, 9), []uint64{3}, 4, 5, "term 3"},
		"below, then higher": {terms(3, 1, 4, 1, 5, 5, 4, 6, 9), []uint64{3, 4}, 4, 5, "term 3 to 4"},
		"below, then lower":  {terms(3, 1, 4, 1, 5, 5, 2, 6, 9), []uint64{3}, 4, 0, ""},
		"below, at the end":  {terms(3, 1, 4, 1, 5, 5), []uint64{3}, 4, 0, ""},
		"below, two entries": {terms(3, 1, 4, 1, 5, 6, 3, 7, 9), []uint64{3}, 4, 0, ""},
		"no HardState":       {terms(2, 1, 4, 7, 5, 5, 2, 6, 9), nil, 5, 0, ""},
		"another place":      {terms(2, 1, 4, 7, 5, 5, 2, 6, 9), []uint64{2}, 8, 0, ""},
	} {
		m := withLog(member("n1"), 9)
		m.WAL.Summary.Terms, m.WAL.Summary.StateTerms = c.terms, c.states
		m.WAL.Summary.Damage = []*dumplog.DamageError{{Kind: dumplog.DamageTermOrder, After: c.after},
			{Kind: dumplog.DamageTermOrder, After: c.after}, {Kind: dumplog.DamageCRC, After: c.after}}
		fs := termFallFindings(&Input{Members: Sources{m}}, m)
		if c.want == 0 {
			if len(fs) != 2 || fs[0].Kind != KindTermFalls {
				t.Errorf("%s: %+v", name, fs)
			}
			continue
		}
		if len(fs) != 1 || fs[0].Kind != KindTermAltered || fs[0].At.Index != c.want ||
			fs[0].Evidence[0].Expected != c.says {
			t.Errorf("%s: %+v", name, fs)
		}
	}
}

// TestCommitsAhead: HardStates that commit more than the log holds before them.
func TestCommitsAhead(t *testing.T) {
	m := withLog(member("n1"), 9)
	if fs := commitAhead(m); fs != nil {
		t.Errorf("%+v", fs)
	}
	for commit, want := range map[uint64]string{8: "n1: an entry before entry 8 was removed",
		10: "n1: at least 3 entries before entry 8 were removed"} {
		m.WAL.Summary.CommitAheads = []dumplog.CommitAhead{{Commit: commit, Last: 7}, {Commit: 20, Last: 9}}
		fs := commitAhead(m)
		if !strings.HasPrefix(fs[0].Title, want) || fs[0].At.Index != 7 || len(fs[0].Evidence) != 2 ||
			!strings.Contains(fs[0].Explanation, "2 HardStates commit more") {
			t.Errorf("%+v", fs)
		}
	}
}

// TestCheckpoints: remaining TTLs that some members store and others do not.
func TestCheckpoints(t *testing.T) {
	lease := func(checkpoint uint64, asked, stored int64) replay.LeaseFact {
		return replay.LeaseFact{ID: 7, Index: 3, Checkpoint: checkpoint, AskedRemaining: asked, StoredRemaining: stored}
	}
	never := lease(0, 0, 5)
	never.NeverAsked = true
	facts := func(ls ...replay.LeaseFact) []replay.LeaseFact { return ls }
	lost := lease(9, 5, 0)
	for name, c := range map[string]struct {
		a, b    []replay.LeaseFact
		outcome Outcome
		kinds   []Kind
		members []string
	}{
		"stored":     {facts(lease(9, 5, 5)), facts(lease(9, 5, 5)), Holds, nil, nil},
		"not stored": {facts(lost), facts(lost), Holds, []Kind{KindCheckpointsNotStored}, []string{"n1", "n2"}},
		"stored by one": {facts(lease(9, 5, 5)), facts(lost), Violated, []Kind{KindCheckpointsStoredBySome},
			[]string{"n2", "n1"}},
		"some of one":       {facts(lease(9, 5, 5), lease(10, 6, 0)), nil, Holds, nil, nil},
		"an older one":      {facts(lease(9, 5, 3)), nil, "", nil, nil},
		"no checkpoint":     {facts(lease(0, 5, 5)), nil, "", nil, nil},
		"a reset":           {facts(lease(9, 0, 0)), nil, "", nil, nil},
		"that nothing sets": {facts(never), nil, Violated, []Kind{KindRemainingNeverSet}, []string{"n1"}},
	} {
		in := &Input{Members: Sources{withDB(member("n1"), 9), withDB(member("n2"), 9)}, MaxRows: 20,
			Replay: &replay.Result{Members: []*replay.MemberResult{{Leases: c.a}, {Leases: c.b}}}}
		in.Members[0].DB.Leases = []dumpdb.Lease{{ID: 7}}
		r := runLeaseCheckpoints(in)
		var kinds []Kind
		var members []string
		for _, f := range r.Findings {
			kinds, members = append(kinds, f.Kind), append(members, f.Members...)
		}
		if r.Outcome != c.outcome || !slices.Equal(kinds, c.kinds) || !slices.Equal(members, c.members) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
