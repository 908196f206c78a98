//go:build e2e

package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/s3blob"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// s3 is a real S3 server (versitygw on a folder, built by `make test-servers`) with one bucket.
type s3 struct {
	t       *testing.T
	address string
}

const bucketName = "etcd-backups"

func newS3(t *testing.T) *s3 {
	t.Helper()
	dir := os.Getenv("ETCD_MEDIC_TEST_SERVERS")
	if dir == "" {
		dir = filepath.Join(evidencetest.Root(t), ".tools", "bin")
	}
	root, meta := t.TempDir(), t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, bucketName), 0o700))
	s := &s3{t: t, address: free(t)}
	t.Setenv("AWS_ACCESS_KEY_ID", "someone")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "correct horse")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	var log bytes.Buffer
	cmd := exec.Command(filepath.Join(dir, "versitygw"), "--port", s.address, "--access", "someone", "--secret",
		"correct horse", "--quiet", "posix", "--sidecar", meta, root)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatalf("the S3 server is not built (make test-servers): %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	for until := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		r, err := http.Get("http://" + s.address + "/")
		if err == nil {
			must(t, r.Body.Close())
			return s
		}
		if time.Now().After(until) {
			t.Fatalf("the S3 server does not answer: %v", err)
		}
	}
}

func (s *s3) parameters() string {
	return "?region=us-east-1&use_path_style=true&endpoint=" + url.QueryEscape("http://"+s.address)
}

// url is the address of a key or prefix.
func (s *s3) url(key string) string { return "s3://" + bucketName + "/" + key + s.parameters() }

// put uploads a file, or all files of a folder, below a key.
func (s *s3) put(key, path string) {
	s.t.Helper()
	b, err := blob.OpenBucket(s.t.Context(), "s3://"+bucketName+s.parameters())
	must(s.t, err)
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		to := key
		if rel, err := filepath.Rel(path, p); err == nil && rel != "." {
			to += "/" + filepath.ToSlash(rel)
		}
		return b.WriteAll(s.t.Context(), to, text, nil)
	})
	must(s.t, errors.Join(err, b.Close()))
}

// medic runs the built program and wants an exit code.
func medic(t *testing.T, code int, args ...string) string {
	t.Helper()
	r := &rig{t: t}
	stdout, _ := r.medic(code, nil, args...)
	return stdout
}

// TestE2EObjectStorage: what the commands say of sources in a real S3 server is what they say of the same files on
// disk, and what they write is the same.
func TestE2EObjectStorage(t *testing.T) {
	s := newS3(t)
	good := filepath.Join(evidencetest.Incident(t, "o-backup-good"), "backup.db")
	bad := filepath.Join(evidencetest.Incident(t, "o-backup-bit-flip"), "backup.db")
	members := evidencetest.Incident(t, "a-auth-revision-replay")
	s.put("daily/good.db", good)
	s.put("daily/deep er/bad+1.db", bad)
	sound := evidencetest.Incident(t, "m-healthy-3.6")
	s.put("members", members)
	s.put("sound/node2", filepath.Join(sound, "node2"))
	s.put("packed/nodes.tar.gz", filepath.Join(evidencetest.Root(t), "testdata", "incidents",
		"a-auth-revision-replay", "nodes.tar.gz"))
	work := t.TempDir()

	medic(t, 0, "verify", s.url("daily/good.db"))
	medic(t, 3, "verify", s.url("daily/deep er/bad+1.db"))
	if all := medic(t, 3, "verify", "-w", "jsonl", s.url("daily/")); strings.Count(all, "\n") < 2 ||
		strings.Contains(all, "endpoint=") {
		t.Errorf("two backups below a prefix, without parameters:\n%s", all)
	}
	medic(t, 4, "verify", s.url("nothing/here"))

	verdict := func(where ...string) string {
		var doc struct {
			Verdict struct{ Class, Cause string }
			Best    struct{ Name string }
		}
		out := medic(t, 3, append([]string{"diagnose", "-w", "json"}, where...)...)
		must(t, json.Unmarshal([]byte(out), &doc))
		return fmt.Sprint(doc)
	}
	want := verdict(members)
	if got := verdict(s.url("members")); got != want {
		t.Errorf("diagnose of a prefix: %s, of the folder: %s", got, want)
	}
	if got := verdict(s.url("packed/nodes.tar.gz")); got != want {
		t.Errorf("diagnose of an archive: %s, of the folder: %s", got, want)
	}
	if got := verdict("a="+s.url("members/node1"), "b="+s.url("members/node2"), "c="+members+"/node3"); got == "" {
		t.Error("no verdict of members named one by one")
	}

	equal(t, medic(t, 0, "extract", "-o", "-", s.url("daily/good.db")), medic(t, 0, "extract", "-o", "-", good))
	equal(t, medic(t, 0, "extract", "-o", "-", s.url("members/node2")),
		medic(t, 0, "extract", "-o", "-", filepath.Join(members, "node2")))

	pair := func(name string, args func(out, where string) []string, here, there string) {
		t.Helper()
		a, b := filepath.Join(work, name+"-disk"), filepath.Join(work, name+"-s3")
		medic(t, 0, args(a, here)...)
		medic(t, 0, args(b, there)...)
		equal(t, contents(t, b), contents(t, a))
	}
	pair("rebuild", func(out, where string) []string {
		return []string{"rebuild", "--log", where, "--to", "last", "-o", out}
	}, filepath.Join(sound, "node2"), s.url("sound/node2"))
	pair("restore", func(out, where string) []string {
		return []string{"restore", where, "-o", out, "--initial-cluster", "n1=http://10.0.0.1:2380",
			"--accept-revisions-already-seen"}
	}, good, s.url("daily/good.db"))
}

func equal(t *testing.T, got, want string) {
	t.Helper()
	if got != want || want == "" {
		t.Errorf("from object storage:\n%.2000s\nfrom disk:\n%.2000s", got, want)
	}
}

// random are the parts of a written data dir that no two runs share.
var random = regexp.MustCompile(`(?i)(created|version|uuid)"?:.*`)

// contents lists the files of a result with what diagnostics read of them: names, sizes and the keys of databases.
func contents(t *testing.T, path string) string {
	t.Helper()
	var out strings.Builder
	must(t, filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		rel, _ := filepath.Rel(path, p)
		fmt.Fprintf(&out, "%s %d\n", rel, st.Size())
		return err
	}))
	return out.String() + random.ReplaceAllString(medic(t, 0, "dumpdb", path, "-w", "jsonl"), "")
}

// backupName is how a line of the result begins with its source.
var backupName = regexp.MustCompile(`"sources":\[\{"name":"2026-01-\d+\.db"`)

// TestE2EShards: the shards of an Indexed Job look at every backup of a bucket once, and push what they find.
func TestE2EShards(t *testing.T) {
	s := newS3(t)
	good := filepath.Join(evidencetest.Incident(t, "o-backup-good"), "backup.db")
	const backups, shards = 24, 4
	for i := range backups {
		s.put(fmt.Sprintf("fleet/cluster-%02d/2026-01-%02d.db", i%6, i+1), good)
	}
	gateway := newGateway(t)
	seen := map[string]int{}
	for i := range shards {
		out := medic(t, 0, "verify", s.url("fleet/"), "-w", "jsonl", "--shard", fmt.Sprintf("%d/%d", i, shards),
			"--metrics-push", fmt.Sprintf("%s/metrics/job/etcd-backups/shard/%d", gateway.url, i))
		for _, name := range backupName.FindAllString(out, -1) {
			seen[name] |= 1 << i
		}
	}
	if len(seen) != backups {
		t.Errorf("%d backups were looked at: %v", len(seen), seen)
	}
	for name, by := range seen {
		if by&(by-1) != 0 {
			t.Errorf("%s was looked at by several shards: %b", name, by)
		}
	}
	if n := gateway.healthy(); n != backups {
		t.Errorf("%d backups were pushed as healthy", n)
	}
}

// gateway takes what is pushed, as a Pushgateway does: one text per group.
type gateway struct {
	url    string
	mu     sync.Mutex
	groups map[string]string
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{groups: map[string]string{}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil || r.Method != http.MethodPut {
			http.Error(w, "want a PUT", http.StatusBadRequest)
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.groups[r.URL.Path] = string(b)
	}))
	t.Cleanup(srv.Close)
	g.url = srv.URL
	return g
}

// healthy counts the backups that were pushed as such.
func (g *gateway) healthy() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, text := range g.groups {
		n += len(regexp.MustCompile(`(?m)^etcd_medic_backup_healthy\{[^}]*\} 1$`).FindAllString(text, -1))
	}
	return n
}
