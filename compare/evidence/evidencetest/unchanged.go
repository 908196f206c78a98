package evidencetest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Unchanged records names, sizes, modes, modification times and content of everything below each dir (or of a single
// file). At the end of the test it fails the test if any of them has changed.
func Unchanged(t testing.TB, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		before, err := listTree(dir)
		if err != nil {
			t.Fatalf("evidence %s: %v", dir, err)
		}
		t.Cleanup(func() {
			after, err := listTree(dir)
			if err != nil {
				t.Errorf("evidence %s cannot be read after the test: %v", dir, err)
				return
			}
			if d := diffTree(before, after); len(d) > 0 {
				t.Errorf("evidence %s was changed by the test:\n  %s", dir, strings.Join(d, "\n  "))
			}
		})
	}
}

// TreeHash returns a hex sha256 over names, sizes, modes, modification times and content of everything below dir.
// Sparse extents count as zeros.
func TreeHash(dir string) (string, error) {
	lines, err := listTree(dir)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, l := range lines {
		_, _ = fmt.Fprintf(h, "%q %q\n", l.name, l.facts) // a hash never fails to write
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// treeLine is one name of a tree with everything that must not change.
type treeLine struct{ name, facts string }

func listTree(dir string) ([]treeLine, error) {
	var lines []treeLine
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		facts, err := factsOf(name, d)
		if err != nil {
			return err
		}
		lines = append(lines, treeLine{rel, facts})
		return nil
	})
	return lines, err
}

func factsOf(name string, d fs.DirEntry) (string, error) {
	st, err := d.Info()
	if err != nil {
		return "", err
	}
	facts := fmt.Sprintf("mode %v mtime %d", st.Mode(), st.ModTime().UnixNano())
	switch {
	case st.Mode().IsRegular():
		sum, err := contentHash(name)
		return fmt.Sprintf("%s size %d content %s", facts, st.Size(), sum), err
	case st.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(name)
		return facts + " to " + to, err
	}
	return facts, nil
}

// contentHash hashes the blocks that are not zero, each with its offset. Together with the size this covers all bytes.
func contentHash(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // read only
	h := sha256.New()
	var at [8]byte
	_, err = eachBlock(f, func(off int64, b []byte) error {
		binary.LittleEndian.PutUint64(at[:], uint64(off))
		_, _ = h.Write(at[:])
		_, _ = h.Write(b)
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// diffTree returns one line for each name that was added, removed or changed.
func diffTree(before, after []treeLine) []string {
	was := make(map[string]string, len(before))
	for _, l := range before {
		was[l.name] = l.facts
	}
	var out []string
	for _, l := range after {
		old, ok := was[l.name]
		delete(was, l.name)
		if !ok {
			out = append(out, l.name+": new")
		} else if old != l.facts {
			out = append(out, fmt.Sprintf("%s: was %s, is %s", l.name, old, l.facts))
		}
	}
	for _, l := range before {
		if _, gone := was[l.name]; gone {
			out = append(out, l.name+": gone")
		}
	}
	return out
}
