//go:build !lite

package objects_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/internal/objects"
	"github.com/etcd-medic/etcd-medic/internal/objects/objectstest"
)

func fill(t *testing.T) *objectstest.Bucket {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"a/one.db": "first", "a/b/two.db": "second", "a c/odd key?.db": "third"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return objectstest.Serve(t, dir)
}

func list(t *testing.T, where string, limit int) (names []string, more bool, err error) {
	t.Helper()
	s, err := objects.Open(context.Background(), where)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	more, err = s.List(context.Background(), limit, func(o objects.Object) error {
		names = append(names, o.Name)
		return nil
	})
	return names, more, err
}

func TestList(t *testing.T) {
	b := fill(t)
	for _, c := range []struct {
		key   string
		limit int
		want  string
		more  bool
	}{
		{"a", 10, "b/two.db one.db", false},
		{"a/", 10, "b/two.db one.db", false},
		{"", 10, "a c/odd key?.db a/b/two.db a/one.db", false},
		{"a/one.db", 10, "one.db", false},
		{"a", 1, "b/two.db", true},
	} {
		names, more, err := list(t, b.URL(c.key), c.limit)
		if got := strings.Join(names, " "); got != c.want || more != c.more || err != nil {
			t.Errorf("%q: %q, %v, %v", c.key, got, more, err)
		}
	}
	if _, _, err := list(t, b.URL("missing"), 10); !errors.Is(err, objects.ErrNone) {
		t.Errorf("a missing key: %v", err)
	}
}

func TestFetch(t *testing.T) {
	b := fill(t)
	dir := t.TempDir()
	path, err := objects.Fetch(context.Background(), b.URL("a/one.db"), dir, -1)
	if err != nil || path != filepath.Join(dir, "one.db") {
		t.Fatalf("%s, %v", path, err)
	}
	if text, err := os.ReadFile(path); string(text) != "first" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	dir = t.TempDir()
	if path, err = objects.Fetch(context.Background(), b.URL("a"), dir, -1); err != nil || path != dir {
		t.Fatalf("%s, %v", path, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "b", "two.db")); string(text) != "second" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err = objects.Fetch(context.Background(), b.URL("a"), t.TempDir(), 8); err == nil ||
		!strings.Contains(err.Error(), "room for only 8") {
		t.Errorf("no room: %v", err)
	}
	if _, err = objects.Fetch(context.Background(), "s3:///", t.TempDir(), -1); err == nil {
		t.Error("an address without a bucket was accepted")
	}
}

func TestURLs(t *testing.T) {
	for where, want := range map[string]bool{"s3://b/k": true, "gs://b": true, "azblob://c/k?x=1": true,
		"/s3://b": false, "http://h": false, "s3": false} {
		if got := objects.IsURL(where); got != want {
			t.Errorf("%s: %v", where, got)
		}
	}
	if got := objects.Shown("s3://b/k?secret=1"); got != "s3://b/k" {
		t.Errorf("shown: %s", got)
	}
}
