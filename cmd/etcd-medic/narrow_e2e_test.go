//go:build e2e

package main_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestE2ENarrowRepairs repairs one member with the built program, and lets the servers start on the result.
func TestE2ENarrowRepairs(t *testing.T) {
	for _, line := range []string{"3.5.35", "3.6.16", "3.7.3"} {
		t.Run(line+"/alarm", func(t *testing.T) { alarmOfMember0(t, line) })
		t.Run(line+"/segment", func(t *testing.T) { lastSegmentGone(t, line) })
		t.Run(line+"/value", func(t *testing.T) { valueAltered(t, line) })
	}
}

// alarmOfMember0: servers can raise CORRUPT for member 0, and refuse writes until it is cleared. That contradicts the
// log, so it must be accepted.
func alarmOfMember0(t *testing.T, line string) {
	b := &taken{T: t, dir: t.TempDir(), c: clustertest.Start(t, clustertest.Server(t, line), 1, clustertest.Options{})}
	b.c.Put(0, "before", "it")
	cli := b.c.Client(0)
	_, err := pb.NewMaintenanceClient(cli.ActiveConnection()).Alarm(t.Context(),
		&pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_CORRUPT})
	must(t, err)
	if _, err := cli.Put(t.Context(), "refused", "x"); err == nil {
		t.Fatal("the alarm stops no write: the test shows nothing")
	}
	b.c.StopAll()
	out := filepath.Join(b.dir, "new")
	args := []string{"repair", "meta", evidencetest.Copy(t, b.c.DataDir(0)), "--clear-alarm", "0:CORRUPT", "-o", out}
	_, stderr := b.medic(5, args...) // the log has the alarm: a member without it differs from others
	b.says(stderr, "contradicts the log", "--accept-divergence")
	b.medic(0, append(args, "--accept-divergence")...)
	b.place(0, out)
	b.c.StartProcess(0)
	b.c.WaitServing(0)
	b.c.Put(0, "after", "it")
}

// place gives a stopped member another data dir.
func (b *taken) place(i int, dir string) {
	b.Helper()
	must(b.T, os.Rename(b.c.DataDir(i), b.c.DataDir(i)+".before"))
	must(b.T, os.Rename(dir, b.c.DataDir(i)))
}

// three is a stopped cluster of three, with copies of its data dirs.
func three(t *testing.T, line string, values int, size int) (b *taken, copies []string) {
	t.Helper()
	b = &taken{T: t, dir: t.TempDir(), c: clustertest.Start(t, clustertest.Server(t, line), 3, clustertest.Options{})}
	for i := range values {
		b.c.Put(0, fmt.Sprintf("/k/%03d", i), fmt.Sprint("value ", i, strings.Repeat("v", size)))
	}
	b.c.WaitEqual()
	b.c.StopAll()
	for i := range 3 {
		copies = append(copies, evidencetest.Copy(t, b.c.DataDir(i)))
	}
	return b, copies
}

// serves starts the cluster and wants the same content on all members.
func (b *taken) serves() {
	b.Helper()
	for i := range 3 {
		b.c.StartProcess(i)
	}
	for i := range 3 {
		b.c.WaitServing(i)
	}
	b.c.Put(1, "/after", "repair")
	_, rev := b.c.WaitEqual()
	want, _ := b.c.HashKV(0, rev)
	for i := range 3 {
		if got, _ := b.c.HashKV(i, rev); got != want {
			b.Errorf("%s: HashKV %d at %d, want %d", b.c.Name(i), got, rev, want)
		}
	}
}

// lastSegmentGone: what a member promised in a segment that is gone comes from the others; without them that is
// refused.
func lastSegmentGone(t *testing.T, line string) {
	b, copies := three(t, line, 75, 1_000_000)
	segments, err := filepath.Glob(filepath.Join(copies[1], "member", "wal", "*.wal"))
	must(t, err)
	if slices.Sort(segments); len(segments) < 2 {
		t.Fatalf("segments %v", segments)
	}
	must(t, os.Remove(segments[len(segments)-1]))
	out := filepath.Join(b.dir, "new")
	b.medic(5, "repair", "wal", copies[1], "-o", out)
	b.medic(0, "repair", "wal", copies[1], "--with", copies[0], "--with", copies[2], "-o", out)
	b.place(1, out)
	b.serves()
}

// valueAltered: a repair that leaves the member as sick as before exits 6 and offers the proven value of the others.
func valueAltered(t *testing.T, line string) {
	b, copies := three(t, line, 60, 10)
	db, err := bbolt.Open(filepath.Join(copies[1], "member", "snap", "db"), 0o600, nil)
	must(t, err)
	must(t, db.Update(func(tx *bbolt.Tx) error {
		key := tx.Bucket([]byte("key"))
		c := key.Cursor()
		k, v := c.First()
		for ; !bytes.Contains(v, []byte("value 30v")); k, v = c.Next() {
		}
		return key.Put(bytes.Clone(k), bytes.Replace(v, []byte("value 30v"), []byte("value 31v"), 1))
	}))
	must(t, db.Close())
	sick, out := filepath.Join(b.dir, "sick"), filepath.Join(b.dir, "new")
	args := []string{"repair", "db", copies[1], "--rebuild", "--with", copies[0], "--with", copies[2], "-o"}
	stdout, _ := b.medic(6, append(args, sick)...)
	b.says(stdout, "--take-proven")
	b.medic(0, append(args, out, "--take-proven")...)
	b.place(1, out)
	b.serves()
}
