package main

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/ulikunitz/xz"

	"github.com/etcd-medic/etcd-medic/compare/backup/chain/chaintest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// pack writes SRC packed to DST: pack gz|zst|xz|zip SRC DST.
func (s scripts) pack(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, args, 3, "pack gz|zst|xz|zip SRC DST")
	src, dst := ts.MkAbs(args[1]), ts.MkAbs(args[2])
	b, err := os.ReadFile(src)
	ts.Check(err)
	ts.Check(os.MkdirAll(filepath.Dir(dst), 0o755))
	f, err := os.Create(dst)
	ts.Check(err)
	var w io.Writer
	var closeAll func() error
	switch args[0] {
	case "gz":
		z := gzip.NewWriter(f)
		w, closeAll = z, z.Close
	case "zst":
		z, err := zstd.NewWriter(f)
		ts.Check(err)
		w, closeAll = z, z.Close
	case "xz":
		z, err := xz.NewWriter(f)
		ts.Check(err)
		w, closeAll = z, z.Close
	case "zip":
		z := zip.NewWriter(f)
		inner, err := z.Create(filepath.Base(src))
		ts.Check(err)
		w, closeAll = inner, z.Close
	default:
		ts.Fatalf("pack: %q is not known", args[0])
	}
	_, err = w.Write(b)
	ts.Check(err)
	ts.Check(closeAll())
	ts.Check(f.Close())
}

// age sets the modification time of a file: age FILE 30h.
func (s scripts) age(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, args, 2, "age FILE DURATION")
	d, err := time.ParseDuration(args[1])
	ts.Check(err)
	at := time.Now().Add(-d)
	ts.Check(os.Chtimes(ts.MkAbs(args[0]), at, at))
}

// chain writes a chain of snapshots into DIR: OLD as the full snapshot, and what NEW has above it as two deltas.
func (s scripts) chain(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, args, 3, "chain OLD NEW DIR")
	old, now, dir := ts.MkAbs(args[0]), ts.MkAbs(args[1]), ts.MkAbs(args[2])
	from, to := revisionOf(ts, old), revisionOf(ts, now)
	c := &chaintest.Chain{TB: s.t, Dir: dir, Suffix: ".gz"}
	c.Full(old, from)
	first, second := chaintest.Split(chaintest.Events(s.t, now, from+1, to), (from+to)/2)
	c.Delta(first)
	c.Delta(second)
}

func revisionOf(ts *testscript.TestScript, path string) int64 {
	db, err := dumpdb.Open(path)
	ts.Check(err)
	rev, err := db.CurrentRev()
	ts.Check(err)
	ts.Check(db.Close())
	return rev
}
