package clustertest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

// Damage changes the files of one member; it gets the folder member of a data dir that the test may write to.
type Damage func(t *testing.T, member string)

// EditDB changes the database with bbolt, in one transaction.
func EditDB(edit func(*bbolt.Tx) error) Damage {
	return func(t *testing.T, member string) {
		t.Helper()
		db, err := bbolt.Open(filepath.Join(member, "snap", "db"), 0o600, &bbolt.Options{NoFreelistSync: true})
		synthOK(t, err)
		synthOK(t, db.Update(edit))
		synthOK(t, db.Close())
	}
}

// EditMember changes the JSON of the member of that name in bucket members. Numbers keep their digits.
func EditMember(name string, edit func(map[string]any)) Damage {
	return EditDB(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("members"))
		return b.ForEach(func(k, v []byte) error {
			if !strings.Contains(string(v), strconv.Quote(name)) {
				return nil
			}
			var m map[string]any
			d := json.NewDecoder(bytes.NewReader(v))
			d.UseNumber()
			if err := d.Decode(&m); err != nil {
				return err
			}
			edit(m)
			out, err := json.Marshal(m)
			if err != nil {
				return err
			}
			return b.Put(bytes.Clone(k), out)
		})
	})
}

// RevisionKey is the key under which bucket key holds the first record of a revision.
func RevisionKey(main int64) []byte {
	return binary.BigEndian.AppendUint64(append(binary.BigEndian.AppendUint64(nil, uint64(main)), '_'), 0)
}

// RecordOffsets are the offsets of all records of a WAL segment and the end of the last.
func RecordOffsets(b []byte) []int64 {
	at := []int64{0}
	for off := int64(0); off+8 <= int64(len(b)); {
		word := binary.LittleEndian.Uint64(b[off:])
		if word == 0 {
			break
		}
		n := int64(word & (1<<56 - 1))
		if word>>63 == 1 {
			n += int64(word >> 56 & 7)
		}
		off += 8 + n
		at = append(at, off)
	}
	return at
}
