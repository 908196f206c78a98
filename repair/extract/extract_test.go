package extract_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/extract"
)

func TestMain(m *testing.M) {
	if os.Getenv(asEtcdctl) != "" {
		os.Exit(fakeEtcdctl(os.Args[1:]))
	}
	evidencetest.Main(m)
}

// store opens etcd's own store on a file; done closes it.
func store(t testing.TB, path string) (s mvcc.KV, done func()) {
	t.Helper()
	cfg := backend.DefaultBackendConfig(zap.NewNop())
	cfg.Path, cfg.MmapSize, cfg.UnsafeNoFsync = path, 1<<26, true
	be := backend.New(cfg)
	tx := be.BatchTx()
	tx.Lock()
	for _, b := range schema.AllBuckets {
		tx.UnsafeCreateBucket(b)
	}
	tx.Unlock()
	kv := mvcc.NewStore(zap.NewNop(), be, &lease.FakeLessor{}, mvcc.StoreConfig{})
	return kv, func() {
		kv.Commit()
		_ = kv.Close()
		_ = be.Close()
	}
}

// kv is a key as a server shows it.
type kv struct {
	Key, Value           string
	Create, Mod, Version int64
	Lease                int64
}

// held is what the server holds at a revision.
func held(t testing.TB, s mvcc.KV, rev int64) []kv {
	t.Helper()
	r, err := s.Range(context.Background(), []byte{0}, []byte{}, mvcc.RangeOptions{Rev: rev})
	if err != nil {
		t.Fatal(err)
	}
	out := []kv{}
	for _, k := range r.KVs {
		out = append(out, kv{string(k.Key), string(k.Value), k.CreateRevision, k.ModRevision, k.Version, k.Lease})
	}
	return out
}

// history fills a database with puts and deletes of binary keys and returns what the server held at every revision.
func history(t testing.TB, path string, n int) map[int64][]kv {
	t.Helper()
	s, done := store(t, path)
	defer done()
	rnd := rand.New(rand.NewPCG(1, 2))
	keys := [][]byte{[]byte("a"), []byte("a/b"), {0, 1, 0xff}, []byte("quote ' \" \\ $HOME `id` %s"), []byte("line\n"), []byte("-dash"), []byte("über")}
	for i := range 40 {
		keys = append(keys, fmt.Appendf(nil, "/registry/things/ns-%d/%03d", i%5, i))
	}
	states := map[int64][]kv{}
	for range n {
		k := keys[rnd.IntN(len(keys))]
		if rnd.IntN(4) == 0 {
			s.DeleteRange(k, nil)
		} else {
			v := make([]byte, rnd.IntN(40))
			for j := range v {
				v[j] = byte(rnd.Uint32())
			}
			s.Put(k, v, lease.LeaseID(rnd.IntN(3)))
		}
		states[s.Rev()] = held(t, s, 0)
	}
	return states
}

// line is a line of the jsonl form.
type line struct {
	Key, Value                           blob
	Revision, DeletedRevision            dumpdb.Rev
	Tombstone, Deleted                   bool
	CreateRevision, ModRevision, Version int64
	Lease                                dumpdb.ID
	Origin                               string
}

type blob string

func (b *blob) UnmarshalJSON(p []byte) error {
	var v struct{ Text, Base64 *string }
	if err := json.Unmarshal(p, &v); err != nil {
		return err
	}
	switch {
	case v.Text != nil:
		*b = blob(*v.Text)
	case v.Base64 != nil:
		raw, err := base64.StdEncoding.DecodeString(*v.Base64)
		*b = blob(raw)
		return err
	}
	return nil
}

func lines(t testing.TB, path string) (out []line) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(bytes.NewReader(b))
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var l line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			t.Fatalf("%s: %v", in.Text(), err)
		}
		out = append(out, l)
	}
	return out
}

func run(t testing.TB, path string, o extract.Options) *extract.Result {
	t.Helper()
	if o.Out == "" {
		o.Out = filepath.Join(t.TempDir(), "out")
	}
	before, err := evidencetest.TreeHash(path)
	if err != nil {
		t.Fatal(err)
	}
	res, err := extract.Run(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	if after, err := evidencetest.TreeHash(path); err != nil || after != before {
		t.Fatalf("the source was changed: %v", err)
	}
	if left, _ := filepath.Glob(o.Out + ".partial"); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	return res
}

// TestStateIsTheServers takes the state at every revision and holds it against what the server showed there, in memory and through
// scratch files.
func TestStateIsTheServers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	states := history(t, path, 300)
	for rev, want := range states {
		if rev%9 != 0 {
			continue
		}
		for _, memory := range []int{0, 2000} {
			out := filepath.Join(t.TempDir(), "out")
			res := run(t, path, extract.Options{Format: extract.JSONL, Rev: rev, Out: out, Memory: memory})
			got := []kv{}
			if !res.Empty() {
				for _, l := range lines(t, out) {
					got = append(got, kv{string(l.Key), string(l.Value), l.CreateRevision, l.ModRevision, l.Version, int64(l.Lease)})
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("revision %d, memory %d (-server +extract):\n%s", rev, memory, d)
			}
			if res.Short() || res.Keys != int64(len(want)) || res.Revision != rev {
				t.Fatalf("revision %d: %+v", rev, res)
			}
		}
	}
}

// TestBackupIsTheState opens the backup of every 25th revision with etcd's own store: same content, same revision, compacted below.
func TestBackupIsTheState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	states := history(t, path, 200)
	for rev, want := range states {
		if rev%25 != 0 {
			continue
		}
		out := filepath.Join(t.TempDir(), "out.db")
		res := run(t, path, extract.Options{Format: extract.Backup, Rev: rev, Out: out, Leases: extract.LeaseDetach})
		soundBackup(t, out, res)
		s, done := store(t, evidencetest.Copy(t, out))
		for i := range want {
			want[i].Lease = 0
		}
		if d := cmp.Diff(want, held(t, s, 0)); d != "" || s.Rev() != rev || s.FirstRev() != rev {
			t.Errorf("revision %d: server says %d, first %d (-server then +server on the backup):\n%s", rev, s.Rev(), s.FirstRev(), d)
		}
		done()
	}
}

// soundBackup wants a file without any damage, violated truth or wrong trailer.
func soundBackup(t testing.TB, path string, res *extract.Result) {
	t.Helper()
	db, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tr, err := db.Trailer()
	if err != nil || tr.State != "match" || tr.Computed != res.SHA256 {
		t.Errorf("trailer %+v %v, result %s", tr, err, res.SHA256)
	}
	st, err := db.KVStats(context.Background())
	if err != nil || len(st.Violations) > 0 {
		t.Errorf("%v %+v", err, st)
	}
	if rep, err := db.Check(context.Background()); err != nil || len(rep.Damage) > 0 {
		t.Errorf("%v %+v", err, rep)
	}
	if m := db.MissingBuckets(); len(m) > 0 {
		t.Errorf("buckets %v are missing", m)
	}
}

// TestBackupWithHistory keeps every revision: the server answers for all of them as before.
func TestBackupWithHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	states := history(t, path, 120)
	out := filepath.Join(t.TempDir(), "out.db")
	res := run(t, path, extract.Options{Format: extract.Backup, History: true, Rev: 90, Out: out, Leases: extract.LeaseDetach})
	soundBackup(t, out, res)
	s, done := store(t, evidencetest.Copy(t, out))
	defer done()
	for rev, want := range states {
		if rev > 90 || rev%4 != 0 {
			continue
		}
		for i := range want {
			want[i].Lease = 0
		}
		if d := cmp.Diff(want, held(t, s, rev)); d != "" {
			t.Fatalf("revision %d:\n%s", rev, d)
		}
	}
}

// TestDeleted brings deleted keys with the value they had, and tells those whose value is compacted away.
func TestDeleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s, done := store(t, path)
	s.Put([]byte("gone"), []byte("last"), 0)
	s.Put([]byte("stays"), []byte("x"), 0)
	s.DeleteRange([]byte("gone"), nil) // 4
	for range 60 {
		s.Put([]byte("zzz"), bytes.Repeat([]byte("filler"), 100), 0)
	}
	s.Commit()
	s.Put([]byte("early"), []byte("y"), 0)
	done()
	out := filepath.Join(t.TempDir(), "out")
	res := run(t, path, extract.Options{Format: extract.JSONL, Deleted: true, Out: out})
	got := lines(t, out)
	if len(got) != 4 || got[1].Key != "gone" || got[1].Value != "last" || got[1].DeletedRevision != (dumpdb.Rev{Main: 4}) || res.DeletedKeys != 1 {
		t.Errorf("%+v %+v", got, res)
	}
	res = run(t, path, extract.Options{Format: extract.JSONL, Select: extract.Selection{Keys: [][]byte{[]byte("gone"), []byte("never")}}})
	if !res.Empty() || !res.Short() || len(res.Lost.NotFound) != 2 {
		t.Errorf("%+v", res)
	}
	s, done = store(t, path)
	c, err := s.Compact(traceutil.TODO(), 4)
	if err != nil {
		t.Fatal(err)
	}
	<-c
	done()
	res = run(t, path, extract.Options{Format: extract.JSONL, Deleted: true, Select: extract.Selection{Keys: [][]byte{[]byte("gone")}}})
	// Pages that are not in use still hold what the compaction dropped.
	out = filepath.Join(t.TempDir(), "free")
	free := run(t, path, extract.Options{Format: extract.JSONL, Deleted: true, Salvage: true, Out: out})
	if got := lines(t, out); len(got) != 4 || got[1].Key != "gone" || got[1].Value != "last" || !got[1].Deleted || got[1].Origin != "free" || free.DeletedKeys != 1 || free.Short() {
		t.Errorf("%+v %+v", got, free)
	}
	if !res.Empty() || res.Lost.NoValueCount != 1 || string(res.Lost.NoValue[0]) != "gone" || !res.Short() {
		t.Errorf("%+v", res)
	}
}

func TestRefusals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	history(t, path, 20)
	var refused *extract.RefusedError
	if _, err := extract.Run(context.Background(), path, extract.Options{Format: extract.JSONL, Out: path}); !errors.As(err, &refused) {
		t.Errorf("over an existing file: %v", err)
	}
	out := filepath.Join(t.TempDir(), "out")
	if _, err := extract.Run(context.Background(), path, extract.Options{Format: extract.JSONL, Rev: 10000, Out: out}); !errors.As(err, &refused) {
		t.Errorf("future revision: %v", err)
	}
	for name, o := range map[string]extract.Options{
		"history and deleted":       {Format: extract.JSONL, History: true, Deleted: true},
		"history in a script":       {Format: extract.Put, History: true},
		"partial history in backup": {Format: extract.Backup, History: true, Select: extract.Selection{Kind: "Pod"}},
		"deleted in backup":         {Format: extract.Backup, Deleted: true},
		"absent in put":             {Format: extract.Put, OnlyIfAbsent: true},
	} {
		o.Out = out
		if _, err := extract.Run(context.Background(), path, o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a refused run left an output")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, f := range extract.Formats() {
		if _, err := extract.Run(ctx, path, extract.Options{Format: extract.Format(f), Out: out}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", f, err)
		}
	}
	if left, _ := filepath.Glob(out + "*"); len(left) > 0 {
		t.Errorf("interrupted runs left %v", left)
	}
}
