package datadir

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// Edit changes one thing in a database under construction. Edits of one call share a transaction: either all apply or
// none.
type Edit func(tx *bolt.Tx) error

// The buckets and keys that edits change (server/storage/schema/bucket.go, names unchanged since 3.0).
var (
	bucketKey, bucketMeta, bucketAlarm     = []byte("key"), []byte("meta"), []byte("alarm")
	bucketMembers, bucketRemoved           = []byte("members"), []byte("members_removed")
	bucketAuth, bucketCluster              = []byte("auth"), []byte("cluster")
	keyIndex, keyTerm, keyConfState        = []byte("consistent_index"), []byte("term"), []byte("confState")
	keyStorageVersion, keyScheduledCompact = []byte("storageVersion"), []byte("scheduledCompactRev")
	keyAuthRevision, keyClusterVersion     = []byte("authRevision"), []byte("clusterVersion")
	keyFinishedCompact                     = []byte("finishedCompactRev")
	keyClusterDowngrade                    = []byte("downgrade")
)

func put(tx *bolt.Tx, bucket, key, value []byte) error {
	b, err := tx.CreateBucketIfNotExists(bucket)
	if err != nil {
		return err
	}
	return b.Put(key, value)
}

func drop(tx *bolt.Tx, bucket, key []byte) error {
	b := tx.Bucket(bucket)
	if b == nil {
		return nil
	}
	return b.Delete(key)
}

func be64(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

// SetConsistentIndex sets meta/consistent_index: the server executes only later entries.
func SetConsistentIndex(index uint64) Edit {
	return func(tx *bolt.Tx) error { return put(tx, bucketMeta, keyIndex, be64(index)) }
}

// SetTerm sets meta/term, the term of the entry at the consistent index (3.5+ writes it; older servers ignore it). 0
// removes it, as databases up to 3.4 have none.
func SetTerm(term uint64) Edit {
	return func(tx *bolt.Tx) error {
		if term == 0 {
			return drop(tx, bucketMeta, keyTerm)
		}
		return put(tx, bucketMeta, keyTerm, be64(term))
	}
}

// SetConfState sets meta/confState to the JSON of raftpb.ConfState as 3.5+ writes it; no voters removes it.
func SetConfState(voters, learners []uint64) Edit {
	return func(tx *bolt.Tx) error {
		if len(voters) == 0 {
			return drop(tx, bucketMeta, keyConfState)
		}
		b, err := json.Marshal(struct {
			Voters    []uint64 `json:"voters"`
			Learners  []uint64 `json:"learners,omitempty"`
			AutoLeave bool     `json:"auto_leave"`
		}{voters, learners, false})
		if err != nil {
			return err
		}
		return put(tx, bucketMeta, keyConfState, b)
	}
}

// SetStorageVersion sets meta/storageVersion (3.6+), such as "3.6.0"; "" removes it, as in 3.5 and older.
func SetStorageVersion(v string) Edit {
	return func(tx *bolt.Tx) error {
		if v == "" {
			return drop(tx, bucketMeta, keyStorageVersion)
		}
		return put(tx, bucketMeta, keyStorageVersion, []byte(v))
	}
}

// SetClusterVersion sets cluster/clusterVersion, such as "3.5.0"; "" removes it, and the members agree on one again.
func SetClusterVersion(v string) Edit {
	return func(tx *bolt.Tx) error {
		if v == "" {
			return drop(tx, bucketCluster, keyClusterVersion)
		}
		return put(tx, bucketCluster, keyClusterVersion, []byte(v))
	}
}

// ClearDowngrade removes cluster/downgrade (3.5+): a downgrade in progress would continue in the new cluster.
func ClearDowngrade() Edit {
	return func(tx *bolt.Tx) error { return drop(tx, bucketCluster, keyClusterDowngrade) }
}

// SetAuthRevision sets auth/authRevision: the member refuses requests with a lower one.
func SetAuthRevision(rev uint64) Edit {
	return func(tx *bolt.Tx) error { return put(tx, bucketAuth, keyAuthRevision, be64(rev)) }
}

// SetMembers replaces buckets members and members_removed by these lists.
func SetMembers(members []Member, removed []uint64) Edit {
	return func(tx *bolt.Tx) error {
		for _, name := range [][]byte{bucketMembers, bucketRemoved} {
			if err := tx.DeleteBucket(name); err != nil &&
				!errors.Is(err, bolt.ErrBucketNotFound) { //nolint:staticcheck // same value as in package errors
				return err
			}
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		for i := range members {
			b, err := members[i].JSON()
			if err != nil {
				return err
			}
			if err := put(tx, bucketMembers, fmt.Appendf(nil, "%x", members[i].ID), b); err != nil {
				return err
			}
		}
		for _, id := range removed {
			if err := put(tx, bucketRemoved, fmt.Appendf(nil, "%x", id), []byte("removed")); err != nil {
				return err
			}
		}
		return nil
	}
}

// DropBucketKeys removes keys from a bucket, or all of them without keys. Missing keys are not an error.
func DropBucketKeys(bucket string, keys ...[]byte) Edit {
	return func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		if b == nil {
			return nil
		}
		if len(keys) == 0 {
			if err := tx.DeleteBucket([]byte(bucket)); err != nil {
				return err
			}
			_, err := tx.CreateBucket([]byte(bucket))
			return err
		}
		for _, k := range keys {
			if err := b.Delete(k); err != nil {
				return err
			}
		}
		return nil
	}
}

// PutBucketKey sets one key of a bucket, and creates the bucket if necessary.
func PutBucketKey(bucket string, key, value []byte) Edit {
	return func(tx *bolt.Tx) error { return put(tx, []byte(bucket), key, value) }
}

// ClearAlarm removes alarms of a member from bucket alarm: those of one kind (1 NOSPACE, 2 CORRUPT) or, with kind 0,
// all; member 0 is every member.
func ClearAlarm(member uint64, kind int32) Edit {
	return clearAlarms(func(id uint64, alarm uint64) bool {
		return (member == 0 || id == member) && (kind == 0 || alarm == uint64(kind))
	})
}

// ClearAlarmOf is ClearAlarm for exactly one member. Servers raise CORRUPT for member 0 if they do not know which
// member is wrong.
func ClearAlarmOf(member uint64, kind int32) Edit {
	return clearAlarms(func(id uint64, alarm uint64) bool {
		return id == member && (kind == 0 || alarm == uint64(kind))
	})
}

// clearAlarms removes matching alarms. The bucket's keys are etcdserverpb.AlarmMember {1 memberID, 2 alarm}; both field
// orders and zero fields occur.
func clearAlarms(fits func(member, alarm uint64) bool) Edit {
	return func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketAlarm)
		if b == nil {
			return nil
		}
		var gone [][]byte
		err := b.ForEach(func(k, _ []byte) error {
			if id, alarm, ok := decodeAlarm(k); ok && fits(id, alarm) {
				gone = append(gone, bytes.Clone(k))
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, k := range gone {
			if err := b.Delete(k); err != nil {
				return err
			}
		}
		return nil
	}
}

// BumpRevision raises the current revision by n, as etcdutl snapshot restore --bump-revision does (3.4.27+, 3.5.10+,
// 3.6+): it adds a record with an empty value, n revisions after the last one. Use it with MarkCompacted; otherwise the
// gap looks like missing history.
func BumpRevision(n uint64) Edit {
	return func(tx *bolt.Tx) error {
		last, err := lastRevision(tx)
		if err != nil {
			return err
		}
		main := last + n
		if n == 0 || main < last || main > 1<<63-1 {
			return fmt.Errorf("revision %d cannot be raised by %d", last, n)
		}
		return put(tx, bucketKey, revisionKey(main), []byte{})
	}
}

// MarkCompacted schedules a compaction at the last revision. The first start removes older records that are not live,
// and watches from an older revision fail instead of missing events.
func MarkCompacted() Edit {
	return func(tx *bolt.Tx) error {
		last, err := lastRevision(tx)
		if err != nil {
			return err
		}
		return put(tx, bucketMeta, keyScheduledCompact, revisionKey(last))
	}
}

func revisionKey(main uint64) []byte {
	return slices.Concat(be64(main), []byte{'_'}, be64(0))
}

// lastRevision returns the current revision as a server computes it: the last record, but at least the compaction marks
// and 1.
func lastRevision(tx *bolt.Tx) (uint64, error) {
	b := tx.Bucket(bucketKey)
	if b == nil {
		return 0, errors.New("the database has no bucket key")
	}
	last := uint64(1)
	if k, _ := b.Cursor().Last(); k != nil {
		if len(k) < 17 {
			return 0, fmt.Errorf("the last key of bucket key, %x, is not a revision", k)
		}
		last = binary.BigEndian.Uint64(k)
	}
	if meta := tx.Bucket(bucketMeta); meta != nil {
		for _, mark := range [][]byte{keyScheduledCompact, keyFinishedCompact} {
			if v := meta.Get(mark); len(v) >= 8 {
				last = max(last, binary.BigEndian.Uint64(v))
			}
		}
	}
	return last, nil
}

// RollBack makes the older of the two meta pages, at offset older, the newest one, in a database created by this run.
// It overwrites the other one with the same state under a lower txid, so that both are valid. A meta page has 64 bytes
// after the 16-byte page header: txid at 48, FNV-1a-64 of the first 56 bytes at 56; the page id is txid modulo 2.
func RollBack(path string, older, newer int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	var b [80]byte
	if _, err = f.ReadAt(b[:], older); err == nil {
		txid := binary.LittleEndian.Uint64(b[64:]) - 1
		binary.LittleEndian.PutUint64(b[0:], txid%2)
		binary.LittleEndian.PutUint64(b[64:], txid)
		h := fnv.New64a()
		_, _ = h.Write(b[16:72])
		binary.LittleEndian.PutUint64(b[72:], h.Sum64())
		if _, err = f.WriteAt(b[:], newer); err == nil {
			err = f.Sync()
		}
	}
	return errors.Join(err, f.Close())
}
