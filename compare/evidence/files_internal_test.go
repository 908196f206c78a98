package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// tree writes files below a folder; a name that ends with / is a folder.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, n := range names {
		p := filepath.Join(dir, filepath.FromSlash(n))
		err := os.MkdirAll(filepath.Dir(p), 0o700)
		if strings.HasSuffix(n, "/") {
			err = errors.Join(err, os.MkdirAll(p, 0o700))
		} else {
			err = errors.Join(err, os.WriteFile(p, []byte(n), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFoldersAreDetected: what a folder is follows from the names in it.
func TestFoldersAreDetected(t *testing.T) {
	for name, c := range map[string]struct {
		files   []string
		kind    Kind
		missing []string
		found   string
		nested  []string
	}{
		"a data dir":    {[]string{"member/wal/", "member/snap/db"}, KindDataDir, nil, "", nil},
		"without a log": {[]string{"member/snap/db"}, KindDataDir, []string{"member/wal"}, "", nil},
		"without a database": {[]string{"member/wal/", "member/snap/"}, KindDataDir, []string{"member/snap/db"}, "",
			nil},
		"without snap":      {[]string{"member/wal/"}, KindDataDir, []string{"member/snap"}, "", nil},
		"its member folder": {[]string{"wal/", "snap/db"}, KindDataDir, nil, "", nil},
		"only wal in it":    {[]string{"wal/"}, KindDataDir, []string{"member/snap"}, "", nil},
		"only snap in it":   {[]string{"snap/db"}, KindDataDir, []string{"member/wal"}, "", nil},
		"segments":          {[]string{"0.wal"}, KindWAL, nil, "", nil},
		"a snap folder":     {[]string{"1.snap"}, KindSnap, nil, "", nil},
		"a received one":    {[]string{"1.snap.db"}, KindSnap, nil, "", nil},
		"with a database":   {[]string{"1.snap", "db"}, KindDB, nil, "", nil},
		"only a database":   {[]string{"db"}, KindDB, nil, "", nil},
		"empty":             {nil, "", nil, "an empty folder", nil},
		"other files":       {[]string{"a", "b"}, "", nil, "a folder of 2 entries without etcd data", nil},
		"member is a file":  {[]string{"member"}, "", nil, "a folder of 1 entry without etcd data", nil},
		"wal is a file":     {[]string{"wal", "snap"}, "", nil, "a folder of 2 entries without etcd data", nil},
		"one per member": {[]string{"n1/member/", "n2/wal/", "n3/snap/", "b.db", "x"}, "", nil, "",
			[]string{"b.db", "n1", "n2", "n3"}},
		"deeper": {[]string{"n1/etcd/member/", "n2/var/lib/member/"}, "", nil, "",
			[]string{"n1/etcd", "n2/var/lib"}},
		"archives": {[]string{"n1.tar.zst", "n2.tar.gz", "x", "y.tar/"}, "", nil, "",
			[]string{"n1.tar.zst", "n2.tar.gz"}},
		"archives and data":     {[]string{"n1.tar.gz", "n1/member/"}, "", nil, "", []string{"n1"}},
		"archives and a backup": {[]string{"n1.tar.gz", "p/x.db"}, "", nil, "", []string{"p/x.db"}},
		"too deep":              {[]string{"n1/a/b/c/member/"}, "", nil, "a folder of 1 entry without etcd data", nil},
	} {
		dir := tree(t, c.files...)
		l, err := detect(dir, "")
		if l.kind != c.kind || !slices.Equal(l.missing, c.missing) || (err != nil) != (c.found != "") {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
		var se *SourceError
		if errors.As(err, &se) && se.Found != c.found {
			t.Errorf("%s: found %s", name, se.Found)
		}
		var nested []string
		for _, n := range l.nested {
			rel, _ := filepath.Rel(dir, n.Where)
			nested = append(nested, filepath.ToSlash(rel))
		}
		if !slices.Equal(nested, c.nested) {
			t.Errorf("%s: nested %q", name, nested)
		}
	}
	dir := tree(t, "n1/etcd/member/", "n2/member/")
	if l, _ := detect(dir, ""); l.nested[0].Name != "n1" || l.nested[1].Name != "n2" {
		t.Errorf("%+v", l.nested)
	}
	if l, _ := detect(tree(t, "n1/etcd/member/"), ""); l.nested[0].Name != "" {
		t.Errorf("alone: %+v", l.nested)
	}
	if l, _ := detect(tree(t, "n1/a/member/", "n1/b/member/", "x"), ""); len(l.nested) != 2 || l.nested[0].Name != "" {
		t.Errorf("two below one: %+v", l.nested)
	}
	other := tree(t, "0.wal")
	if l, err := detect(tree(t, "member/snap/db"), other); err != nil || l.wal != other || !l.walDirIsExternal ||
		len(l.missing) > 0 {
		t.Errorf("a separate log: %+v, %v", l, err)
	}
}

// TestPartsOutOfReach: a part that this user may not look at is not a part that the data dir lacks. A link to itself
// stands for it where the user may read everything.
func TestPartsOutOfReach(t *testing.T) {
	for _, c := range []struct {
		loop  string
		files []string
		parts []string // what is not missing
	}{
		{"member/snap/db", []string{"member/wal/", "member/snap/"}, []string{"wal", "snap", "snap/db"}},
		{"member/snap", []string{"member/wal/"}, []string{"wal", "snap", "snap/db"}},
		{"member/wal", []string{"member/snap/db"}, []string{"wal", "snap", "snap/db"}},
	} {
		dir := tree(t, c.files...)
		path := filepath.Join(dir, filepath.FromSlash(c.loop))
		if err := os.Symlink(path, path); err != nil {
			t.Fatal(err)
		}
		l, err := detect(dir, "")
		if err != nil || len(l.missing) > 0 {
			t.Fatalf("%s: missing %q, %v", c.loop, l.missing, err)
		}
		for i, got := range []string{l.wal, l.snap, l.db} {
			if want := filepath.Join(dir, "member", filepath.FromSlash(c.parts[i])); got != want {
				t.Errorf("%s: %q, want %q", c.loop, got, want)
			}
		}
	}
	dir := tree(t, "member/wal/", "member/snap")
	if l, err := detect(dir, ""); err != nil || !slices.Equal(l.missing, []string{"member/snap"}) {
		t.Errorf("snap is a file: %+v, %v", l, err)
	}
}

// TestFilesAreDetected: what a file is follows from its name and its first bytes.
func TestFilesAreDetected(t *testing.T) {
	bolt := func(size int, same bool) []byte {
		b := make([]byte, size)
		copy(b[16:], []byte{0xED, 0xDA, 0x0C, 0xED})
		if size >= 8192 && !same { // the meta pages of a live database have different roots
			b[4096+32] = 1
		}
		if size >= 8192 && same {
			b[64] = 1
		}
		return b
	}
	for name, c := range map[string]struct {
		file    string
		content []byte
		kind    Kind
		found   string
	}{
		"empty":                    {"x.db", nil, "", "an empty file"},
		"a .snap file":             {"1.snap", []byte("x"), KindSnap, ""},
		"a segment":                {"1.wal", []byte("x"), "", "a single WAL segment"},
		"noise":                    {"x.db", []byte("some text here"), "", "a text file"},
		"a database":               {"x.db", bolt(16384, false), KindDB, ""},
		"with a trailer":           {"x.db", bolt(16384+32, false), KindBackup, ""},
		"written as a copy":        {"x.db", bolt(16384, true), KindBackup, ""},
		"two pages":                {"x.db", bolt(8192, false), KindDB, ""},
		"less than two pages":      {"x.db", bolt(8191, false), KindBackup, ""},
		"less, of a server's name": {"db", bolt(8191, false), KindDB, ""},
	} {
		p := filepath.Join(t.TempDir(), c.file)
		if err := os.WriteFile(p, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := detect(p, "")
		var se *SourceError
		if l.kind != c.kind || (err != nil) != (c.found != "") ||
			errors.As(err, &se) && !strings.HasPrefix(se.Found, c.found) {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
		if l, err := detectAs(p, Spec{Backup: true}); err != nil || l.kind != KindBackup || l.db != p {
			t.Errorf("%s, given as a backup: %+v, %v", name, l, err)
		}
	}
	file := filepath.Join(tree(t, "f"), "f")
	var se *SourceError
	_, err := detect(file+"-", "")
	if !errors.As(err, &se) || se.Found != "nothing at this path" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	_, err = detect(filepath.Join(file, "below"), "")
	if !errors.As(err, &se) || se.Found != "a path that cannot be read" {
		t.Errorf("%v", err)
	}
	if _, err := detect("-", ""); !errors.As(err, &se) || se.Found != "standard input" {
		t.Errorf("%v", err)
	}
	if _, err := detect(os.DevNull, ""); !errors.As(err, &se) || !strings.Contains(se.Found, "device") {
		t.Errorf("%v", err)
	}
}

// TestSnapshotIsRecognized: a copy that bbolt wrote has one root on both meta pages and two transaction IDs.
func TestSnapshotIsRecognized(t *testing.T) {
	head := make([]byte, 4096+80)
	head[64], head[32], head[4096+32] = 1, 5, 5
	if !looksLikeSnapshot(head) {
		t.Error("a copy")
	}
	if looksLikeSnapshot(head[:4096+79]) {
		t.Error("a file cut in its second meta page")
	}
	for _, at := range []int{64, 32, 4096 + 32, 4096 + 64} {
		changed := slices.Clone(head)
		changed[at] += 3
		if looksLikeSnapshot(changed) {
			t.Errorf("changed at %d", at)
		}
	}
}

// TestListedFiles: links are followed to files, and to folders only where etcd has its own.
func TestListedFiles(t *testing.T) {
	elsewhere := tree(t, "wal/0.wal", "other/file", "single")
	dir := tree(t, "member/snap/db", "member/kept")
	for link, to := range map[string]string{"member/wal": "wal", "member/folder": "other", "member/file": "single",
		"member/dangling": "none"} {
		if err := os.Symlink(filepath.Join(elsewhere, to), filepath.Join(dir, filepath.FromSlash(link))); err != nil {
			t.Fatal(err)
		}
	}
	l, err := detect(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	man, err := listFiles(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	size := int64(0)
	for _, f := range man.Files {
		got[f.Path] = f.What
		size += f.Size
	}
	want := map[string]string{"member/snap/db": "", "member/kept": "", "member/wal/0.wal": "", "member/file": "",
		"member/folder": "a symbolic link to a folder", "member/dangling": "a dangling symbolic link"}
	if len(got) != len(want) || man.Bytes != size || size == 0 || len(man.Unreadable) > 0 {
		t.Errorf("%v, %d bytes of %d, unreadable %v", got, man.Bytes, size, man.Unreadable)
	}
	for p, what := range want {
		if w, ok := got[p]; !ok || w != what {
			t.Errorf("%s: %q, %t", p, w, ok)
		}
	}
	gone := l
	gone.wal, gone.walDirIsExternal = filepath.Join(dir, "none"), true
	if man, err := listFiles(t.Context(), gone); err != nil || !slices.Equal(unreadPaths(man), []string{gone.wal}) {
		t.Errorf("a log that is gone: %+v, %v", man, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := listFiles(ended, l); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := listFiles(ended, gone); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// TestSeparateLogNames: the files of a separate log are listed where a data dir has them, unless something is there.
func TestSeparateLogNames(t *testing.T) {
	wal := tree(t, "0.wal")
	for want, files := range map[string][]string{
		"member/wal/0.wal": {"member/snap/db", "member/wallet"},
		"--wal-dir/0.wal":  {"member/snap/db", "member/wal/1.wal"},
	} {
		l, err := detect(tree(t, files...), wal)
		if err != nil {
			t.Fatal(err)
		}
		man, err := listFiles(t.Context(), l)
		if err != nil || !slices.ContainsFunc(man.Files, func(f File) bool { return f.Path == want }) {
			t.Errorf("%q: %+v, %v", files, man.Files, err)
		}
	}
}

// TestUnchangedFiles: a file that is gone, new or of another size, time or mode is a change, and the first is named.
func TestUnchangedFiles(t *testing.T) {
	const db = "member/snap/db"
	for name, c := range map[string]struct {
		change func(dir string) error
		file   string
		how    string
	}{
		"nothing": {func(string) error { return nil }, "", ""},
		"gone":    {func(dir string) error { return os.Remove(filepath.Join(dir, db)) }, db, "no longer exists"},
		"new": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "member/new"), nil, 0o600)
		}, "member/new", "was created"},
		"longer": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, db), make([]byte, 99), 0o600)
		}, db, "changed while"},
		"touched": {func(dir string) error {
			return os.Chtimes(filepath.Join(dir, db), time.Time{}, time.Unix(5, 0))
		}, db, "changed while"},
		"mode": {func(dir string) error { return os.Chmod(filepath.Join(dir, db), 0o400) }, db, "changed while"},
	} {
		dir := tree(t, "member/snap/db", "member/wal/0.wal")
		l, err := detect(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		man, err := listFiles(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.change(dir); err != nil {
			t.Fatal(err)
		}
		err = man.Unchanged(t.Context())
		var changed *ChangedError
		if (err != nil) != (c.how != "") || errors.As(err, &changed) && (changed.File != c.file ||
			!strings.HasPrefix(changed.How, c.how)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := (&ChangedError{File: "f", How: "changed"}).Error(); s != "f changed" {
		t.Errorf("%q", s)
	}
	if s := (&ChangedError{Source: "n1", File: "f", How: "changed"}).Error(); s != "n1: f changed" {
		t.Errorf("%q", s)
	}
}

func unreadPaths(m *Manifest) (paths []string) {
	for _, u := range m.Unreadable {
		paths = append(paths, u.Path)
	}
	return paths
}

// TestUnreadableFiles: a file that is gone before it is read is named once, whether it was opened or hashed.
func TestUnreadableFiles(t *testing.T) {
	dir := tree(t, "member/snap/db", "member/wal/0.wal")
	l, err := detect(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, hashed := range []bool{false, true} {
		man, err := listFiles(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		man.Files = append(man.Files, File{Path: "gone", at: filepath.Join(dir, "gone")},
			File{Path: "pipe", What: "a pipe"})
		man.hashing = newHashing(t.Context())
		if man.tryOpen(); hashed {
			man.startHash()
			if err := man.wait(); err != nil {
				t.Fatal(err)
			}
			if f := man.Files[0]; len(f.SHA256) != 64 || man.Files[2].SHA256 != "" {
				t.Errorf("%+v", man.Files)
			}
		}
		if !slices.Equal(unreadPaths(man), []string{"gone"}) {
			t.Errorf("hashed %t: %v", hashed, man.Unreadable)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	man, err := listFiles(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	man.hashing = newHashing(ended)
	if man.startHash(); !errors.Is(man.wait(), context.Canceled) {
		t.Error("the digests were taken after the end")
	}
}

// TestDigestOfBody: a file of the size of a backup has the digest of its content too.
func TestDigestOfBody(t *testing.T) {
	for size, body := range map[int]bool{512: false, 544: true, 543: false, 32: true} {
		p := filepath.Join(t.TempDir(), "b.db")
		if err := os.WriteFile(p, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		man := &Manifest{Files: []File{{Path: ".", Size: int64(size), at: p}}, hashing: newHashing(t.Context())}
		if d := man.Digest(); d != man.Files[0].SHA256 || len(d) != 64 || (man.Files[0].Body != "") != body {
			t.Errorf("%d bytes: %+v", size, man.Files[0])
		}
	}
	part := filepath.Join(tree(t, "hello"), "hello")
	whole, _, err := hashFile(t.Context(), part, -1)
	if err != nil {
		t.Fatal(err)
	}
	for split, want := range map[int64]bool{5: true, 0: false, 4: false} {
		again, body, err := hashFile(t.Context(), part, split)
		if err != nil || again != whole || (body == whole) != want || body == "" {
			t.Errorf("split at %d: %s, %v", split, body, err)
		}
	}
	if _, _, err := hashFile(t.Context(), part+"-", -1); err == nil {
		t.Error("a file that is not there has a digest")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := hashFile(ended, part, -1); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	man := &Manifest{Files: []File{{Path: "a", at: part}, {Path: "b", at: part}}}
	for range 40 { // it ends before or while a file is read
		if err := man.hash(ended, make(chan struct{}, 2)); !errors.Is(err, context.Canceled) {
			t.Fatalf("after the end: %v", err)
		}
	}
}

// TestHeldByNone: sources that no process holds, or that are none, are not in use.
func TestHeldByNone(t *testing.T) {
	dir := tree(t, "member/snap/db", "member/wal/0.wal", "file")
	for _, where := range []string{dir, filepath.Join(dir, "file"), filepath.Join(dir, "member", "wal"),
		filepath.Join(dir, "none"), os.DevNull} {
		if got := HeldBy(Spec{Where: where}); got != "" {
			t.Errorf("%s: %s", where, got)
		}
	}
}

// TestArguments: the argument of a source gives it the same label again.
func TestArguments(t *testing.T) {
	s := &Set{scratch: []string{"/tmp/s1", "/tmp/s2"}, unpacked: map[string]string{"/tmp/s1": "a.tgz"}}
	for name, c := range map[string]struct {
		src  Source
		want string
	}{
		"of its own name":    {Source{Name: "n1", Where: "n1"}, "n1"},
		"of another name":    {Source{Name: "n1", Where: "/d/x"}, "n1=/d/x"},
		"like a flag":        {Source{Name: "n1", Where: "-x"}, "n1=./-x"},
		"of an archive":      {Source{Name: "n1", Where: "/tmp/s1/d/n1"}, "n1=a.tgz#d/n1"},
		"streamed":           {Source{Name: "n1", Where: "/tmp/s2/db"}, ""},
		"a separate log":     {Source{Name: "n1", Where: "n1", spec: Spec{WALDir: "w"}}, ""},
		"a path like both":   {Source{Name: "a=b", Where: "a=b"}, "./a=b"},
		"a name with a /":    {Source{Name: "d/n1", Where: "/c/d/n1"}, "/c/d/n1"},
		"a name like a flag": {Source{Name: "-n", Where: "/c/n"}, "/c/n"},
	} {
		if got := s.Argument(&c.src); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestPathTails: the label of a path is its end.
func TestPathTails(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path  string
		depth int
		want  string
	}{
		{".", 1, filepath.Base(here)}, {"..", 1, filepath.Base(filepath.Dir(here))}, {"/a/b/c", 1, "c"},
		{"/a/b/c", 2, "b/c"}, {"/a/b/c", 3, "a/b/c"}, {"/a/b/c", 4, "/a/b/c"}, {"a/b", 5, "a/b"}, {"/", 1, "/"},
		{"http://h:2379/", 1, "h:2379"}, {"https://h:2379", 3, "h:2379"}, {"a/", 1, "a"},
		{"s3://b/etcd/a.db?region=r&endpoint=http://h:9000", 1, "a.db"}, {"s3://b/a.db?region=r", 2, "b/a.db"},
		{"gs://b/etcd/", 1, "etcd"}, {"azblob://c?x=y/z", 1, "c"},
	} {
		if got := pathTail(c.path, c.depth); got != c.want {
			t.Errorf("%s, %d: %q, want %q", c.path, c.depth, got, c.want)
		}
	}
}

// TestRelabelled: a data dir without a given label has the member's own name, if no other one has it.
func TestRelabelled(t *testing.T) {
	member := func(given, own string, kind Kind) *Member {
		return &Member{NodeName: own, Source: &Source{Name: "path", Kind: kind, spec: Spec{Name: given}}}
	}
	s := &Set{Members: []*Member{member("", "n1", KindDataDir), member("x", "n2", KindDataDir),
		member("", "", KindDataDir), member("", "n3", KindBackup), member("", "x", KindDataDir),
		member("", "n4", KindDataDir), member("", "n4", KindDataDir)}}
	s.relabel()
	var got []string
	for _, m := range s.Members {
		got = append(got, m.Source.Name)
	}
	if want := []string{"n1", "path", "path", "path", "path", "path", "path"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLabelsStayUnique: a path that is the name of another member stays with its source alone.
func TestLabelsStayUnique(t *testing.T) {
	for name, c := range map[string]struct{ paths, own, want []string }{
		"exchanged":               {[]string{"n1", "n2"}, []string{"n2", "n1"}, []string{"n2", "n1"}},
		"one name is there twice": {[]string{"n1", "n2", "n3"}, []string{"n2", "n3", "n3"}, []string{"n1", "n2", "n3"}},
		"one after the other": {[]string{"a", "n1", "n2", "n3"}, []string{"n1", "n2", "n3", "n3"},
			[]string{"a", "n1", "n2", "n3"}},
	} {
		s := &Set{}
		for i, path := range c.paths {
			s.Members = append(s.Members, &Member{NodeName: c.own[i], Source: &Source{Name: path, Kind: KindDataDir}})
		}
		s.relabel()
		var got []string
		for _, m := range s.Members {
			got = append(got, m.Source.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestDamageOnce: damage that the page walk has reported is not repeated; joined errors are listed one by one, and one
// without a place is damage of a row of its bucket.
func TestDamageOnce(t *testing.T) {
	at := func(page uint64, offset int64, kind dumpdb.DamageKind) *dumpdb.DamageError {
		return &dumpdb.DamageError{Place: dumpdb.Place{Page: page, Offset: offset}, Kind: kind}
	}
	d := &DB{Damage: []*dumpdb.DamageError{at(1, 2, dumpdb.DamageRow)}}
	for _, err := range []error{nil, at(1, 2, dumpdb.DamageRow), at(1, 3, dumpdb.DamageRow), at(2, 2, dumpdb.DamageRow),
		at(1, 2, dumpdb.DamageMeta), at(1, 3, dumpdb.DamageRow),
		errors.Join(at(4, 0, dumpdb.DamageRow), errors.New("x")),
		fmt.Errorf("wrapped: %w", at(4, 0, dumpdb.DamageRow))} {
		d.damage("lease", err)
	}
	var got []string
	for _, x := range d.Damage {
		got = append(got, fmt.Sprintf("%d %d %v %s", x.Page, x.Offset, x.Kind == dumpdb.DamageRow, x.Bucket))
	}
	want := []string{"1 2 true ", "1 3 true ", "2 2 true ", "1 2 false ", "4 0 true ", "0 0 true lease"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSampleOf: only files with bytes in them make the key of values; what is no file or is empty counts for nothing.
func TestSampleOf(t *testing.T) {
	dir := tree(t, "a")
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := File{Path: "a", Size: 7, at: filepath.Join(dir, "a")}
	of := func(files ...File) []byte {
		h, err := sampleOf(t.Context(), &Manifest{Files: files})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	alone := of(a)
	if alone == nil {
		t.Fatal("no sample of a file")
	}
	for name, f := range map[string]File{
		"no file":       {Path: "p", What: "a pipe", Size: 7, at: a.at},
		"an empty file": {Path: "e", at: a.at},
	} {
		if !bytes.Equal(of(a, f), alone) || of(f) != nil {
			t.Errorf("%s is part of the sample", name)
		}
	}
}
