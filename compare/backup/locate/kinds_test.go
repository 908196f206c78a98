package locate_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/backup/locate"
)

// TestWhatFilesAre: a file that cannot be a backup is refused when it is named, with what it is; in a folder it is
// skipped with the reason, unless its name says that it is a backup.
func TestWhatFilesAre(t *testing.T) {
	const tool = "{\n  \"schemaVersion\": 1,\n  \"tool\": {\n    \"name\": \"etcd-medic\"\n  }\n}\n"
	for _, c := range []struct{ name, content, named, inFolder string }{
		{"notes.lz4", "\x04\x22\x4d\x18rest", "packed with lz4, which is not supported; unpack it first",
			"packed with lz4, which is not supported"},
		{"etcd.lz4", "\x04\x22\x4d\x18rest", "packed with lz4, which is not supported; unpack it first", ""},
		{"notes.bin", "Salted__12345678", "encrypted with openssl; unpack it first", "encrypted with openssl"},
		{"plan.yaml", "# etcd-medic repair plan\n", "it is a repair plan of etcd-medic", "a repair plan of etcd-medic"},
		{"report", tool, "it is a report of etcd-medic", "a report of etcd-medic"},
		{"notes", "hello\n", "", "a text file"},
		{"notes.lst", " \n[1]", "", "a JSON file"},
		{"notes.raw", "\x01\x02", "", "not an etcd database, and not named like a backup"},
		{"zeros", "\x00\x00", "", "zero bytes only, and not named like a backup"},
		{"none", "", "", "an empty file that is not named like a backup"},
		{"etcd.log", "hello\n", "", "a text file"},
		{"my-backup", "hello\n", "", "a text file"},
		{"my-backup.bin", "\x01\x02", "", ""},
		{"snapshot-1", "hello\n", "", ""},
		{"snapshot-2", "{}", "", "a JSON file"},
		{"x.db", "{}", "", ""},
		{"x.db.part", "hello", "", "an incomplete file, perhaps still being written"},
		{"inner.zip.gz", string(packed(t, "gz", zipped(t, entry{"x.db", nil}))), "",
			"not an etcd database, and not named like a backup"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, c.name)
		write(t, path, []byte(c.content))
		its := find(t, locate.Options{}, path).Items
		if len(its) != 1 || (its[0].Err == nil) != (c.named == "") ||
			c.named != "" && !strings.HasSuffix(its[0].Err.Error(), c.name+": no backup here: "+c.named) {
			t.Errorf("%s, named: %v, want %q", c.name, its[0].Err, c.named)
		}
		write(t, filepath.Join(dir, "sound.db"), good(t))
		f := find(t, locate.Options{}, dir)
		if reasonOf(f, c.name) != c.inFolder || len(f.Items) != 2-len(f.Skipped) {
			t.Errorf("%s, in a folder: %+v, want %q", c.name, f.Skipped, c.inFolder)
		}
	}
}

// TestArchivesInArchives: they are not searched, which is said.
func TestArchivesInArchives(t *testing.T) {
	b := good(t)
	root := t.TempDir()
	write(t, filepath.Join(root, "a.tar"), tarred(t, entry{"x.db", b}, entry{"old.zip", zipped(t, entry{"y.db", b})},
		entry{"Full-00000000-00000005-1700000005.zlib", []byte("no zlib")}))
	f := find(t, locate.Options{}, filepath.Join(root, "a.tar"))
	same(t, labels(f), "Full-00000000-00000005-1700000005.zlib", "x.db")
	if got := reasonOf(f, "old.zip"); got != "an archive in an archive" {
		t.Errorf("%q", got)
	}
	if _, packing := content(t, f.Items[0]); packing == nil || !strings.HasPrefix(packing.Error(), ".zlib: ") {
		t.Errorf("damaged zlib: %v", packing)
	}
}

// TestBzip2: what the standard library can only read is unpacked too.
func TestBzip2(t *testing.T) {
	b, err := hex.DecodeString("425a6839314159265359555a44f70000021980400010001264c0102000220069ea100305d3b62183c5d" +
		"c914e14241556913dc0")
	ok(t, err)
	path := filepath.Join(t.TempDir(), "x.db.bz2")
	write(t, path, b)
	it := find(t, locate.Options{}, path).Items[0]
	if got, packing := content(t, it); string(got) != "hello bzip2" || packing != nil || !it.Packed() {
		t.Errorf("%q, %v", got, packing)
	}
}

// TestDictionaryOfXZ: the header is read as the format lays it out, with and without the two sizes, and more than the
// allowed memory is refused; a header that is cut or says something else is left to the decoder.
func TestDictionaryOfXZ(t *testing.T) {
	const stream = "\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4\x46"
	for block, refused := range map[string]bool{
		"\x02\x00\x21\x01\x22":                  false, // 512 MiB
		"\x02\x00\x21\x01\x23":                  true,
		"\x02\x40\x85\x01\x21\x01\x28":          true,
		"\x02\x80\x05\x21\x01\x28":              true,
		"\x02\xc0\x80\x01\x05\x21\x01\x28":      true,
		"\x02\xc0\x80\x01\x05\x21\x01\x22":      false,
		"\x02\x80\x21\x01\x28":                  false, // the size is missing
		"\x02\x00\x21\x02\x28":                  false,
		"\x02\x00\x03\x01\x28":                  false,
		"\x02\x00\x21\x01\x29":                  false, // no such dictionary
		"\x02\x40" + strings.Repeat("\xff", 40): false,
		"\x02\x00\x21\x01":                      false,
		"\x02\x00":                              false,
		"\x02":                                  false,
		"":                                      false,
	} {
		path := filepath.Join(t.TempDir(), "x.db.xz")
		write(t, path, []byte(stream+block))
		_, packing := content(t, find(t, locate.Options{}, path).Items[0])
		if packing == nil || strings.Contains(packing.Error(), "it needs a dictionary of ") != refused {
			t.Errorf("%q: %v, refused for its dictionary: %v", block, packing, refused)
		}
	}
}

// TestEndOfXZ: a stream is complete with its footer, after which only zeros and other streams may follow.
func TestEndOfXZ(t *testing.T) {
	one := packed(t, "xz", []byte("one"))
	path := filepath.Join(t.TempDir(), "x.db.xz")
	for name, c := range map[string]struct {
		b     []byte
		sound bool
	}{
		"one":                 {one, true},
		"padded":              {append(slices.Clone(one), 0, 0, 0, 0), true},
		"two":                 {slices.Concat(one, one), true},
		"cut before a block":  {one[:12], false},
		"cut in its header":   {one[:14], false},
		"second without data": {slices.Concat(one, one[:12]), false},
		"cut in the footer":   {one[:len(one)-1], false},
	} {
		write(t, path, c.b)
		if _, packing := content(t, find(t, locate.Options{}, path).Items[0]); (packing == nil) != c.sound {
			t.Errorf("%s: %v, want it to be sound: %v", name, packing, c.sound)
		}
	}
}

// TestLinksToOtherPlaces: a link to a file elsewhere is that backup under the name of the link, in one shard; a link to
// a pipe is not followed.
func TestLinksToOtherPlaces(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "elsewhere/sunday.db"), good(t))
	ok(t, os.Mkdir(filepath.Join(root, "backups"), 0o700))
	ok(t, syscall.Mkfifo(filepath.Join(root, "elsewhere/pipe"), 0o600))
	ok(t, os.Symlink("../elsewhere/sunday.db", filepath.Join(root, "backups/latest.db")))
	ok(t, os.Symlink("../elsewhere/pipe", filepath.Join(root, "backups/pipe.db")))
	f := find(t, locate.Options{}, filepath.Join(root, "backups"))
	same(t, labels(f), "latest.db")
	if got := reasonOf(f, "pipe.db"); got != "a link to neither a file nor a folder" || len(f.Skipped) != 1 {
		t.Errorf("%+v", f.Skipped)
	}
	if !f.Items[0].FromFolder || f.Items[0].Err != nil {
		t.Errorf("%+v", f.Items[0])
	}
	found, elsewhere := 0, 0
	for i := range 3 {
		f := find(t, locate.Options{Shard: locate.Shard{Index: i, Count: 3}}, filepath.Join(root, "backups"))
		found, elsewhere = found+len(f.Items), elsewhere+f.Elsewhere
	}
	if found != 1 || elsewhere != 2 {
		t.Errorf("the link is in %d of 3 shards, and %d times in another", found, elsewhere)
	}
}

// TestLabelsOfOddPaths: a path that says nothing is shown with its real name, the name that the user gives comes first.
func TestLabelsOfOddPaths(t *testing.T) {
	root, b := t.TempDir(), good(t)
	ok(t, os.MkdirAll(filepath.Join(root, "empty/inner"), 0o700))
	t.Chdir(filepath.Join(root, "empty/inner"))
	same(t, labels(find(t, locate.Options{}, ".")), "inner")
	same(t, labels(find(t, locate.Options{}, "..")), "empty")
	same(t, labels(find(t, locate.Options{}, "/none.db")), "/none.db")
	same(t, labels(find(t, locate.Options{}, "/none/none.db")), "none.db")
	same(t, labels(find(t, locate.Options{}, "/none.db", "none.db")), "/none.db", "none.db")
	archive := filepath.Join(root, "set.tar")
	write(t, archive, tarred(t, entry{"one.db", b}, entry{"./.", b}))
	same(t, labels(find(t, locate.Options{}, "n="+archive)), "n/set.tar", "n/one.db")
	write(t, archive, tarred(t, entry{"one.db", b}))
	same(t, labels(find(t, locate.Options{}, "n="+archive)), "n")
	// Found once without a name and once with one, it is two backups: the name was asked for.
	same(t, labels(find(t, locate.Options{}, archive, "n="+archive)), "one.db", "n")
	same(t, labels(find(t, locate.Options{}, "n="+archive, archive)), "n")
}

// TestNewestThatCannotBeRead: the newest backup of a series is the newest that can be read; the others are reported.
func TestNewestThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"a-20240101.db", "a-20240102.db", "a-20240103.db"} {
		b := good(t)
		if i == 2 {
			b = []byte("Salted__12345678")
		}
		write(t, filepath.Join(dir, name), b)
		at := time.Unix(int64(1_700_000_000+i), 0)
		ok(t, os.Chtimes(filepath.Join(dir, name), at, at))
	}
	for _, n := range []locate.Newest{locate.NewestOfFolder, locate.NewestOfSeries} {
		f := find(t, locate.Options{Newest: n}, dir)
		same(t, labels(f), "a-20240102.db", "a-20240103.db")
		if f.Older != 1 || f.Items[1].Err == nil {
			t.Errorf("%s: %d older, %v", n, f.Older, f.Items[1].Err)
		}
	}
	all := find(t, locate.Options{}, dir, filepath.Join(dir, "missing.db")).Items
	best := locate.NewestOfEach(all)
	if len(all) != 4 || best[all[0]] || !best[all[1]] || best[all[2]] || !best[all[3]] {
		t.Errorf("newest of each: %v", best)
	}
	same(t, labels(find(t, locate.Options{Newest: locate.NewestOfFolder}, filepath.Join(dir, "a-20240101.db"),
		filepath.Join(dir, "a-20240102.db"))), "a-20240101.db", "a-20240102.db")
}

// TestTooManyFiles: folders and archives are searched up to a number of files; that some were skipped is an error next
// to what was found.
func TestTooManyFiles(t *testing.T) {
	b := good(t)
	root := t.TempDir()
	write(t, filepath.Join(root, "set.zip"), zipped(t, entry{"a.db", b}, entry{"d/", nil}, entry{"z.db", b}))
	write(t, filepath.Join(root, "set.tar"), tarred(t, entry{"a.db", b}, entry{"d.txt", nil}, entry{"z.db", b}))
	for _, name := range []string{"a.db", "d.txt", "z.db"} {
		write(t, filepath.Join(root, "folder", name), b)
	}
	for _, name := range []string{"set.zip", "set.tar", "folder"} {
		path := filepath.Join(root, name)
		locate.WithMaxFiles(t, 3)
		f := find(t, locate.Options{}, path)
		if len(f.Items) < 2 || f.Items[0].Label != "a.db" || f.Items[len(f.Items)-1].Label != "z.db" {
			t.Errorf("%s has 3 files: %q", name, labels(f))
		}
		locate.WithMaxFiles(t, 2)
		f = find(t, locate.Options{}, path)
		if err := f.Items[0].Err; err == nil || !strings.Contains(err.Error(), name+": more than 2 files; ") ||
			len(f.Items) < 2 || f.Items[1].Label != "a.db" {
			t.Errorf("%s: %v, and %q", name, err, labels(f))
		}
	}
}
