package evidencetest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence/archive"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

const small = "a-auth-revision-replay"

func TestEveryIncidentUnpacksAndHasItsTruth(t *testing.T) {
	for _, name := range evidencetest.Incidents(t) {
		dir := evidencetest.Incident(t, name)
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) == 0 {
			t.Errorf("%s: %d entries, %v", name, len(entries), err)
		}
		truth := evidencetest.Truth(t, name)
		if truth.ID == "" || truth.Verdict.Class == "" || len(truth.MustReport) == 0 {
			t.Errorf("%s: id %q, class %q, %d findings", name, truth.ID, truth.Verdict.Class, len(truth.MustReport))
		}
		for node := range truth.Nodes {
			if _, err := os.Stat(filepath.Join(dir, node, "member", "wal")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, best := range truth.Best.Names {
			if truth.Nodes[best] == nil {
				t.Errorf("%s: best member %s has no facts", name, best)
			}
		}
	}
}

func TestIncidentIsShared(t *testing.T) {
	if a, b := evidencetest.Incident(t, small), evidencetest.Incident(t, small); a != b {
		t.Errorf("%s and %s", a, b)
	}
}

func TestCopyIsEqualPrivateAndSparse(t *testing.T) {
	src := evidencetest.Incident(t, small)
	evidencetest.Unchanged(t, src)
	dst := evidencetest.Copy(t, src)
	want, err := evidencetest.TreeHash(src)
	if err != nil {
		t.Fatal(err)
	}
	got, err := evidencetest.TreeHash(dst)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Error("the copy is not equal")
	}
	db := "node1/member/snap/db"
	a, err := os.ReadFile(filepath.Join(src, db))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dst, db))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Error("db differs byte for byte")
	}
	if err := os.WriteFile(filepath.Join(dst, db), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// recorder stands in for a test, to see whether Unchanged fails it.
type recorder struct {
	testing.TB
	cleanups []func()
	errors   []string
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, strings.TrimSpace(format))
	for _, a := range args {
		if s, ok := a.(string); ok {
			r.errors = append(r.errors, s)
		}
	}
}

func TestUnchangedSeesEveryChange(t *testing.T) {
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	seg := "node1/member/wal/0000000000000000-0000000000000000.wal"
	// keepTime makes a change that leaves size and time as they were, as a careless rewrite of evidence would.
	keepTime := func(t *testing.T, name string, change func(f *os.File) error) {
		t.Helper()
		st, err := os.Stat(name)
		must(t, err)
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		must(t, err)
		must(t, change(f))
		must(t, f.Close())
		must(t, os.Chtimes(name, st.ModTime(), st.ModTime()))
	}
	for name, change := range map[string]func(t *testing.T, dir string){
		"one bit": func(t *testing.T, dir string) {
			keepTime(t, filepath.Join(dir, "node1/member/snap/db"), func(f *os.File) error {
				_, err := f.WriteAt([]byte{0x5a}, 4096+100)
				return err
			})
		},
		"a byte in a hole": func(t *testing.T, dir string) {
			keepTime(t, filepath.Join(dir, seg), func(f *os.File) error {
				_, err := f.WriteAt([]byte{1}, 60_000_001)
				return err
			})
		},
		"size": func(t *testing.T, dir string) { must(t, os.Truncate(filepath.Join(dir, seg), 63_999_999)) },
		"time": func(t *testing.T, dir string) {
			must(t,
				os.Chtimes(filepath.Join(dir, seg), time.Time{}, time.Now()))
		},
		"mode":     func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Join(dir, seg), 0o644)) },
		"new name": func(t *testing.T, dir string) { must(t, os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600)) },
		"gone":     func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, seg))) },
		"renamed": func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, seg), filepath.Join(dir, seg+".broken")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := evidencetest.Copy(t, evidencetest.Incident(t, small))
			r := &recorder{TB: t}
			evidencetest.Unchanged(r, dir)
			change(t, dir)
			for _, f := range r.cleanups {
				f()
			}
			if len(r.errors) == 0 {
				t.Error("not seen")
			}
		})
	}
	t.Run("reading only", func(t *testing.T) {
		dir := evidencetest.Copy(t, evidencetest.Incident(t, small))
		r := &recorder{TB: t}
		evidencetest.Unchanged(r, dir)
		_, err := os.ReadFile(filepath.Join(dir, seg))
		must(t, err)
		for _, f := range r.cleanups {
			f()
		}
		if len(r.errors) > 0 {
			t.Errorf("false alarm: %v", r.errors)
		}
	})
}

// TestOnlyZerosAreCut: a WAL segment of an unpacked set is the one of the archive, up to the zeros at its end.
func TestOnlyZerosAreCut(t *testing.T) {
	whole := t.TempDir()
	file := filepath.Join(evidencetest.Root(t), "testdata", "incidents", small, "nodes.tar.gz")
	if err := archive.Unpack(t.Context(), file, whole); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(whole, "*", "member", "wal", "*.wal"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("%d segments, %v", len(segments), err)
	}
	for _, name := range segments {
		rel, err := filepath.Rel(whole, name)
		if err != nil {
			t.Fatal(err)
		}
		want, got := readFile(t, name), readFile(t, filepath.Join(evidencetest.Incident(t, small), rel))
		cut, ok := bytes.CutPrefix(want, got)
		if !ok || len(cut) < 60<<20 || len(bytes.TrimLeft(cut, "\x00")) > 0 {
			t.Errorf("%s: %d of %d bytes remain; the others are not all zeros", rel, len(got), len(want))
		}
		if zeros := len(got) - len(bytes.TrimRight(got, "\x00")); zeros < 64<<10 {
			t.Errorf("%s: %d zeros remain", rel, zeros)
		}
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
