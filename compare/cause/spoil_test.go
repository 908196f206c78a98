package cause_test

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

func both(spoils ...spoil) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		for _, s := range spoils {
			s(t, node)
		}
	}
}

func setIndex(index uint64) spoil { return setMeta("consistent_index", index) }

func setTerm(term uint64) spoil { return setMeta("term", term) }

func setMeta(key string, value uint64) spoil {
	return editDB(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte(key), binary.BigEndian.AppendUint64(nil, value))
	})
}

// asVersion makes a database look as written by that line: before 3.5 no term is stored.
func asVersion(version string) spoil {
	return editDB(func(tx *bbolt.Tx) error {
		if version < "3.5" {
			if err := tx.Bucket([]byte("meta")).Delete([]byte("term")); err != nil {
				return err
			}
		}
		return tx.Bucket([]byte("cluster")).Put([]byte("clusterVersion"), []byte(version))
	})
}

// withWAL opens a log with etcd's own package behind its last record.
func withWAL(write func(*wal.WAL) error) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		w, err := wal.Open(zap.NewNop(), filepath.Join(node, "wal"), walpb.Snapshot{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := w.ReadAll(); err != nil {
			t.Fatal(err)
		}
		w.SetUnsafeNoFsync()
		if err := write(w); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func appendWAL(h raftpb.HardState, entries ...raftpb.Entry) spoil {
	return withWAL(func(w *wal.WAL) error { return w.Save(h, entries) })
}

// appendSnapshot writes a snapshot record as 3.4 and older do, without the configuration, which etcd's package refuses
// by now.
func appendSnapshot(index uint64) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		file, at := lastSegment(t, node)
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var last walpb.Record
		from := at[len(at)-2] + 8
		if err := last.Unmarshal(b[from : from+int64(binary.LittleEndian.Uint64(b[from-8:])&(1<<56-1))]); err != nil {
			t.Fatal(err)
		}
		clustertest.SaveSynthSnap(t, node, 2, index, 0xa1, 0xa2, 0xa3)
		data, err := (&walpb.Snapshot{Index: index, Term: 2}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		rec, err := (&walpb.Record{Type: 5, Crc: crc32.Update(last.Crc, crc32.MakeTable(crc32.Castagnoli), data),
			Data: data}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		word := uint64(len(rec))
		if pad := -len(rec) & 7; pad > 0 {
			word |= uint64(0x80|pad) << 56
			rec = append(rec, make([]byte, pad)...)
		}
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(append(binary.LittleEndian.AppendUint64(nil, word), rec...), at[len(at)-1]); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func largeEntry() []byte {
	b, err := (&pb.InternalRaftRequest{Header: &pb.RequestHeader{ID: 1},
		Put: &pb.PutRequest{Key: []byte("large"), Value: make([]byte, 11<<20)}}).Marshal()
	if err != nil {
		panic(err)
	}
	return b
}

// lastSegment returns the last segment and the offsets of its records and of its end.
func lastSegment(t *testing.T, node string) (string, []int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(node, "wal", "*.wal"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	return files[len(files)-1], clustertest.RecordOffsets(b)
}

// nth is the record of that number, counted from the end when negative: -1 is the end itself, -2 the last record.
func nth(at []int64, n int) int {
	if n < 0 {
		return len(at) + n
	}
	return n
}

func writeZeros(t *testing.T, file string, from, to int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, to-from), from); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// zeroFrom removes the records from n on, as if they had never been written.
func zeroFrom(n int) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		file, at := lastSegment(t, node)
		writeZeros(t, file, at[nth(at, n)], at[len(at)-1])
	}
}

// zeroRecord blanks one record.
func zeroRecord(n int) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		file, at := lastSegment(t, node)
		writeZeros(t, file, at[nth(at, n)], at[nth(at, n)+1])
	}
}

// zeroInside blanks the record from the first border of a sector that is a multiple of step behind its start.
func zeroInside(n int, step int64) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		file, at := lastSegment(t, node)
		k := nth(at, n)
		for at[k+1]-at[k] < 2*step {
			k--
		}
		writeZeros(t, file, (at[k]/step+1)*step, at[len(at)-1])
	}
}

// cutWAL ends the file some bytes into a record.
func cutWAL(n int, keep int64) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		file, at := lastSegment(t, node)
		if err := os.Truncate(file, at[nth(at, n)]+keep); err != nil {
			t.Fatal(err)
		}
	}
}
