package dumplog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// exampleWAL writes a log of three entries whose second one has a flipped bit.
func exampleWAL() (dir string, cleanup func()) {
	tmp, err := os.MkdirTemp("", "example")
	check(err)
	dir = filepath.Join(tmp, "wal")
	meta, err := (&etcdserverpb.Metadata{NodeID: 0xa1, ClusterID: 0xc1}).Marshal()
	check(err)
	w, err := wal.Create(zap.NewNop(), dir, meta)
	check(err)
	for i, key := range []string{"a", "b", "c"} {
		e := raftpb.Entry{Term: 2, Index: uint64(i + 1), Data: put(key, []byte("value"), 0)}
		check(w.Save(raftpb.HardState{Term: 2, Vote: 0xa1, Commit: uint64(i + 1)}, []raftpb.Entry{e}))
	}
	check(w.Close())
	name := filepath.Join(dir, "0000000000000000-0000000000000000.wal")
	b, err := os.ReadFile(name)
	check(err)
	b[0xb0] ^= 1
	check(os.WriteFile(name, b, 0o600))
	return dir, func() { os.RemoveAll(tmp) }
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// Entries come in the order they were written, damage in its place among them.
func ExampleLog_Entries() {
	dir, cleanup := exampleWAL()
	defer cleanup()
	log, err := dumplog.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer log.Close()
	for e, err := range log.Entries(context.Background(), nil) {
		if d, ok := errors.AsType[*dumplog.DamageError](err); ok {
			fmt.Printf("%s at 0x%x: entries %d..%d lost\n", d.Kind, d.Offset, d.LostFrom, d.LostTo)
			continue
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		r, err := e.Decode()
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%d/%d %s\n", e.Term, e.Index, r.Describe(dumplog.DescribeOptions{Values: true}))
	}
	// Output:
	// 2/1 put key="a" val="value"
	// crc-mismatch at 0x90: entries 2..2 lost
	// 2/3 put key="c" val="value"
}

// Scan summarizes a log in one pass.
func ExampleLog_Scan() {
	dir, cleanup := exampleWAL()
	defer cleanup()
	log, err := dumplog.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer log.Close()
	s, err := log.Scan(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("member %s of cluster %s, last entry %d/%d, commit %d\n", s.Metadata.MemberID, s.Metadata.ClusterID,
		s.LastTerm, s.LastIndex, s.Committed())
	fmt.Printf("etcd %s\n", s.Damage[0].Server)
	// Output:
	// member a1 of cluster c1, last entry 2/3, commit 3
	// etcd refuses to start: crc mismatch
}
