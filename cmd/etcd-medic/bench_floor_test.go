//go:build bench

package main_test

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"runtime"
	"sync"
	"testing"
)

// A floor is what the machine needs at least for the same bytes: to read them, and to compute a checksum over them that
// the work cannot do without. It is a process of its own, on all cores, one file after the other on each.
const (
	floorRead   = "read"
	floorCRC    = "crc32c"
	floorSHA256 = "sha256"
)

// floorEnv names the floor that this test program is run for.
const floorEnv = "ETCD_MEDIC_BENCH_FLOOR"

// TestBenchFloor is run by the measurement as a process of its own; by itself it proves that all floors read all.
func TestBenchFloor(t *testing.T) {
	kind := os.Getenv(floorEnv)
	if kind != "" {
		if err := floor(kind, flagArgs()); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, kind := range []string{floorRead, floorCRC, floorSHA256} {
		if err := floor(kind, []string{os.Args[0]}); err != nil {
			t.Error(err)
		}
	}
	if err := floor("other", nil); err == nil {
		t.Error("a floor that is none")
	}
}

// floorProcess measures a floor over files.
func floorProcess(kind string, files []string) process {
	args := append([]string{floorEnv + "=" + kind, os.Args[0], "-test.run", "^TestBenchFloor$", "--"}, files...)
	return process{bin: "/usr/bin/env", args: args}
}

// flagArgs are the arguments after --.
func flagArgs() []string {
	for i, a := range os.Args {
		if a == "--" {
			return os.Args[i+1:]
		}
	}
	return nil
}

func floor(kind string, files []string) error {
	sum := func() io.Writer { return io.Discard }
	switch kind {
	case floorRead:
	case floorCRC:
		sum = func() io.Writer { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }
	case floorSHA256:
		sum = func() io.Writer { return sha256.New() }
	default:
		return fmt.Errorf("no floor %q", kind)
	}
	work := make(chan string, len(files))
	for _, f := range files {
		work <- f
	}
	close(work)
	errs := make(chan error, len(files))
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			buf := make([]byte, 1<<20)
			for path := range work {
				errs <- readAll(path, sum(), buf)
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func readAll(path string, to io.Writer, buf []byte) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for {
		n, err := f.Read(buf)
		if _, e := to.Write(buf[:n]); e != nil {
			return e
		}
		if err == io.EOF {
			if h, ok := to.(hash.Hash); ok {
				h.Sum(nil)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}
