package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// segmentSize makes etcd's writer cut segments that a test can afford.
const segmentSize = 16 << 10

// walWrite DIR FIRST LAST [TERM] lets etcd's own WAL package write the log of the data dir DIR: puts at the indexes
// FIRST..LAST, each committed by the HardState behind it except the last one.
func (s scripts) walWrite(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args) > 4 {
		ts.Fatalf("usage: wal DIR FIRST LAST [TERM]")
	}
	n := []uint64{0, 0, 2}
	for i, a := range args[1:] {
		var err error
		n[i], err = strconv.ParseUint(a, 10, 64)
		ts.Check(err)
	}
	dir := filepath.Join(ts.MkAbs(args[0]), "member", "wal")
	ts.Check(writeWAL(dir, n[0], n[1], n[2]))
}

func writeWAL(dir string, first, last, term uint64) (err error) {
	w, err := openWAL(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for i := first; i <= last; i++ {
		q := etcdserverpb.InternalRaftRequest{Header: &etcdserverpb.RequestHeader{ID: 0x9bc7a1fbc415fb00 + i},
			Put: &etcdserverpb.PutRequest{Key: fmt.Appendf(nil, "/k/%03d", i), Value: bytes.Repeat([]byte{'v'}, 700)}}
		data, err := q.Marshal()
		if err != nil {
			return err
		}
		if err := w.Save(raftpb.HardState{Term: term, Vote: 1, Commit: i - 1},
			[]raftpb.Entry{{Term: term, Index: i, Data: data}}); err != nil {
			return err
		}
	}
	return nil
}

// openWAL creates a log, or opens it behind its last record as a restarting server does.
func openWAL(dir string) (*wal.WAL, error) {
	wal.SegmentSizeBytes = segmentSize
	if !wal.Exist(dir) {
		if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
			return nil, err
		}
		meta, err := (&etcdserverpb.Metadata{NodeID: 0x9bc7, ClusterID: 0xc1}).Marshal()
		if err != nil {
			return nil, err
		}
		return wal.Create(zap.NewNop(), dir, meta)
	}
	w, err := wal.Open(zap.NewNop(), dir, walpb.Snapshot{})
	if err != nil {
		return nil, err
	}
	_, _, _, err = w.ReadAll()
	return w, err
}

// poke FILE OFFSET HEX writes bytes into a file.
func (s scripts) poke(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, args, 3, "poke FILE OFFSET HEX")
	b, err := hex.DecodeString(args[2])
	ts.Check(err)
	pokeAt(ts, args[0], args[1], b)
}

func pokeAt(ts *testscript.TestScript, file, offset string, b []byte) {
	off, err := strconv.ParseInt(offset, 0, 64)
	ts.Check(err)
	f, err := os.OpenFile(ts.MkAbs(file), os.O_WRONLY, 0)
	ts.Check(err)
	_, err = f.WriteAt(b, off)
	ts.Check(errors.Join(err, f.Close()))
}
