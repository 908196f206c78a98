package rebuild_test

import (
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// asked is a request of root with an auth revision in its header: 4 is outdated, 5 is not.
type asked struct {
	authRevision uint64
	request      *etcdserverpb.InternalRaftRequest
}

// change is a record of a database: a put with a lease, or a tombstone if there is none.
type change struct {
	key   string
	lease int64
}

// revokedThen writes a data dir of 3.5 whose entry 10 revokes lease 7 of key k with an outdated auth revision, with
// requests after it. The database has an applied index and records, the first at revision 2.
func revokedThen(t *testing.T, applied uint64, records []change, requests ...asked) string {
	t.Helper()
	h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
	h.Found(false, 0xa1)
	h.Request(2, 2, nil)
	index := h.RootRevokes(3, 4)
	for _, a := range requests {
		index++
		h.RootRequest(index, a.authRevision, a.request)
	}
	h.State(2, 0xa1, index)
	for i, c := range records {
		rev := int64(2 + i)
		at, kv := string(dumpdb.Rev{Main: rev}.Bytes()), mvccpb.KeyValue{Key: []byte(c.key)}
		if c.lease != 0 {
			kv.Value, kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease = []byte("1"), rev, rev, 1, c.lease
		} else {
			at += "t"
		}
		b, err := kv.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		h.Row("key", at, string(b))
	}
	return h.Close(applied, 2)
}

// TestWriterAfterTheRevoke: a later revoke of the same lease leaves the same records. Until then it is open which of
// the two had an effect. It stays open for good if something between them depends on it, or cannot be read. An entry
// that the database has not reached cannot have written the records.
func TestWriterAfterTheRevoke(t *testing.T) {
	again, outdated := asked{5, clustertest.RevokeRequest(7)}, asked{4, clustertest.RevokeRequest(7)}
	compaction := asked{5, &etcdserverpb.InternalRaftRequest{Compaction: &etcdserverpb.CompactionRequest{Revision: 2}}}
	put := asked{5, clustertest.PutRequest("z", "1", 0)}
	grant := func(id int64) asked { return asked{5, clustertest.GrantRequest(id, 60)} }
	for name, c := range map[string]struct {
		applied  uint64
		requests []asked
		garbled  uint64
		at       uint64
		open     int64
	}{
		"none":                               {10, nil, 0, 10, 0},
		"later":                              {11, []asked{again}, 0, 10, 1},
		"later, at that":                     {11, []asked{again}, 0, 11, 0},
		"above the database":                 {10, []asked{again}, 0, 10, 0},
		"another write before it":            {12, []asked{put, again}, 0, 10, 0},
		"an entry that cannot be read":       {11, []asked{put}, 11, 10, 1},
		"two":                                {12, []asked{outdated, again}, 0, 12, 0},
		"two, with a compaction":             {13, []asked{outdated, compaction, again}, 0, 13, 1},
		"one, with a compaction":             {12, []asked{compaction, again}, 0, 12, 0},
		"two, with a new lease of that ID":   {13, []asked{outdated, grant(7), again}, 0, 13, 1},
		"two, with a new lease of other IDs": {13, []asked{outdated, grant(8), again}, 0, 13, 0},
	} {
		dir := revokedThen(t, c.applied, []change{{"k", 7}, {"k", 0}}, c.requests...)
		o := rebuild.Options{Logs: []evidence.Spec{{Where: dir}}, To: rebuild.Target{Index: c.at}}
		if c.garbled > 0 {
			o.Logs[0].Where = rewritten(t, dir, func(e *raftpb.Entry) bool {
				if e.Index == c.garbled {
					e.Data = []byte{0xff, 0xff, 0xff}
				}
				return true
			})
			o.Against = []evidence.Spec{{Name: "db", Where: filepath.Join(dir, "member", "snap", "db")}}
		}
		res, err := run(t, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if res.Unsettled != c.open || res.DoubtfulCount != c.open || res.To.Index != c.at {
			t.Errorf("%s: %d open, %d doubtful: %+v", name, res.Unsettled, res.DoubtfulCount, res.Doubtful)
		}
	}
}

// TestLeaning: what one revoke shows of the members' release holds for a later one that no database shows. That one
// counts as doubtful. It also holds for one that the database shows and a still later entry may have written.
func TestLeaning(t *testing.T) {
	put, tombstone := func(key string, lease int64) change { return change{key, lease} },
		func(key string) change { return change{key, 0} }
	second := []asked{{5, clustertest.GrantRequest(8, 60)}, {5, clustertest.PutRequest("m", "1", 8)},
		{4, clustertest.RevokeRequest(8)}}
	third := slices.Concat(second, []asked{{5, clustertest.RevokeRequest(8)}})
	for name, c := range map[string]struct {
		applied        uint64
		records        []change
		requests       []asked
		at             uint64
		revision       int64
		doubtful, open int64
	}{
		"executed": {10, []change{put("k", 7), tombstone("k")}, second, 13, 5, 1, 0},
		"refused":  {10, []change{put("k", 7)}, second, 13, 3, 1, 0},
		"executed, and shown": {13, []change{put("k", 7), tombstone("k"), put("m", 8), tombstone("m")}, second, 13, 5,
			0, 0},
		"refused, and written by the first or the later one": {14, []change{put("k", 7), put("m", 8), tombstone("m")},
			third, 13, 3, 1, 1},
		"refused, and at the later one": {14, []change{put("k", 7), put("m", 8), tombstone("m")}, third, 14, 4, 0, 0},
		"executed, and written by the first or the later one": {14, []change{put("k", 7), tombstone("k"), put("m", 8),
			tombstone("m")}, third, 13, 5, 1, 1},
	} {
		dir := revokedThen(t, c.applied, c.records, c.requests...)
		res, err := run(t, rebuild.Options{Logs: []evidence.Spec{{Where: dir}}, To: rebuild.Target{Index: c.at}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if res.To.Revision != c.revision || res.DoubtfulCount != c.doubtful || res.Unsettled != c.open {
			t.Errorf("%s: revision %d, %d doubtful, %d open: %+v", name, res.To.Revision, res.DoubtfulCount,
				res.Unsettled, res.Doubtful)
		}
	}
}
