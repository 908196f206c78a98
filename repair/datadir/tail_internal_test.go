package datadir

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestTailOf: the committed entries above the consistent index follow, up to the first that cannot be copied.
func TestTailOf(t *testing.T) {
	conf := func(h *clustertest.Hand, index uint64) {
		h.Conf(2, index, raftpb.ConfChange{Type: raftpb.ConfChangeAddLearnerNode, NodeID: 0xa3,
			Context: []byte(`{"id":163,"peerURLs":["http://c:1"]}`)})
	}
	put := func(h *clustertest.Hand, index uint64) {
		h.Put(2, index, clustertest.RequestID(0xa1, 1, index), "/k", fmt.Sprint("v", index), index == 4)
	}
	puts := func(h *clustertest.Hand) {
		for index := uint64(5); index <= 8; index++ {
			put(h, index)
		}
	}
	for name, c := range map[string]struct {
		fill   func(h *clustertest.Hand)
		commit uint64
		want   string
		why    string
	}{
		"all":            {puts, 8, "5 6 7 8", ""},
		"committed only": {puts, 6, "5 6", ""},
		"none committed": {puts, 4, "", ""},
		"more is known":  {puts, 20, "5 6 7 8", ""},
		"a conf change": {func(h *clustertest.Hand) {
			put(h, 5)
			conf(h, 6)
			h.State(2, 0xa1, 7)
			put(h, 7)
		}, 7, "5 -6 7", ""},
		"a conf change that the member does not know to be committed": {func(h *clustertest.Hand) {
			put(h, 5)
			conf(h, 6)
			put(h, 7)
		}, 7, "5", "entry 6 is a conf change: 6..7, 1 write"},
		"a login and a new role": {func(h *clustertest.Hand) {
			for i, r := range []*etcdserverpb.InternalRaftRequest{
				{Authenticate: &etcdserverpb.InternalAuthenticateRequest{Name: "root"}},
				{AuthRoleAdd: &etcdserverpb.AuthRoleAddRequest{Name: "r"}}} {
				h.RootRequest(uint64(5+i), 0, r)
			}
			put(h, 7)
		}, 7, "5 6 7", ""},
		"a gap": {func(h *clustertest.Hand) {
			put(h, 5)
			put(h, 7)
		}, 7, "5", "entry 6 is not in the log: 6..7, 2 write"},
		"a gap above what is committed": {func(h *clustertest.Hand) {
			put(h, 5)
			put(h, 7)
		}, 6, "5", "entry 6 is not in the log: 6..6, 1 write"},
		"entries of another leader": {func(h *clustertest.Hand) {
			puts(h)
			h.Put(3, 6, clustertest.RequestID(0xa1, 1, 60), "/k", "other", false)
		}, 8, "5 6", ""},
	} {
		h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
		h.Found(false, 0xa1, 0xa2)
		h.Member(0xa1, false, true)
		h.Member(0xa2, false, true)
		h.State(2, 0xa1, 4)
		h.Request(2, 3, nil)
		put(h, 4)
		c.fill(h)
		set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: h.Close(4, 2)}}, evidence.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tail, left, err := tailOf(t.Context(), set.Members[0], c.commit)
		if err := errors.Join(err, set.Close()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range tail {
			index := fmt.Sprint(e.Index)
			if len(e.Data) == 0 { // in place of a conf change
				index = "-" + index
			}
			got = append(got, index)
			if e.Index == 6 && (e.Term == 3) != (name == "entries of another leader") || e.Type != dumplog.EntryNormal {
				t.Errorf("%s: %+v", name, e)
			}
		}
		why := ""
		if left != nil {
			why = fmt.Sprintf("%s: %d..%d, %d write", left.Why, left.From, left.To, left.Writes)
		}
		if strings.Join(got, " ") != c.want || why != c.why {
			t.Errorf("%s: %q because %q, want %q because %q", name, got, why, c.want, c.why)
		}
	}
	m := threeMembers()
	if tail, left, err := tailOf(t.Context(), m, 9); tail != nil || left != nil || err != nil {
		t.Errorf("no log: %v, %+v, %v", tail, left, err)
	}
}

// TestSegments: a segment that begins with the chain of the one before continues its log, and any other does not.
func TestSegments(t *testing.T) {
	for _, wrong := range []uint32{0, 1} {
		dir := t.TempDir()
		var one, two bytes.Buffer
		first := NewLogWriter(&one, 0)
		first.Metadata(0xa1, 0xc1)
		first.Snapshot(0, 0, nil)
		first.Entry(&Entry{Term: 1, Index: 1})
		second := NewLogWriter(&two, first.Chain()+wrong)
		second.Metadata(0xa1, 0xc1)
		second.Record(int64(dumplog.RecordState), StateData(1, 0xa1, 2))
		second.Entry(&Entry{Term: 1, Index: 2})
		err := errors.Join(first.Flush(), second.Flush(),
			os.WriteFile(filepath.Join(dir, "0000000000000000-0000000000000000.wal"), one.Bytes(), 0o600),
			os.WriteFile(filepath.Join(dir, "0000000000000001-0000000000000002.wal"), two.Bytes(), 0o600))
		if err != nil {
			t.Fatal(err)
		}
		log, err := dumplog.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		s, err := log.Scan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if (len(s.Damage) == 0) != (wrong == 0) || s.LastIndex != 2 || s.MaxCommit != 2 {
			t.Errorf("chain changed by %d: last %d, committed %d, %v", wrong, s.LastIndex, s.MaxCommit, s.Damage)
		}
	}
}

// TestCopiedWhole: a copy is whole, or an error says by how much the file became shorter; so does one that is damaged.
func TestCopiedWhole(t *testing.T) {
	src := filepath.Join(t.TempDir(), "src")
	if err := os.WriteFile(src, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int64]string{7: "", 12: "became 5 B shorter while it was copied"} {
		in, err := os.Open(src)
		if err != nil {
			t.Fatal(err)
		}
		moved, dst := int64(0), filepath.Join(t.TempDir(), "dst")
		err = copyBytes(t.Context(), dst, in, size, func(n int64) { moved += n })
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || moved != 7 {
			t.Errorf("%d bytes: %v, %d moved", size, err, moved)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var bad *DamagedError
	if err := sound(t.Context(), src); !errors.As(err, &bad) || len(bad.Damage) != 1 || bad.File != src ||
		!strings.HasPrefix(err.Error(), src+" is damaged in 1 place, first: page 0") {
		t.Errorf("no database: %v", err)
	}
	if err := sound(t.Context(), src+"-missing"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestDropOfNothing: what is not there is removed without a trace.
func TestDropOfNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	b, err := bolt.Open(path, 0o600, nil)
	if err == nil {
		err = errors.Join(b.Update(SetTerm(0)), b.Update(SetStorageVersion("")), b.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	db, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // only read
	if list, damage := db.Buckets(); len(list) > 0 || len(damage) > 0 {
		t.Errorf("%+v, %v", list, damage)
	}
}
