package casetest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// edit changes the files of a source: "VERB NODE ARGUMENT...". false when the verb is unknown.
func (b *builder) edit(l Line) bool {
	b.t.Helper()
	w := l.Words(b.t)
	if len(w) == 0 || b.paths[w[0]] == "" {
		b.t.Fatalf("line %d: %s names no source that is there: %s", l.No, l.Verb, l.Rest)
	}
	dir := b.paths[w[0]]
	w = w[1:]
	lit := func(i int) []byte { return literal(b.t, l, w[i]) }
	switch l.Verb {
	case "put": // put NODE BUCKET KEY VALUE
		EditDB(b.t, dir, func(tx *bbolt.Tx) error { return tx.Bucket([]byte(w[0])).Put(lit(1), lit(2)) })
	case "delete": // delete NODE BUCKET KEY
		EditDB(b.t, dir, func(tx *bbolt.Tx) error { return tx.Bucket([]byte(w[0])).Delete(lit(1)) })
	case "drop": // drop NODE BUCKET
		EditDB(b.t, dir, func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(w[0])) })
	case "db": // db NODE: from here on the source is its database file alone
		b.paths[strings.Fields(l.Rest)[0]] = filepath.Join(dir, "member", "snap", "db")
	case "copied": // copied NODE: from here on the source is its database file alone, taken as a backup
		name := strings.Fields(l.Rest)[0]
		b.paths[name], b.backups[name] = filepath.Join(dir, "member", "snap", "db"), true
	case "backup": // backup NODE: from here on the source is a backup of its database
		b.backups[strings.Fields(l.Rest)[0]] = true
		b.paths[strings.Fields(l.Rest)[0]] = b.backup(l, filepath.Join(dir, "member", "snap", "db"))
	case "received": // received NODE: the database as a leader sends it, before anything is committed to it
		b.received(l, filepath.Join(dir, "member", "snap", "db"))
	case "freelist": // freelist NODE: the database as a server on Windows or macOS writes it
		StoreFreelist(b.t, dir)
	default:
		return b.editFiles(l, dir, w)
	}
	return true
}

// editFiles are the changes to bytes and names. Patterns are below member, such as wal/*.wal; the last match counts.
func (b *builder) editFiles(l Line, dir string, w []string) bool {
	b.t.Helper()
	num := func(i int) int64 {
		n, err := strconv.ParseInt(w[i], 0, 64)
		b.ok(l, err)
		return n
	}
	switch l.Verb {
	case "flip": // flip NODE FILE OFFSET: one bit; an offset below 0 counts from the end
		b.change(l, match(b.t, l, dir, w[0]), func(data []byte) []byte {
			at := num(1)
			if at < 0 {
				at += int64(len(data))
			}
			data[at] ^= 0x10
			return data
		})
	case "zero": // zero NODE FILE OFFSET LENGTH
		b.change(l, match(b.t, l, dir, w[0]), func(data []byte) []byte {
			clear(data[num(1) : num(1)+num(2)])
			return data
		})
	case "cut": // cut NODE FILE SIZE: the new size; below 0 so many bytes less
		b.change(l, match(b.t, l, dir, w[0]), func(data []byte) []byte {
			size := num(1)
			if size < 0 {
				size += int64(len(data))
			}
			return data[:size]
		})
	case "append": // append NODE FILE LITERAL
		b.change(l, match(b.t, l, dir, w[0]),
			func(data []byte) []byte { return append(data, literal(b.t, l, w[1])...) })
	default:
		return b.editRecords(l, dir, w)
	}
	return true
}

// editRecords are the changes to records of the log and to pages of the database.
func (b *builder) editRecords(l Line, dir string, w []string) bool {
	b.t.Helper()
	switch l.Verb {
	case "cutrecords": // cutrecords NODE N: the last N records of the last segment are zeros
		b.change(l, match(b.t, l, dir, "wal/*.wal"), func(data []byte) []byte {
			ends := recordEnds(data)
			clear(data[ends[len(ends)-1-int(number(b.t, l, w[0], 10))]:])
			return data
		})
	case "tear": // tear NODE: the last record of the last segment ends in zeros from its middle on
		b.change(l, match(b.t, l, dir, "wal/*.wal"), func(data []byte) []byte {
			ends := recordEnds(data)
			clear(data[(ends[len(ends)-2]+ends[len(ends)-1])/2:])
			return data
		})
	case "rootrow": // rootrow NODE: both meta pages name a page of bucket key as the root
		root := firstBranch(b.t, l, filepath.Join(dir, "member", "snap", "db")).lastChild
		b.change(l, match(b.t, l, dir, "snap/db"), func(data []byte) []byte {
			for page := range 2 {
				meta := data[page*os.Getpagesize()+16:]
				binary.LittleEndian.PutUint64(meta[16:], root)
				sum := fnv.New64a()
				sum.Write(meta[:56])
				binary.LittleEndian.PutUint64(meta[56:], sum.Sum64())
			}
			return data
		})
	case "emptytail": // emptytail NODE: the last leaf of the first bucket with a branch page has no rows
		leaf := int(firstBranch(b.t, l, filepath.Join(dir, "member", "snap", "db")).lastChild)
		b.change(l, match(b.t, l, dir, "snap/db"), func(data []byte) []byte {
			page := data[leaf*os.Getpagesize() : (leaf+1)*os.Getpagesize()]
			clear(page[10:12])
			clear(page[16:])
			return data
		})
	case "zeroleaf": // zeroleaf NODE: the last leaf of the first bucket with a branch page is zeros
		leaf := firstBranch(b.t, l, filepath.Join(dir, "member", "snap", "db")).lastChild
		b.change(l, match(b.t, l, dir, "snap/db"), func(data []byte) []byte {
			clear(data[int(leaf)*os.Getpagesize() : (int(leaf)+1)*os.Getpagesize()])
			return data
		})
	default:
		return b.editNames(l, dir, w)
	}
	return true
}

// branch is a branch page and the last page below it.
type branch struct{ id, lastChild uint64 }

func firstBranch(t *testing.T, l Line, db string) branch {
	t.Helper()
	h, err := dumpdb.Open(db)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	data, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	for id := uint64(2); id < h.Meta().HighWater; id++ {
		if p, err := h.Page(id); err == nil && p.Type == "branch" {
			const header, element, child = 16, 16, 8
			return branch{id, binary.LittleEndian.Uint64(data[int(id)*h.PageSize()+header+(p.Count-1)*element+child:])}
		}
	}
	t.Fatalf("line %d: no branch page: write more keys", l.No)
	return branch{}
}

// editNames are removals, copies and rewritten logs.
func (b *builder) editNames(l Line, dir string, w []string) bool {
	b.t.Helper()
	switch l.Verb {
	case "remove": // remove NODE FILE
		b.ok(l, os.RemoveAll(match(b.t, l, dir, w[0])))
	case "rename": // rename NODE FILE NEW-NAME
		from := match(b.t, l, dir, w[0])
		b.ok(l, os.Rename(from, filepath.Join(filepath.Dir(from), w[1])))
	case "copy": // copy NODE FILE NODE2 FILE2: into another source, or the same
		data, err := os.ReadFile(match(b.t, l, dir, w[0]))
		b.ok(l, err)
		b.ok(l, os.WriteFile(filepath.Join(b.paths[w[1]], "member", w[2]), data, 0o600))
	case "clone": // clone NODE NEW: a further source, the same files
		b.ok(l, os.CopyFS(filepath.Join(b.root, w[0]), os.DirFS(dir)))
		b.add(w[0], filepath.Join(b.root, w[0]))
	case "mkfile": // mkfile NODE FILE LITERAL
		b.ok(l, os.WriteFile(filepath.Join(dir, "member", w[0]), literal(b.t, l, w[1]), 0o600))
	case "replace": // replace NODE OLD NEW: in the data of every log record, the checksums made to fit; of equal length
		from, to, n := literal(b.t, l, w[0]), literal(b.t, l, w[1]), 0
		RewriteLog(b.t, dir, func(rec *walpb.Record) {
			if i := strings.Index(string(rec.Data), string(from)); i >= 0 {
				n++
				rec.Data = slices.Concat(rec.Data[:i], to, rec.Data[i+len(from):])
			}
		})
		if n == 0 {
			b.t.Fatalf("line %d: no record holds %q", l.No, from)
		}
	default:
		return false
	}
	return true
}

// received rewrites a database as bbolt writes a copy of it, with an odd transaction ID.
func (b *builder) received(l Line, db string) {
	b.t.Helper()
	copied := filepath.Join(b.t.TempDir(), "db")
	for range 2 {
		EditDBOnce(b.t, filepath.Dir(filepath.Dir(filepath.Dir(db))),
			func(tx *bbolt.Tx) error { return tx.CopyFile(copied, 0o600) })
		h, err := dumpdb.Open(copied)
		b.ok(l, err)
		odd := h.Metas()[0].Txid%2 == 1
		b.ok(l, h.Close())
		if odd {
			b.ok(l, os.Rename(copied, db))
			return
		}
	}
	b.t.Fatalf("line %d: no copy with an odd transaction ID", l.No)
}

// backup writes what snapshot save makes of a database: the pages in use and their sha256.
func (b *builder) backup(l Line, db string) string {
	b.t.Helper()
	data, err := os.ReadFile(db)
	b.ok(l, err)
	h, err := dumpdb.Open(db)
	b.ok(l, err)
	defer h.Close()
	data = data[:int64(h.Meta().HighWater)*int64(h.PageSize())]
	sum := sha256.Sum256(data)
	path := filepath.Join(b.root, filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(db))))+".db")
	b.ok(l, os.WriteFile(path, append(data, sum[:]...), 0o600))
	return path
}

func (b *builder) change(l Line, file string, by func([]byte) []byte) {
	b.t.Helper()
	data, err := os.ReadFile(file)
	b.ok(l, err)
	b.ok(l, os.WriteFile(file, by(data), 0o600))
}

// match is the last file below member that fits the pattern; "." is the source itself, a file.
func match(t *testing.T, l Line, dir, pattern string) string {
	t.Helper()
	if pattern == "." {
		return dir
	}
	files, err := filepath.Glob(filepath.Join(dir, "member", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("line %d: no file %s: %v", l.No, pattern, err)
	}
	return files[len(files)-1]
}

// recordEnds are the ends of the records of a segment, by their length words.
func recordEnds(data []byte) (ends []int64) {
	for at := int64(0); at+8 <= int64(len(data)); {
		word := binary.LittleEndian.Uint64(data[at:])
		if word == 0 {
			break
		}
		at += 8 + int64(word&(1<<56-1)) + int64(word>>56&7)
		ends = append(ends, at)
	}
	return ends
}

// literal reads a value: hex:..., base64:..., u64:N (eight bytes), rev:MAIN[.SUB][t] (a key of bucket key), else the
// text itself.
func literal(t *testing.T, l Line, s string) []byte {
	t.Helper()
	kind, rest, _ := strings.Cut(s, ":")
	var out []byte
	var err error
	switch kind {
	case "hex":
		out, err = hex.DecodeString(rest)
	case "base64":
		out, err = base64.StdEncoding.DecodeString(rest)
	case "u64":
		var n uint64
		n, err = strconv.ParseUint(rest, 0, 64)
		out = binary.BigEndian.AppendUint64(nil, n)
	case "rev":
		out, err = revisionKey(rest)
	default:
		out = []byte(s)
	}
	if err != nil {
		t.Fatalf("line %d: %s: %v", l.No, s, err)
	}
	return out
}

func revisionKey(s string) ([]byte, error) {
	text, tombstone := strings.CutSuffix(s, "t")
	head, tail, _ := strings.Cut(text, ".")
	main, err := strconv.ParseUint(head, 10, 64)
	if err != nil {
		return nil, err
	}
	sub := uint64(0)
	if tail != "" {
		if sub, err = strconv.ParseUint(tail, 10, 64); err != nil {
			return nil, err
		}
	}
	key := binary.BigEndian.AppendUint64(append(binary.BigEndian.AppendUint64(nil, main), '_'), sub)
	if tombstone {
		key = append(key, 't')
	}
	return key, nil
}
