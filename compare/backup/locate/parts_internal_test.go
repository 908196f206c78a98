package locate

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// TestHeadOfATar: an archive is known by the mark in its first header, if all of that mark is there.
func TestHeadOfATar(t *testing.T) {
	head := append(bytes.Repeat([]byte{1}, 257), "ustar\x0000"...)
	for n, want := range map[int]what{264: isOther, 265: isTar, 256: isOther, 0: isEmpty} {
		if got, _ := recognise(slices.Concat(head, head)[:n]); got != want {
			t.Errorf("%d bytes: %v, want %v", n, got, want)
		}
	}
	if got, _ := recognise(bytes.Repeat([]byte{1}, 300)); got != isOther {
		t.Errorf("no mark: %v", got)
	}
}

// TestPartsOfDataDirs: which files of an archive are parts of a data dir, by their names.
func TestPartsOfDataDirs(t *testing.T) {
	for name, want := range map[string]bool{"n1/member/snap/db": true, "snap/1.snap": true, "member/snap/1.snap.db": true,
		"member/wal/0.wal": true, "member/snap/x.db": false, "member/wal/db": false, "member/wal/1.snap": false,
		"member/snap/0.wal": false, "db": false, "backups/db": false} {
		if got := inDataDir(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestLabelsOfEqualPaths: labels are as short as they can be, and numbered where paths do not tell items apart.
func TestLabelsOfEqualPaths(t *testing.T) {
	for _, c := range []struct{ shown, want string }{
		{"/x.db /x.db", "/x.db /x.db#2"}, {"/a/x.db /b/x.db /b/x.db", "/a/x.db /b/x.db /b/x.db#2"},
		{"/r/a/s/x.db /r/b/s/x.db", "a/s/x.db b/s/x.db"}, {"/r/x.db /r/y.db", "x.db y.db"},
	} {
		var items []*Item
		for _, s := range strings.Fields(c.shown) {
			items = append(items, &Item{Shown: s, Given: s})
		}
		label(items)
		var got []string
		for _, it := range items {
			got = append(got, it.Label)
		}
		if want := strings.Fields(c.want); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", c.shown, got, want)
		}
	}
}

// TestSuffixes: what a file is by the end of its name, in upper or lower case.
func TestSuffixes(t *testing.T) {
	for name, want := range map[string]bool{"a.db.sha256": true, "A.DB.SHA256": true, "a.sha256.db": false, "": false} {
		if got := hasSuffix(name, sideFiles); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}

// TestBrokenError: the error of a damaged archive names it and says why.
func TestBrokenError(t *testing.T) {
	err := error(&BrokenError{Where: "a.zip", Err: io.ErrUnexpectedEOF})
	if !errors.Is(err, io.ErrUnexpectedEOF) || err.Error() != "a.zip: the archive is damaged: unexpected EOF" {
		t.Errorf("%v", err)
	}
}
