package dumplog_test

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// withoutPadding rewrites the frames from..to of the only segment without padding, and keeps the rest as it is.
func withoutPadding(t *testing.T, dir string, from, to int) {
	t.Helper()
	name := filepath.Join(dir, "0000000000000000-0000000000000000.wal")
	b, err := os.ReadFile(name)
	must(t, err)
	var out []byte
	at := 0
	for n := 0; ; n++ {
		word := binary.LittleEndian.Uint64(b[at:])
		if word == 0 {
			break
		}
		rec := int(word & (1<<56 - 1))
		end := at + 8 + (rec+7)&^7
		if from <= n && n < to {
			out = binary.LittleEndian.AppendUint64(out, uint64(rec))
			out = append(out, b[at+8:at+8+rec]...)
		} else {
			out = append(out, b[at:end]...)
		}
		at = end
	}
	must(t, os.WriteFile(name, append(out, make([]byte, 4096)...), 0o600))
}

// etcd up to 2.2 wrote records without padding, and every etcd reads them.
func TestRecordsWithoutPadding(t *testing.T) {
	const all = 1 << 20
	for name, span := range map[string][2]int{"all": {0, all}, "the head": {0, 3}, "one": {7, 8}, "the last": {40, all},
		"from the middle on": {20, all}} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "wal")
			w := newWAL(t, dir)
			for i := uint64(1); i <= 20; i++ { // records of many lengths
				w.save(hardState(i), entryOf(i, make([]byte, i)))
			}
			w.close()
			must(t, removeTmp(dir))
			whole := scanDir(t, dir)
			withoutPadding(t, dir, span[0], span[1])
			s := scanDir(t, dir)
			wantDamage(t, s)
			if s.LastIndex != 20 || s.Segments[0].Records != whole.Segments[0].Records || s.Metadata == nil ||
				*s.Metadata != *whole.Metadata {
				t.Errorf("last index %d, %d of %d records, metadata %v", s.LastIndex, s.Segments[0].Records,
					whole.Segments[0].Records, s.Metadata)
			}
			if got := strings.TrimSpace(etcdReads(t, dir)); got != "reads entries 1..20" {
				t.Errorf("etcd %s", got)
			}
		})
	}
}

// A length word that lost its padding bits in front of a padded record is damage, though the record holds.
func TestPaddingBitsLost(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	w := newWAL(t, dir)
	for i := uint64(1); i <= 20; i++ {
		w.save(hardState(i), entryOf(i, make([]byte, i)))
	}
	w.close()
	l, err := dumplog.Open(dir)
	must(t, err)
	var at int64
	for rec, err := range l.Records(context.Background()) {
		must(t, err)
		if rec.Type == dumplog.RecordEntry && rec.Pad > 0 && rec.Offset > 600 {
			at = rec.Offset
			break
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, "0000000000000000-0000000000000000.wal"), os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte{0}, at+7)
	must(t, err)
	must(t, f.Close())
	s := scanDir(t, dir)
	wantDamage(t, s, dumplog.DamageFrame)
	if s.LastIndex != 20 {
		t.Errorf("last index %d", s.LastIndex)
	}
}

// The ID of a request stands in its header, or in field 1 where the header has none.
func TestRequestID(t *testing.T) {
	for _, c := range []struct {
		req  pb.InternalRaftRequest
		want dumplog.RequestID
	}{
		{pb.InternalRaftRequest{ID: 5}, 5},
		{pb.InternalRaftRequest{ID: 5, Header: &pb.RequestHeader{Username: "u"}}, 5},
		{pb.InternalRaftRequest{ID: 5, Header: &pb.RequestHeader{ID: 7}}, 7},
		{pb.InternalRaftRequest{Header: &pb.RequestHeader{ID: 7}}, 7},
	} {
		c.req.Put = &pb.PutRequest{Key: []byte("k"), Value: []byte("v")}
		data, err := c.req.Marshal()
		must(t, err)
		r, err := (&dumplog.Entry{Term: 1, Index: 1, Data: data}).Decode()
		must(t, err)
		if r.Kind != dumplog.KindPut || r.Header.ID != c.want || r.ProposerID() != c.want || len(r.Unknown) > 0 {
			t.Errorf("%s, ID %s, want %s, unknown %v", r.Kind, r.Header.ID, c.want, r.Unknown)
		}
	}
}

func hardState(commit uint64) raftpb.HardState {
	return raftpb.HardState{Term: 1, Vote: testMember, Commit: commit}
}

func entryOf(index uint64, value []byte) raftpb.Entry {
	return raftpb.Entry{Term: 1, Index: index, Data: put("k", value, 0)}
}
