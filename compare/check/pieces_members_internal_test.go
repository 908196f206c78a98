package check

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestBelowScheduled: a compaction cannot have been requested above the revision of a member that has applied as much
// and holds the same newest record.
func TestBelowScheduled(t *testing.T) {
	at := func(main int64) *dumpdb.Rev { return &dumpdb.Rev{Main: main} }
	none := func(_, _ *evidence.Member) {}
	for name, c := range map[string]struct {
		change func(m, o *evidence.Member)
		want   bool
	}{
		"shown":                     {none, true},
		"nothing scheduled":         {func(m, _ *evidence.Member) { m.DB.Meta.ScheduledCompact = nil }, false},
		"finished":                  {func(m, _ *evidence.Member) { m.DB.Meta.FinishedCompact = at(12) }, false},
		"an earlier one finished":   {func(m, _ *evidence.Member) { m.DB.Meta.FinishedCompact = at(11) }, true},
		"keys not read":             {func(m, _ *evidence.Member) { m.DB.KV = nil }, false},
		"keys damaged":              {func(m, _ *evidence.Member) { m.DB.KVDamaged = true }, false},
		"at its newest record":      {func(m, _ *evidence.Member) { m.DB.Meta.ScheduledCompact = at(8) }, false},
		"right above its newest":    {func(m, _ *evidence.Member) { m.DB.Meta.ScheduledCompact = at(9) }, true},
		"of 3.4":                    {func(m, _ *evidence.Member) { m.Version.Minor = 4 }, true},
		"of another cluster":        {func(_, o *evidence.Member) { o.ClusterID = 9 }, false},
		"the other has no database": {func(_, o *evidence.Member) { o.DB = nil }, false},
		"the other has no log":      {func(_, o *evidence.Member) { o.WAL.Log = nil }, false},
		"its keys not read":         {func(_, o *evidence.Member) { o.DB.KV = nil }, false},
		"its keys damaged":          {func(_, o *evidence.Member) { o.DB.KVDamaged = true }, false},
		"its newest record is another": {func(_, o *evidence.Member) {
			o.DB.KV.LastRev = dumpdb.Rev{Main: 8,
				Sub: 1}
		}, false},
		"its revision is the scheduled":  {func(_, o *evidence.Member) { o.DB.KV.CurrentRev = 12 }, false},
		"its revision is right below":    {func(_, o *evidence.Member) { o.DB.KV.CurrentRev = 11 }, true},
		"it has applied less, no replay": {func(_, o *evidence.Member) { o.AppliedMin = 19 }, false},
	} {
		m, o := withDB(withLog(member("n1"), 30), 20), withDB(withLog(member("n2"), 30), 20)
		for _, x := range []*evidence.Member{m, o} {
			x.Version = evidence.Version{Minor: 6, Text: "3.6.x"}
			x.DB.KV.LastRev, x.DB.KV.CurrentRev = dumpdb.Rev{Main: 8}, 8
		}
		m.DB.Meta.ScheduledCompact = at(12)
		c.change(m, o)
		got := (&compactRequests{Members: Sources{m, o}}).belowScheduled(m)
		if (got != nil) != c.want || got != nil && got != o {
			t.Errorf("%s: %v", name, got != nil)
		}
	}
}

// TestRowWritten: the row of a member must be there if two entries wrote it: its addition, and a publish after it.
func TestRowWritten(t *testing.T) {
	add := func(index uint64) evidence.ConfEntry {
		return evidence.ConfEntry{Index: index, Change: dumplog.ConfChange{Type: dumplog.ConfChangeAddNode, NodeID: 7,
			Member: &dumplog.MemberContext{ID: 7}}}
	}
	of := func(c evidence.ConfEntry, change func(c *dumplog.ConfChange)) evidence.ConfEntry {
		change(&c.Change)
		return c
	}
	removed := of(add(9), func(c *dumplog.ConfChange) { c.Type, c.Member = dumplog.ConfChangeRemoveNode, nil })
	updated := of(add(9), func(c *dumplog.ConfChange) { c.Type = dumplog.ConfChangeUpdateNode })
	promoted := of(add(9), func(c *dumplog.ConfChange) { c.Member = &dumplog.MemberContext{ID: 7, IsPromote: true} })
	type logged = []evidence.ConfEntry
	starts := func(at ...uint64) (out []replay.Start) {
		for _, i := range at {
			out = append(out, replay.Start{Index: i})
		}
		return out
	}
	none := func(*evidence.Member, *replay.Result) {}
	for name, c := range map[string]struct {
		conf   logged
		starts []replay.Start
		change func(m *evidence.Member, rp *replay.Result)
		want   uint64
	}{
		"added and published":      {logged{add(3)}, starts(5), none, 5},
		"published twice":          {logged{add(3)}, starts(5, 8), none, 8},
		"only added":               {logged{add(3)}, nil, none, 0},
		"published, no addition":   {nil, starts(5), none, 0},
		"twice, no addition":       {nil, starts(5, 8), none, 8},
		"published before it":      {logged{add(6)}, starts(5), none, 0},
		"at the applied index":     {logged{add(3)}, starts(20), none, 20},
		"not applied":              {logged{add(3)}, starts(21), none, 0},
		"the addition not applied": {logged{add(21)}, starts(5, 8), none, 0},
		"the addition not there":   {logged{add(31)}, starts(5, 8), none, 8},
		"added again":              {logged{add(3), removed, add(12)}, starts(5, 14), none, 14},
		"removed, then published":  {logged{add(3), removed}, starts(5, 14), none, 0},
		"updated in between":       {logged{add(3), updated}, starts(5), none, 5},
		"promoted in between":      {logged{add(3), promoted}, starts(5), none, 5},
		"another member's": {logged{of(add(3), func(c *dumplog.ConfChange) { c.NodeID = 8 })}, starts(5), none,
			0},
		"a learner": {logged{add(3)}, starts(5), func(m *evidence.Member, _ *replay.Result) {
			m.Membership.Voters, m.Membership.Learners = nil, []dumplog.ID{7}
		}, 5},
		"no member any more": {logged{add(3)}, starts(5),
			func(m *evidence.Member, _ *replay.Result) { m.Membership.Voters = nil }, 0},
		"members are not known": {logged{add(3)}, starts(5),
			func(m *evidence.Member, _ *replay.Result) { m.Membership.RaftKnown = false }, 0},
		"logs that differ": {logged{add(3)}, starts(5),
			func(_ *evidence.Member, rp *replay.Result) { rp.LogDiffs = make([]replay.LogDiff, 1) }, 0},
		"nothing of the entries": {logged{add(3)}, starts(5),
			func(_ *evidence.Member, rp *replay.Result) { rp.Survey = nil }, 0},
	} {
		m := withDB(withLog(member("n1"), 30), 20)
		m.Commit, m.WAL.Conf = 30, c.conf
		m.Membership.Voters, m.Membership.RaftKnown = []dumplog.ID{7}, true
		rp := &replay.Result{First: 1, Last: 30,
			Survey: &replay.Survey{Starts: map[dumplog.ID][]replay.Start{7: c.starts}}}
		c.change(m, rp)
		if got := (&Membership{Members: Sources{m}, Replay: rp}).rowWritten(m, 7); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestServedBeyond: a log is older than its member if a process of it served clients after a publish entry that the log
// does not reach. Files that were last written before that process are a copy, which is no loss.
func TestServedBeyond(t *testing.T) {
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	id := dumplog.RequestID(0xa1<<48 | (uint64(begun.UnixMilli())&(1<<40-1))<<8)
	written := func(m *evidence.Member, when time.Time) {
		m.Source.Manifest = &evidence.Manifest{Files: []evidence.File{{Path: "member/wal/0.wal", ModTime: when},
			{Path: "member/other", ModTime: begun.Add(time.Hour)}}}
	}
	none := func(_, _ *evidence.Member, _ *replay.Served) {}
	for name, c := range map[string]struct {
		change func(m, o *evidence.Member, sv *replay.Served)
		found  bool
		copied bool
		either bool
	}{
		"served": {none, true, false, false},
		"its log reaches it": {func(m, _ *evidence.Member, _ *replay.Served) { m.WAL.Summary.LastIndex = 25 }, false,
			false, false},
		"right before it": {func(m, _ *evidence.Member, _ *replay.Served) { m.WAL.Summary.LastIndex = 24 }, true,
			false, false},
		"no log holds it": {func(_, o *evidence.Member, _ *replay.Served) { o.WAL.Summary.Terms = nil }, false,
			false, false},
		"copied before": {func(m, _ *evidence.Member, _ *replay.Served) { written(m, begun.Add(-time.Hour)) },
			true, true, false},
		"written after": {func(m, _ *evidence.Member, _ *replay.Served) { written(m, begun.Add(longestStart)) },
			true, false, false},
		"written while it started": {func(m, _ *evidence.Member, _ *replay.Served) {
			written(m, begun.Add(longestStart-time.Second))
		}, true, false, true},
		"written at its time": {func(m, _ *evidence.Member, sv *replay.Served) { written(m, replay.StartTime(sv.ID)) },
			true, false, true},
	} {
		m, o := withLog(member("n1"), 20), withLog(member("n2"), 40)
		m.MemberID = 0xa1
		o.WAL.Summary.Terms = []dumplog.TermRange{{Term: 2, First: 1, Last: 40}}
		o.WAL.LastByTerm = []evidence.TermEnd{{Term: 2, First: 1, Last: 40}}
		sv := replay.Served{Publish: 25, Index: 28, ID: id, What: "put"}
		c.change(m, o, &sv)
		rp := &replay.Result{First: 1, Last: 40,
			Survey: &replay.Survey{Served: map[dumplog.ID][]replay.Served{0xa1: {sv}}}}
		pv := (&Input{Members: Sources{m, o}, Replay: rp}).provenance()
		f := pv.servedBeyond(m)
		kind, why := pv.lostLogs([]*evidence.Member{m})
		if older := c.found && !c.copied && !c.either; (kind == KindBelowQuorumLogsOlder) != older ||
			older && why != "n1 served clients after its end" || !older && kind != KindBelowQuorum {
			t.Errorf("%s: %s, %q", name, kind, why)
		}
		if (f != nil) != c.found || pv.copiedEarly(m) != c.copied {
			t.Errorf("%s: %+v, copied early %t", name, f, pv.copiedEarly(m))
			continue
		}
		if f != nil && ((f.Severity == Warning) != (c.copied || c.either) || (f.Class == "") != c.copied ||
			(f.Class == ClassInconclusive) != c.either || f.At.Term != 2 ||
			f.At.Index != m.LastIndex()+1 || !slices.Equal(f.Members, []string{"n1"}) || len(f.Evidence) < 2) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	bare := (&Input{Members: Sources{member("n1")}}).provenance()
	if bare.copiedEarly(bare.Members[0]) {
		t.Error("without a replay nothing is known of its processes")
	}
}

// TestRestoredAlone: a member that was restored by itself, while its cluster went on without it.
func TestRestoredAlone(t *testing.T) {
	founded := func(m *evidence.Member, start dumplog.StartKind) *evidence.Member {
		m.WAL.Summary.Start = start
		for i := range uint64(3) {
			m.WAL.Conf = append(m.WAL.Conf, evidence.ConfEntry{Index: i + 1, Term: 1,
				Change: dumplog.ConfChange{Type: dumplog.ConfChangeAddNode, NodeID: dumplog.ID(i + 1)}})
		}
		m.Commit, m.MemberID = 20, dumplog.ID(len(m.Label()))
		return m
	}
	none := func(_, _, _ *evidence.Member) {}
	for name, c := range map[string]struct {
		change func(m, o, x *evidence.Member)
		want   bool
	}{
		"alone": {none, true},
		"not restored": {func(m, _, _ *evidence.Member) {
			m.WAL.Summary.Start = dumplog.StartBootstrap
		}, false},
		"no conf changes at its begin": {func(m, _, _ *evidence.Member) { m.WAL.Conf = nil }, false},
		"the other is of a restore too": {func(_, o, _ *evidence.Member) { o.WAL.Summary.Start = dumplog.StartRestore },
			false},
		"the other only began":    {func(_, o, _ *evidence.Member) { o.Commit = 3 }, false},
		"the other did something": {func(_, o, _ *evidence.Member) { o.Commit = 4 }, true},
		"another cluster":         {func(_, o, _ *evidence.Member) { o.ClusterID = 9 }, false},
		"the other has no log":    {func(_, o, _ *evidence.Member) { o.WAL.Log = nil }, false},
		"a majority was restored": {func(m, _, x *evidence.Member) {
			x.WAL.Summary.Start, m.WAL.First.ID, x.WAL.First.ID = dumplog.StartRestore, 5, 5
		}, false},
		"two restored, each by itself": {func(m, _, x *evidence.Member) {
			x.WAL.Summary.Start, m.WAL.First.ID, x.WAL.First.ID = dumplog.StartRestore, 5, 6
		}, true},
		"two restored, nothing proposed": {func(_, _, x *evidence.Member) {
			x.WAL.Summary.Start = dumplog.StartRestore
		}, true},
	} {
		m, o := founded(withLog(member("n1"), 20), dumplog.StartRestore),
			founded(withLog(member("n22"), 20), dumplog.StartBootstrap)
		x := founded(withLog(member("n333"), 20), dumplog.StartBootstrap)
		x.Commit = 3
		c.change(m, o, x)
		got := (Sources{m, x, o}).logs().restoredAlone(m)
		if (got != nil) != c.want || got != nil && got != o {
			t.Errorf("%s: %v", name, got != nil)
		}
	}
}

// TestRemovedRowsForgotten: a row of a removed member stays for ever, so one that a later database lacks was edited in
// one of the two. A member that a server has not removed yet, or one that a forced start dropped, is no such row.
func TestRemovedRowsForgotten(t *testing.T) {
	hand := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
	hand.Removed(9)
	h, err := dumpdb.Open(filepath.Join(hand.Close(5, 2), "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	bare := copiedDatabase(t, 1, 0)
	none := func(_, _ *evidence.Member, _ *Input) {}
	for name, c := range map[string]struct {
		change  func(m, o *evidence.Member, in *Input)
		found   bool
		checked bool
	}{
		"forgotten": {none, true, true},
		"there too": {func(_, o *evidence.Member, _ *Input) { o.DB.Removed = []dumpdb.ID{7} }, false, true},
		"a zombie there": {func(_, o *evidence.Member, _ *Input) { o.Membership.Bucket = []dumplog.ID{7} }, false,
			true},
		"none removed":    {func(m, _ *evidence.Member, _ *Input) { m.DB.Removed = nil }, false, false},
		"another cluster": {func(_, o *evidence.Member, _ *Input) { o.ClusterID = 9 }, false, false},
		"no later":        {func(_, o *evidence.Member, _ *Input) { o.AppliedMin = 20 }, false, false},
		"damaged": {func(_, o *evidence.Member, _ *Input) { o.DB.Damage = make([]*dumpdb.DamageError, 1) },
			false, false},
		"no database": {func(_, o *evidence.Member, _ *Input) { o.DB = nil }, false, false},
		"the logs show both": {func(_, _ *evidence.Member, in *Input) {
			in.Replay = &replay.Result{First: 1,
				Last: 30}
		}, false, false},
		"the logs do not": {func(_, _ *evidence.Member, in *Input) {
			in.Replay = &replay.Result{First: 1,
				Last: 29}
		}, true, true},
		"no such bucket": {func(_, o *evidence.Member, _ *Input) { o.DB.Handle = bare }, false, false},
		"restored": {func(_, o *evidence.Member, _ *Input) { o.WAL.Summary.Start = dumplog.StartRestore },
			false, false},
	} {
		m, o := withDB(withLog(member("n1"), 30), 20), withDB(withLog(member("n2"), 30), 30)
		m.DB.Removed, o.DB.Handle = []dumpdb.ID{7}, h
		in := &Input{Members: Sources{m, o}}
		c.change(m, o, in)
		w := &rowFindings{in: in, by: map[string]*Finding{}}
		checked := w.noted(m)
		if checked != c.checked || (len(w.by) == 1) != c.found {
			t.Errorf("%s: checked %t, %+v", name, checked, w.by)
		}
		for _, f := range w.by {
			if !slices.Equal(f.Members, []string{"n1", "n2"}) || !f.Undecided || f.At.Index != 20 {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}
