package check_test

import (
	"fmt"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// dropEntries takes entries out of a log and renumbers those that follow.
func dropEntries(t *testing.T, dir string, from, n uint64) {
	t.Helper()
	dropped := uint64(0)
	casetest.RewriteLog(t, dir, func(rec *walpb.Record) {
		var e raftpb.Entry
		if rec.Type != 2 || e.Unmarshal(rec.Data) != nil || e.Index < from {
			return
		}
		if e.Index < from+n {
			dropped++
			rec.Type = casetest.LeftOut
			return
		}
		e.Index -= n
		rec.Data, _ = e.Marshal()
	})
	if dropped != n {
		t.Fatalf("%d entries dropped, want %d", dropped, n)
	}
}

// repeatEntry adds an entry a second time and renumbers those that follow. The database and the HardStates stay.
func repeatEntry(t *testing.T, dir string, index uint64) {
	t.Helper()
	var last []byte
	casetest.RewriteLog(t, dir, func(rec *walpb.Record) {
		var e raftpb.Entry
		if rec.Type != 2 || e.Unmarshal(rec.Data) != nil || e.Index < index {
			return
		}
		own := e.Data
		if e.Index > index {
			e.Data = last
		}
		last = own
		rec.Data, _ = e.Marshal()
	})
	if last == nil {
		t.Fatalf("no entry %d", index)
	}
}

// TestRequestTwice: where every log at hand holds a request twice, each one shows it alone, and it does not make the
// databases wrong.
func TestRequestTwice(t *testing.T) {
	s := sound()
	for name, n := range map[string]int{"the only log": 1, "both logs": 2} {
		t.Run(name, func(t *testing.T) {
			dirs := s.Write(t, t.TempDir())[:n]
			for _, d := range dirs {
				repeatEntry(t, d, 40)
			}
			in := dirInput(t, dirs...)
			fs := run(t, in, "R08").Findings
			if len(fs) != n {
				t.Fatalf("%+v", fs)
			}
			for i, f := range fs {
				if f.Class != "wal-damage" || f.At.Index != 41 || f.Kind != check.KindRequestRepeated ||
					f.Evidence[0].Offset == nil || f.Members[0] != fmt.Sprint("node", i+1) ||
					f.Title != f.Members[0]+": entry 41 was added to the log, and the later ones are renumbered" {
					t.Errorf("%+v", f)
				}
			}
			for _, id := range []string{"K03", "C03", "C04", "R04"} {
				wantOutcome(t, in, id, check.Holds)
			}
		})
	}
}

// TestEntriesMissing: a log that lacks entries and holds the later ones under lower indexes is the one that was
// altered, however many such logs there are, and says nothing about what the databases of the others lack.
func TestEntriesMissing(t *testing.T) {
	s := sound()
	last := uint64(s.Members + len(s.Starts) + s.Entries)
	for name, c := range map[string]struct {
		from, n uint64
		of      []int
		want    []string
		title   string
	}{
		"one":                    {40, 1, []int{1}, []string{"node2"}, "entry 40 is missing in the log"},
		"several":                {40, 3, []int{1}, []string{"node2"}, "entries 40..42 are missing in the log"},
		"of most logs":           {40, 1, []int{0, 2}, []string{"node1", "node3"}, "entry 40 is missing in the log"},
		"shortly before the end": {last - 3, 1, []int{1}, []string{"node2"}, "is missing in the log"},
	} {
		t.Run(name, func(t *testing.T) {
			dirs := s.Write(t, t.TempDir())
			for _, i := range c.of {
				dropEntries(t, dirs[i], c.from, c.n)
			}
			in := dirInput(t, dirs...)
			f := wantFinding(t, in, "R01", c.want, c.title, "ends before what the member has committed or applied")
			if f.Class != "wal-damage" || f.At.Index != c.from || f.Kind != check.KindEntriesRenumbered {
				t.Errorf("%s at %d, %s", f.Class, f.At.Index, f.Kind)
			}
			for _, id := range []string{"R05", "K06", "L03"} {
				wantOutcome(t, in, id, check.Holds)
			}
			for i, m := range in.Replay.Members {
				if m.Lacks > 0 {
					t.Errorf("node%d is said to lack %d entries", i+1, m.Lacks)
				}
			}
		})
	}
}

// TestEntriesMissingBeforeUncommitted: the log of one of two members lacks an entry, and does not end before what the
// member has applied. The databases show which log was altered.
func TestEntriesMissingBeforeUncommitted(t *testing.T) {
	var dirs []string
	for i, id := range []uint64{0xa1, 0xa2} {
		h := clustertest.NewHand(t, t.TempDir(), fmt.Sprintf("node%d", i+1), id, 0xc1)
		h.Found(false, 0xa1, 0xa2)
		h.Request(2, 3, nil)
		for n := uint64(4); n <= 20; n++ {
			h.Put(2, n, clustertest.RequestID(0xa1, 1763000000000, n), fmt.Sprintf("k%d", n), "v", true)
		}
		h.State(2, 0xa1, 19)
		h.Put(2, 21, clustertest.RequestID(0xa1, 1763000000000, 21), "k21", "v", false)
		h.Member(0xa1, false, true)
		h.Member(0xa2, false, true)
		dirs = append(dirs, h.Close(20, 2))
	}
	dropEntries(t, dirs[1], 12, 1)
	in := dirInput(t, dirs...)
	wantFinding(t, in, "R01", []string{"node2"}, "entry 12 is missing in the log", "The databases agree with the other log")
	for i, m := range in.Replay.Members {
		if m.Lacks > 0 {
			t.Errorf("node%d is said to lack %d entries", i+1, m.Lacks)
		}
	}
}

// TestEntriesMissingBeforeSnapshot: the member's own snapshot after the missing entry is beyond the entries before it.
// It is not taken for one that the member received, in whose place entries were dropped, with or without the
// configuration that records have from 3.5 on.
func TestEntriesMissingBeforeSnapshot(t *testing.T) {
	for name, conf := range map[string]bool{"3.4": false, "3.5": true} {
		var dirs []string
		for i, id := range []uint64{0xa1, 0xa2} {
			h := clustertest.NewHand(t, t.TempDir(), fmt.Sprintf("node%d", i+1), id, 0xc1)
			h.Found(false, 0xa1, 0xa2)
			h.Request(2, 3, nil)
			for n := uint64(4); n <= 20; n++ {
				h.Put(2, n, clustertest.RequestID(0xa1, 1763000000000, n), fmt.Sprintf("k%d", n), "v", true)
				h.State(2, 0xa1, n)
			}
			h.Snapshot(2, 20, 0xa1, 0xa2)
			for n := uint64(21); n <= 24; n++ {
				h.Put(2, n, clustertest.RequestID(0xa1, 1763000000000, n), fmt.Sprintf("k%d", n), "v", true)
				h.State(2, 0xa1, n)
			}
			h.Member(0xa1, false, true)
			h.Member(0xa2, false, true)
			dirs = append(dirs, h.Close(24, 2))
		}
		dropEntries(t, dirs[1], 12, 1)
		if !conf {
			for _, d := range dirs {
				alterSnapshot(t, d, 20, func(s *walpb.Snapshot) { s.ConfState = nil })
			}
		}
		in := dirInput(t, dirs...)
		f := wantFinding(t, in, "R01", []string{"node2"}, "entry 12 is missing in the log")
		if f.Kind != check.KindEntriesRenumbered || f.At.Index != 12 {
			t.Errorf("%s: %s at %d", name, f.Kind, f.At.Index)
		}
		for _, id := range []string{"R05", "K06"} {
			wantOutcome(t, in, id, check.Holds)
		}
		for i, m := range in.Replay.Members {
			if m.Lacks > 0 {
				t.Errorf("%s: node%d is said to lack %d entries", name, i+1, m.Lacks)
			}
		}
	}
}

// TestEntriesMissingAtTheEnd: with one entry behind it nothing tells a missing entry from two leaders.
func TestEntriesMissingAtTheEnd(t *testing.T) {
	s := sound()
	last := uint64(s.Members + len(s.Starts) + s.Entries)
	dirs := s.Write(t, t.TempDir())
	dropEntries(t, dirs[1], last-1, 1)
	if r := dirInput(t, dirs...).Replay; len(r.Shifts) > 0 {
		t.Errorf("%+v, want none", r.Shifts[0])
	}
}

// addEntry puts an entry into a log before the one at an index, and renumbers those from there on: the one before it
// once more, or another one.
func addEntry(t *testing.T, dir string, at uint64, other []byte) {
	t.Helper()
	var before raftpb.Entry
	added := false
	casetest.RewriteLogMore(t, dir, func(rec *walpb.Record) (more []walpb.Record) {
		var e raftpb.Entry
		if rec.Type != 2 || e.Unmarshal(rec.Data) != nil {
			return nil
		}
		if e.Index == at {
			twice := raftpb.Entry{Term: e.Term, Index: at, Data: before.Data}
			if other != nil {
				twice.Data = other
			}
			data, _ := twice.Marshal()
			more, added = []walpb.Record{{Type: 2, Data: data}}, true
		}
		before = e
		if e.Index >= at {
			e.Index++
			rec.Data, _ = e.Marshal()
		}
		return more
	})
	if !added {
		t.Fatal("no entry added")
	}
}

// TestEntriesAdded: a log that holds an entry twice, or one that most logs lack, is the one that was altered.
func TestEntriesAdded(t *testing.T) {
	other, err := clustertest.PutRequest("forged", "v", 0).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		other   []byte
		sources []int
	}{
		"twice":                 {nil, []int{0, 1, 2}},
		"twice, a pair":         {nil, []int{0, 1}},
		"another one":           {other, []int{0, 1, 2}},
		"another one in a pair": {other, []int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			all := sound().Write(t, t.TempDir())
			addEntry(t, all[1], 40, c.other)
			var dirs []string
			for _, i := range c.sources {
				dirs = append(dirs, all[i])
			}
			in := dirInput(t, dirs...)
			f := wantFinding(t, in, "R01", []string{"node2"}, "entry 40 was added to the log")
			if f.Class != "wal-damage" || f.At.Index != 40 || f.Kind != check.KindEntriesRenumbered {
				t.Errorf("%s at %d, %s", f.Class, f.At.Index, f.Kind)
			}
			for _, id := range []string{"R05", "K06", "L03"} {
				wantOutcome(t, in, id, check.Holds)
			}
			for i, m := range in.Replay.Members {
				if m.Lacks > 0 {
					t.Errorf("node%d is said to lack %d entries", i+1, m.Lacks)
				}
			}
		})
	}
}

// TestTwoEntriesAdded: one finding names all entries that were added to a log.
func TestTwoEntriesAdded(t *testing.T) {
	dirs := sound().Write(t, t.TempDir())
	for _, key := range []string{"forged", "forged too"} {
		other, err := clustertest.PutRequest(key, "v", 0).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		addEntry(t, dirs[1], 40, other)
	}
	wantFinding(t, dirInput(t, dirs...), "R01", []string{"node2"}, "entries 40..41 were added to the log")
}
