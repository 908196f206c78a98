//go:build e2e

package main_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// taken is a running server and a backup of it that etcdctl took.
type taken struct {
	*testing.T
	dir, bin, server, backup string
	c                        *clustertest.Cluster
}

// TestE2EBackups proves with backups of real servers what the built program says of folders, drills and comparisons,
// and that its outputs keep out of sources and out of each other's way.
func TestE2EBackups(t *testing.T) {
	for _, line := range []string{"3.5.35", "3.6.16", "3.7.3"} {
		t.Run(line, func(t *testing.T) {
			b := takeBackup(t, line)
			t.Run("folder", func(t *testing.T) { b.on(t).folder() })
			t.Run("drill", func(t *testing.T) { b.on(t).drill() })
			t.Run("against", func(t *testing.T) { b.on(t).against() })
			t.Run("outputs", func(t *testing.T) { b.on(t).outputs() })
			t.Run("restores", func(t *testing.T) { b.on(t).restores() })
		})
	}
}

func takeBackup(t *testing.T, line string) *taken {
	t.Helper()
	server := clustertest.Server(t, line)
	b := &taken{T: t, dir: t.TempDir(), bin: filepath.Dir(server), server: server,
		c: clustertest.Start(t, server, 1, clustertest.Options{})}
	for i := range 120 {
		b.c.Put(0, fmt.Sprintf("/app/%03d", i%80), fmt.Sprint("value ", i))
	}
	b.c.Put(0, "/registry/namespaces/shop", "the namespace")
	b.c.Put(0, "/registry/pods/shop/web", "a pod")
	b.backup = filepath.Join(b.dir, "backup.db")
	cmd := exec.CommandContext(t.Context(), filepath.Join(b.bin, "etcdctl-3.6"), "--endpoints", b.c.Endpoint(0),
		"snapshot", "save", b.backup)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return b
}

// on is the same for a subtest, with a folder of its own.
func (b *taken) on(t *testing.T) *taken {
	t.Helper()
	own := *b
	own.T, own.dir = t, t.TempDir()
	return &own
}

// medic runs the program and wants an exit code.
func (b *taken) medic(code int, args ...string) (stdout, stderr string) {
	b.Helper()
	return (&rig{t: b.T}).medic(code, nil, args...)
}

// put writes a file below the test's folder.
func (b *taken) put(name string, content []byte) string {
	b.Helper()
	path := filepath.Join(b.dir, name)
	must(b.T, os.MkdirAll(filepath.Dir(path), 0o700))
	must(b.T, os.WriteFile(path, content, 0o600))
	return path
}

// says wants that a text has all of these parts.
func (b *taken) says(text string, parts ...string) {
	b.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			b.Errorf("%q is not said:\n%s", p, text)
		}
	}
}

func (b *taken) read(path string) []byte {
	b.Helper()
	raw, err := os.ReadFile(path)
	must(b.T, err)
	return raw
}

// folder: everything in a folder is verified, whatever its name and however it is packed; what is damaged, missing or
// empty has a sample that alarms, and no label stands twice.
func (b *taken) folder() {
	raw := b.read(b.backup)
	b.put("all/k3s/on-demand-server-1700000000", raw)
	b.put("all/rke2/etcd-snapshot-server-1700000000.zip", zipped(b.T, "etcd-snapshot-server-1700000000", raw))
	b.put("all/etcdadm/snapshot.db.gz", gzipped(b.T, raw))
	b.put("all/packed/nightly.db.zst", zstded(b.T, raw))
	b.put("all/a/etcd.db", raw)
	b.put("all/b/etcd.db", raw)
	b.put("all/notes.txt", []byte("what the timer does\n"))
	must(b.T, os.Symlink(filepath.Join(b.dir, "all", "a", "etcd.db"), filepath.Join(b.dir, "all", "latest.db")))
	all, prom := filepath.Join(b.dir, "all"), filepath.Join(b.dir, "all.prom")
	stdout, _ := b.medic(0, "verify", all, "--brief", "--metrics-file", prom)
	b.says(stdout, "a/etcd.db: good: ", "b/etcd.db: good: ", "notes.txt")
	if n := strings.Count(stdout, ": good: "); n != 6 {
		b.Errorf("%d backups are good, want 6:\n%s", n, stdout)
	}
	b.oneSample(prom, 6, 0)
	if stdout, _ = b.medic(0, "verify", all, "-q", "--max-age", "26h"); stdout != "" {
		b.Errorf("all is well, and it says %s", stdout)
	}
	b.put("all/k3s/on-demand-server-1700000001", make([]byte, len(raw)))
	b.put("all/k3s/on-demand-server-1700000002", bytes.Repeat([]byte("noise"), 9000))
	must(b.T, os.Mkdir(filepath.Join(b.dir, "empty"), 0o700))
	stdout, _ = b.medic(3, "verify", all, filepath.Join(b.dir, "empty"), filepath.Join(b.dir, "gone.db"), "--brief",
		"--metrics-file", prom)
	b.says(stdout, "on-demand-server-1700000001: damaged", "on-demand-server-1700000002: damaged")
	b.oneSample(prom, 6, 4)

	cmd := exec.CommandContext(b.Context(), built(b.T), "verify", "-", "--brief")
	cmd.Stdin = bytes.NewReader(gzipped(b.T, raw))
	if out, err := cmd.Output(); err != nil || !strings.HasPrefix(string(out), "stdin: good: ") {
		b.Errorf("of standard input: %v\n%s", err, out)
	}
}

// oneSample counts what is healthy in a metrics file, and wants no series twice.
func (b *taken) oneSample(file string, healthy, sick int) {
	b.Helper()
	seen, count := map[string]bool{}, map[string]int{}
	for line := range strings.Lines(string(b.read(file))) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		series, value := line[:at], line[at+1:]
		if seen[series] {
			b.Errorf("%s stands twice", series)
		}
		if seen[series] = true; strings.HasPrefix(series, "etcd_medic_backup_healthy{") {
			count[value]++
		}
	}
	if count["1"] != healthy || count["0"] != sick {
		b.Errorf("healthy samples %v, want %d of 1 and %d of 0", count, healthy, sick)
	}
}

// drill: one that ran is good; one that could not run, or ran out of time, is inconclusive, and no damage.
func (b *taken) drill() {
	prom := filepath.Join(b.dir, "drill.prom")
	stdout, _ := b.medic(0, "verify", b.backup, "--drill", "--etcd-binary", b.server, "--metrics-file", prom)
	b.says(stdout, "keys equal")
	b.says(string(b.read(prom)), `etcd_medic_backup_drill_ok{backup="backup.db"} 1`)
	for _, not := range [][]string{{"--drill-timeout", "1ms"}, {"--etcd-binary", filepath.Join(b.bin, "etcdctl-3.6")}} {
		args := append([]string{"verify", b.backup, "--drill", "--brief", "--metrics-file", prom}, not...)
		stdout, _ := b.medic(4, args...)
		b.says(stdout, "backup.db: inconclusive: ")
		b.says(string(b.read(prom)), `etcd_medic_backup_drill_ok{backup="backup.db"} 0`,
			`etcd_medic_backup_healthy{backup="backup.db"} 0`)
	}
}

// against: the running server has other users and leases since, which is no damage; a key that the backup's own
// revision must hold and that is not in it is.
func (b *taken) against() {
	cli := b.c.Client(0)
	_, err := cli.UserAdd(b.Context(), "late", "secret")
	must(b.T, err)
	lease, err := cli.Grant(b.Context(), 3600)
	must(b.T, err)
	b.c.Put(0, "/leased", "x", clientv3.WithLease(lease.ID))
	live := "live=" + b.c.Endpoint(0)
	stdout, _ := b.medic(0, "verify", "--full", b.backup, "--against", live)
	b.says(stdout, "revision behind live", "authUsers", "lease")
	b.medic(3, "verify", b.backup, "--against", live, "--max-behind", "0", "--brief")
	if stdout, _ = b.medic(4, "verify", b.backup, "--against", filepath.Join(b.dir, "nowhere"),
		"--brief"); !strings.Contains(stdout, "backup.db: good: ") {
		b.Errorf("a source that is not there hides the backup's own verdict: %s", stdout)
	}
	lacking := b.put("lacking.db", b.read(b.backup))
	withoutRecord(b.T, lacking, 30)
	stdout, _ = b.medic(3, "verify", lacking, "--against", live, "--brief")
	b.says(stdout, "lacking.db: damaged")
}

// outputs: none in a source; two runs on one output do not mix; what is in the way is named with the command that
// removes it.
func (b *taken) outputs() {
	b.c.Stop(0)
	defer func() { b.c.StartProcess(0); b.c.WaitServing(0) }()
	dir := evidencetest.Copy(b.T, b.c.DataDir(0))
	evidencetest.Unchanged(b.T, dir)
	cluster := "n1=http://10.0.0.1:2380"
	for _, args := range [][]string{
		{"extract", dir, "-o", filepath.Join(dir, "keys.jsonl")},
		{"extract", dir, "--format", "backup", "-o", filepath.Join(dir, "member", "keys.db")},
		{"rebuild", "--log", dir, "--to", "last", "-o", filepath.Join(dir, "member", "new.db")},
		{"restore", dir, "--accept-unproven-content", "--initial-cluster", cluster, "-o", filepath.Join(dir, "new")},
		{"repair", "db", dir, "--rebuild", "-o", filepath.Join(dir, "member", "new")},
		{"repair", "wal", dir, "-o", filepath.Join(dir, "new")},
		{"repair", "meta", dir, "--set-auth-revision", "3", "-o", filepath.Join(dir, "new")},
		{"repair", "plan", dir, "-o", filepath.Join(dir, "plan.yaml")},
	} {
		if _, stderr := b.medic(5, args...); !strings.Contains(stderr, "to which nothing is written") {
			b.Errorf("%v: %s", args, stderr)
		}
	}
	for i, args := range [][]string{
		{"restore", b.backup, "--initial-cluster", cluster},
		{"extract", dir, "--format", "backup"},
		{"rebuild", "--log", dir, "--to", "last"},
		{"repair", "db", dir, "--rebuild"},
	} {
		out := filepath.Join(b.dir, fmt.Sprint("new", i))
		b.two(append(args, "-o", out)...)
		if _, err := os.Stat(out + ".partial"); err == nil {
			b.Errorf("a partial result of %s is left", args[0])
		}
	}
	must(b.T, os.Mkdir(filepath.Join(b.dir, "empty.partial"), 0o700))
	_, said := b.medic(5, "repair", "db", dir, "--rebuild", "-o", filepath.Join(b.dir, "empty"))
	b.says(said, "empty.partial is in the way", "rm -r ")
	b.put("taken.db.partial", []byte("mine"))
	_, stderr := b.medic(5, "rebuild", "--log", dir, "--to", "last", "-o", filepath.Join(b.dir, "taken.db"))
	b.says(stderr, "taken.db.partial is in the way", "rm -r ")
}

// two runs one command twice at once: one does it, the other says that it does not.
func (b *taken) two(args ...string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 4*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	var codes [2]int
	var said [2]bytes.Buffer
	for i := range 2 {
		wg.Go(func() {
			cmd := exec.CommandContext(ctx, built(b.T), args...)
			cmd.Stderr = &said[i]
			_ = cmd.Run() // its exit code says
			codes[i] = cmd.ProcessState.ExitCode()
		})
	}
	wg.Wait()
	if codes != [2]int{0, 5} && codes != [2]int{5, 0} {
		b.Errorf("two runs at once end with %v\n%s\n%s", codes, &said[0], &said[1])
	}
}

// restores: two restores of one backup start at different revisions under different tokens, or say so; the Namespace
// comes with the namespace; etcdutl reads what was extracted.
func (b *taken) restores() {
	var tokens []string
	for _, o := range [][]string{nil, {"--bump-revision", "2000000000"}} {
		args := append([]string{"restore", b.backup, "--initial-cluster", "n1=http://10.0.0.1:2380", "-o",
			filepath.Join(b.dir, fmt.Sprint("new", len(o)))}, o...)
		stdout, _ := b.medic(0, args...)
		tokens = append(tokens, tokenIn(stdout))
		b.says(stdout, "--initial-cluster-token")
	}
	if tokens[0] == tokens[1] || tokens[0] == "" {
		b.Errorf("two restores with different start revisions have tokens %q", tokens)
	}
	keys := filepath.Join(b.dir, "shop.db")
	b.medic(0, "extract", b.backup, "--namespace", "shop", "--format", "backup", "-o", keys)
	stdout, _ := b.medic(0, "dumpdb", keys, "key")
	b.says(stdout, "/registry/namespaces/shop", "/registry/pods/shop/web")
	if strings.Contains(stdout, "/app/") {
		b.Errorf("other keys came along: %s", stdout)
	}
	if out, err := exec.CommandContext(b.Context(), filepath.Join(b.bin, "etcdutl-3.7"), "snapshot", "status",
		keys).CombinedOutput(); err != nil {
		b.Errorf("etcdutl: %v\n%s", err, out)
	}
}

// tokenIn is the token that a restore names.
func tokenIn(text string) string {
	_, rest, _ := strings.Cut(text, "restored-")
	word, _, _ := strings.Cut(rest, " ")
	return strings.TrimRight(word, ".,:;\n")
}

// withoutRecord takes the record with this number out of bucket key, as no server does.
func withoutRecord(t *testing.T, file string, n int) {
	t.Helper()
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{NoFreelistSync: true})
	must(t, err)
	must(t, db.Update(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte("key")).Cursor()
		k, _ := c.First()
		for range n {
			k, _ = c.Next()
		}
		return tx.Bucket([]byte("key")).Delete(bytes.Clone(k))
	}))
	must(t, db.Close())
}

func gzipped(t *testing.T, raw []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(raw)
	must(t, err)
	must(t, w.Close())
	return b.Bytes()
}

func zstded(t *testing.T, raw []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	must(t, err)
	defer func() { _ = w.Close() }()
	return w.EncodeAll(raw, nil)
}

func zipped(t *testing.T, name string, raw []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create(name)
	must(t, err)
	_, err = io.Copy(f, bytes.NewReader(raw))
	must(t, err)
	must(t, w.Close())
	return b.Bytes()
}
