package check_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// alterPut changes the last byte of the value of the puts at these indexes.
func alterPut(t *testing.T, dir string, indexes ...uint64) {
	t.Helper()
	done := 0
	casetest.RewriteLog(t, dir, func(rec *walpb.Record) {
		var e raftpb.Entry
		if rec.Type != 2 || e.Unmarshal(rec.Data) != nil {
			return
		}
		for _, i := range indexes {
			var r etcdserverpb.InternalRaftRequest
			if e.Index != i || r.Unmarshal(e.Data) != nil || r.Put == nil {
				continue
			}
			done++
			r.Put.Value = bytes.Clone(r.Put.Value)
			r.Put.Value[len(r.Put.Value)-1] ^= 1
			e.Data, _ = r.Marshal()
			rec.Data, _ = e.Marshal()
		}
	})
	if done != len(indexes) {
		t.Fatalf("%d entries altered, want %d", done, len(indexes))
	}
}

// TestEntryEmptied: an entry without content, in the term of the entry before, is no sign of a second leader.
func TestEntryEmptied(t *testing.T) {
	s := sound()
	last := uint64(s.Members + len(s.Starts) + s.Entries)
	for name, index := range map[string]uint64{"the last": last, "in the middle": 40} {
		t.Run(name, func(t *testing.T) { emptyEntry(t, s.Write(t, t.TempDir()), index) })
	}
}

func emptyEntry(t *testing.T, dirs []string, index uint64) {
	t.Helper()
	casetest.RewriteLog(t, dirs[1], func(rec *walpb.Record) {
		var e raftpb.Entry
		if rec.Type != 2 || e.Unmarshal(rec.Data) != nil || e.Index != index {
			return
		}
		e.Data = nil
		rec.Data, _ = e.Marshal()
	})
	in := dirInput(t, dirs[:2]...)
	f := wantFinding(t, in, "R01", []string{"node2"}, "altered in the log", "atabase does not hold")
	if f.Class != "wal-damage" || f.At.Index != index || f.Kind != check.KindEntriesAltered {
		t.Errorf("%s at %d, %s", f.Class, f.At.Index, f.Kind)
	}
	wantOutcome(t, in, "R05", check.Holds)
}

func TestOneEntryAltered(t *testing.T) {
	s := sound()
	last := uint64(s.Members + len(s.Starts) + s.Entries)
	for name, indexes := range map[string][]uint64{"in the middle": {40}, "two in a row": {40, 41},
		"the last": {last}} {
		t.Run(name, func(t *testing.T) {
			dirs := s.Write(t, t.TempDir())
			alterPut(t, dirs[1], indexes...)
			in := dirInput(t, dirs...)
			f := wantFinding(t, in, "R01", []string{"node2"}, "altered in the log", "2 of 3 logs agree")
			if f.Class != "wal-damage" || f.At.Index != indexes[0] || f.Kind != check.KindEntriesAltered {
				t.Errorf("%s at %d, %s", f.Class, f.At.Index, f.Kind)
			}
			wantAlteredFirst(t, f, "node2")
			wantOutcome(t, in, "R05", check.Holds)

			slices.Reverse(dirs)
			wantAlteredFirst(t, wantFinding(t, dirInput(t, dirs...), "R01", []string{"node2"}, ""), "node2")
		})
	}
}

// wantAlteredFirst: the evidence begins with the altered log, at its place there, and expects what the others hold.
func wantAlteredFirst(t *testing.T, f check.Finding, member string) {
	t.Helper()
	e := f.Evidence[0]
	last := f.Evidence[len(f.Evidence)-1]
	if e.Member != member || e.Offset == nil || e.Expected == e.Observed || last.Member == member ||
		last.Expected != last.Observed {
		t.Errorf("%+v ... %+v", e, last)
	}
}

// Of two logs the one is altered whose database holds another effect; where the databases do not tell, neither is
// accused alone.
func TestOneEntryAlteredOfTwoLogs(t *testing.T) {
	s := sound()
	dirs := s.Write(t, t.TempDir())[:2]
	alterPut(t, dirs[1], 40)
	wantFinding(t, dirInput(t, dirs...), "R01", []string{"node2"}, "does not hold what the altered entry")
	for _, d := range dirs {
		truncate(t, dbOf(d), 0)
	}
	f := wantFinding(t, dirInput(t, dirs...), "R01", []string{"node1", "node2"}, "the sources do not tell")
	if f.Class != "wal-damage" {
		t.Errorf("class %s", f.Class)
	}
}

// A member whose log holds an empty entry, and whose database the effect of the entry in another log, lacks nothing,
// whoever proposed it, and nor does the other member.
func TestOneEntryEmptiedOfTwoLogs(t *testing.T) {
	for index := uint64(40); index < 44; index++ {
		dirs := sound().Write(t, t.TempDir())[:2]
		casetest.RewriteLog(t, dirs[1], func(rec *walpb.Record) {
			var e raftpb.Entry
			if rec.Type == 2 && e.Unmarshal(rec.Data) == nil && e.Index == index {
				e.Data = nil
				rec.Data, _ = e.Marshal()
			}
		})
		for _, order := range [][]string{dirs, {dirs[1], dirs[0]}} {
			in := dirInput(t, order...)
			wantFinding(t, in, "R01", []string{"node2"}, "does not hold what the altered entry")
			for i, m := range in.Replay.Members {
				if m.Lacks > 0 || len(m.Extra) > 0 {
					t.Errorf("entry %d, %s: lacks %d, extra %d", index, in.Members[i].Label(), m.Lacks, m.Extra)
				}
			}
		}
	}
}

// Of two logs of which one has two entries exchanged, that one is named at both, and no member lacks
// anything.
func TestEntriesExchangedOfTwoLogs(t *testing.T) {
	for _, c := range [][2]uint64{{40, 42}, {40, 43}, {41, 44}, {42, 47}} {
		dirs := sound().Write(t, t.TempDir())[:2]
		exchangeEntries(t, dirs[1], c[0], c[1])
		for _, order := range [][]string{dirs, {dirs[1], dirs[0]}} {
			in := dirInput(t, order...)
			for _, f := range run(t, in, "R01").Findings {
				if len(f.Members) != 1 || f.Members[0] != "node2" {
					t.Errorf("%d: %v %s", c, f.Members, f.Title)
				}
			}
			for i, m := range in.Replay.Members {
				if m.Lacks > 0 {
					t.Errorf("%d: %s lacks %d", c, in.Members[i].Label(), m.Lacks)
				}
			}
		}
	}
}

// TestLastEntriesExchanged: the last entries of one log, exchanged, are the requests of one leader, also where no third
// log has them.
func TestLastEntriesExchanged(t *testing.T) {
	s := sound()
	last := uint64(s.Members + len(s.Starts) + s.Entries)
	for _, c := range [][2]uint64{{last - 1, last}, {last - 2, last}} {
		dirs := s.Write(t, t.TempDir())[:2]
		exchangeEntries(t, dirs[1], c[0], c[1])
		for _, order := range [][]string{dirs, {dirs[1], dirs[0]}} {
			in := dirInput(t, order...)
			for _, f := range run(t, in, "R01").Findings {
				if f.Kind != check.KindEntriesAltered || !slices.Equal(f.Members, []string{"node2"}) {
					t.Errorf("%d: %s %v %s", c, f.Kind, f.Members, f.Title)
				}
			}
			wantOutcome(t, in, "R01", check.Violated)
			wantOutcome(t, in, "R05", check.Holds)
		}
	}
}

// TestExchangedWithAnEntryOfOneLog: an entry that one log alone holds was exchanged with one that the others hold too.
// The log is named, and no member lacks anything: the databases hold what the entries wrote before.
func TestExchangedWithAnEntryOfOneLog(t *testing.T) {
	for _, members := range []int{2, 3} {
		for _, apart := range []int{2, 5} {
			s := clustertest.NewScript("3.5.0")
			s.Of = map[int]clustertest.ScriptMember{1: {KeepsLog: true}}
			put := func(key, value string) int {
				return s.Add(clustertest.Step{Req: clustertest.PutRequest(key, value, 0)})
			}
			for i := range 20 {
				put(fmt.Sprint("k", i%4), fmt.Sprint("before ", i))
			}
			first := put("a", "the first")
			s.Purged = first
			last := first
			for i := range apart {
				last = put(fmt.Sprint("b", i), "after")
			}
			for i := range 5 {
				put(fmt.Sprint("k", i%4), fmt.Sprint("after ", i))
			}
			dirs := s.Write(t, t.TempDir())[:members]
			exchangeEntries(t, dirs[1], s.Index(first), s.Index(last))
			in := dirInput(t, dirs...)
			wantFinding(t, in, "R01", []string{"node2"}, "was altered in the log")
			for i, m := range in.Replay.Members {
				if m.Lacks > 0 || len(m.Extra) > 0 {
					t.Errorf("%d members, %d apart: %s lacks %d, extra %d", members, apart,
						in.Members[i].Label(), m.Lacks, m.Extra)
				}
			}
			for _, f := range run(t, in, "K03").Findings {
				if f.At.Index == s.Index(last) && !slices.Equal(f.Members, []string{"node2"}) {
					t.Errorf("%d members, %d apart: %v %s", members, apart, f.Members, f.Title)
				}
			}
		}
	}
}

func exchangeEntries(t *testing.T, dir string, a, b uint64) {
	t.Helper()
	data := map[uint64][]byte{}
	each := func(edit func(e *raftpb.Entry)) {
		casetest.RewriteLog(t, dir, func(rec *walpb.Record) {
			var e raftpb.Entry
			if rec.Type == 2 && e.Unmarshal(rec.Data) == nil && (e.Index == a || e.Index == b) {
				edit(&e)
				rec.Data, _ = e.Marshal()
			}
		})
	}
	each(func(e *raftpb.Entry) { data[a+b-e.Index] = e.Data })
	each(func(e *raftpb.Entry) { e.Data = data[e.Index] })
}

// Logs that go on to differ were written under two leaders.
func TestLogsThatGoOnToDiffer(t *testing.T) {
	s := sound()
	dirs := s.Write(t, t.TempDir())
	last := uint64(s.Members + len(s.Starts) + s.Entries)
	alterPut(t, dirs[1], last-2, last-1, last)
	in := dirInput(t, dirs...)
	wantFinding(t, in, "R01", []string{"node1", "node2", "node3"}, "committed log entries differ")
	wantFinding(t, in, "R05", []string{"node1", "node2", "node3"}, "differs between logs in one term")
}

// Entries that differ only in what a description leaves out are distinguished: each member's evidence shows its own.
func TestEntriesThatReadTheSame(t *testing.T) {
	s := sound()
	last := uint64(s.Members + len(s.Starts) + s.Entries)
	for name, change := range map[string]func(r etcdserverpb.InternalRaftRequest) []byte{
		"request=": func(r etcdserverpb.InternalRaftRequest) []byte {
			r.Header.ID++
			b, _ := r.Marshal()
			return b
		},
		"entry=<": func(r etcdserverpb.InternalRaftRequest) []byte { // the same fields in another order
			head, put := etcdserverpb.InternalRaftRequest{Header: r.Header}, r
			put.Header = nil
			a, _ := head.Marshal()
			b, _ := put.Marshal()
			return append(a, b...)
		},
	} {
		dirs := s.Write(t, t.TempDir())
		casetest.RewriteLog(t, dirs[1], func(rec *walpb.Record) {
			var e raftpb.Entry
			var r etcdserverpb.InternalRaftRequest
			if rec.Type == 2 && e.Unmarshal(rec.Data) == nil && e.Index > last-3 && r.Unmarshal(e.Data) == nil &&
				r.Put != nil {
				e.Data = change(r)
				rec.Data, _ = e.Marshal()
			}
		})
		f := wantFinding(t, dirInput(t, dirs...), "R01", []string{"node1", "node2", "node3"}, "log entries differ")
		seen := map[string]string{}
		for _, e := range f.Evidence {
			if e.Field == f.Evidence[0].Field {
				seen[e.Member] = e.Observed
			}
		}
		if !strings.Contains(seen["node1"], name) || seen["node1"] == seen["node2"] || seen["node1"] != seen["node3"] {
			t.Errorf("%s: %q", name, seen)
		}
	}
}

// A member that applied the altered entry holds other data than the others.
func TestOneEntryAlteredBeforeItWasApplied(t *testing.T) {
	const index, revision = 40, 35
	dirs := sound().Write(t, t.TempDir())
	alterPut(t, dirs[1], index)
	db, err := bbolt.Open(dbOf(dirs[1]), 0o600,
		&bbolt.Options{NoSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error {
		key := binary.BigEndian.AppendUint64(append(binary.BigEndian.AppendUint64(nil, revision), '_'), 0)
		var kv mvccpb.KeyValue
		if err := kv.Unmarshal(tx.Bucket([]byte("key")).Get(key)); err != nil {
			return err
		}
		kv.Value[len(kv.Value)-1] ^= 1
		data, err := kv.Marshal()
		if err != nil {
			return err
		}
		return tx.Bucket([]byte("key")).Put(key, data)
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	f := wantFinding(t, dirInput(t, dirs...), "R01", []string{"node2"}, "before it was applied", "2 of 3 logs agree")
	if f.Class != "data-divergence" {
		t.Errorf("class %s", f.Class)
	}
}

// An entry whose term was altered is told by its own log and by its neighbours, not as a term with two leaders.
func TestTermOfOneEntryAltered(t *testing.T) {
	for _, term := range []uint64{1, 7} {
		dirs := sound().Write(t, t.TempDir())
		casetest.RewriteLog(t, dirs[1], func(rec *walpb.Record) {
			var e raftpb.Entry
			if rec.Type == 2 && e.Unmarshal(rec.Data) == nil && e.Index == 40 {
				e.Term = term
				rec.Data, _ = e.Marshal()
			}
		})
		in := dirInput(t, dirs...)
		wantFinding(t, in, "R01", []string{"node2"}, "entry 40 was altered")
		wantFinding(t, in, "R08", []string{"node2"}, "the term of entry 40 was altered")
		wantOutcome(t, in, "R05", check.Holds)
	}
}
