package cause_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
)

// TestCasesWithoutParts: a diagnosis of any case of the checks and causes ends with a verdict, whatever part of a
// member is gone as well. Each case is tried with one part of one member, other ones for each ETCD_MEDIC_TEST_SEED.
func TestCasesWithoutParts(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("ETCD_MEDIC_TEST_SEED")) // 0 is a seed like others
	for _, pattern := range []string{"testdata/cases/*.txt", "../check/testdata/cases/*.txt"} {
		for _, c := range casetest.Read(t, pattern) {
			n++
			k := n
			t.Run(c.ID(), func(t *testing.T) {
				t.Parallel()
				sources := casetest.Build(t, c.Lines)
				gone := withoutPart(t, sources, k)
				if r := diagnose(t, casetest.Specs(sources)); r.Verdict.Class == "" {
					t.Errorf("no verdict without %s", gone)
				}
			})
		}
	}
}

// withoutPart replaces a source that is a data dir, chosen by a number, by a copy without one of its parts.
func withoutPart(t *testing.T, sources []casetest.Source, n int) string {
	t.Helper()
	part := []string{"snap/db", "wal", "snap"}[n%3]
	for i := range sources {
		s := &sources[(n/3+i)%len(sources)]
		for _, dir := range []string{"member", ""} {
			path := filepath.Join(dir, part)
			beside, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Join(s.Path, path)), "*"))
			if _, err := os.Stat(filepath.Join(s.Path, path)); err != nil || len(beside) < 2 {
				continue // not there, or the only part
			}
			root := filepath.Join(t.TempDir(), s.Name)
			err := os.CopyFS(root, os.DirFS(s.Path))
			if err == nil {
				err = os.RemoveAll(filepath.Join(root, path))
			}
			if err != nil {
				t.Fatal(err)
			}
			s.Path = root
			return path + " of " + s.Name
		}
	}
	return "nothing"
}
