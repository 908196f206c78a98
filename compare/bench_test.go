package compare_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// benchMembers are the IDs of the generated cluster.
var benchMembers = []uint64{0xa1, 0xa2, 0xa3}

const (
	benchCluster = 0xc1
	benchValue   = 1000
)

// writeCluster writes three data dirs whose logs and databases agree: n puts of 1000 bytes over n/5 keys.
func writeCluster(b *testing.B, n int) []evidence.Spec {
	b.Helper()
	root := b.TempDir()
	var specs []evidence.Spec
	for i, id := range benchMembers {
		dir := filepath.Join(root, fmt.Sprintf("node%d", i+1))
		if err := os.MkdirAll(filepath.Join(dir, "member", "snap"), 0o700); err != nil {
			b.Fatal(err)
		}
		writeBenchWAL(b, filepath.Join(dir, "member", "wal"), id, n)
		writeBenchDB(b, filepath.Join(dir, "member", "snap", "db"), n)
		specs = append(specs, evidence.Spec{Name: filepath.Base(dir), Where: dir})
	}
	return specs
}

// benchPut is the i-th put, the same for every member.
func benchPut(i, n int, val []byte) (key []byte) {
	rnd := rand.New(rand.NewPCG(uint64(i), 7))
	for j := 0; j+8 <= len(val); j += 64 {
		binary.LittleEndian.PutUint64(val[j:], rnd.Uint64())
	}
	return fmt.Appendf(nil, "/registry/pods/ns-%d/pod-%06d", i%(n/5)%17, i%(n/5))
}

func writeBenchWAL(b *testing.B, dir string, id uint64, n int) {
	b.Helper()
	meta, err := (&etcdserverpb.Metadata{NodeID: id, ClusterID: benchCluster}).Marshal()
	must(b, err)
	w, err := wal.Create(zap.NewNop(), dir, meta)
	must(b, err)
	w.SetUnsafeNoFsync()
	var boot []raftpb.Entry
	for i, m := range benchMembers {
		cc := raftpb.ConfChange{Type: raftpb.ConfChangeAddNode, NodeID: m, Context: fmt.Appendf(nil, `{"id":%d,"peerURLs":["http://127.0.0.1:%d"],"name":"node%d"}`, m, 2380+i, i+1)}
		data, err := cc.Marshal()
		must(b, err)
		boot = append(boot, raftpb.Entry{Term: 1, Index: uint64(i + 1), Type: raftpb.EntryConfChange, Data: data})
	}
	must(b, w.Save(raftpb.HardState{Term: 1, Commit: 3}, boot))
	val := make([]byte, benchValue)
	const batch = 50
	for i := 0; i < n; i += batch {
		var ents []raftpb.Entry
		for j := i; j < min(i+batch, n); j++ {
			key := benchPut(j, n, val)
			r := etcdserverpb.InternalRaftRequest{Header: &etcdserverpb.RequestHeader{ID: 0xa1<<48 | uint64(j)}, Put: &etcdserverpb.PutRequest{Key: key, Value: val}}
			data, err := r.Marshal()
			must(b, err)
			ents = append(ents, raftpb.Entry{Term: 2, Index: uint64(j + 4), Data: data})
		}
		must(b, w.Save(raftpb.HardState{Term: 2, Vote: 0xa1, Commit: ents[len(ents)-1].Index}, ents))
	}
	must(b, w.Close())
}

func writeBenchDB(b *testing.B, path string, n int) {
	b.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	must(b, err)
	val := make([]byte, benchValue)
	versions := make([]int64, n/5)
	for done := 0; done < n; {
		must(b, db.Update(func(tx *bbolt.Tx) error {
			keys, err := tx.CreateBucketIfNotExists([]byte("key"))
			if err != nil {
				return err
			}
			keys.FillPercent = 0.9
			for end := min(done+10000, n); done < end; done++ {
				key := benchPut(done, n, val)
				versions[done%(n/5)]++
				rev := int64(done + 2)
				kv := mvccpb.KeyValue{Key: key, CreateRevision: int64(done%(n/5)) + 2, ModRevision: rev, Version: versions[done%(n/5)], Value: val}
				data, err := kv.Marshal()
				if err != nil {
					return err
				}
				k := make([]byte, 17)
				binary.BigEndian.PutUint64(k, uint64(rev))
				k[8] = '_'
				if err := keys.Put(k, data); err != nil {
					return err
				}
			}
			return putMeta(tx, uint64(done+3))
		}))
	}
	must(b, db.Close())
}

func putMeta(tx *bbolt.Tx, index uint64) error {
	for _, name := range []string{"meta", "members", "cluster", "lease", "alarm", "auth", "authUsers", "authRoles", "members_removed"} {
		if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return err
		}
	}
	meta := tx.Bucket([]byte("meta"))
	if err := meta.Put([]byte("consistent_index"), binary.BigEndian.AppendUint64(nil, index)); err != nil {
		return err
	}
	for i, m := range benchMembers {
		if err := tx.Bucket([]byte("members")).Put(fmt.Appendf(nil, "%x", m), fmt.Appendf(nil, `{"id":%d,"peerURLs":["http://127.0.0.1:%d"],"name":"node%d","clientURLs":["http://127.0.0.1:%d"]}`, m, 2380+i, i+1, 2379)); err != nil {
			return err
		}
	}
	return meta.Put([]byte("term"), binary.BigEndian.AppendUint64(nil, 2))
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkDiagnose shows that time grows linearly with entries and revisions.
func BenchmarkDiagnose(b *testing.B) {
	for _, n := range []int{50_000, 100_000, 200_000} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			specs := writeCluster(b, n)
			b.ReportAllocs()
			for b.Loop() {
				r, err := compare.Diagnose(context.Background(), specs, compare.Options{})
				must(b, err)
				if r.Verdict.Class != "healthy" {
					b.Fatalf("%s: %s", r.Verdict.Class, r.Verdict.Summary)
				}
			}
		})
	}
}
