package evidence_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// digestIn opens sources and returns the digest that stands for a value there.
func digestIn(t *testing.T, value string, specs ...evidence.Spec) string {
	t.Helper()
	set, err := evidence.Open(t.Context(), specs, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := set.Members[0].Digest([]byte(value))
	for _, m := range set.Members {
		if got := m.Digest([]byte(value)); got != d {
			t.Errorf("%s shows %s, another source of the run %s", m.Label(), got, d)
		}
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	return d
}

// TestDigestsOfValues: a digest is a function of value and sources, whatever the order and the place of these, and no
// plain hash.
func TestDigestsOfValues(t *testing.T) {
	root := evidencetest.Incident(t, "a-auth-revision-replay")
	one, two := evidence.Spec{Where: filepath.Join(root, "node1")}, evidence.Spec{Where: filepath.Join(root, "node2")}
	d := digestIn(t, "secret", one, two)
	if got := digestIn(t, "secret", two, one); got != d {
		t.Errorf("another order gives %s, want %s", got, d)
	}
	if digestIn(t, "secreT", one, two) == d {
		t.Error("another value has the same digest")
	}
	if digestIn(t, "secret", one) == d || digestIn(t, "secret", one) == digestIn(t, "secret", two) {
		t.Error("other sources give the same digest")
	}
	plain := sha256.Sum256([]byte("secret"))
	if strings.HasPrefix(hex.EncodeToString(plain[:]), d) {
		t.Error("the digest is a plain hash")
	}
	moved := t.TempDir()
	if err := os.CopyFS(moved, os.DirFS(one.Where)); err != nil {
		t.Fatal(err)
	}
	if digestIn(t, "secret", evidence.Spec{Name: "other", Where: moved}) != digestIn(t, "secret", one) {
		t.Error("a copy of a source gives another digest")
	}
}

// TestDigestsHangOnContent: bytes of the database are in the key, so the digests of two sources tell nothing of each
// other.
func TestDigestsHangOnContent(t *testing.T) {
	root := evidencetest.Incident(t, "a-auth-revision-replay")
	src := evidence.Spec{Where: filepath.Join(root, "node1")}
	before := digestIn(t, "secret", src)
	moved := t.TempDir()
	if err := os.CopyFS(moved, os.DirFS(src.Where)); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(moved, "member", "snap", "db")
	b, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := errors.Join(os.Chmod(db, 0o600), os.WriteFile(db, b, 0o600)); err != nil {
		t.Fatal(err)
	}
	if digestIn(t, "secret", evidence.Spec{Where: moved}) == before {
		t.Error("a changed database gives the same key")
	}
}

// TestOneKeyForAReport: a set that goes into another set's report uses the key of that one.
func TestOneKeyForAReport(t *testing.T) {
	root := evidencetest.Incident(t, "a-auth-revision-replay")
	open := func(name string, o evidence.Options) *evidence.Set {
		t.Helper()
		set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: filepath.Join(root, name)}}, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = set.Close() })
		return set
	}
	one := open("node1", evidence.Options{}).Members[0]
	two := open("node2", evidence.Options{Redact: one.Redact}).Members[0]
	if one.Digest([]byte("v")) != two.Digest([]byte("v")) {
		t.Error("one value has two digests in one report")
	}
}

// TestDigestOfParts: what a listing reads of a source has the same digests as the opened source.
func TestDigestOfParts(t *testing.T) {
	root := evidencetest.Incident(t, "a-auth-revision-replay")
	spec := evidence.Spec{Where: filepath.Join(root, "node1")}
	p, err := evidence.Locate(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	k, err := p.Redact(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := k.Digest([]byte("v")), digestIn(t, "v", spec); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}
