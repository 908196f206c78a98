package evidence

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/ctxtest"
)

// TestNoScratch: where nothing can be unpacked or received, the error says so, and no source is made of it.
func TestNoScratch(t *testing.T) {
	dir := tree(t, "a.tgz")
	archive := filepath.Join(dir, "a.tgz")
	if err := os.WriteFile(archive, []byte("\x1f\x8b\x08\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Set{}
	if out, err := s.unpack(t.Context(), filepath.Join(dir, "none")); out != "" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no archive: %q, %v", out, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	t.Setenv("TMPDIR", filepath.Join(dir, "none"))
	for _, where := range []string{archive, "https://127.0.0.1:1", "s3://bucket/key"} {
		s := &Set{}
		if out, err := s.expandOne(t.Context(), Spec{Where: where}, 0); out != nil || !errors.Is(err, fs.ErrNotExist) ||
			len(s.scratch) > 0 {
			t.Errorf("%s: %+v, %v", where, out, err)
		}
	}
	if path, err := s.fetched(t.Context(), "s3://bucket/key"); path != "" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("fetched to %q, %v", path, err)
	}
}

// TestStreamOfNoDatabase: what a member sends is read like a file, and may be no database.
func TestStreamOfNoDatabase(t *testing.T) {
	const where = "http://127.0.0.1:1"
	s := &Set{streams: []*stream{{endpoint: where, host: "127.0.0.1:1", status: &clientv3.StatusResponse{},
		body: io.NopCloser(strings.NewReader("no database"))}}}
	out, err := s.expandEndpoint(t.Context(), Spec{Where: where})
	var bad *SourceError
	if out != nil || !errors.As(err, &bad) {
		t.Errorf("%+v, %v", out, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestListingEnds: whenever the context ends, the files of a source are not listed in part, inside or outside of it.
func TestListingEnds(t *testing.T) {
	dir := tree(t, "member/snap/db", "member/snap/x.snap", "wal/0.wal")
	l, err := detect(filepath.Join(dir, "member"), filepath.Join(dir, "wal"))
	if err != nil || !l.walDirIsExternal {
		t.Fatalf("%+v, %v", l, err)
	}
	for asked := int64(0); ; asked++ {
		ctx := ctxtest.EndingAfter(asked)
		man, err := listFiles(ctx, l)
		if ctx.Left() >= 0 {
			if err != nil || len(man.Files) != 3 {
				t.Errorf("%+v, %v", man, err)
			}
			break
		}
		if man != nil || !errors.Is(err, context.Canceled) {
			t.Fatalf("end at %d: %+v, %v", asked, man, err)
		}
	}
}

// TestLocateEnds: whenever the context ends, nothing is located.
func TestLocateEnds(t *testing.T) {
	dir := handDir(t)
	for asked := int64(0); ; asked++ {
		ctx := ctxtest.EndingAfter(asked)
		parts, err := Locate(ctx, Spec{Where: dir})
		if ctx.Left() >= 0 {
			if err != nil || parts.Close() != nil {
				t.Error(err)
			}
			return
		}
		if parts != nil || !errors.Is(err, context.Canceled) {
			t.Fatalf("end at %d: %+v, %v", asked, parts, err)
		}
	}
}

// TestTooDeep: a folder that cannot be listed is named as unreadable, and the others are listed.
func TestTooDeep(t *testing.T) {
	dir := tree(t, "member/snap/db")
	root, err := os.OpenRoot(dir)
	if err == nil {
		deep := strings.Repeat(strings.Repeat("d", 250)+"/", 17)
		err = errors.Join(root.MkdirAll("member/snap/"+deep, 0o700), root.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := detect(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	man, err := listFiles(t.Context(), l)
	if err != nil || len(man.Files) != 1 || len(man.Unreadable) != 1 ||
		!strings.HasPrefix(man.Unreadable[0].Path, filepath.Join(dir, "member", "snap", "ddd")) {
		t.Errorf("%+v, %v", man, err)
	}
}

// TestNoKeyOfManifests: without the bytes that it is made of, there is no key for digests.
func TestNoKeyOfManifests(t *testing.T) {
	dir := handDir(t)
	m, err := loadDir(t.Context(), t, dir, Options{NoHashes: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &Set{Members: []*Member{m}}
	for asked := int64(0); ; asked++ {
		ctx := ctxtest.EndingAfter(asked)
		m.Redact = nil
		err := s.shareKey(ctx, nil)
		if ctx.Left() >= 0 {
			if err != nil || m.Redact == nil {
				t.Errorf("%v, %v", m.Redact, err)
			}
			return
		}
		if m.Redact != nil || !errors.Is(err, context.Canceled) {
			t.Fatalf("end at %d: %v, %v", asked, m.Redact, err)
		}
	}
}

// TestNotDetected: a path that cannot be listed or read is named, with the reason.
func TestNotDetected(t *testing.T) {
	dir := tree(t, "file")
	file := filepath.Join(dir, "file")
	st, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	var bad *SourceError
	if l, err := detectDir(file, ""); l.kind != "" || !errors.As(err, &bad) || !errors.Is(err, syscall.ENOTDIR) ||
		bad.Found != "a folder that cannot be listed" {
		t.Errorf("no folder: %+v, %v", l, err)
	}
	if l, err := detectFile(filepath.Join(dir, "gone"), st); l.kind != "" || !errors.As(err, &bad) ||
		!errors.Is(err, fs.ErrNotExist) || bad.Found != "a file that cannot be read" {
		t.Errorf("no file: %+v, %v", l, err)
	}
}

// TestRowsHidden: rows of a bucket may be hidden where it is missing, or damage is in it or above it.
func TestRowsHidden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	b, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = b.Update(func(tx *bbolt.Tx) error {
		_, err1 := tx.CreateBucket([]byte("key"))
		_, err2 := tx.CreateBucket([]byte("meta"))
		return errors.Join(err1, err2)
	})
	if err := errors.Join(err, b.Close()); err != nil {
		t.Fatal(err)
	}
	h, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }() // only read
	if !slices.Contains(h.MissingBuckets(), "lease") {
		t.Fatalf("%q", h.MissingBuckets())
	}
	for _, c := range []struct {
		damage, bucket string
		want           bool
	}{
		{"none", "key", false}, {"none", "lease", true}, {"key", "key", true}, {"meta", "key", false}, {"", "key", true},
	} {
		m := &Member{DB: &DB{Handle: h}}
		if c.damage != "none" {
			m.DB.Damage = []*dumpdb.DamageError{{Bucket: c.damage}}
		}
		if got := m.RowsHidden(c.bucket); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// TestNoLogin: a login that cannot begin is an error, and has no client.
func TestNoLogin(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	cfg := clientv3.Config{Endpoints: []string{"http://127.0.0.1:1"}}
	if c, err := Login(ended, cfg); c != nil || err != context.Canceled {
		t.Errorf("ended: %v, %v", c, err)
	}
	if c, err := Login(t.Context(), clientv3.Config{}); c != nil || !errors.Is(err, clientv3.ErrNoAvailableEndpoints) {
		t.Errorf("no endpoints: %v, %v", c, err)
	}
}

// TestNamedVersion: the version of a text is that release, also of the line 3.0.
func TestNamedVersion(t *testing.T) {
	for text, want := range map[string]bool{"3.0": true, "": false} {
		if got := (Version{Text: text}).Named(); (got.String() == (Version{}).Release().String()) == want {
			t.Errorf("%q is %s", text, got)
		}
	}
}

// TestNameOfWALDir: files of a log elsewhere are listed at the default place of the log, unless something is there.
func TestNameOfWALDir(t *testing.T) {
	l := layout{root: "/d", member: "/d/member"}
	for path, want := range map[string]string{"": "member/wal", "member/walls": "member/wal", "member/wal": "--wal-dir",
		"member/wal/0.wal": "--wal-dir"} {
		li := &lister{m: &Manifest{layout: l, Files: []File{{Path: "member/snap/db"}}}}
		if path != "" {
			li.m.Files = append(li.m.Files, File{Path: path})
		}
		li.m.Files = append(li.m.Files, File{Path: "zzz"})
		if got := li.nameOfWALDir(); got != want {
			t.Errorf("with %q: %s, want %s", path, got, want)
		}
	}
}
