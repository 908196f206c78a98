package evidence

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// page is what a file has at a page: its number and its type.
func page(b []byte, id, size int, number uint64, kind uint16) []byte {
	binary.LittleEndian.PutUint64(b[id*size:], number)
	binary.LittleEndian.PutUint16(b[id*size+8:], kind)
	return b
}

// TestDatabaseIsRecognized: a database whose meta pages are overwritten is still one, by its other pages. Zeros, noise
// and pages with another number or type are none.
func TestDatabaseIsRecognized(t *testing.T) {
	empty := func() []byte { return make([]byte, 1<<16) }
	magic := func(at int) []byte {
		b := empty()
		binary.LittleEndian.PutUint32(b[at+16:], boltMagic)
		return b
	}
	for name, c := range map[string]struct {
		file []byte
		want bool
	}{
		"zeros":                           {empty(), false},
		"the first meta page":             {magic(0), true},
		"the second meta page":            {magic(4096), true},
		"the magic number somewhere else": {magic(40), false},
		"a branch page":                   {page(empty(), 3, 4096, 3, 1), true},
		"a leaf page":                     {page(empty(), 3, 4096, 3, 2), true},
		"a freelist page":                 {page(empty(), 2, 4096, 2, 16), true},
		"the last page":                   {page(empty(), 15, 4096, 15, 2), true},
		"larger pages":                    {page(empty(), 3, 16384, 3, 2), true},
		"a page of another number":        {page(empty(), 3, 4096, 5, 2), false},
		"a page without a type":           {page(empty(), 3, 4096, 3, 0), false},
		"a page of an unknown type":       {page(empty(), 3, 4096, 3, 8), false},
	} {
		path := filepath.Join(t.TempDir(), "db")
		if err := os.WriteFile(path, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := hasBoltPages(path, int64(len(c.file))); got != c.want {
			t.Errorf("file with %s: %v, want %v", name, got, c.want)
		}
		if got := IsDatabaseHead(c.file); got != c.want {
			t.Errorf("first bytes with %s: %v, want %v", name, got, c.want)
		}
	}
	if IsDatabaseHead(nil) || IsDatabaseHead(magic(0)[:19]) || !IsDatabaseHead(magic(0)[:20]) {
		t.Error("a file is recognized from its first 20 bytes on")
	}
}

// TestLabelsAreUnique: the shortest ends of paths that differ are the names, and a path that is given twice is
// numbered. Names that the user gave stay.
func TestLabelsAreUnique(t *testing.T) {
	for _, c := range []struct{ where, want []string }{
		{[]string{"/a/node1", "/a/node2"}, []string{"node1", "node2"}},
		{[]string{"/a/data", "/b/data"}, []string{"a/data", "b/data"}},
		{[]string{"/a/data", "/a/data", "/b/data"}, []string{"/a/data", "/a/data#2", "/b/data"}},
		{[]string{"given=/a/data", "/b/data"}, []string{"given", "data"}},
		{[]string{"data=/a/data", "/b/data"}, []string{"data", "b/data"}},
		{[]string{"/tmp/scratch-1/data", "/b/data"}, []string{"nodes.tgz/data", "b/data"}},
		{[]string{"/tmp/scratch-1", "/b/data"}, []string{"nodes.tgz", "data"}},
	} {
		var sources []*Source
		for _, w := range c.where {
			spec, err := ParseSpec(w)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, &Source{Where: spec.Where, spec: spec})
		}
		s := &Set{unpacked: map[string]string{"/tmp/scratch-1": "/c/nodes.tgz"}}
		s.nameSources(sources)
		for i, src := range sources {
			if src.Name != c.want[i] {
				t.Errorf("%s of %v is called %s, want %s", c.where[i], c.where, src.Name, c.want[i])
			}
		}
	}
}

// TestKindsInSentences: every kind of source has a noun that a sentence can use.
func TestKindsInSentences(t *testing.T) {
	for k, want := range map[Kind]string{KindDataDir: "a data dir", KindWAL: "a WAL folder", KindDB: "a db",
		KindSnap: "a raft snapshot file", KindEndpoint: "the snapshot of a running member", KindBackup: "a backup"} {
		if got := k.Noun(); got != want {
			t.Errorf("%s is %q, want %q", k, got, want)
		}
	}
}
