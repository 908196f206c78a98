package htmlreport

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

// collect makes the dossier of sources.
func collect(t *testing.T, sources ...string) *dossier.Dossier {
	t.Helper()
	var specs []evidence.Spec
	for _, s := range sources {
		spec, err := evidence.ParseSpec(s)
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, spec)
	}
	d, err := dossier.Collect(t.Context(), specs, dossier.Options{Compare: compare.Options{Version: "test"}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// incident is the dossier of a shipped incident.
func incident(t *testing.T, name string) *dossier.Dossier {
	t.Helper()
	return collect(t, evidencetest.Incident(t, name))
}

// page writes the page of a dossier to a file.
func page(t *testing.T, d *dossier.Dossier) (file, html string) {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, d); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, b.String()
}

// database writes an etcd database that holds the keys, each put once with a value that begins with word.
func database(t *testing.T, name, word string, keys [][]byte) string {
	t.Helper()
	return databaseOf(t, name, keys, func(i int) []byte { return fmt.Appendf(nil, "%s value of number %d", word, i) })
}

// databaseOf writes an etcd database that holds the keys, each put once.
func databaseOf(t *testing.T, name string, keys [][]byte, value func(i int) []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(emptyState); err != nil {
		t.Fatal(err)
	}
	const batch = 5000 // of a transaction, whose pages are in memory
	for from := 0; from < len(keys); from += batch {
		if err := db.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte("key"))
			b.FillPercent = 0.95
			for i := from; i < min(from+batch, len(keys)); i++ {
				rev := int64(i + 2)
				kv := mvccpb.KeyValue{Key: keys[i], Value: value(i), CreateRevision: rev, ModRevision: rev, Version: 1}
				raw, err := kv.Marshal()
				if err != nil {
					return err
				}
				if err := b.Put(dumpdb.Rev{Main: rev}.Bytes(), raw); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return name + "=" + path
}

// emptyState makes the buckets of a database that has applied 131,072 entries.
func emptyState(tx *bbolt.Tx) error {
	for _, b := range []string{"alarm", "auth", "authRoles", "authUsers", "cluster", "lease", "members",
		"members_removed", "key", "meta"} {
		if _, err := tx.CreateBucket([]byte(b)); err != nil {
			return err
		}
	}
	return tx.Bucket([]byte("meta")).Put([]byte("consistent_index"), []byte{0, 0, 0, 0, 0, 2, 0, 0})
}

// hostileKeys try to leave the text that they are.
func hostileKeys() [][]byte {
	return [][]byte{
		[]byte("/a/<script>window.pwned=1</script>"),
		[]byte("/a/</script><script>window.pwned=2</script>"),
		[]byte("/a/<img src=x onerror=window.pwned=3>"),
		[]byte("/a/\"'`${window.pwned=4}{{.}}"),
		[]byte("/a/\u202egnp.exe\u202c"),
		[]byte("/a/control\x00\x07\x1b[31m"),
		[]byte("/a/<!--"),
		[]byte("/a/not utf-8 \xff\xfe"),
		[]byte("/registry/pods/default/\u2066web\u2069"),
		[]byte("/a/it's 'quoted'"),
		[]byte("/a/big/" + strings.Repeat("K", 1<<20)),
	}
}

// manyKey is one of many keys, spread over prefixes as those of Kubernetes are.
func manyKey(i int) []byte {
	kinds := []string{"pods", "configmaps", "secrets", "events", "leases", "services/specs"}
	return fmt.Appendf(nil, "/registry/%s/team-%02d/application-%05d-%x", kinds[i%len(kinds)], i/7%40, i, i*2654435761)
}
