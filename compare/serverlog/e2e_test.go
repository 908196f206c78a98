//go:build e2e

package serverlog_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/serverlog"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

// broken is one thing done to a copy of a sound data dir of one member, or to its start, and the message that the
// server then writes.
type broken struct {
	name, want string
	// versions are the servers that say it, oldest first; none stands for all.
	versions []string
	spoil    func(t *testing.T, dir string)
	// args replace or follow the usual flags.
	args func(t *testing.T, dir string) []string
}

var allServers = []string{"3.3.18", "3.4.3", "3.5.35", "3.6.16", "3.7.3"}

func upTo36() []string { return allServers[:4] }

func flip(pattern string, at int64, b ...byte) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		f, err := os.OpenFile(newest(t, dir, pattern), os.O_RDWR, 0)
		fatal(t, err)
		_, err = f.WriteAt(b, at)
		fatal(t, err)
		fatal(t, f.Close())
	}
}

func newest(t *testing.T, dir, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "member", pattern))
	if err != nil || len(files) == 0 {
		t.Fatal("no file ", pattern, err)
	}
	return files[len(files)-1]
}

func edit(do func(*bbolt.Tx) error) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		db, err := bbolt.Open(filepath.Join(dir, "member", "snap", "db"), 0o600, nil)
		fatal(t, err)
		fatal(t, db.Update(do))
		fatal(t, db.Close())
	}
}

func row(bucket, key string, value ...byte) func(*testing.T, string) {
	return edit(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucket)).Put([]byte(key), value) })
}

func gone(pattern string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, "member", pattern))
		fatal(t, err)
		for _, f := range files {
			fatal(t, os.Remove(f))
		}
	}
}

func each(steps ...func(*testing.T, string)) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		for _, s := range steps {
			s(t, dir)
		}
	}
}

// otherKey changes a byte of a key in the log.
func otherKey(t *testing.T, dir string) {
	t.Helper()
	name := newest(t, dir, "wal/*.wal")
	b, err := os.ReadFile(name)
	fatal(t, err)
	at := bytes.Index(b, []byte("\x0a\x02k3"))
	if at < 0 {
		t.Fatal("no put of k3 in the log")
	}
	b[at+3] = 'x'
	fatal(t, os.WriteFile(name, b, 0o600))
}

func keep(*testing.T, string) {}

func flags(a ...string) func(*testing.T, string) []string {
	return func(*testing.T, string) []string { return a }
}

// brokenStarts are the cases.
var brokenStarts = []broken{
	{name: "byte of the log changed", want: "wal-crc", spoil: otherKey},
	{name: "no segment for the snapshot", want: "wal-file-not-found", versions: upTo36(),
		spoil: func(t *testing.T, dir string) {
			f := newest(t, dir, "wal/*.wal")
			fatal(t, os.Rename(f, filepath.Join(filepath.Dir(f), "0000000000000001-0000000000100000.wal")))
		}},
	{name: "foreign file in the log", want: "wal-foreign-file", spoil: func(t *testing.T, dir string) {
		fatal(t, os.WriteFile(filepath.Join(dir, "member", "wal", "0.wal.bak"), []byte("x"), 0o600))
	}},
	{name: "snapshot file damaged", want: "snap-damaged", versions: upTo36(),
		spoil: flip("snap/*.snap", 40, 0xa5, 0xa5, 0xa5)},
	{name: "meta pages invalid", want: "bolt-open",
		spoil: each(flip("snap/db", 16, 1, 2, 3), flip("snap/db", 4096+16, 1, 2, 3))},
	{name: "database of 100 bytes", want: "bolt-open", spoil: func(t *testing.T, dir string) {
		fatal(t, os.Truncate(filepath.Join(dir, "member", "snap", "db"), 100))
	}},
	{name: "database gone", want: "no-database-snapshot", versions: upTo36(), spoil: gone("snap/db")},
	{name: "database older than the snapshot", want: "no-database-snapshot", versions: upTo36(),
		spoil: row("meta", "consistent_index", 0, 0, 0, 0, 0, 0, 0, 5)},
	{name: "value that does not decode", want: "value-undecodable",
		spoil: row("key", "\x00\x00\x00\x00\x00\x00\x00\x04_\x00\x00\x00\x00\x00\x00\x00\x00", 0xff, 0xff)},
	{name: "lease that does not decode", want: "lease-undecodable", spoil: row("lease", "12345678", 0xff, 0xff)},
	{name: "key with a lease that is not there", want: "lease-not-attached", spoil: edit(func(tx *bbolt.Tx) error {
		// mvccpb.KeyValue: key "zz", create 3, mod 3, version 1, value "v", lease 77
		v := []byte{0x0a, 2, 'z', 'z', 0x10, 3, 0x18, 3, 0x20, 1, 0x2a, 1, 'v', 0x30, 77}
		return tx.Bucket([]byte("key")).Put([]byte("\x00\x00\x00\x00\x00\x00\x00\x03_\x00\x00\x00\x00\x00\x00\x00\x00"),
			v)
	})},
	{name: "storage of 3.9", want: "storage-version-unsupported", versions: []string{"3.6.16", "3.7.3"},
		spoil: row("meta", "storageVersion", []byte("3.9.0")...)},
	{name: "cluster version of 3.9", want: "invalid-downgrade", versions: []string{"3.6.16", "3.7.3"},
		spoil: row("cluster", "clusterVersion", []byte("3.9.0")...)},
	{name: "unknown flag", want: "unknown-flag", spoil: keep, args: flags("--no-such-flag")},
	{name: "name not in the list", want: "local-name-not-found", spoil: gone("*/*"), args: flags("--name", "node9")},
	{name: "peer URLs differ", want: "peer-urls-mismatch", spoil: gone("*/*"),
		args: flags("--initial-advertise-peer-urls", "http://127.0.0.9:1")},
	{name: "no peers to join", want: "incompatible-cluster", spoil: gone("*/*"),
		args: flags("--initial-cluster-state", "existing", "--initial-cluster",
			"node1=http://127.0.0.1:2380,node2=http://127.0.0.1:1", "--initial-advertise-peer-urls",
			"http://127.0.0.1:2380")},
	{name: "address in use", want: "address-in-use", spoil: keep, args: func(t *testing.T, _ string) []string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		fatal(t, err)
		t.Cleanup(func() { _ = l.Close() })
		return []string{"--listen-client-urls", "http://" + l.Addr().String()}
	}},
	{name: "database locked", want: "file-locked", versions: []string{"3.3.18", "3.6.16"},
		spoil: func(t *testing.T, dir string) {
			f, err := os.Open(filepath.Join(dir, "member", "snap", "db"))
			fatal(t, err)
			fatal(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
			t.Cleanup(func() { _ = f.Close() })
		}},
	{name: "log locked", want: "file-locked", versions: []string{"3.3.18", "3.6.16"},
		spoil: func(t *testing.T, dir string) {
			f, err := os.OpenFile(newest(t, dir, "wal/*.wal"), os.O_RDWR, 0)
			fatal(t, err)
			lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
			fatal(t, syscall.FcntlFlock(f.Fd(), 37, &lock)) // F_OFD_SETLK, as the server does
			t.Cleanup(func() { _ = f.Close() })
		}},
}

// TestE2ERealServersAreUnderstood writes a data dir with a server of each line, breaks a copy in one way at a time,
// starts the server on it, and looks for the message in what it prints: the text, and the way it reaches the reader,
// are real.
func TestE2ERealServersAreUnderstood(t *testing.T) {
	for _, v := range allServers {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			c := clustertest.Start(t, clustertest.Server(t, v), 1, clustertest.Options{SnapshotCount: 20})
			for i := range 70 {
				c.Put(0, fmt.Sprint("k", i%7), "v")
			}
			c.StopAll()
			for _, b := range brokenStarts {
				if len(b.versions) > 0 && !slices.Contains(b.versions, v) {
					continue
				}
				t.Run(b.name, func(t *testing.T) {
					dir := evidencetest.Copy(t, c.DataDir(0))
					b.spoil(t, dir)
					var more []string
					if b.args != nil {
						more = b.args(t, dir)
					}
					said := runUntil(t, v, dir, b.want, more)
					if !slices.Contains(ids(serverlog.Scan(said)), b.want) {
						t.Errorf("etcd %s, %s: want %s, found %v in\n%s", v, b.name, b.want, ids(serverlog.Scan(said)),
							said)
					}
				})
			}
		})
	}
}

// runUntil starts a server on a data dir and returns what it printed when it ended, said what is wanted, or has had its
// time.
func runUntil(t *testing.T, version, dir, want string, more []string) string {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	fatal(t, err)
	defer func() { _ = log.Close() }()
	args := []string{"--name", "node1", "--data-dir", dir, "--listen-client-urls", "http://127.0.0.1:0",
		"--advertise-client-urls", "http://127.0.0.1:2379",
		"--listen-peer-urls", "http://127.0.0.1:0", "--initial-advertise-peer-urls", "http://127.0.0.1:2380",
		"--initial-cluster", "node1=http://127.0.0.1:2380"}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, clustertest.Server(t, version), append(args, more...)...)
	cmd.Stdout, cmd.Stderr = log, log
	fatal(t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	for {
		b, err := os.ReadFile(log.Name())
		fatal(t, err)
		if slices.Contains(ids(serverlog.Scan(string(b))), want) {
			cancel()
			<-ended
			return string(b)
		}
		select {
		case <-ended:
			b, err = os.ReadFile(log.Name())
			fatal(t, err)
			return tail(string(b))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// tail keeps what a failed test can show.
func tail(s string) string {
	lines := strings.SplitAfter(s, "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "")
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
