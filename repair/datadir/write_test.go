package datadir_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
	"github.com/etcd-medic/etcd-medic/shell"
)

func synthDB(t testing.TB, entries int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	clustertest.Synth{Members: 1, Entries: entries, Keys: 10, Value: 64}.WriteDB(t, path)
	return path
}

func sample() datadir.Dir {
	return datadir.Dir{
		MemberID: 0xa1, ClusterID: 0xc1, Term: 2, Index: 101, Voters: []uint64{0xa1, 0xa2},
		Learners: []uint64{0xfedcba9876543210},
		Members: []datadir.Member{
			{ID: 0xa1, Name: "node1", PeerURLs: []string{"http://a:1", "http://b:1"},
				ClientURLs: []string{"http://a:2"}},
			{ID: 0xa2, PeerURLs: []string{"http://c:1"}}, // never started
			{ID: 0xfedcba9876543210, Name: "learner", PeerURLs: []string{"http://d:1"}, IsLearner: true},
		},
		Removed: []uint64{0xdead}, ClusterVersion: "3.5.0",
	}
}

func TestWriteIsReadByEtcd(t *testing.T) {
	d := sample()
	d.HardTerm, d.Commit = 7, 103
	for i := range uint64(4) { // 104 stays uncommitted
		d.Entries = append(d.Entries, datadir.Entry{Term: 2 + i/2, Index: 101 + i,
			Data: []byte(fmt.Sprint("entry ", i))})
	}
	d.Entries[3].Type = dumplog.EntryConfChange
	dst := filepath.Join(t.TempDir(), "deep", "dir")
	_, err := datadir.Write(context.Background(), dst, d,
		datadir.CopyOf(synthDB(t, 100), datadir.SetMembers(d.Members, d.Removed)))
	ok(t, err)
	r := readWithEtcd(t, dst)
	want := []raftpb.Entry{{Term: 2, Index: 102, Data: []byte("entry 1")},
		{Term: 3, Index: 103, Data: []byte("entry 2")},
		{Term: 3, Index: 104, Type: raftpb.EntryConfChange, Data: []byte("entry 3")}}
	if diff := cmp.Diff(want, r.entries); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(raftpb.HardState{Term: 7, Commit: 103}, r.state); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(raftpb.ConfState{Voters: d.Voters, Learners: d.Learners},
		r.snap.Metadata.ConfState); diff != "" {
		t.Error(diff)
	}
	if m := r.members["fedcba9876543210"]; m == nil || !m.IsLearner || m.Name != "learner" {
		t.Errorf("learner is %+v", m)
	}
	if m := r.members["a2"]; m == nil || m.IsStarted() {
		t.Errorf("member that never started is %+v", m)
	}
	if r.removedV2 != 1 || r.removed != 1 || len(r.bucket) != 3 {
		t.Errorf("removed %d in the .snap, %d in the db; bucket %x", r.removedV2, r.removed, r.bucket)
	}
}

func TestWriteRefusesWhatNoServerCouldStartOn(t *testing.T) {
	for name, spoil := range map[string]func(*datadir.Dir){
		"no member ID": func(d *datadir.Dir) { d.MemberID = 0 }, "no voters": func(d *datadir.Dir) { d.Voters = nil },
		"stranger": func(d *datadir.Dir) { d.MemberID = 0xbeef },
		"removed":  func(d *datadir.Dir) { d.Removed = []uint64{0xa1} },
		"index 0":  func(d *datadir.Dir) { d.Index = 0 },
		"gap":      func(d *datadir.Dir) { d.Entries = []datadir.Entry{{Term: 2, Index: 103}} },
		"gap within": func(d *datadir.Dir) {
			d.Entries = []datadir.Entry{{Term: 2, Index: 102},
				{Term: 2, Index: 104}}
		},
		"falling term":      func(d *datadir.Dir) { d.Entries = []datadir.Entry{{Term: 1, Index: 102}} },
		"commit beyond log": func(d *datadir.Dir) { d.Commit = 102 },
		"old HardState":     func(d *datadir.Dir) { d.HardTerm = 1 },
	} {
		d := sample()
		spoil(&d)
		dst := filepath.Join(t.TempDir(), "dir")
		if _, err := datadir.Write(context.Background(), dst, d, datadir.CopyOf(synthDB(t, 10))); err == nil {
			t.Errorf("%s is taken", name)
		}
		gone(t, dst)
	}
}

// TestWriteLeavesNothingBehind makes the last step of a write fail as a full disk does, and as an interruption does.
func TestWriteLeavesNothingBehind(t *testing.T) {
	root := t.TempDir()
	dst := filepath.Join(root, "dir")
	full := func(_ context.Context, path string) error {
		if err := os.WriteFile(path, make([]byte, 1<<16), 0o600); err != nil {
			return err
		}
		return &os.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
	}
	if _, err := datadir.Write(context.Background(), dst, sample(), full); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("full disk: %v", err)
	}
	gone(t, dst)
	src := synthDB(t, 100)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := datadir.Write(ctx, dst, sample(), datadir.CopyOf(src)); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	gone(t, dst)
	failing := func(*bolt.Tx) error { return io.ErrNoProgress }
	if err := datadir.CopyDB(context.Background(), dst, src, failing); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("failing edit: %v", err)
	}
	gone(t, dst)
}

func TestLeftOverOfAKilledRun(t *testing.T) {
	src := synthDB(t, 10)
	root := t.TempDir()
	dst := filepath.Join(root, "dir")
	// A killed run leaves a marked partial dir, which is replaced.
	ok(t, os.MkdirAll(filepath.Join(dst+".partial", "member"), 0o700))
	ok(t, os.WriteFile(filepath.Join(dst+".partial", ".etcd-medic-partial"), nil, 0o600))
	_, err := datadir.Write(context.Background(), dst, sample(), datadir.CopyOf(src))
	ok(t, err)
	if _, err := os.Lstat(filepath.Join(dst, ".etcd-medic-partial")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the mark is left: %v", err)
	}
	// Somebody else's dir or link is not.
	other := filepath.Join(root, "other")
	ok(t, os.MkdirAll(filepath.Join(other+".partial", "member"), 0o700))
	if _, err := datadir.Write(context.Background(), other, sample(), datadir.CopyOf(src)); err == nil ||
		!strings.Contains(err.Error(), "is in the way") {
		t.Errorf("a foreign .partial: %v", err)
	}
	// Nor is an empty one, unless a run left it that was killed before it could mark it.
	empty := filepath.Join(root, "empty")
	ok(t, os.Mkdir(empty+".partial", 0o700))
	if _, err := datadir.Write(context.Background(), empty, sample(), datadir.CopyOf(src)); err == nil ||
		!strings.Contains(err.Error(), "rm -r "+shell.Quote(empty+".partial")) {
		t.Errorf("an empty .partial: %v", err)
	}
	ok(t, os.Chmod(empty+".partial", 0o700|os.ModeSticky))
	res, err := datadir.Write(context.Background(), empty, sample(), datadir.CopyOf(src))
	ok(t, err)
	if fi, err := os.Stat(res.Path); err != nil || fi.Mode().Perm() != 0o700 || fi.Mode()&os.ModeSticky != 0 {
		t.Errorf("the new folder has mode %v (%v)", fi.Mode(), err)
	}
	// A file of that name may be anybody's: it stays, and the error says which command removes it.
	evidencetest.Unchanged(t, src)
	keep := filepath.Join(root, "copy.partial")
	ok(t, os.WriteFile(keep, []byte("evidence"), 0o600))
	err = datadir.CopyDB(context.Background(), filepath.Join(root, "copy"), src)
	if err == nil || !strings.Contains(err.Error(), "rm -r "+shell.Quote(keep)) {
		t.Errorf("a foreign .partial file: %v", err)
	}
	if b, _ := os.ReadFile(keep); string(b) != "evidence" {
		t.Errorf("evidence became %q", b)
	}
}

// TestTwoRunsOnOnePath: of many runs that build one path at once, left-over or not, one goes on, and the others refuse
// and remove nothing.
func TestTwoRunsOnOnePath(t *testing.T) {
	for _, left := range []bool{false, true} {
		dst := filepath.Join(t.TempDir(), "dir")
		if left {
			ok(t, os.MkdirAll(filepath.Join(dst+".partial", "member"), 0o700))
			ok(t, os.WriteFile(filepath.Join(dst+".partial", ".etcd-medic-partial"), nil, 0o600))
		}
		var mu sync.Mutex
		var got []*datadir.Building
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				b, err := datadir.Begin(dst)
				mu.Lock()
				defer mu.Unlock()
				var refused *refusal.Error
				switch {
				case err == nil:
					got = append(got, b)
				case !errors.As(err, &refused):
					t.Errorf("a run fails with %v", err)
				}
			})
		}
		wg.Wait()
		if len(got) != 1 {
			t.Fatalf("%d runs build one path (left-over %v)", len(got), left)
		}
		ok(t, got[0].Write(filepath.Join(got[0].Path, "file"), []byte("x")))
		if _, err := datadir.Begin(dst); err == nil || !strings.Contains(err.Error(), "another etcd-medic") {
			t.Errorf("a second run: %v", err)
		}
		ok(t, got[0].Commit())
		if names, err := os.ReadDir(dst); err != nil || len(names) != 1 {
			t.Errorf("%v %v", names, err)
		}
		if _, err := datadir.Begin(dst); !errors.Is(err, datadir.ErrExists) {
			t.Errorf("after it: %v", err)
		}
	}
}
