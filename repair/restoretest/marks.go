package restoretest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// keyHash represents a key with 128 bits, so that two of a billion keys collide once in 10^20 runs.
type keyHash struct{ hi, lo uint64 }

// mark is what is kept of a live key: its mod revision and a digest of the rest. seen is set once the server has
// returned it. Ranges are disjoint, so each mark is used by one goroutine.
type mark struct {
	mod    int64
	digest uint64
	seen   bool
}

// marks are the live keys of one part of the key space, and ranges that split all of it into pieces of about equal
// size.
type marks struct {
	part, parts uint64
	at          map[keyHash]int32
	list        []mark
	free        []int32 // places of deleted keys in list
	bounds      []string
}

func hashOf(key []byte) keyHash {
	h := xxh3.Hash128(key)
	return keyHash{h.Hi, h.Lo}
}

func digestOf(create, version, lease int64, value []byte) uint64 {
	var b [24]byte
	binary.LittleEndian.PutUint64(b[:], uint64(create))
	binary.LittleEndian.PutUint64(b[8:], uint64(version))
	binary.LittleEndian.PutUint64(b[16:], uint64(lease))
	return xxh3.HashSeed(value, xxh3.Hash(b[:]))
}

const (
	// sampleEvery is how many bytes of records are between two samples of keys; samplesPerRange samples make a range.
	// So one answer of the server has about 16 MB, whatever the sizes of the values.
	sampleEvery     = 256 << 10
	samplesPerRange = 64
)

// readMarks reads the records of the backup once.
func readMarks(ctx context.Context, db *dumpdb.DB, part, parts uint64) (*marks, error) {
	t := &marks{part: part, parts: parts, at: map[keyHash]int32{}}
	var samples []string
	bytesSeen, next, n := int64(0), int64(sampleEvery), 0
	for r, err := range db.Revisions() {
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if r.Err != nil {
			return nil, r.Err
		}
		if bytesSeen += int64(len(r.Raw)); bytesSeen >= next {
			samples, next = append(samples, string(r.KV.Key)), bytesSeen+sampleEvery
		}
		k := hashOf(r.KV.Key)
		// The empty key is written by restore --bump-revision; no client can read it.
		if k.hi%parts != part || len(r.KV.Key) == 0 {
			continue
		}
		if r.Tombstone {
			t.remove(k)
		} else {
			t.put(k, mark{mod: r.KV.ModRevision, digest: digestOf(r.KV.CreateRevision, r.KV.Version, r.KV.Lease,
				r.KV.Value)})
		}
	}
	t.bounds = cut(samples)
	return t, ctx.Err()
}

func (t *marks) put(k keyHash, m mark) {
	i, ok := t.at[k]
	switch n := len(t.free); {
	case ok:
	case n > 0:
		i, t.free = t.free[n-1], t.free[:n-1]
	default:
		i = int32(len(t.list))
		t.list = append(t.list, mark{})
	}
	t.at[k], t.list[i] = i, m
}

func (t *marks) remove(k keyHash) {
	if i, ok := t.at[k]; ok {
		t.free = append(t.free, i)
		delete(t.at, k)
	}
}

// cut returns the starts of the ranges; the first one is the start of the key space.
func cut(samples []string) []string {
	slices.Sort(samples)
	out := []string{"\x00"}
	for i := samplesPerRange; i < len(samples); i += samplesPerRange {
		if s := samples[i]; s > out[len(out)-1] {
			out = append(out, s)
		}
	}
	return out
}

// compare compares an answer with the mark of its key; own is false for a key of another part.
func (t *marks) compare(kv *mvccpb.KeyValue) (own bool, diff *backup.Difference) {
	k := hashOf(kv.Key)
	if k.hi%t.parts != t.part {
		return false, nil
	}
	i, ok := t.at[k]
	if !ok {
		return true, &backup.Difference{What: "key", Key: bytes.Clone(kv.Key), InBackup: "absent",
			Answered: fmt.Sprintf("mod revision %d", kv.ModRevision)}
	}
	m := &t.list[i]
	m.seen = true
	switch {
	case m.mod != kv.ModRevision:
		return true, &backup.Difference{What: "key", Key: bytes.Clone(kv.Key),
			InBackup: fmt.Sprintf("mod revision %d", m.mod), Answered: fmt.Sprintf("mod revision %d", kv.ModRevision)}
	case m.digest != digestOf(kv.CreateRevision, kv.Version, kv.Lease, kv.Value):
		return true, &backup.Difference{What: "key", Key: bytes.Clone(kv.Key),
			InBackup: fmt.Sprintf("other content at mod revision %d", m.mod),
			Answered: fmt.Sprintf("create %d, version %d, value of %d bytes",
				kv.CreateRevision, kv.Version, len(kv.Value))}
	}
	return true, nil
}

// missing returns the keys that the server did not return. Only then are the records read again.
func (t *marks) missing(ctx context.Context, db *dumpdb.DB, tell func(backup.Difference)) error {
	unseen := false
	for _, i := range t.at {
		unseen = unseen || !t.list[i].seen
	}
	if !unseen {
		return nil
	}
	for r, err := range db.Revisions() {
		if err != nil {
			return err
		}
		i, ok := t.at[hashOf(r.KV.Key)]
		if ok && !t.list[i].seen && t.list[i].mod == r.KV.ModRevision {
			t.list[i].seen = true
			tell(backup.Difference{What: "key", Key: bytes.Clone(r.KV.Key),
				InBackup: fmt.Sprintf("mod revision %d", r.KV.ModRevision), Answered: "absent"})
		}
	}
	return ctx.Err()
}
