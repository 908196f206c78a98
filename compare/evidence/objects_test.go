//go:build !lite

package evidence_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/internal/objects/objectstest"
)

// TestObjectStorage: an address in object storage is read as a path with the same content is, and the copies end with
// the set.
func TestObjectStorage(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(evidencetest.Root(t), "testdata", "incidents", "k-lagging-node", "nodes.tar.gz")
	packed, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	nodes := os.DirFS(evidencetest.Incident(t, "k-lagging-node"))
	for _, err := range []error{os.CopyFS(filepath.Join(dir, "nodes"), nodes),
		os.WriteFile(filepath.Join(dir, "nodes.tar.gz"), packed, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	bucket := objectstest.Serve(t, dir)
	left := leftovers(t)
	for key, want := range map[string][]string{
		"nodes":               {"node1 data-dir", "node2 data-dir", "node3 data-dir"},
		"nodes/node2":         {"node2 data-dir"},
		"nodes/node2/member/": {"node2 data-dir"},
		"nodes.tar.gz":        {"node1 data-dir", "node2 data-dir", "node3 data-dir"},
	} {
		set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: bucket.URL(key)}}, evidence.Options{})
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		if got := labels(set); !slices.Equal(got, want) || len(left()) == 0 {
			t.Errorf("%s: %q, want %q; copied into %q", key, got, want, left())
		}
		for _, m := range set.Members {
			if arg := set.Argument(m.Source); strings.Contains(arg, "#") || strings.Contains(arg, left()[0]) {
				t.Errorf("%s: no path names %s again, but it is called %q", key, m.Label(), arg)
			}
		}
		if err := set.Close(); err != nil || len(left()) > 0 {
			t.Errorf("%s: closed: %v, left: %q", key, err, left())
		}
	}
	var bad *evidence.SourceError
	if err := openError(t, bucket.URL("none"), evidence.Access{}); !errors.As(err, &bad) ||
		bad.Found != "object storage that cannot be read" || bad.Where != "s3://b/none" ||
		strings.Contains(err.Error(), "endpoint=") {
		t.Errorf("no object: %v", err)
	}
	if names := left(); len(names) > 0 {
		t.Errorf("left: %q", names)
	}
}
