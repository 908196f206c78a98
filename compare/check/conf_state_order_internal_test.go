package check

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestConfStateNamesOnlyLater: of two members one joined after a known configuration, the other was in it and still is.
// A row with the first and without the second was never a configuration.
func TestConfStateNamesOnlyLater(t *testing.T) {
	record := func(index uint64, voters ...dumplog.ID) dumplog.SnapshotRecord {
		return dumplog.SnapshotRecord{Pos: dumplog.Pos{Segment: "a.wal", Offset: 80}, Index: index,
			ConfState: &dumplog.ConfState{Voters: voters}}
	}
	// storedAt has the old member apply a conf change, with which a server of 3.5 stores the configuration.
	storedAt := func(index uint64) func(now, old *evidence.Member, in *Input) {
		return func(now, old *evidence.Member, _ *Input) {
			now.MemberID, old.Commit, old.AppliedMin = 2, index, index
			old.WAL.Summary.FirstIndex, old.WAL.Summary.LastIndex = 1, index
			old.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{record(index-1, 1, 2, 3)}
			old.WAL.Conf = []evidence.ConfEntry{{Index: index, Pos: dumplog.Pos{Segment: "a.wal", Offset: 80}}}
			old.Membership.RaftKnown, old.Membership.Voters = true, []dumplog.ID{1, 2, 3}
		}
	}
	// The cluster began with 1, 2 and 3; 1 was removed and 4 added, as a learner at first.
	for name, c := range map[string]struct {
		voters, learners []dumpdb.ID
		edit             func(now, old *evidence.Member, in *Input)
		want             bool
	}{
		"the configuration":            {voters: []dumpdb.ID{2, 3, 4}},
		"without a learner yet":        {voters: []dumpdb.ID{2, 3}},
		"the founding":                 {voters: []dumpdb.ID{1, 2, 3}},
		"one that stayed is missing":   {voters: []dumpdb.ID{2, 4}, want: true},
		"as a learner":                 {voters: []dumpdb.ID{2}, learners: []dumpdb.ID{4}, want: true},
		"one that stayed is a learner": {voters: []dumpdb.ID{2, 4}, learners: []dumpdb.ID{3}},
		"none that joined":             {voters: []dumpdb.ID{2}},
		"an unknown member":            {voters: []dumpdb.ID{2, 9}},
		"one that left":                {voters: []dumpdb.ID{1, 2}},
		"another cluster": {voters: []dumpdb.ID{2, 4},
			edit: func(_, old *evidence.Member, _ *Input) { old.ClusterID = 8 }},
		"no log": {voters: []dumpdb.ID{2, 4},
			edit: func(_, old *evidence.Member, _ *Input) { old.WAL.Log = nil }},
		"a damaged log": {voters: []dumpdb.ID{2, 4},
			edit: func(_, old *evidence.Member, _ *Input) {
				old.WAL.Summary.Damage = []*dumplog.DamageError{{}}
			}},
		"the record is not committed": {voters: []dumpdb.ID{2, 4},
			edit: func(_, old *evidence.Member, _ *Input) { old.Commit = 19 }},
		"no older than the newest": {voters: []dumpdb.ID{2, 4},
			edit: func(_, old *evidence.Member, _ *Input) { old.WAL.Summary.Snapshots[0].Index, old.Commit = 40, 50 }},
		"the conf change stored a later one":                 {voters: []dumpdb.ID{2}, edit: storedAt(20), want: true},
		"it stored this one":                                 {voters: []dumpdb.ID{2, 3}, edit: storedAt(20)},
		"its log has the conf change, which a start replays": {voters: []dumpdb.ID{2}, edit: storedAt(41)},
		"an older database has not applied it": {voters: []dumpdb.ID{2}, edit: func(now, old *evidence.Member, in *Input) {
			storedAt(20)(now, old, in)
			now.AppliedMin = 19
		}},
		"it was no member yet": {voters: []dumpdb.ID{2}, edit: func(now, old *evidence.Member, in *Input) {
			storedAt(20)(now, old, in)
			now.MemberID = 4
		}},
		"a server of 3.4 does not store it": {voters: []dumpdb.ID{2}, edit: func(now, old *evidence.Member, in *Input) {
			storedAt(20)(now, old, in)
			old.WAL.Summary.Snapshots = nil
		}},
		"a received snapshot": {voters: []dumpdb.ID{2}, edit: func(now, old *evidence.Member, in *Input) {
			storedAt(20)(now, old, in)
			now.WAL.Summary.Jumps = []dumplog.Jump{{}}
		}},
		"a restore": {voters: []dumpdb.ID{2, 4},
			edit: func(_, old *evidence.Member, _ *Input) { old.WAL.Summary.Start = dumplog.StartRestore }},
		"a forced start": {voters: []dumpdb.ID{2, 4},
			edit: func(_, _ *evidence.Member, in *Input) {
				in.Replay = &replay.Result{Forced: []replay.Forced{{}}}
			}},
		"an altered record does not name one that was there": {voters: []dumpdb.ID{2, 4},
			edit: func(now, _ *evidence.Member, _ *Input) {
				now.WAL.Summary.Snapshots = append(now.WAL.Summary.Snapshots, record(10, 1, 2, 4))
			}},
		"raft's configuration is not known": {voters: []dumpdb.ID{2, 4},
			edit: func(now, _ *evidence.Member, _ *Input) { now.Membership.RaftKnown = false }},
	} {
		now := &evidence.Member{AppliedMin: 60, DB: &evidence.DB{}, Source: &evidence.Source{Name: "now"}}
		old := &evidence.Member{Source: &evidence.Source{Name: "old"}}
		now.ClusterID, old.ClusterID, now.Commit, old.Commit = 7, 7, 60, 25
		now.WAL.Log, old.WAL.Log = &dumplog.Log{}, &dumplog.Log{}
		now.WAL.Summary.FirstIndex, now.WAL.Summary.LastIndex = 41, 60
		now.Membership.RaftKnown, now.Membership.Voters = true, []dumplog.ID{2, 3, 4}
		now.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{record(40, 2, 3, 4)}
		old.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{record(20, 1, 2, 3)}
		now.DB.Meta.ConfState = &dumpdb.ConfState{Voters: c.voters, Learners: c.learners}
		in := &Input{Members: []*evidence.Member{now, old}}
		if c.edit != nil {
			c.edit(now, old, in)
		}
		mb := in.Membership()
		if f := mb.neverConfigured(now); (f != nil) != c.want || f != nil && f.Kind != KindConfStateNeverHeld {
			t.Errorf("%s: %+v", name, f)
		} else if f != nil {
			// The last row of evidence is the configuration that shows who joined later.
			known := f.Evidence[len(f.Evidence)-1]
			if known.Member != "old" || known.File != "a.wal" || known.Offset == nil || *known.Offset != 80 ||
				known.Observed != "members [1 2 3] at entry 20" {
				t.Errorf("%s: evidence %+v", name, known)
			}
		}
	}
}

// TestKnownConfs: a configuration at a conf change counts like one of a snapshot record.
func TestKnownConfs(t *testing.T) {
	m := &evidence.Member{Commit: 9}
	m.WAL.Log = &dumplog.Log{}
	m.WAL.Conf = []evidence.ConfEntry{{Index: 5}}
	m.WAL.Summary.FirstIndex, m.WAL.Summary.LastIndex = 1, 9
	m.Membership.RaftKnown, m.Membership.Voters, m.Membership.Learners = true, []dumplog.ID{1, 2}, []dumplog.ID{3}
	known := func() []knownConf { return (&Input{Members: []*evidence.Member{m}}).Membership().knownConfs(0) }
	if got := known(); len(got) != 1 || got[0].index != 5 || len(got[0].ids) != 3 {
		t.Errorf("%+v", got)
	}
	m.Membership.RaftKnown = false
	if got := known(); len(got) != 0 {
		t.Errorf("with an unknown configuration: %+v", got)
	}
	m.Membership.RaftKnown, m.WAL.Conf = true, nil
	if got := known(); len(got) != 0 {
		t.Errorf("without a conf change: %+v", got)
	}
}

// TestConfChangeBetween: two members have the same conf changes where the logs show none between their indexes, and no
// new cluster was forced on only one of them.
func TestConfChangeBetween(t *testing.T) {
	forced := []replay.Forced{{Member: 0, First: 30}}
	for name, c := range map[string]struct {
		changes     []uint64
		forced      []replay.Forced
		first, last uint64
		a, b        uint64
		voters      []dumplog.ID
		want        bool
	}{
		"none":                        {first: 1, last: 60, a: 40, b: 50},
		"between":                     {changes: []uint64{45}, first: 1, last: 60, a: 40, b: 50, want: true},
		"the later is applied":        {changes: []uint64{50}, first: 1, last: 60, a: 40, b: 50, want: true},
		"both applied it":             {changes: []uint64{40}, first: 1, last: 60, a: 40, b: 50},
		"the log ends before":         {first: 1, last: 45, a: 40, b: 50, want: true},
		"forced on one of them":       {forced: forced, first: 1, last: 60, a: 40, b: 50, want: true},
		"forced on one of them later": {forced: forced, first: 1, last: 60, a: 20, b: 25},
		"forced, and the other joined": {forced: forced, first: 1, last: 60, a: 40, b: 50,
			voters: []dumplog.ID{7, 8}},
		"forced, and the other was removed": {forced: forced, first: 1, last: 60, a: 40, b: 50,
			voters: []dumplog.ID{7}, want: true},
	} {
		a, b := &evidence.Member{AppliedMin: c.a, AppliedMax: c.a}, &evidence.Member{AppliedMin: c.b, AppliedMax: c.b}
		a.WAL.Log, a.MemberID, b.MemberID = &dumplog.Log{}, 7, 8
		if len(c.voters) > 0 {
			a.Membership.Voters, a.Membership.RaftKnown = c.voters, true
			b.Membership.Voters, b.Membership.RaftKnown = []dumplog.ID{7, 8}, true
		}
		for _, index := range c.changes {
			a.WAL.Conf = append(a.WAL.Conf, evidence.ConfEntry{Index: index})
		}
		in := &Input{Members: Sources{a, b}, Replay: &replay.Result{First: c.first, Last: c.last, Forced: c.forced}}
		if got := in.Membership().confChangeBetween(a, b); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
