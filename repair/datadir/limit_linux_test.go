package datadir_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

func init() { fullDisk = writeBeyondLimit }

// writers are the ways a result comes to disk.
var writers = map[string]func(dst, src string) error{
	"backup": func(dst, src string) error {
		_, err := datadir.WriteBackup(context.Background(), dst, src)
		return err
	},
	"copy": func(dst, src string) error { return datadir.CopyDB(context.Background(), dst, src) },
	"edit": func(dst, src string) error {
		return datadir.CopyDB(context.Background(), dst, src, datadir.SetConsistentIndex(7))
	},
	"dir": func(dst, src string) error {
		_, err := datadir.Write(context.Background(), dst, sample(), datadir.CopyOf(src))
		return err
	},
	"trailer": func(dst, _ string) error {
		if err := os.WriteFile(dst+".src", make([]byte, 8192), 0o600); err != nil {
			return err
		}
		_, err := datadir.WriteBackup(context.Background(), dst, dst+".src")
		return err
	},
	"snapshot": func(dst, _ string) error {
		d := sample()
		d.V2Store = make([]byte, 9000)
		return writeNoDB(dst, d)
	},
	"log": func(dst, _ string) error {
		d := sample()
		d.Entries = []datadir.Entry{{Term: 2, Index: 102, Data: make([]byte, 9000)}}
		return writeNoDB(dst, d)
	},
}

// writeNoDB writes a data dir whose database takes no room.
func writeNoDB(dst string, d datadir.Dir) error {
	_, err := datadir.Write(context.Background(), dst, d, func(context.Context, string) error { return nil })
	return err
}

// TestFullDiskLeavesNothing writes in a process whose files may not grow beyond 8 KiB, which fails writes as a full
// disk does.
func TestFullDiskLeavesNothing(t *testing.T) {
	src := synthDB(t, 100)
	for how := range writers {
		dst := filepath.Join(t.TempDir(), "out")
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "DATADIR_FULL_DISK="+how, "DATADIR_DST="+dst, "DATADIR_SRC="+src)
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("file too large")) {
			t.Errorf("%s: %v, %s", how, err, out)
		}
		gone(t, dst)
	}
}

// writeBeyondLimit is the child of TestFullDiskLeavesNothing.
func writeBeyondLimit(how string) int {
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 8192, Max: 8192}); err != nil {
		fmt.Println(err)
		return 1
	}
	err := writers[how](os.Getenv("DATADIR_DST"), os.Getenv("DATADIR_SRC"))
	fmt.Println(err)
	if !errors.Is(err, syscall.EFBIG) {
		return 1
	}
	return 0
}
