package dumpdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/etcd-medic/etcd-medic/internal/wire"
)

const (
	revKeySize  = 17
	tombKeySize = 18
)

// parseRevKey decodes a key of bucket key. It returns an error where the server panics
// (server/storage/mvcc/revision.go).
func parseRevKey(k []byte) (r Rev, tombstone bool, err error) {
	if len(k) != revKeySize && len(k) != tombKeySize {
		return r, false, fmt.Errorf("the revision key has %d bytes, not 17 or 18", len(k))
	}
	if k[8] != '_' {
		return r, false, fmt.Errorf("the revision key has separator %q, not '_'", k[8])
	}
	r = Rev{int64(binary.BigEndian.Uint64(k)), int64(binary.BigEndian.Uint64(k[9:]))}
	if r.Main < 0 || r.Sub < 0 {
		return r, false, fmt.Errorf("revision %d.%d is negative", r.Main, r.Sub)
	}
	if len(k) == tombKeySize && k[17] != 't' {
		return r, false, fmt.Errorf("the revision key has mark %q, not 't'", k[17])
	}
	return r, len(k) == tombKeySize, nil
}

// Bytes returns the bucket key of r.
func (r Rev) Bytes() []byte {
	b := make([]byte, 0, tombKeySize)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Main))
	b = append(b, '_')
	return binary.BigEndian.AppendUint64(b, uint64(r.Sub))
}

// DecodeKeyValue decodes mvccpb.KeyValue (api/mvccpb/kv.proto, all versions). The slices point into b.
func DecodeKeyValue(b []byte) (KeyValue, error) {
	var kv KeyValue
	err := kv.decode(b)
	return kv, err
}

func (kv *KeyValue) decode(b []byte) error {
	var f field
	var err error
	for len(b) > 0 {
		if n := kv.field(b); n > 0 {
			b = b[n:]
			continue
		}
		if b, err = nextField(b, &f); err != nil {
			return err
		}
		if f.Num > 6 {
			kv.Unknown = f.Num
			continue
		}
		want := wire.Varint
		if f.Num == 1 || f.Num == 5 {
			want = wire.Bytes
		}
		if f.Type != want {
			return fmt.Errorf("%w: field %d has wire type %d, not %d", errProto, f.Num, f.Type, want)
		}
		kv.set(&f)
	}
	return nil
}

// The tags of mvccpb.KeyValue as every server writes them: number and wire type in one byte.
const (
	tagKey     = 1<<3 | byte(wire.Bytes)
	tagCreate  = 2<<3 | byte(wire.Varint)
	tagMod     = 3<<3 | byte(wire.Varint)
	tagVersion = 4<<3 | byte(wire.Varint)
	tagValue   = 5<<3 | byte(wire.Bytes)
	tagLease   = 6<<3 | byte(wire.Varint)
)

// field reads the field at the start of b if its tag is one of these, and returns its length. Otherwise, or if the
// field is not whole, it returns 0. Each record of a database comes through here several times.
func (kv *KeyValue) field(b []byte) int {
	v, n := wire.Uvarint(b[1:])
	if n == 0 {
		return 0
	}
	n++
	switch b[0] {
	case tagCreate:
		kv.CreateRevision = int64(v)
	case tagMod:
		kv.ModRevision = int64(v)
	case tagVersion:
		kv.Version = int64(v)
	case tagLease:
		kv.Lease = int64(v)
	case tagKey, tagValue:
		if v > uint64(len(b)-n) {
			return 0
		}
		end := n + int(v)
		if b[0] == tagKey {
			kv.Key = b[n:end:end]
		} else {
			kv.Value = b[n:end:end]
		}
		return end
	default:
		return 0
	}
	return n
}

func (kv *KeyValue) set(f *field) {
	switch f.Num {
	case 1:
		kv.Key = f.B
	case 2:
		kv.CreateRevision = int64(f.V)
	case 3:
		kv.ModRevision = int64(f.V)
	case 4:
		kv.Version = int64(f.V)
	case 5:
		kv.Value = f.B
	case 6:
		kv.Lease = int64(f.V)
	}
}

// decodeRevision turns a row of bucket key into a Revision.
func decodeRevision(r *Revision, place Place, key, value []byte) {
	*r = Revision{Place: place, Raw: value, RawKey: key}
	var kerr error
	if r.Rev, r.Tombstone, kerr = parseRevKey(key); kerr != nil {
		kerr = fmt.Errorf("bucket key: %w", kerr)
	}
	verr := r.KV.decode(value)
	if verr != nil {
		verr = fmt.Errorf("value: %w", verr)
	}
	if kerr != nil || verr != nil {
		r.Err = errors.Join(kerr, verr)
	}
}

// Revisions yields the decoded records of bucket key in revision order, and damage as Rows does.
func (db *DB) Revisions() iter.Seq2[Revision, error] { return db.revisions(span{}) }

// RevisionsFrom is Revisions from the first record at or after from.
func (db *DB) RevisionsFrom(from Rev) iter.Seq2[Revision, error] {
	return db.revisions(span{first: from.Bytes()})
}

// RevisionsBetween yields the records from from up to but not including end.
func (db *DB) RevisionsBetween(from, end Rev) iter.Seq2[Revision, error] {
	return db.revisions(span{from.Bytes(), end.Bytes()})
}

func (db *DB) revisions(want span) iter.Seq2[Revision, error] {
	return func(yield func(Revision, error) bool) {
		var r Revision
		for row, err := range db.rows("key", want) {
			if err != nil {
				if !yield(Revision{}, err) {
					return
				}
				continue
			}
			decodeRevision(&r, row.Place, row.Key, row.Value)
			if !yield(r, nil) {
				return
			}
		}
	}
}
