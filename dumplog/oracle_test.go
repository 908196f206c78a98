package dumplog_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// nodesWith returns the data dirs of an incident that hold a WAL.
func nodesWith(t testing.TB, incident string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(evidencetest.Incident(t, incident), "*", "member", "wal"))
	must(t, err)
	for i := range dirs {
		dirs[i] = filepath.Dir(filepath.Dir(dirs[i]))
	}
	return dirs
}

// TestEqualToReadAll holds what this package reads of every healthy log of the incidents against etcd's own reader.
func TestEqualToReadAll(t *testing.T) {
	compared := 0
	for _, name := range evidencetest.Incidents(t) {
		for _, dir := range nodesWith(t, name) {
			evidencetest.Unchanged(t, dir)
			l, err := dumplog.Open(filepath.Join(dir, "member", "wal"))
			must(t, err)
			s, err := l.Scan(context.Background())
			must(t, err)
			if len(s.Damage) > 0 {
				if name[0] != 'e' {
					t.Errorf("%s %s: damage in a healthy log: %v", name, filepath.Base(dir), s.Damage[0])
				}
				continue
			}
			t.Run(name+"/"+filepath.Base(dir), func(t *testing.T) {
				equalToReadAll(t, l, s, evidencetest.Copy(t, l.Dir()))
			})
			compared++
		}
	}
	if compared < 20 {
		t.Errorf("only %d logs compared", compared)
	}
}

func equalToReadAll(t *testing.T, l *dumplog.Log, s *dumplog.Summary, scratch string) {
	t.Helper()
	var from walpb.Snapshot
	if len(s.Jumps) > 0 || s.Start == dumplog.StartPurged { // such a log reads from a snapshot record on only
		last := s.Snapshots[len(s.Snapshots)-1]
		from = walpb.Snapshot{Index: last.Index, Term: last.Term}
	}
	w, err := wal.OpenForRead(zap.NewNop(), scratch, from)
	must(t, err)
	defer w.Close()
	meta, state, ents, err := w.ReadAll()
	must(t, err)
	var m pb.Metadata
	must(t, m.Unmarshal(meta))
	if got := *s.Metadata; uint64(got.MemberID) != m.NodeID || uint64(got.ClusterID) != m.ClusterID {
		t.Errorf("metadata %v, ReadAll %v", got, m)
	}
	if h := s.HardState; h.Term != state.Term || uint64(h.Vote) != state.Vote || h.Commit != state.Commit {
		t.Errorf("HardState %v, ReadAll %v", h, state)
	}
	i := 0
	for e, err := range l.Entries(context.Background(), s) {
		must(t, err)
		if e.Overwritten || e.Index <= from.Index {
			continue
		}
		if got := s.TermAt(e.Index); got != e.Term {
			t.Fatalf("TermAt(%d) is %d, the entry is %d/%d", e.Index, got, e.Term, e.Index)
		}
		if i >= len(ents) {
			t.Fatalf("entry %d/%d is not in ReadAll's", e.Term, e.Index)
		}
		want := ents[i]
		if e.Index != want.Index || e.Term != want.Term || int32(e.Type) != int32(want.Type) ||
			!bytes.Equal(e.Data, want.Data) {
			t.Fatalf("entry %d/%d differs from ReadAll's %d/%d", e.Term, e.Index, want.Term, want.Index)
		}
		i++
	}
	if i != len(ents) {
		t.Errorf("%d entries, ReadAll has %d", i, len(ents))
	}
}

// TestDecodeEqualToAPI decodes every entry of all incidents, damaged ones included, and holds it against etcd's types.
func TestDecodeEqualToAPI(t *testing.T) {
	kinds := map[dumplog.Kind]int{}
	for _, name := range evidencetest.Incidents(t) {
		for _, dir := range nodesWith(t, name) {
			evidencetest.Unchanged(t, dir)
			l, err := dumplog.Open(filepath.Join(dir, "member", "wal"))
			must(t, err)
			var d dumplog.Decoder
			for e, err := range l.Entries(context.Background(), nil) {
				if err != nil {
					continue
				}
				r, err := d.Decode(&e)
				if err != nil {
					t.Fatalf("%s entry %d: %v", dir, e.Index, err)
				}
				kinds[r.Kind]++
				equalToAPI(t, &e, r)
			}
		}
	}
	if len(kinds) < 15 {
		t.Errorf("the incidents show only %d kinds: %v", len(kinds), kinds)
	}
}

func equalToAPI(t testing.TB, e *dumplog.Entry, r *dumplog.Request) {
	t.Helper()
	if len(r.Unknown) > 0 {
		t.Errorf("entry %d: unknown fields %v", e.Index, r.Unknown)
	}
	var got, want []byte
	var err error
	switch r.Kind {
	case dumplog.KindEmpty:
		want = e.Data
	case dumplog.KindConfChange:
		want, got = confChangeBytes(t, e.Data, r.ConfChange)
	case dumplog.KindV2:
		want, got = v2Bytes(t, e.Data, r.V2)
	default:
		var q pb.InternalRaftRequest
		must(t, q.Unmarshal(e.Data))
		want, err = q.Marshal()
		must(t, err)
		got, err = toAPI(r).Marshal()
		must(t, err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("entry %d, %s: decoded differently from etcd's types:\n%x\n%x", e.Index, r.Kind, got, want)
	}
}

func confChangeBytes(t testing.TB, data []byte, c *dumplog.ConfChange) (want, got []byte) {
	t.Helper()
	var q raftpb.ConfChange
	must(t, q.Unmarshal(data))
	want, err := q.Marshal()
	must(t, err)
	got, err = (&raftpb.ConfChange{ID: uint64(c.ID), Type: raftpb.ConfChangeType(c.Type), NodeID: uint64(c.NodeID),
		Context: c.Context}).Marshal()
	must(t, err)
	if len(c.Context) > 0 && (c.Member == nil || c.Member.ID != c.NodeID) {
		t.Errorf("context %s decoded as %v", c.Context, c.Member)
	}
	return want, got
}

func v2Bytes(t testing.TB, data []byte, v *dumplog.V2Request) (want, got []byte) {
	t.Helper()
	var q pb.Request
	must(t, q.Unmarshal(data))
	want, err := q.Marshal()
	must(t, err)
	got, err = (&pb.Request{
		ID: uint64(v.ID), Method: v.Method, Path: v.Path, Val: v.Val, PrevValue: v.PrevValue, Dir: v.Dir, Wait: v.Wait,
		Recursive: v.Recursive, Sorted: v.Sorted, Quorum: v.Quorum, Stream: v.Stream, PrevIndex: v.PrevIndex,
		Since:     v.Since,
		PrevExist: v.PrevExist, Refresh: v.Refresh, Expiration: v.Expiration, Time: v.Time,
	}).Marshal()
	must(t, err)
	return want, got
}

// TestSummaryEqualToTruth holds the summary against what the maker of each incident wrote down.
func TestSummaryEqualToTruth(t *testing.T) {
	for _, name := range evidencetest.Incidents(t) {
		truth := readTruth(t, name)
		for _, dir := range nodesWith(t, name) {
			evidencetest.Unchanged(t, dir)
			node := filepath.Base(dir)
			l, err := dumplog.Open(filepath.Join(dir, "member", "wal"))
			must(t, err)
			s, err := l.Scan(context.Background())
			must(t, err)
			want := truth.Nodes[node].WAL
			got := walTruth{
				ClusterID: s.Metadata.ClusterID, MemberID: s.Metadata.MemberID,
				FirstIndex: s.FirstIndex, LastIndex: s.LastIndex, LastTerm: s.LastTerm, HardState: *s.HardState,
				EntryTypes: map[string]int{}, RecordTypes: map[string]int{},
			}
			for k, n := range s.Records {
				got.RecordTypes[k.String()] = n
			}
			for _, g := range s.Segments {
				got.Segments = append(got.Segments, segmentTruth{g.Name, g.FirstEntry, g.LastEntry, g.DataEnd})
			}
			for e, err := range l.Entries(context.Background(), s) {
				if err == nil {
					r, _ := e.Decode()
					got.EntryTypes[truthKind(r.Kind)]++
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s: (-truth +got)\n%s", name, node, diff)
			}
		}
	}
}

// truthKind translates a kind into the coarser names of truth.json.
func truthKind(k dumplog.Kind) string {
	switch k {
	case dumplog.KindDeleteRange:
		return "delete"
	case dumplog.KindConfChange:
		return "confchange"
	}
	return string(k)
}

func TestSnapFilesOfIncidents(t *testing.T) {
	seen := 0
	for _, name := range evidencetest.Incidents(t) {
		for _, dir := range nodesWith(t, name) {
			evidencetest.Unchanged(t, dir)
			l, err := dumplog.Open(filepath.Join(dir, "member", "wal"))
			must(t, err)
			s, err := l.Scan(context.Background())
			must(t, err)
			snaps, err := dumplog.ReadSnapDir(filepath.Join(dir, "member", "snap"))
			if os.IsNotExist(err) {
				continue
			}
			must(t, err)
			for _, f := range snaps.Files {
				seen++
				if f.Damage != nil || f.Term != f.NameTerm || f.Index != f.NameIndex || f.StoredCRC != f.ComputedCRC {
					t.Errorf("%s %s: %+v damage %v", dir, f.File, f, f.Damage)
				}
				if len(f.V2.Members) != len(f.ConfState.Voters)+len(f.ConfState.Learners) {
					t.Errorf("%s %s: %d members in the v2 store, ConfState %v", dir, f.File, len(f.V2.Members),
						f.ConfState)
				}
				if !hasSnapshotRecord(s, f) {
					t.Errorf("%s %s: the WAL has no record of it", dir, f.File)
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d .snap files seen", seen)
	}
}

func hasSnapshotRecord(s *dumplog.Summary, f *dumplog.SnapFile) bool {
	r := s.SnapshotAt(f.Term, f.Index)
	return r != nil && (r.ConfState == nil || cmp.Equal(*r.ConfState, f.ConfState))
}

func TestTornTailOfIncident(t *testing.T) {
	torn := 0
	for _, name := range evidencetest.Incidents(t) {
		if !strings.HasPrefix(name, "e-torn-wal-tail") {
			continue
		}
		truth := readTruth(t, name)
		for _, dir := range nodesWith(t, name) {
			if filepath.Base(dir) != truth.Verdict.BadNode {
				continue
			}
			torn++
			l, err := dumplog.Open(filepath.Join(dir, "member", "wal"))
			must(t, err)
			s, err := l.Scan(context.Background())
			must(t, err)
			d := s.Damage[0]
			if len(s.Damage) != 1 || d.Kind != dumplog.DamageTornTail || d.Offset != truth.Verdict.Offset ||
				d.LostFrom != truth.Verdict.Lost {
				t.Errorf("%s: %v, lost from %d; truth %+v", name, s.Damage, d.LostFrom, truth.Verdict)
			}
		}
	}
	if torn == 0 {
		t.Error("no torn log among the incidents")
	}
}
