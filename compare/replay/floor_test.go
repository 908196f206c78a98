package replay

import (
	"encoding/binary"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// wedge adds a record of a revision, and raises this revision and all later ones by one: as if the log lacked the
// entry that wrote it. The records must be the first of their keys.
func wedge(rev int64, key string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		raised := map[string][]byte{}
		inDB(func(tx *bbolt.Tx) error {
			c := tx.Bucket([]byte("key")).Cursor()
			for k, v := c.Seek(revKey(rev)); k != nil; k, v = c.Next() {
				var kv mvccpb.KeyValue
				if err := kv.Unmarshal(v); err != nil {
					return err
				}
				if kv.ModRevision > 0 {
					kv.CreateRevision, kv.ModRevision = kv.CreateRevision+1, kv.ModRevision+1
				}
				data, err := kv.Marshal()
				if err != nil {
					return err
				}
				to := slices.Clone(k)
				copy(to, revKey(int64(binary.BigEndian.Uint64(k))+1)) //nolint:gosec // a revision
				raised[string(to)] = data
			}
			for k, _ := c.Seek(revKey(rev)); k != nil; k, _ = c.Next() {
				if err := c.Delete(); err != nil {
					return err
				}
			}
			for k, v := range raised {
				if err := tx.Bucket([]byte("key")).Put([]byte(k), v); err != nil {
					return err
				}
			}
			return nil
		})(t, dir)
		insert(rev, key, "X")(t, dir)
	}
}

// TestOverTheFloor: where the first record above the compact revision fits no entry, the entry that wrote the compact
// revision shows where the log meets the database.
func TestOverTheFloor(t *testing.T) {
	begin := func(s *story) {
		s.early()
		s.purge() // 8
	}
	puts := func(s *story) {
		s.put("n3", "1") // 11
		s.put("n4", "1")
		s.put("n5", "1")
	}
	for name, c := range map[string]purgedCase{
		"a put at the compact revision, and a record that no entry wrote": {tell: func(s *story) {
			s.put("n1", "1")
			s.put("n2", "1") // 10
			puts(s)
			s.compact(10)
			s.put("last", "1")
		}, spoil: wedge(11, "x"), sound: "from 10, applied 4", other: "from 10, applied 4, extra [11]"},
		"a guarded put there, after a plain one": {tell: func(s *story) {
			s.put("n1", "1")
			s.guarded("n1", "2") // 10
			puts(s)
			s.compact(10)
			s.put("last", "1")
		}, spoil: wedge(11, "x"), sound: "from 10, applied 4", other: "from 10, applied 4, extra [11]"},
		"a guarded put there, which can have been without effect": {tell: func(s *story) {
			s.guarded("k1", "2")
			s.guarded("k1", "3") // 10
			puts(s)
			s.compact(10)
			s.put("last", "1")
		}, spoil: wedge(11, "x"), sound: "from 10, applied 4", other: "from 11, applied 4"},
		"a put with a lease and a delete of the key after it": {tell: func(s *story) {
			s.grant(7)
			s.put("n1", "1")
			s.put("n2", "1") // 10
			puts(s)
			s.failed(putRequest("n2", "2", 9))
			s.del("n2") // 14
			s.compact(10)
			s.put("last", "1")
		}, spoil: wedge(11, "x"), sound: "from 10, applied 5", other: "from 10, applied 5, extra [11]"},
		"a put under a lease there, and a delete that may be of its key": {tell: func(s *story) {
			s.grant(7)
			s.put("n1", "1")
			s.held("n2", 7) // 10
			puts(s)
			s.failed(putRequest("n2", "2", 9))
			s.del("n2") // 14
			s.compact(10)
			s.put("last", "1")
		}, spoil: wedge(11, "x"), sound: "from 10, applied 5", other: "from 10, applied 5, extra [11]"},
		"a put under a lease there, twice": {tell: func(s *story) {
			s.grant(7)
			s.held("n2", 7)
			s.held("n2", 7) // 10
			puts(s)
			s.del("n2") // 14
			s.compact(10)
			s.put("last", "1")
		}, spoil: wedge(11, "x"), sound: "from 10, applied 5", other: "from 11, applied 5"},
		"the newest record is lost, and everything is guarded": {tell: func(s *story) {
			s.guarded("k1", "2")
			s.guarded("k2", "2") // 10
			s.guarded("k1", "3") // 11
			s.compact(10)
		}, spoil: drop(11), sound: "from 10, applied 1", other: "from 10, missing 1"},
		"nothing was written since": {tell: func(s *story) {
			s.guarded("k1", "2")
			s.guarded("k2", "2") // 10
			s.failed(ifMod("k1", 2, "never"))
			s.compact(10)
		}, sound: "from 10"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell := c.tell
			c.tell = func(s *story) { begin(s); tell(s) }
			c.check(t)
		})
	}
}
