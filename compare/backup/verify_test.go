package backup_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/authpb"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

// good is the shipped sound backup; it is shared and read only.
func good(t *testing.T) string {
	t.Helper()
	return filepath.Join(evidencetest.Incident(t, "o-backup-good"), "backup.db")
}

func verify(t *testing.T, path string) *compare.Report {
	t.Helper()
	evidencetest.Unchanged(t, path)
	r, err := backup.Verify(context.Background(), evidence.Spec{Where: path},
		backup.Options{Options: compare.Options{Version: "test"}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func layerOf(r *compare.Report, name string) compare.Layer {
	if r.Backup != nil {
		for _, l := range r.Backup.Layers {
			if l.Name == name {
				return l
			}
		}
	}
	return compare.Layer{}
}

// edit changes the content of a backup through bbolt, as a server would, and writes it again as snapshot save does.
func edit(change func(*bbolt.Tx) error) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		work := path + ".work"
		if err := os.WriteFile(work, b[:len(b)-32], 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := bbolt.Open(work, 0o600, &bbolt.Options{NoFreelistSync: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Update(change); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := db.View(func(tx *bbolt.Tx) error { _, err := tx.WriteTo(&out); return err }); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Close(), os.Remove(work)); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(out.Bytes())
		out.Write(sum[:])
		if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// raw changes the bytes of the file; with resum the trailer is made to fit again, so that only the layer above it can
// tell.
func raw(resum bool, change func([]byte) []byte) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b = change(b)
		if resum {
			sum := sha256.Sum256(b[:len(b)-32])
			copy(b[len(b)-32:], sum[:])
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func put(bucket, key string, value []byte) func(*testing.T, string) {
	return edit(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucket)).Put([]byte(key), value) })
}

func user(name string, roles ...string) func(*testing.T, string) {
	b, err := (&authpb.User{Name: []byte(name), Roles: roles}).Marshal()
	if err != nil {
		panic(err)
	}
	return put("authUsers", name, b)
}

func u64(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func rev(n uint64) []byte { return append(append(u64(n), '_'), u64(0)...) }

// damage is one way for a backup to be bad at one layer.
var damage = []struct {
	name   string
	spoil  func(*testing.T, string)
	layer  string
	class  string
	cause  string
	checks []check.ID
}{
	{"bit flipped in a value", raw(false, func(b []byte) []byte { b[38421] ^= 8; return b }), "trailer",
		"backup-damaged", "backup-hash-mismatch", []check.ID{"B01"}},
	{"trailer taken off", raw(false, func(b []byte) []byte { return b[:len(b)-32] }), "trailer", "backup-unverifiable",
		"backup-without-hash", []check.ID{"B01"}},
	{"cut in the middle", raw(false, func(b []byte) []byte { return b[:20_000] }), "size", "backup-damaged",
		"backup-truncated", []check.ID{"B02", "D02"}},
	{"cut by a page", raw(false, func(b []byte) []byte { return b[:len(b)-32-4096] }), "size", "backup-damaged",
		"backup-truncated", []check.ID{"B02"}},
	{"cut inside the trailer", raw(false, func(b []byte) []byte { return b[:len(b)-7] }), "size", "backup-damaged",
		"backup-truncated", []check.ID{"B02"}},
	{"cut to the first page", raw(false, func(b []byte) []byte { return b[:4096] }), "size", "backup-damaged",
		"backup-truncated", []check.ID{"B02"}},
	{"bytes appended", raw(false, func(b []byte) []byte { return append(b, make([]byte, 4096)...) }), "size",
		"backup-damaged", "backup-hash-mismatch", []check.ID{"B02"}},
	{"empty", raw(false, func([]byte) []byte { return nil }), "", "backup-damaged", "backup-truncated",
		[]check.ID{"B02"}},
	{"both metas dead", raw(true, func(b []byte) []byte { b[40], b[4096+40] = 1, 1; return b }), "", "backup-damaged",
		"bbolt-meta-damage", []check.ID{"D02"}},
	{"one meta dead", raw(true, func(b []byte) []byte { b[40] ^= 1; return b }), "metas", "backup-damaged",
		"bbolt-meta-damage", []check.ID{"D01"}},
	{"page overwritten", raw(true, func(b []byte) []byte {
		copy(b[9*4096:10*4096],
			bytes.Repeat([]byte{0xa5}, 4096))
		return b
	}), "pages", "backup-damaged", "bbolt-page-damage", []check.ID{"D02"}},
	{"bucket gone", edit(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("key")) }), "buckets",
		"backup-damaged", "", []check.ID{"B03"}},
	{"row that does not decode", put("lease", "12345678", []byte{0xff, 0xff}), "bucket lease", "backup-damaged", "",
		[]check.ID{"D03"}},
	{"revision taken out", edit(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("key")).Delete(rev(100)) }), "mvcc",
		"backup-damaged", "", []check.ID{"K04"}},
	{"user with a role that is not there", user("alice", "ghost"), "auth", "backup-damaged", "", []check.ID{"B05"}},
	{"roles not sorted", user("root", "zz", "root"), "auth", "backup-damaged", "", []check.ID{"B05"}},
	{"nobody is root", edit(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("authUsers")).Delete([]byte("root")) }),
		"auth", "backup-damaged", "", []check.ID{"B05"}},
	{"two members of one name", put("members", "7",
		[]byte(`{"id":7,"peerURLs":["http://10.0.0.9:2380"],"name":"node1"}`)), "members", "backup-good", "",
		[]check.ID{"B04"}},
	{"lease of a key gone", edit(func(tx *bbolt.Tx) error {
		k, _ := tx.Bucket([]byte("lease")).Cursor().First()
		return tx.Bucket([]byte("lease")).Delete(bytes.Clone(k))
	}), "leases", "backup-damaged", "", []check.ID{"L02"}},
	{"CORRUPT alarm", put("alarm", string([]byte{8, 1, 16, 2}), nil), "alarms", "backup-damaged", "",
		[]check.ID{"M06"}},
	{"NOSPACE alarm", put("alarm", string([]byte{8, 1, 16, 1}), nil), "alarms", "backup-good", "", []check.ID{"M06"}},
	{"storage version that is none", put("meta", "storageVersion", []byte("3.5.0")), "storage-version",
		"backup-damaged", "", []check.ID{"B06"}},
	{"compaction finished that never began", put("meta", "finishedCompactRev", rev(3)), "revision", "backup-damaged",
		"", []check.ID{"B07"}},
}

// TestDamageAtEveryLayer spoils a sound backup at each layer and wants that layer, class and cause, and nothing worse
// than an answer.
func TestDamageAtEveryLayer(t *testing.T) {
	for _, d := range damage {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			path := evidencetest.Copy(t, good(t))
			d.spoil(t, path)
			r := verify(t, path)
			if string(r.Verdict.Class) != d.class {
				t.Errorf("class %s (%s), want %s", r.Verdict.Class, r.Verdict.Summary, d.class)
			}
			if got := cause(r); d.cause != got && d.cause != "" {
				t.Errorf("cause %q, want %q", got, d.cause)
			}
			if l := layerOf(r, d.layer); d.layer != "" && l.Outcome == check.Holds {
				t.Errorf("layer %+v holds", l)
			}
			for _, id := range d.checks {
				if !slices.ContainsFunc(r.Findings,
					func(f check.Finding) bool { return f.Check == id && len(f.Evidence) > 0 }) {
					t.Errorf("no finding of %s with evidence: %+v", id, r.Findings)
				}
			}
			for _, l := range r.Backup.Layers {
				if l.Outcome == "" || l.Says == "" {
					t.Errorf("layer without verdict or text: %+v", l)
				}
			}
			if line := backup.LineOf(r).String(); strings.Contains(line, "\n") || !strings.HasPrefix(line, "backup.db: ") {
				t.Errorf("line %q", line)
			}
		})
	}
}

func cause(r *compare.Report) string {
	if r.Verdict.Cause == nil {
		return ""
	}
	return string(*r.Verdict.Cause)
}

// TestGoodBackup: every layer of the shipped sound backup holds, and what it says is what truth.json knows.
func TestGoodBackup(t *testing.T) {
	r := verify(t, good(t))
	if r.Verdict.Class != "backup-good" || r.Verdict.Health != check.Healthy || r.Verdict.Cause != nil {
		t.Errorf("%s %v: %s", r.Verdict.Class, r.Verdict.Cause, r.Verdict.Summary)
	}
	for _, l := range r.Backup.Layers {
		if l.Outcome != check.Holds {
			t.Errorf("layer %+v", l)
		}
	}
	truth := evidencetest.Truth(t, "o-backup-good").Raw["backup"].(map[string]any)
	if r.Backup.ComputedSHA256 != truth["computed_sha256_of_body"] || r.Sources[0].SHA256 != truth["file_sha256"] ||
		fmt.Sprint(r.Backup.Size) != fmt.Sprint(truth["size"]) {
		t.Errorf("%+v, file %s; want %v", r.Backup, r.Sources[0].SHA256, truth)
	}
	if r.Backup.Origin != compare.OriginSnapshot {
		t.Errorf("origin %q", r.Backup.Origin)
	}
}

// TestShippedBackups: class and cause of every shipped backup, as diagnose and verify tell them, agree.
func TestShippedBackups(t *testing.T) {
	for _, name := range evidencetest.Incidents(t) {
		if !strings.HasPrefix(name, "o-") {
			continue
		}
		truth := evidencetest.Truth(t, name)
		r := verify(t, filepath.Join(evidencetest.Incident(t, name), "backup.db"))
		if string(r.Verdict.Class) != truth.Verdict.Class ||
			(r.Verdict.Health == check.Healthy) != truth.Verdict.Healthy ||
			cause(r) != truth.Verdict.Cause {
			t.Errorf("%s: %s %q, want %+v", name, r.Verdict.Class, cause(r), truth.Verdict)
		}
	}
}

// TestRawCopyIsUnverifiable: a database copied from a data dir holds at every layer but the trailer.
func TestRawCopyIsUnverifiable(t *testing.T) {
	for _, incident := range []string{"m-healthy-3.5", "m-healthy-3.6", "m-healthy-3.7", "gen-healthy-3.4"} {
		r := verify(t, filepath.Join(evidencetest.Incident(t, incident), "node1", "member", "snap", "db"))
		if r.Verdict.Class != "backup-unverifiable" || cause(r) != "backup-without-hash" ||
			r.Backup.Origin != compare.OriginRaw {
			t.Errorf("%s: %s %s, origin %s: %s", incident, r.Verdict.Class, cause(r), r.Backup.Origin,
				r.Verdict.Summary)
		}
		for _, l := range r.Backup.Layers {
			if l.Outcome != check.Holds && l.Name != "trailer" && l.Name != "alarms" {
				t.Errorf("%s: layer %+v", incident, l)
			}
		}
	}
}

// TestEveryPrefix: a backup cut at any page, and some bytes around it, is never called good.
func TestEveryPrefix(t *testing.T) {
	whole, err := os.ReadFile(good(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for n := 0; n < len(whole); n += 1024 {
		for _, cut := range []int{n, n + 1, n + 32, n + 511} {
			if cut >= len(whole) || cut == len(whole)-32 {
				continue
			}
			path := filepath.Join(dir, "backup.db")
			if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := backup.Verify(context.Background(), evidence.Spec{Where: path}, backup.Options{})
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			if r.Verdict.Class != "backup-damaged" || cause(r) != "backup-truncated" {
				t.Fatalf("cut at %d: %s %q: %s", cut, r.Verdict.Class, cause(r), r.Verdict.Summary)
			}
		}
	}
}

// TestArchives: a backup in an archive is verified like the file; of several in one nobody could say which is meant.
func TestArchives(t *testing.T) {
	b, err := os.ReadFile(good(t))
	if err != nil {
		t.Fatal(err)
	}
	archive := func(names ...string) string {
		path := filepath.Join(t.TempDir(), "backups.tar")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := tar.NewWriter(f)
		for _, n := range names {
			err = errors.Join(err, w.WriteHeader(&tar.Header{Name: n, Mode: 0o600, Size: int64(len(b))}))
			_, werr := w.Write(b)
			err = errors.Join(err, werr)
		}
		if err = errors.Join(err, w.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if r := verify(t, archive("one.db")); r.Verdict.Class != "backup-good" || backup.Name(r) != "one.db" {
		t.Errorf("%s: %s", backup.Name(r), r.Verdict.Class)
	}
	var se *evidence.SourceError
	if _, err := backup.Verify(context.Background(), evidence.Spec{Where: archive("one.db", "two.db")},
		backup.Options{}); !errors.As(err, &se) {
		t.Errorf("two backups in one archive: %v", err)
	}
}
