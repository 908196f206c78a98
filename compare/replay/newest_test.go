package replay

import (
	"encoding/binary"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// insert adds a record; without a value it is a tombstone.
func insert(rev int64, key, value string) func(*testing.T, string) {
	return inDB(func(tx *bbolt.Tx) error {
		kv := mvccpb.KeyValue{Key: []byte(key)}
		k := revKey(rev)
		if value == "" {
			k = append(k, 't')
		} else {
			kv.Value, kv.CreateRevision, kv.ModRevision, kv.Version = []byte(value), rev, rev, 1
		}
		data, err := kv.Marshal()
		if err != nil {
			return err
		}
		return tx.Bucket([]byte("key")).Put(k, data)
	})
}

// drop removes the records of a revision.
func drop(rev int64) func(*testing.T, string) {
	return inDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("key")).Delete(revKey(rev)) })
}

// lowerIndex takes a number off the consistent index.
func lowerIndex(n uint64) func(*testing.T, string) {
	return inDB(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("meta"))
		index := binary.BigEndian.Uint64(b.Get([]byte("consistent_index")))
		return b.Put([]byte("consistent_index"), binary.BigEndian.AppendUint64(nil, index-n))
	})
}

// TestNewest: the newest revision is that of an entry from the last one on that must have written. One that none of
// them can have written was added, or is of an entry above the consistent index.
func TestNewest(t *testing.T) {
	begin := func(s *story) {
		s.early()
		s.grant(7)
		s.held("leased", 7)
		s.held("other", 8)
		s.purge() // 10
		s.put("n0", "1")
		s.put("n1", "1")
	}
	for name, c := range map[string]struct {
		end   func(*story)
		spoil func(*testing.T, string)
		sound string
		other string
	}{
		"a delete that may be of nothing": {end: func(s *story) { s.compact(12); s.del("n1") },
			sound: "from 12, applied 1"},
		"a guarded put": {end: func(s *story) { s.compact(12); s.guarded("n1", "2") },
			sound: "from 12, applied 1"},
		"a revoke": {end: func(s *story) { s.compact(12); s.revoke(7) },
			sound: "from 12, applied 1"},
		"all compacted": {end: func(s *story) { s.compact(12) }, sound: "from 12"},
		"a tombstone is added": {end: func(s *story) { s.compact(11) }, spoil: insert(13, "k1", ""),
			sound: "from 11, applied 1", other: "from 11, applied 1, extra [13]"},
		"a tombstone is added after a compaction of all": {end: func(s *story) { s.compact(12) },
			spoil: insert(13, "k1", ""), sound: "from 12", other: "from 12, extra [13]"},
		"a record is added": {end: func(s *story) { s.compact(11) }, spoil: insert(13, "k1", "X"),
			sound: "from 11, applied 1", other: "from 11, applied 1, extra [13]"},
		"a tombstone of a key without the revoked lease": {end: func(s *story) {
			s.put("n2", "1") // 13
			s.failed(revokeLease(7))
			s.compact(12)
		}, spoil: insert(14, "other", ""), sound: "from 12, applied 1", other: "from 12, applied 1, extra [14]"},
		"a tombstone of a key with the revoked lease": {end: func(s *story) {
			s.put("n2", "1") // 13
			s.failed(revokeLease(7))
			s.compact(12)
		}, spoil: insert(14, "leased", ""), sound: "from 12, applied 1", other: "from 12, applied 2"},
		"entries without effect at the end": {end: func(s *story) {
			s.compact(11)
			s.failed(ifMod("k1", 2, "never"))
			s.failed(ifAbsent("k1", "never"))
		}, sound: "from 11, applied 1"},
		"the newest record is lost": {end: func(s *story) {
			s.compact(11)
			s.put("n2", "1")
			s.put("n3", "1")
			s.put("n4", "1") // 15
		}, spoil: drop(15), sound: "from 11, applied 4", other: "from 11, applied 3, missing 1"},
		"the index is too low": {end: func(s *story) {
			s.compact(11)
			s.put("n2", "1")
			s.put("n3", "1")
		}, spoil: lowerIndex(2), sound: "from 11, applied 3", other: "from 11, applied 1, not-applied 2, ahead 21..22"},
		"the index is too low, and an entry below may have deleted": {end: func(s *story) {
			s.del("n1") // 13
			s.compact(13)
			s.put("n2", "1")
			s.put("n1", "2")
			s.guarded("n2", "2")
			s.del("n1")
		}, spoil: lowerIndex(4), sound: "from 13, applied 4", other: "from 13, not-applied 4, ahead 22..25"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			purgedCase{tell: func(s *story) { begin(s); c.end(s) }, spoil: c.spoil, sound: c.sound,
				other: c.other}.check(t)
		})
	}
}

func revokeLease(id int64) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{LeaseRevoke: &pb.LeaseRevokeRequest{ID: id}}
}

// TestRevokes: a revoke can have deleted keys of its lease, and those of which the lease is not known.
func TestRevokes(t *testing.T) {
	g := groupOf(tomb(5, 0, "a"), tomb(5, 1, "b"))
	for _, c := range []struct {
		leases map[string]int64
		want   bool
	}{
		{map[string]int64{"a": 7, "b": 7}, true}, {map[string]int64{"a": 7}, true}, {nil, true},
		{map[string]int64{"a": 7, "b": 8}, false}, {map[string]int64{"b": 0}, false},
		{map[string]int64{"a": 7, "b": 7, "c": 8}, true},
	} {
		if got := revokes(7, g, c.leases); got != c.want {
			t.Errorf("%v: %t", c.leases, got)
		}
	}
}

// TestExplained: records that cannot be read may be of any entry, others only of one that can have written them or that
// names their first key.
func TestExplained(t *testing.T) {
	deep := txn(nil, []dumplog.RequestOp{{Range: &dumplog.RangeRequest{Key: []byte("a")}}}, nil)
	for range apply.MaxTxnDepth + 1 {
		deep = txn(nil, nested(deep), nil)
	}
	torn := groupOf(rec(5, 0, "a", "1"), rec(5, 1, "b", "1"))
	torn.records[1].bad = true
	for name, c := range map[string]struct {
		g    *group
		log  []*dumplog.Request
		want bool
	}{
		"its put":                {groupOf(rec(5, 0, "a", "1")), []*dumplog.Request{put("b", "1"), put("a", "1")}, true},
		"another value":          {groupOf(rec(5, 0, "a", "2")), []*dumplog.Request{put("a", "1")}, true},
		"another key":            {groupOf(rec(5, 0, "a", "1")), []*dumplog.Request{put("b", "1"), del("a", "")}, false},
		"no entry":               {groupOf(rec(5, 0, "a", "1")), nil, false},
		"nested without end":     {groupOf(rec(5, 0, "a", "1")), []*dumplog.Request{deep}, true},
		"it cannot be read":      {torn, nil, true},
		"a revoke writes no put": {groupOf(rec(5, 0, "a", "1")), []*dumplog.Request{revoke(7)}, false},
	} {
		if got := (&logView{}).explained(c.g, itemsOf(c.log...)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestLastWriters: the entries from the last one on that writes in every state of the key space, among those that the
// member has certainly applied.
func TestLastWriters(t *testing.T) {
	for name, c := range map[string]struct {
		applied uint64
		log     []*dumplog.Request
		want    int
	}{
		"the last":             {9, []*dumplog.Request{put("a", "1"), put("b", "1")}, 1},
		"the one before":       {9, []*dumplog.Request{put("a", "1"), del("b", "")}, 2},
		"not certainly it has": {1, []*dumplog.Request{put("a", "1"), put("b", "1")}, 2},
		"just certainly":       {2, []*dumplog.Request{put("a", "1"), put("b", "1")}, 1},
		"none":                 {9, []*dumplog.Request{del("a", ""), txn(cmpMod("b", 2), nil, nil)}, 0},
	} {
		w := newWindow(c.log...)
		w.s.m.AppliedMin = c.applied
		if got := w.s.lastWriters(w.items); len(got) != c.want {
			t.Errorf("%s: %d entries, want %d", name, len(got), c.want)
		}
	}
}

// TestAboveTheIndex: the entries above the consistent index that may write, up to the end of the log.
func TestAboveTheIndex(t *testing.T) {
	b := newBench(t, 6, -1).log(put("a", "1"), put("b", "1"), grantOf(7, 60, 0), del("c", ""), put("d", "1"), put("e", "1"))
	b.sim.past = pastItems(b)
	for end, want := range map[uint64][]uint64{6: {2, 4, 5, 6}, 5: {2, 4, 5}, 3: {2}, 1: nil} {
		b.sim.logEnd = end
		var got []uint64
		for _, it := range b.sim.above(t.Context(), 1) {
			got = append(got, it.entry.Index)
		}
		if !slices.Equal(got, want) {
			t.Errorf("up to %d: %v, want %v", end, got, want)
		}
	}
}
