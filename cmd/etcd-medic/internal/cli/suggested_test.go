package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// harm damages one member's data dir.
type harm struct {
	name string
	do   func(t *testing.T, dir string)
}

func harms() []harm {
	file := func(pattern string, pick func(all []string) string) func(t *testing.T, dir string) string {
		return func(t *testing.T, dir string) string {
			t.Helper()
			all, err := filepath.Glob(filepath.Join(dir, "member", pattern))
			want(t, err)
			if len(all) == 0 {
				return ""
			}
			return pick(all)
		}
	}
	first := func(all []string) string { return all[0] }
	last := func(all []string) string { return all[len(all)-1] }
	log, db, snap := file("wal/*.wal", last), file("snap/db", first), file("snap/*.snap", last)
	change := func(where func(*testing.T, string) string, f func(b []byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			path := where(t, dir)
			if path == "" {
				return
			}
			b, err := os.ReadFile(path)
			want(t, err)
			want(t, os.WriteFile(path, f(b), 0o600))
		}
	}
	flip := func(at int) func(b []byte) []byte {
		return func(b []byte) []byte {
			if at < len(b) {
				b[at] ^= 0x10
			}
			return b
		}
	}
	zero := func(from, n int) func(b []byte) []byte {
		return func(b []byte) []byte {
			for i := from; i < from+n && i < len(b); i++ {
				b[i] = 0
			}
			return b
		}
	}
	cut := func(n int) func(b []byte) []byte { return func(b []byte) []byte { return b[:min(n, len(b))] } }
	return []harm{
		{"a bit of the log", change(log, flip(6000))},
		{"an early bit of the log", change(log, flip(900))},
		{"zeros in the log", change(log, zero(9000, 3000))},
		{"the log cut off", change(log, cut(7001))},
		{"no log", func(t *testing.T, dir string) {
			t.Helper()
			want(t, os.RemoveAll(filepath.Join(dir, "member", "wal")))
		}},
		{"no last segment", func(t *testing.T, dir string) { t.Helper(); want(t, os.Remove(log(t, dir))) }},
		{"no database", func(t *testing.T, dir string) { t.Helper(); want(t, os.Remove(db(t, dir))) }},
		{"an empty database", change(db, cut(0))},
		{"both meta pages", change(db, zero(0, 8192))},
		{"one meta page", change(db, flip(4096+40))},
		{"a page", change(db, flip(4096*5+300))},
		{"pages", change(db, zero(4096*3, 4096*4))},
		{"half a database", change(db, cut(4096*6))},
		{"a snapshot file", change(snap, flip(60))},
	}
}

// TestSuggestionsAreNotRefused: what a diagnosis of damaged members suggests is not refused when it is done, alone and
// with the other members; nor is what a plan suggests then. Each harm is done to one set; with the tag e2e to all sets,
// to one, two and three members.
func TestSuggestionsAreNotRefused(t *testing.T) {
	sets := []string{"m-healthy-3.5", "m-healthy-3.6", "e3-wal-missing-last-segment", "a-auth-revision-replay"}
	for i, set := range sets {
		for k, h := range harms() {
			for _, n := range []int{1, 2, 3} {
				if !everySuggestion && (i != k%len(sets) || n != 1+k/2%3) && !refusedOnce[fmt.Sprint(set, n, h.name)] {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%d", set, strings.ReplaceAll(h.name, " ", "-"), n), func(t *testing.T) {
					suggested(t, set, h, n)
				})
			}
		}
	}
}

// refusedOnce are cases that were refused, or could not be run.
var refusedOnce = map[string]bool{
	fmt.Sprint("m-healthy-3.6", 1, "a bit of the log"):              true,
	fmt.Sprint("m-healthy-3.6", 2, "a page"):                        true,
	fmt.Sprint("e3-wal-missing-last-segment", 2, "no last segment"): true,
	fmt.Sprint("e3-wal-missing-last-segment", 3, "no last segment"): true,
	fmt.Sprint("a-auth-revision-replay", 3, "the log cut off"):      true,
	fmt.Sprint("a-auth-revision-replay", 1, "no log"):               true,
}

// suggested damages n members of a set, and follows what is said of one of them alone, of those, and of all.
func suggested(t *testing.T, set string, h harm, n int) {
	dir := evidencetest.Copy(t, evidencetest.Incident(t, set))
	entries, err := os.ReadDir(dir)
	want(t, err)
	for _, e := range entries[:n] {
		h.do(t, filepath.Join(dir, e.Name()))
	}
	evidencetest.Unchanged(t, dir)
	sources, db := sourceArgs(t, dir)
	t.Chdir(t.TempDir())
	done := map[string]bool{}
	given := [][]string{sources}
	if n == 1 {
		given = append(given, sources[:1])
	} else if n < len(sources) {
		given = append(given, sources[:n])
	}
	for _, some := range given {
		fill := fillers(some, db)
		args := append([]string{"diagnose", "--full"}, some...)
		out, _, _ := medicOn(t, 0, args)
		for _, cmd := range printedCommands(out) {
			notRefused(t, args, fill.Replace(cmd), done)
		}
	}
}

// notRefused runs a command that was suggested; what a plan suggests is run too, but for what starts servers.
func notRefused(t *testing.T, from []string, line string, done map[string]bool) {
	t.Helper()
	if done[line] || !strings.HasPrefix(line, "etcd-medic ") || strings.Contains(line, "repair rehearse") ||
		strings.HasPrefix(line, "etcd-medic collect ") || // needs the member's host
		strings.Contains(line, "repair apply") || strings.Contains(line, "DATA_DIR") ||
		strings.Contains(line, "COPY_OF") || strings.Contains(line, "restore BACKUP ") { // to be filled in
		return
	}
	done[line] = true
	args := arguments(t, line)[1:]
	if i := slices.Index(args, "-o"); i > 0 {
		_ = os.RemoveAll(args[i+1])
	}
	out, errs, code := medicOn(t, 0, args)
	if code == ExitUsage || code == ExitError || code == ExitRefused || code == ExitUnfinished {
		t.Errorf("%v suggests\n%s\nwhich ends in exit code %d: %s", from, line, code, errs)
	}
	if slices.Contains(args, "plan") {
		for _, cmd := range printedCommands(out) {
			notRefused(t, args, cmd, done)
		}
	}
}

func want(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
