package evidence

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestSampleOfTheLargest: the key comes from the largest files, and by name from those of one size, in whatever order
// they are listed.
func TestSampleOfTheLargest(t *testing.T) {
	dir := t.TempDir()
	list := func(change string) *Manifest {
		man := &Manifest{}
		for i := range keyFiles + 2 {
			name, size := fmt.Sprintf("file%02d", i), 100
			if i == 0 {
				size = 50 // the only one that is smaller
			}
			b := bytes.Repeat([]byte{byte(i)}, size)
			if name == change {
				b[0] ^= 0x80
			}
			p := filepath.Join(dir, name)
			if err := os.WriteFile(p, b, 0o600); err != nil {
				t.Fatal(err)
			}
			man.Files = append(man.Files, File{Path: name, Size: int64(size), at: p})
		}
		return man
	}
	sample := func(man *Manifest) string {
		b, err := sampleOf(t.Context(), man)
		if err != nil || len(b) == 0 {
			t.Fatalf("%x, %v", b, err)
		}
		return string(b)
	}
	man := list("")
	want := sample(man)
	slices.Reverse(man.Files)
	if sample(man) != want {
		t.Error("another order gives another sample")
	}
	for change, read := range map[string]bool{"file00": false, "file01": true, "file08": true, "file09": false} {
		if got := sample(list(change)); (got != want) != read {
			t.Errorf("%s changed: another sample %t, want %t", change, got != want, read)
		}
	}
}
