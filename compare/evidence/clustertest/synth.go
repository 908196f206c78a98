package clustertest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/membershippb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// Synth describes data dirs that are written directly: real WAL and bbolt files with consistent content. They serve
// benchmarks for which a running server would take too long.
type Synth struct {
	// Members is how many data dirs to write, Entries the number of puts in each log, Keys the number of different
	// keys.
	Members, Entries, Keys int
	// Value is the size of every value in bytes.
	Value int
	// Starts adds a publish entry of a member (by position) before the put with that number, as after a restart.
	Starts map[int]int
	// Learners are added as learners by the log; bucket members nevertheless has them as voters.
	Learners map[int]bool
	// Skip leaves the effect of some puts out of the database of one member, by the numbers of member and put. Later
	// revisions are lower, as on a server that never applied them.
	Skip map[int]map[int]bool
	// Purged is the number of puts covered by a raft snapshot. Segments without newer entries are removed, as on a
	// server that has run for long.
	Purged int
	// Repeat writes the effects of some puts a second time into the database of one member, as a restart with a stale
	// consistent index does. By member, it maps the put before which they are repeated (Entries: after the last) to the
	// first repeated put.
	Repeat map[int]map[int]int
	// Allocated keeps all zeros that etcd allocates at the end of a log: what is measured is what a server leaves.
	Allocated bool
}

const (
	synthCluster = 0xc1
	synthMember  = 0xa1
)

// Write writes the data dirs node1, node2, … below root and returns their paths. All members have applied the whole
// log.
func (s Synth) Write(tb testing.TB, root string) []string {
	tb.Helper()
	var dirs []string
	for i := range s.Members {
		dirs = append(dirs, s.WriteMember(tb, root, i))
	}
	return dirs
}

// WriteMember writes the data dir of one member below root and returns its path.
func (s Synth) WriteMember(tb testing.TB, root string, i int) string {
	tb.Helper()
	dir := filepath.Join(root, fmt.Sprintf("node%d", i+1))
	synthOK(tb, os.MkdirAll(filepath.Join(dir, "member", "snap"), 0o700))
	s.WriteWAL(tb, filepath.Join(dir, "member", "wal"), i)
	s.writeDB(tb, filepath.Join(dir, "member", "snap", "db"), s.Skip[i], s.Repeat[i])
	return dir
}

// put returns the i-th put, the same for every member. Half of the value is noise, so that it does not compress.
func (s Synth) put(i int, val []byte) (key []byte) {
	rnd := rand.New(rand.NewPCG(uint64(i), 7))
	for j := 0; j+8 <= len(val); j += 16 {
		binary.LittleEndian.PutUint64(val[j:], rnd.Uint64())
	}
	k := i % s.Keys
	return fmt.Appendf(nil, "/registry/pods/ns-%d/pod-%06d", k%17, k)
}

// WriteWAL writes the log of one member with etcd's own WAL package: bootstrap conf changes, then the puts in batches.
func (s Synth) WriteWAL(tb testing.TB, dir string, member int) {
	tb.Helper()
	meta, err := (&etcdserverpb.Metadata{NodeID: synthMember + uint64(member), ClusterID: synthCluster}).Marshal()
	synthOK(tb, err)
	w, err := wal.Create(zap.NewNop(), dir, meta)
	synthOK(tb, err)
	w.SetUnsafeNoFsync()
	n := uint64(s.Members)
	synthOK(tb, w.Save(raftpb.HardState{Term: 1, Commit: n}, s.boot(tb)))
	val := make([]byte, s.Value)
	index := n
	var ents []raftpb.Entry
	flush := func() {
		if len(ents) > 0 {
			synthOK(tb, w.Save(raftpb.HardState{Term: 2, Vote: synthMember, Commit: index}, ents))
			ents = nil
		}
	}
	add := func(r *etcdserverpb.InternalRaftRequest) {
		data, err := r.Marshal()
		synthOK(tb, err)
		index++
		if ents = append(ents, raftpb.Entry{Term: 2, Index: index, Data: data}); len(ents) == 50 {
			flush()
		}
	}
	for j := range s.Entries {
		id := uint64(1763000000000&(1<<40-1))<<8 + uint64(j)
		if m, ok := s.Starts[j]; ok {
			header := &etcdserverpb.RequestHeader{ID: uint64(synthMember+m)<<48 | id}
			add(&etcdserverpb.InternalRaftRequest{Header: header,
				ClusterMemberAttrSet: &membershippb.ClusterMemberAttrSetRequest{Member_ID: uint64(synthMember + m),
					MemberAttributes: &membershippb.Attributes{Name: fmt.Sprintf("node%d", m+1),
						ClientUrls: []string{fmt.Sprintf("http://127.0.0.1:%d", 2379+2*m)}}}})
		}
		add(&etcdserverpb.InternalRaftRequest{Header: &etcdserverpb.RequestHeader{ID: synthMember<<48 | id},
			Put: &etcdserverpb.PutRequest{Key: s.put(j, val), Value: bytes.Clone(val)}})
		if j+1 == s.Purged {
			flush()
			s.snapshot(tb, w, dir, 2, index)
		}
	}
	flush()
	synthOK(tb, w.Close())
	if !s.Allocated {
		synthOK(tb, evidencetest.CutLogs(dir))
	}
	if s.Purged > 0 {
		purge(tb, dir, n+uint64(s.Purged+s.startsBefore(s.Purged)))
	}
}

func (s Synth) boot(tb testing.TB) []raftpb.Entry {
	tb.Helper()
	var out []raftpb.Entry
	for i := range s.Members {
		cc := raftpb.ConfChange{Type: raftpb.ConfChangeAddNode, NodeID: synthMember + uint64(i),
			Context: fmt.Appendf(nil, `{"id":%d,"peerURLs":["http://127.0.0.1:%d"],"name":"node%d"}`, synthMember+i,
				2380+2*i, i+1)}
		if s.Learners[i] {
			cc.Type = raftpb.ConfChangeAddLearnerNode
		}
		data, err := cc.Marshal()
		synthOK(tb, err)
		out = append(out, raftpb.Entry{Term: 1, Index: uint64(i + 1), Type: raftpb.EntryConfChange, Data: data})
	}
	return out
}

// WriteDB writes the database for the log: records in revision order, 10,000 per transaction, as a server does.
func (s Synth) WriteDB(tb testing.TB, path string) {
	tb.Helper()
	s.writeDB(tb, path, nil, nil)
}

func (s Synth) writeDB(tb testing.TB, path string, skip map[int]bool, repeat map[int]int) {
	tb.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true,
		FreelistType: bbolt.FreelistMapType})
	synthOK(tb, err)
	val := make([]byte, s.Value)
	keys := make([]synthKey, s.Keys)
	rev := int64(1)
	for done := 0; done < s.Entries; {
		synthOK(tb, db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("key"))
			if err != nil {
				return err
			}
			b.FillPercent = 0.9
			for end := min(done+10000, s.Entries); done < end; done++ {
				if rev, err = s.again(b, repeat, done, rev, keys, val); err != nil {
					return err
				}
				if skip[done] {
					continue
				}
				rev++
				if err := s.record(b, done, rev, &keys[done%s.Keys], val); err != nil {
					return err
				}
			}
			if done == s.Entries {
				if rev, err = s.again(b, repeat, done, rev, keys, val); err != nil {
					return err
				}
			}
			return s.meta(tx, uint64(done+s.Members+s.startsBefore(done)))
		}))
	}
	synthOK(tb, db.Close())
}

// again writes the puts that repeat maps to this put, and returns the last revision.
func (s Synth) again(b *bbolt.Bucket, repeat map[int]int, put int, rev int64, keys []synthKey, val []byte) (int64,
	error) {
	from, ok := repeat[put]
	for j := from; ok && j < put; j++ {
		rev++
		if err := s.record(b, j, rev, &keys[j%s.Keys], val); err != nil {
			return rev, err
		}
	}
	return rev, nil
}

// synthKey is the state of one key while its database is written.
type synthKey struct{ create, version int64 }

func (s Synth) startsBefore(put int) (n int) {
	for j := range s.Starts {
		if j < put {
			n++
		}
	}
	return n
}

func (s Synth) record(b *bbolt.Bucket, i int, rev int64, k *synthKey, val []byte) error {
	key := s.put(i, val)
	if k.version++; k.version == 1 {
		k.create = rev
	}
	kv := mvccpb.KeyValue{Key: key, CreateRevision: k.create, ModRevision: rev, Version: k.version, Value: val}
	data, err := kv.Marshal()
	if err != nil {
		return err
	}
	at := append(binary.BigEndian.AppendUint64(nil, uint64(rev)), '_')
	return b.Put(binary.BigEndian.AppendUint64(at, 0), data)
}

func (s Synth) meta(tx *bbolt.Tx, index uint64) error {
	for _, name := range []string{"meta", "members", "cluster", "lease", "alarm", "auth", "authUsers", "authRoles",
		"members_removed"} {
		if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return err
		}
	}
	for i := range s.Members {
		id := synthMember + i
		row := fmt.Appendf(nil, `{"id":%d,"peerURLs":["http://127.0.0.1:%d"],"name":"node%d",`+
			`"clientURLs":["http://127.0.0.1:%d"]}`, id, 2380+2*i, i+1, 2379+2*i)
		if err := tx.Bucket([]byte("members")).Put(fmt.Appendf(nil, "%x", id), row); err != nil {
			return err
		}
	}
	meta := tx.Bucket([]byte("meta"))
	if err := meta.Put([]byte("term"), binary.BigEndian.AppendUint64(nil, 2)); err != nil {
		return err
	}
	return meta.Put([]byte("consistent_index"), binary.BigEndian.AppendUint64(nil, index))
}

func synthOK(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
