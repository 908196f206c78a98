package extract_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/extract"
)

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
	keys := [][]byte{[]byte("a"), []byte("a/b"), {0, 1, 0xff}, []byte("quote ' \" \\ $HOME `id` %s"), []byte("line\n"),
		[]byte("-dash"), []byte("über")}
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
