package locate

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
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

// TestNamesOfBackups: names say that a file is a backup, and less so if it is text.
func TestNamesOfBackups(t *testing.T) {
	for name, want := range map[string][3]bool{ // with other content, with text, with JSON
		"a.db": {true, true, true}, "a.db.gz": {true, true, true}, "a.db.sha256": {}, "a.json": {}, "x": {},
		"etcd-snapshot-1": {true, true, false}, "etcd-1": {true, false, false}, "my-Backup": {true, false, false},
		"snapshot.json": {}, "backup.md5": {}} {
		for i, is := range []what{isOther, isText, isJSON} {
			if got := isNamedBackup("/d/"+name, is); got != want[i] {
				t.Errorf("%s of kind %d: %t", name, is, got)
			}
		}
	}
}

// TestTails: a label has so many parts of a path, and never a part of a URL of an endpoint.
func TestTails(t *testing.T) {
	for _, c := range []struct {
		path  string
		parts int
		want  string
	}{
		{"/a/b/c", 1, "c"}, {"/a/b/c", 2, "b/c"}, {"/a/b/c", 3, "/a/b/c"}, {"/a/b/c", 9, "/a/b/c"}, {"a/b", 1, "b"},
		{"a/b", 2, "a/b"}, {"/c", 1, "/c"}, {"http://h:2379", 1, "http://h:2379"}, {"s3://b/k/x.db", 1, "x.db"},
		{"s3://b/k/x.db", 2, "k/x.db"}, {"s3://b/k/x.db", 3, "s3://b/k/x.db"}, {"s3://b/k/x.db", 4, "s3://b/k/x.db"},
		{"s3://b/x.db", 1, "x.db"}, {"s3://b/x.db", 2, "s3://b/x.db"},
	} {
		if got := tail(c.path, c.parts); got != c.want {
			t.Errorf("%s, %d parts: %q, want %q", c.path, c.parts, got, c.want)
		}
	}
}

// TestPrintable: text may end in the middle of a character, and has no other control characters than those of text.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]bool{"": true, "a\tb\r\n\f": true, "a\x01": false, "a\x1f": false, "a b": true,
		"\xe2\x82": true, "\xe2\x82\xac": true, "\xff\xff\xff\xff\xffa": false, "\xffabcd": false} {
		if got := isPrintable([]byte(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
	long := append(bytes.Repeat([]byte("a"), 4096), 1)
	if !isPrintable(long) || isPrintable(long[1:]) {
		t.Error("the first 4096 bytes count")
	}
}

// TestLaterBackups: of two backups the one that was written later is newer, and by name if they have one time.
func TestLaterBackups(t *testing.T) {
	early, late := time.Unix(5, 0), time.Unix(6, 0)
	a, b, c := &Item{Shown: "a", Modified: late}, &Item{Shown: "b", Modified: early}, &Item{Shown: "c", Modified: early}
	for _, x := range []struct {
		a, b *Item
		want bool
	}{{a, b, true}, {b, a, false}, {c, b, true}, {b, c, false}, {b, b, false}} {
		if got := Later(x.a, x.b); got != x.want {
			t.Errorf("%s after %s: %t", x.a.Shown, x.b.Shown, got)
		}
	}
}

// TestTogether: which files have to be in one shard. Those of a folder whose newest is wanted, those of a series, and
// those of a chain; any other file is alone.
func TestTogether(t *testing.T) {
	const full, plain = "in/c/Full-00000000-00000005-1700000000", "in/d/etcd-2026-01-01.db"
	for name, c := range map[string]struct {
		o           Options
		chain, file string
	}{
		"all":              {Options{}, "in/c", plain},
		"newest of folder": {Options{Newest: NewestOfFolder}, "given", "given"},
		"newest of series": {Options{Newest: NewestOfSeries}, seriesOf(full), "in/d/etcd-*.db"},
		"whole series":     {Options{Shard: Shard{Series: true}}, seriesOf(full), "in/d/etcd-*.db"},
	} {
		f := searcher(t)
		f.o = c.o
		if got := f.together(full); got != c.chain {
			t.Errorf("%s: a chain is with %q, want %q", name, got, c.chain)
		}
		if got := f.together(plain); got != c.file {
			t.Errorf("%s: a file is with %q, want %q", name, got, c.file)
		}
	}
}
