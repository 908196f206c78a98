package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestLeftovers: which files of a snap folder nothing needs.
func TestLeftovers(t *testing.T) {
	defrag := dumplog.LeftOver{Name: "db.tmp.1", Size: 5}
	for name, c := range map[string]struct {
		change func(m *evidence.Member)
		want   []string
	}{
		"none":           {func(*evidence.Member) {}, nil},
		"a foreign file": {func(m *evidence.Member) { m.Snap.LeftOvers = []dumplog.LeftOver{{Name: "x"}} }, nil},
		"a defrag": {func(m *evidence.Member) { m.Snap.LeftOvers = []dumplog.LeftOver{defrag} },
			[]string{"db.tmp.1 5"}},
		"a transfer": {func(m *evidence.Member) { m.Snap.LeftOvers = []dumplog.LeftOver{{Name: "tmp7", Size: 3}} },
			[]string{"tmp7 3"}},
		"a sound snapshot": {func(m *evidence.Member) { m.Snap.Files = []*dumplog.SnapFile{{File: "s", Size: 4}} },
			nil},
		"set aside": {func(m *evidence.Member) {
			m.Snap.Files = []*dumplog.SnapFile{{File: "s", Size: 4, Broken: true}}
		}, []string{"s 4"}},
		"set aside, empty": {func(m *evidence.Member) {
			m.Snap.Files = []*dumplog.SnapFile{{File: "s", Broken: true, Cut: true}}
		}, []string{"s 0"}},
		"unfinished": {func(m *evidence.Member) {
			m.Snap.Files = []*dumplog.SnapFile{{File: "s", NameIndex: m.WAL.Summary.LastIndex, Cut: true}}
		}, []string{"s 0"}},
		"unfinished, with a part": {func(m *evidence.Member) {
			m.Snap.Files = []*dumplog.SnapFile{{File: "s", NameIndex: m.WAL.Summary.LastIndex, Cut: true, Size: 7}}
		}, []string{"s 7"}},
		"received, installed":       {received(30), []string{"r 9"}},
		"received, to be installed": {received(41), nil},
		"received, no record": {func(m *evidence.Member) { received(41)(m); m.WAL.Summary.Snapshots = nil },
			[]string{"r 9"}},
		"received, no database": {func(m *evidence.Member) { received(30)(m); m.DB = nil }, nil},
		"received, no log":      {func(m *evidence.Member) { received(30)(m); m.WAL.Log = nil }, nil},
		"received at the index": {received(40), []string{"r 9"}},
	} {
		m := withDB(withLog(withSnapDir(t, "n1"), 90), 40)
		c.change(m)
		r := runSnapLeftovers(&Input{Members: Sources{member("n0"), m}})
		var got []string
		for _, f := range r.Findings {
			for _, e := range f.Evidence {
				got = append(got, fmt.Sprint(e.File, " ", e.Length))
			}
			if !strings.Contains(f.Title, "1 file") || f.Severity != Info {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if !slices.Equal(got, c.want) || r.Outcome != Holds {
			t.Errorf("%s: %q, want %q: %+v", name, got, c.want, r)
		}
	}
	if r := runSnapLeftovers(&Input{Members: Sources{member("n0")}}); r.Outcome == Holds {
		t.Errorf("no snap folder: %+v", r)
	}
	for n, more := range map[int]bool{maxPlaces: false, maxPlaces + 1: true} {
		f := leftoverFinding(member("n1"), KindSnapLeftover, "leftover", make([]idle, n))
		if len(f.Evidence) != maxPlaces || strings.HasPrefix(f.Explanation, fmt.Sprintf("%d files", n)) != more {
			t.Errorf("%d files: %d listed, %s", n, len(f.Evidence), f.Explanation)
		}
	}
}

// received adds a received database with its record.
func received(index uint64) func(*evidence.Member) {
	return func(m *evidence.Member) {
		m.Snap.SnapDBs = []dumplog.SnapDB{{File: "r", Index: index, Size: 9}}
		m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: index}}
	}
}

// TestOrphanSnaps: a .snap file from before the log shows that the log was started again.
func TestOrphanSnaps(t *testing.T) {
	for name, c := range map[string]struct {
		index  uint64
		change func(m *evidence.Member)
		want   bool
	}{
		"above the log": {60, func(*evidence.Member) {}, true},
		"at its end":    {50, func(*evidence.Member) {}, false},
		"with a record": {60, func(m *evidence.Member) { m.WAL.Summary.Snapshots[0].Index = 60 }, false},
		"damaged": {60, func(m *evidence.Member) { m.Snap.Files[0].Damage = &dumplog.DamageError{} },
			false},
		"set aside":  {60, func(m *evidence.Member) { m.Snap.Files[0].Broken = true }, false},
		"at index 0": {0, func(m *evidence.Member) { m.WAL.Summary.LastIndex = 0 }, false},
		"begins with a jump": {20, func(m *evidence.Member) { m.WAL.Summary.Jumps = []dumplog.Jump{{From: 1, To: 20}} },
			true},
		"within the log then": {21, func(m *evidence.Member) {
			m.WAL.Summary.Jumps = []dumplog.Jump{{From: 1, To: 20}}
		}, false},
		"a later jump": {20, func(m *evidence.Member) { m.WAL.Summary.Jumps = []dumplog.Jump{{From: 2, To: 20}} },
			false},
	} {
		m := addSnap(withLog(withSnapDir(t, "n1"), 50), c.index, nil)
		m.WAL.Summary.Snapshots[0].Index = 10
		c.change(m)
		if c.index == 0 {
			m.WAL.Summary.Snapshots = nil
		}
		if got := orphanSnap(m) != nil; got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if orphanSnap(withLog(member("n1"), 50)) != nil {
		t.Error("no snap folder")
	}
}

// TestLogBegunAgain: a log of a new member next to a database or snapshots of an old one.
func TestLogBegunAgain(t *testing.T) {
	voters := func(n uint64) (conf []evidence.ConfEntry) {
		for i := range n {
			conf = append(conf, evidence.ConfEntry{Term: 1, Index: i + 1,
				Change: dumplog.ConfChange{Type: dumplog.ConfChangeAddNode, NodeID: dumplog.ID(i + 1)}})
		}
		return conf
	}
	for name, c := range map[string]struct {
		change func(m *evidence.Member)
		want   string
	}{
		"older database":  {func(*evidence.Member) {}, "40"},
		"at its end":      {func(m *evidence.Member) { *m.DB.Meta.ConsistentIndex = 3 }, ""},
		"no log":          {func(m *evidence.Member) { m.WAL.Log = nil }, ""},
		"damaged log":     {func(m *evidence.Member) { m.WAL.Summary.Damage = make([]*dumplog.DamageError, 1) }, ""},
		"a restore":       {func(m *evidence.Member) { m.WAL.Summary.Start = dumplog.StartRestore }, ""},
		"a purged log":    {func(m *evidence.Member) { m.WAL.Summary.Start = dumplog.StartPurged }, ""},
		"no segment":      {func(m *evidence.Member) { m.WAL.Summary.Segments = nil }, ""},
		"a later segment": {func(m *evidence.Member) { m.WAL.Summary.Segments[0].Seq = 1 }, ""},
		"it has more":     {func(m *evidence.Member) { m.WAL.Summary.LastIndex = 4 }, ""},
		"more, with jumps": {func(m *evidence.Member) {
			m.WAL.Summary.LastIndex = 30
			m.WAL.Summary.Jumps = []dumplog.Jump{{From: 4, To: 29}}
		},
			"40"},
		"snapshots only": {func(m *evidence.Member) {
			m.DB = nil
			m.Snap.Files = []*dumplog.SnapFile{{File: "s", Term: 2, Index: 39}}
		}, "a snapshot at 2/39 that the log does not know"},
	} {
		m := withDB(withLog(withSnapDir(t, "n1"), 3), 40)
		m.WAL.Conf, m.WAL.Summary.Start = voters(3), dumplog.StartBootstrap
		m.WAL.Summary.Segments = make([]dumplog.Segment, 1)
		c.change(m)
		got := ""
		if f := walBegunAnew(m); f != nil {
			got = f.Evidence[0].Observed
			if f.At.Index != m.WAL.Summary.LastIndex+1 || f.Kind != KindLogRemoved {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestDatabaseAbsent: a database that is not there was removed if the snapshot files are.
func TestDatabaseAbsent(t *testing.T) {
	build := func() *evidence.Member {
		m := addSnap(withLog(withSnapDir(t, "n1"), 90), 40, nil)
		m.DB, m.Source.Missing = nil, []string{"member/snap/db"}
		return m
	}
	if f := databaseRemoved(build()); f == nil || f.Evidence[0].Observed != "absent, next to snapshot files" {
		t.Errorf("%+v", f)
	}
	for name, change := range map[string]func(m *evidence.Member){
		"no files":           func(m *evidence.Member) { m.Snap.Files = nil },
		"nothing is missing": func(m *evidence.Member) { m.Source.Missing = nil },
		"the log is missing": func(m *evidence.Member) { m.Source.Missing = []string{"member/wal"} },
		"a log without one":  func(m *evidence.Member) { m.WAL.Summary.Snapshots = nil },
	} {
		m := build()
		if change(m); databaseRemoved(m) != nil {
			t.Errorf("%s: a finding", name)
		}
	}
}

// TestSnapFileGone: the file of the newest raft snapshot is needed by releases that read it.
func TestSnapFileGone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *evidence.Member)
		want   string
	}{
		"gone":              {func(*evidence.Member) {}, "warning an older one or the whole log serves instead"},
		"3.7 needs none":    {func(m *evidence.Member) { m.Version.Minor = 7 }, ""},
		"no log":            {func(m *evidence.Member) { m.WAL.Log = nil }, ""},
		"no snapshot":       {func(m *evidence.Member) { m.WAL.Summary.Snapshots = nil }, ""},
		"there":             {func(m *evidence.Member) { m.Snap.Files = []*dumplog.SnapFile{{Index: 40}} }, ""},
		"there by its name": {func(m *evidence.Member) { m.Snap.Files = []*dumplog.SnapFile{{NameIndex: 40}} }, ""},
		"a newer one":       {func(m *evidence.Member) { m.Snap.Files = []*dumplog.SnapFile{{Index: 91}} }, ""},
		"one within the log": {func(m *evidence.Member) { m.Snap.Files = []*dumplog.SnapFile{{Index: 90}} },
			"warning an older one"},
		"a newer damaged one": {func(m *evidence.Member) {
			m.Snap.Files = []*dumplog.SnapFile{{Index: 91, Damage: &dumplog.DamageError{}}}
		}, "warning an older one"},
		"within a damaged log": {func(m *evidence.Member) {
			m.Snap.Files, m.WAL.Summary.Damage = []*dumplog.SnapFile{{Index: 90}}, []*dumplog.DamageError{{}}
		}, ""},
		"within a log whose end its HardState is beyond": {func(m *evidence.Member) {
			m.Snap.Files, m.WAL.Summary.MaxCommit = []*dumplog.SnapFile{{Index: 90}}, 91
		}, ""},
		"within a log whose end its HardState names": {func(m *evidence.Member) {
			m.Snap.Files, m.WAL.Summary.MaxCommit = []*dumplog.SnapFile{{Index: 90}}, 90
		}, "warning an older one"},
		"within a log whose end its database is beyond": {func(m *evidence.Member) {
			m.Snap.Files = []*dumplog.SnapFile{{Index: 90}}
			withDB(m, 91)
		}, ""},
		"a purged log": {func(m *evidence.Member) { m.WAL.Summary.FirstIndex = 30 },
			"error the log begins at index 30 and no usable snapshot file reaches it"},
		"purged up to an older file": {func(m *evidence.Member) {
			addSnap(m, 29, nil)
			m.WAL.Summary.FirstIndex = 30
		}, "warning an older one"},
		"purged beyond it": {func(m *evidence.Member) {
			addSnap(m, 28, nil)
			m.WAL.Summary.FirstIndex = 30
		}, "error the log begins at index 30"},
		"a received one": {func(m *evidence.Member) { m.WAL.Summary.Jumps = []dumplog.Jump{{From: 20, To: 40}} },
			"error a snapshot was received from another member"},
		"segments of another member": {func(m *evidence.Member) {
			m.WAL.Summary.FirstIndex, m.WAL.Summary.Damage = 30, []*dumplog.DamageError{{Kind: dumplog.DamageMixed}}
		}, ""},
		"received before an older file": {func(m *evidence.Member) {
			addSnap(m, 29, nil)
			m.WAL.Summary.Jumps = []dumplog.Jump{{From: 20, To: 29}}
		}, "warning an older one"},
	} {
		m := withLog(withSnapDir(t, "n1"), 90)
		m.Version.Minor = 4
		m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Term: 2, Index: 40}}
		c.change(m)
		got := ""
		if f := snapFilesRemoved(m); f != nil {
			got = string(f.Severity) + " " + f.Explanation
			if (f.Severity == Error) != (f.At.Index == 40 && f.Class == ClassSnapshotDamage) {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if snapFilesRemoved(addSnap(withLog(member("n1"), 90), 40, nil)) != nil {
		t.Error("no snap folder")
	}
}

// TestSnapGaps: what is between the database and the newest raft snapshot.
func TestSnapGaps(t *testing.T) {
	harmless := func(change func(b *replay.Behind)) func(*evidence.Member, *replay.MemberResult) {
		return func(_ *evidence.Member, r *replay.MemberResult) {
			r.Behind = &replay.Behind{From: 31, To: 40, Entries: 10}
			change(r.Behind)
		}
	}
	jump := func(last uint64) func(*evidence.Member, *replay.MemberResult) {
		return func(m *evidence.Member, _ *replay.MemberResult) {
			s := &m.WAL.Summary
			s.LastIndex, s.Jumps = last, []dumplog.Jump{{From: 31, To: 40}}
			s.Terms = []dumplog.TermRange{{Term: 2, First: 1, Last: 30}, {Term: 3, First: 41, Last: last}}
		}
	}
	for name, c := range map[string]struct {
		change func(m *evidence.Member, r *replay.MemberResult)
		want   Kind
	}{
		"refused":       {harmless(func(b *replay.Behind) { b.Refused = 1 }), KindGapRefused},
		"queries":       {harmless(func(b *replay.Behind) { b.AlarmQueries = 1 }), KindGapAlarmQueries},
		"raises":        {harmless(func(b *replay.Behind) { b.AlarmRaises = 1 }), KindGapAlarmRaises},
		"refused first": {harmless(func(b *replay.Behind) { b.Refused, b.AlarmQueries = 1, 1 }), KindGapRefused},
		"reads":         {harmless(func(b *replay.Behind) { b.Idle = 1 }), KindGapOther},
		"one missing": {harmless(func(b *replay.Behind) {
			b.Refused, b.AlarmQueries, b.AlarmRaises, b.Entries = 1, 1, 1, 9
		}), KindGapOther},
		"an effect": {harmless(func(b *replay.Behind) {
			b.Refused, b.AlarmQueries, b.AlarmRaises, b.Effective = 1, 1, 1, 1
		}), KindGapOther},
		"ahead": {func(_ *evidence.Member, r *replay.MemberResult) { r.Checked, r.Ahead = true, &replay.Stretch{} },
			KindGapOverwritten},
		"ahead, not replayed": {func(_ *evidence.Member, r *replay.MemberResult) { r.Ahead = &replay.Stretch{} },
			KindGapOther},
		"more records": {func(_ *evidence.Member, r *replay.MemberResult) { r.Checked, r.Extra = true, []int64{4} },
			KindGapOther},
		"more records, received": {func(m *evidence.Member, r *replay.MemberResult) {
			jump(60)(m, r)
			r.Checked, r.Extra = true, []int64{4}
		}, KindGapOverwritten},
		"received":             {jump(56), KindGapNotInstalled},
		"received, it went on": {jump(57), KindGapOther},
		"received, older database": {func(m *evidence.Member, r *replay.MemberResult) {
			jump(56)(m, r)
			*m.DB.Meta.ConsistentIndex = 29
		}, KindGapOther},
		"received, committed less": {func(m *evidence.Member, r *replay.MemberResult) {
			jump(56)(m, r)
			*m.DB.Meta.ConsistentIndex = 25
		}, KindGapNotInstalled},
		"older, as the index of 3.4 is": {func(m *evidence.Member, r *replay.MemberResult) {
			jump(56)(m, r)
			*m.DB.Meta.ConsistentIndex, m.Version.Minor = 20, 4
		}, KindGapNotInstalled},
	} {
		m, r := withDB(withLog(member("n1"), 60), 30), &replay.MemberResult{}
		r.Member, m.Version.Minor = m, 5
		m.WAL.Summary.Terms = []dumplog.TermRange{{Term: 2, First: 1, Last: 60}}
		snap := dumplog.SnapshotRecord{Index: 40, Commit: 30}
		if strings.HasSuffix(name, "committed less") {
			snap.Commit = 25
		}
		c.change(m, r)
		rp := &replay.Result{Members: []*replay.MemberResult{{Member: member("n0")}, r}, Survey: &replay.Survey{}}
		f := Finding{Evidence: make([]Evidence, 1)}
		judgeGap(rp, &f, m, snap)
		classes := map[Kind]Class{KindGapRefused: ClassLatentDivergence, KindGapAlarmQueries: ClassLatentDivergence,
			KindGapAlarmRaises: ClassLatentDivergence, KindGapOverwritten: ClassLatentDivergence,
			KindGapNotInstalled: ClassSnapshotDamage, KindGapOther: ClassMemberLostData}
		if f.Kind != c.want || f.Class != classes[c.want] || f.Evidence[0].Field != gapFields[c.want] ||
			f.Explanation == "" {
			t.Errorf("%s: %+v, want %s", name, f, c.want)
		}
	}
	m := withDB(withLog(member("n1"), 60), 30)
	if got := snapGap(nil, m, dumplog.SnapshotRecord{Index: 40}); got != KindGapOther {
		t.Errorf("without a replay: %s", got)
	}
}

// TestPurgedLogs: a server starts on a purged log only if a segment's name and content reach back to a snapshot.
func TestPurgedLogs(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *evidence.Member)
		want   Kind
	}{
		"sound":      {func(*evidence.Member) {}, ""},
		"3.4, sound": {func(m *evidence.Member) { m.Version.Minor = 4 }, KindLogPurgedAndSound},
		"3.4, damaged": {func(m *evidence.Member) {
			m.Version.Minor, m.WAL.Summary.Damage = 4, make([]*dumplog.DamageError, 1)
		}, ""},
		"entries are missing": {func(m *evidence.Member) { m.WAL.Summary.FirstIndex = 42 }, KindLogPurged},
		"not one is missing":  {func(m *evidence.Member) { m.WAL.Summary.FirstIndex = 41 }, ""},
		"no entry":            {func(m *evidence.Member) { m.WAL.Summary.FirstIndex = 0 }, ""},
		"a name above": {func(m *evidence.Member) { m.WAL.Summary.Segments[0].First = 41 },
			KindFirstSegmentMisnamed},
		"an older snapshot more": {func(m *evidence.Member) {
			m.WAL.Summary.Snapshots = append(m.WAL.Summary.Snapshots, dumplog.SnapshotRecord{Index: 20})
		},
			""},
		"not purged": {func(m *evidence.Member) {
			m.WAL.Summary.FirstIndex, m.WAL.Summary.Start = 42, dumplog.StartBootstrap
		}, ""},
		"no log": {func(m *evidence.Member) { m.WAL.Summary.FirstIndex, m.WAL.Log = 42, nil }, ""},
	} {
		m := withDB(withLog(member("n1"), 90), 41)
		m.Version.Minor, m.WAL.Summary.FirstIndex, m.WAL.Summary.Start = 6, 40, dumplog.StartPurged
		m.WAL.Summary.Segments = []dumplog.Segment{{Name: "a.wal", Seq: 3, First: 40}}
		m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: 40}}
		c.change(m)
		r := runLogReachesBack(&Input{Members: Sources{m}})
		got := Kind("")
		if len(r.Findings) > 0 {
			got = r.Findings[0].Kind
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	m := withDB(withLog(member("n1"), 90), 41)
	m.WAL.Summary.FirstIndex, m.WAL.Summary.Segments = 43, []dumplog.Segment{{Name: "a.wal", Seq: 3}}
	m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: 40}}
	for index, covers := range map[uint64]bool{41: false, 42: true} {
		*m.DB.Meta.ConsistentIndex = index
		f := purgedFinding(m)
		if strings.Contains(f.Explanation, "covers the gap") != covers || f.At.Index != 41 ||
			!strings.Contains(f.Explanation, "entries 41..42 are") ||
			f.Evidence[0].Expected != "an entry at or below 41" {
			t.Errorf("index %d: %+v", index, f)
		}
	}
}

// TestRecordSizes: some releases refuse to read a record of 10 MiB.
func TestRecordSizes(t *testing.T) {
	for size, want := range map[int64]int{walRecordLimit - 1: 0, walRecordLimit: 1} {
		m := withLog(member("n1"), 9)
		m.WAL.Summary.LargestRecord = size
		if r := runRecordsReadable(&Input{Members: Sources{m, member("n2")}}); len(r.Findings) != want {
			t.Errorf("%d bytes: %+v", size, r)
		}
	}
}
