package evidence_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

func open(t *testing.T, specs ...evidence.Spec) *evidence.Set {
	t.Helper()
	s, err := evidence.Open(context.Background(), specs, evidence.Options{Hash: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func labels(s *evidence.Set) []string {
	var out []string
	for _, m := range s.Members {
		out = append(out, m.Label()+" "+string(m.Source.Kind))
	}
	return out
}

func TestParseSpec(t *testing.T) {
	for in, want := range map[string]evidence.Spec{
		"node1=/a/b":  {Name: "node1", Where: "/a/b"},
		"/a/b":        {Where: "/a/b"},
		"/a/x=y/b":    {Where: "/a/x=y/b"},
		"n=/a/x=y/b":  {Name: "n", Where: "/a/x=y/b"},
		"./node1":     {Where: "./node1"},
		"backup.db":   {Where: "backup.db"},
		"b=backup.db": {Name: "b", Where: "backup.db"},
	} {
		got, err := evidence.ParseSpec(in)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", in, got, err, want)
		}
	}
	if _, err := evidence.ParseSpec("node1="); err == nil {
		t.Error("a name without a path is accepted")
	}
}

// TestKindsAreDetected names every kind of source of one incident.
func TestKindsAreDetected(t *testing.T) {
	dir := evidencetest.Incident(t, "m-healthy-3.6")
	backup := evidencetest.Incident(t, "o-backup-good")
	evidencetest.Unchanged(t, dir, backup)
	member := filepath.Join(dir, "node1", "member")
	for where, want := range map[string]string{
		filepath.Join(dir, "node1"):         "node1 data-dir",
		member:                              "node1 data-dir",
		filepath.Join(member, "wal"):        "wal wal",
		filepath.Join(member, "snap", "db"): "db db",
		filepath.Join(backup, "backup.db"):  "backup.db backup",
		filepath.Join(member, "snap"):       "snap db",
		filepath.Join(member, "snap", "0000000000000002-0000000000000047.snap"): "0000000000000002-0000000000000047.snap snap",
	} {
		got := labels(open(t, evidence.Spec{Where: where}))
		if diff := cmp.Diff([]string{want}, got); diff != "" {
			t.Errorf("%s: %s", where, diff)
		}
	}
}

func TestFolderOfDataDirsAndArchive(t *testing.T) {
	dir := evidencetest.Incident(t, "k-lagging-node")
	evidencetest.Unchanged(t, dir)
	want := []string{"node1 data-dir", "node2 data-dir", "node3 data-dir"}
	if diff := cmp.Diff(want, labels(open(t, evidence.Spec{Where: dir}))); diff != "" {
		t.Error("folder:", diff)
	}
	archive := filepath.Join(evidencetest.Root(t), "testdata", "incidents", "k-lagging-node", "nodes.tar.gz")
	s := open(t, evidence.Spec{Where: archive})
	if diff := cmp.Diff(want, labels(s)); diff != "" {
		t.Error("archive:", diff)
	}
	s = open(t, evidence.Spec{Where: filepath.Dir(archive)})
	if diff := cmp.Diff(want, labels(s)); diff != "" {
		t.Error("folder of an archive:", diff)
	}
}

// TestDigestIsOfContent: two copies have one digest, a flipped byte another.
func TestDigestIsOfContent(t *testing.T) {
	dir := filepath.Join(evidencetest.Incident(t, "k-lagging-node"), "node1")
	evidencetest.Unchanged(t, dir)
	copied := evidencetest.Copy(t, dir)
	digest := func(where string) string {
		return open(t, evidence.Spec{Where: where}).Members[0].Source.Manifest.Digest()
	}
	first := digest(dir)
	if digest(copied) != first {
		t.Error("a copy has another digest")
	}
	flip(t, filepath.Join(copied, "member", "snap", "db"), 9000)
	if digest(copied) == first {
		t.Error("a flipped byte does not change the digest")
	}
}

func flip(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{b[0] ^ 1}, at); err != nil {
		t.Fatal(err)
	}
}

func TestUnchangedSeesAWriter(t *testing.T) {
	copied := evidencetest.Copy(t, filepath.Join(evidencetest.Incident(t, "k-lagging-node"), "node1"))
	s := open(t, evidence.Spec{Where: copied})
	if err := s.Unchanged(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(copied, "member", "snap", "db"), 8192); err != nil {
		t.Fatal(err)
	}
	if err := s.Unchanged(context.Background()); err == nil {
		t.Error("a truncated file passes as unchanged")
	}
}

// TestBadSources: each says what was found and what was expected.
func TestBadSources(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	noise := filepath.Join(dir, "noise")
	empty := filepath.Join(dir, "empty")
	hollow := filepath.Join(dir, "hollow")
	junk := filepath.Join(dir, "junk.tar.gz")
	for _, err := range []error{os.WriteFile(text, []byte("hello"), 0o600),
		os.WriteFile(noise, []byte("\xff\x00\x01"), 0o600), os.Mkdir(empty, 0o700),
		os.Mkdir(hollow, 0o700),
		os.WriteFile(filepath.Join(hollow, "x"), nil, 0o600), os.WriteFile(junk, []byte("not an archive"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	evidencetest.Unchanged(t, dir)
	for where, found := range map[string]string{
		filepath.Join(dir, "none"): "nothing at this path",
		text:                       "a text file (5 B)",
		noise:                      "neither a bbolt database nor another etcd file",
		empty:                      "an empty folder",
		hollow:                     "without etcd data",
		filepath.Join(hollow, "x"): "an empty file",
		junk:                       "an archive that cannot be unpacked",
	} {
		_, err := evidence.Open(context.Background(), []evidence.Spec{{Where: where}}, evidence.Options{})
		var se *evidence.SourceError
		if !errors.As(err, &se) || !strings.Contains(se.Error(), found) || !strings.Contains(se.Error(), "expected") {
			t.Errorf("%s: %v, want %q and what was expected", where, err, found)
		}
	}
}

// TestOneBadSourceLeavesTheOthers reads what can be read.
func TestOneBadSourceLeavesTheOthers(t *testing.T) {
	dir := evidencetest.Incident(t, "k-lagging-node")
	evidencetest.Unchanged(t, dir)
	s := open(t, evidence.Spec{Name: "gone", Where: filepath.Join(dir, "none")},
		evidence.Spec{Name: "n1", Where: filepath.Join(dir, "node1")})
	if len(s.Failed) != 1 || s.Failed[0].Spec.Name != "gone" || len(s.Members) != 1 || s.Members[0].Label() != "n1" {
		t.Errorf("failed %+v, members %v", s.Failed, labels(s))
	}
}

// TestSeparateWALDir is etcd's --wal-dir. The digest is that of a data dir with the WAL inside.
func TestSeparateWALDir(t *testing.T) {
	copied := evidencetest.Copy(t, filepath.Join(evidencetest.Incident(t, "k-lagging-node"), "node1"))
	inside := open(t, evidence.Spec{Where: copied}).Members[0].Source.Manifest
	wal := filepath.Join(t.TempDir(), "wal")
	if out, err := exec.Command("mv", filepath.Join(copied, "member", "wal"), wal).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m := open(t, evidence.Spec{Where: copied, WALDir: wal}).Members[0]
	if !m.HasLog() || m.LastIndex() != 156 || len(m.Source.Missing) > 0 {
		t.Errorf("log %v, last index %d, missing %v", m.HasLog(), m.LastIndex(), m.Source.Missing)
	}
	if man := m.Source.Manifest; man.Digest() != inside.Digest() || len(man.Files) != len(inside.Files) {
		t.Errorf("%d files, digest %s; with the WAL inside %d files, digest %s", len(man.Files), man.Digest(),
			len(inside.Files), inside.Digest())
	}
}

// TestLinkedFolders: a link in place of a folder of etcd is followed, so that the WAL may be on another disk. A link to
// any other folder is listed and not followed.
func TestLinkedFolders(t *testing.T) {
	copied := evidencetest.Copy(t, filepath.Join(evidencetest.Incident(t, "k-lagging-node"), "node1"))
	inside := open(t, evidence.Spec{Where: copied}).Members[0].Source.Manifest
	wal, to := filepath.Join(copied, "member", "wal"), filepath.Join(t.TempDir(), "wal")
	for _, err := range []error{os.CopyFS(to, os.DirFS(wal)), os.RemoveAll(wal), os.Symlink(to, wal)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	linked := open(t, evidence.Spec{Where: copied}).Members[0].Source.Manifest
	if linked.Digest() != inside.Digest() {
		t.Errorf("%d files, digest %s; with the WAL inside %d files, digest %s", len(linked.Files), linked.Digest(),
			len(inside.Files), inside.Digest())
	}
	if err := os.Symlink(to, filepath.Join(copied, "member", "elsewhere")); err != nil {
		t.Fatal(err)
	}
	more := open(t, evidence.Spec{Where: copied}).Members[0].Source.Manifest
	if len(more.Files) != len(inside.Files)+1 || more.Bytes != inside.Bytes {
		t.Errorf("%d files, %d bytes; want one more than %d, and %d bytes", len(more.Files), more.Bytes,
			len(inside.Files), inside.Bytes)
	}
}

// TestDigestsLater: digests that are taken while others go on working are the same, a file that cannot be read is told
// then, and a set that is closed before does not wait for them.
func TestDigestsLater(t *testing.T) {
	dir := evidencetest.Incident(t, "k-lagging-node")
	evidencetest.Unchanged(t, dir)
	spec := evidence.Spec{Where: filepath.Join(dir, "node1")}
	now := open(t, spec).Members[0].Source.Manifest
	later, err := evidence.Open(context.Background(), []evidence.Spec{spec},
		evidence.Options{Hash: true, HashLater: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := later.Digests(); err != nil {
		t.Fatal(err)
	}
	if got := later.Members[0].Source.Manifest.Digest(); got != now.Digest() {
		t.Errorf("digest %s, want %s", got, now.Digest())
	}
	if err := later.Close(); err != nil {
		t.Error(err)
	}
	listed, err := evidence.Open(context.Background(), []evidence.Spec{spec}, evidence.Options{List: true})
	if err != nil {
		t.Fatal(err)
	}
	man := listed.Members[0].Source.Manifest
	if man.Files[0].SHA256 != "" || man.Bytes != now.Bytes || len(man.Files) != len(now.Files) {
		t.Errorf("listed %d files, %d bytes, %+v", len(man.Files), man.Bytes, man.Files[0])
	}
	if man.Digest() != now.Digest() {
		t.Error("the digest taken on demand is another one")
	}
	if err := errors.Join(listed.Digests(), listed.Close()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	given, err := evidence.Open(ctx, []evidence.Spec{spec}, evidence.Options{Hash: true, HashLater: true})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := given.Close(); err != nil {
		t.Error(err)
	}
}
