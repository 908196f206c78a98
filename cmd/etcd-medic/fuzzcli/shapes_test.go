package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"
)

// shape writes about that many bytes of one kind to a folder. commands are those to run, by default a diagnosis.
type shape struct {
	name     string
	write    func(t *testing.T, dir string, size int64)
	commands []string
}

var forLogs = []string{"diagnose DIR -w json", "dumplog DIR --stats -w json", "inspect DIR"}

// forAll are the commands that show or follow everything. They run on every small data dir.
var forAll = []string{"diagnose DIR --full", "diagnose DIR --timeline", "report DIR -o OUT.html", "report DIR -o OUT.md",
	"bundle DIR -o OUT.tar.zst", "compare DIR DIR", "compare DIR DIR -w json", "history k DIR -w json",
	"preflight DIR --to 3.6 -w json", "repair plan DIR -o OUT.yaml -w json", "dumplog DIR -w jsonl",
	"dumplog DIR --lives -w json", "rebuild --log DIR --to last -o OUT.db", "inspect DIR --full", "inspect DIR -w json"}

var forDBs = []string{"diagnose DIR -w json", "dumpdb DIR -w json", "inspect DIR"}

// forKeys are also the commands that follow each key.
var forKeys = append([]string{"compare DIR DIR", "verify DIR/member/snap/db", "history k DIR", "extract DIR -o OUT",
	"dumpdb DIR --salvage -w jsonl"}, forDBs...)

var shapes = []shape{
	{"log of refused conf changes", logOf(func(w *logFiles, i uint64) { w.entry(1, 1, i, fields(i, 1, 0xabc)) }),
		forLogs},
	{"log of conf changes, each another voter",
		logOf(func(w *logFiles, i uint64) { w.entry(1, 1, i, fields(i, 0, i)) }),
		forLogs},
	{"log of conf changes with members", logOf(func(w *logFiles, i uint64) {
		w.entry(1, 1, i, protowire.AppendString(protowire.AppendTag(fields(i, 0, i), 4, protowire.BytesType),
			fmt.Sprintf(`{"id":%d,"peerURLs":["http://h:%d"]}`, i, i)))
	}), forLogs},
	{"log of empty entries", logOf(func(w *logFiles, i uint64) { w.entry(0, 1, i, nil) }), forLogs},
	{"log of entries, each of another term", logOf(func(w *logFiles, i uint64) { w.entry(0, i, i, nil) }), forLogs},
	{"log of entries that replace each other", logOf(func(w *logFiles, i uint64) { w.entry(0, i, 1+i%2, nil) }),
		forLogs},
	{"log of snapshot records", logOf(func(w *logFiles, i uint64) { w.add(5, fields(i, 1)) }), forLogs},
	{"log of damaged snapshot records", logOf(func(w *logFiles, i uint64) { w.add(5, fields(0, i, 1)) }), forLogs},
	{"log of HardStates", logOf(func(w *logFiles, i uint64) { w.add(3, fields(i, i%3, 0)) }), forLogs},
	{"log of falling terms", logOf(func(w *logFiles, i uint64) { w.add(3, fields(1<<40-i, 0, 0)) }), forLogs},
	{"log of gaps", logOf(func(w *logFiles, i uint64) { w.entry(0, 1, 2*i, nil) }), forLogs},
	{"log of damaged records", logOf(func(w *logFiles, i uint64) {
		if w.entry(0, 1, i, []byte{8, 1}); i%2 == 0 {
			w.spoilNext = true
		}
	}), forLogs},
	{"log of lease grants", logOf(func(w *logFiles, i uint64) {
		w.entry(0, 1, i, request(i, 8, fields(60, i)))
	}), forLogs},
	{"log of users", logOf(func(w *logFiles, i uint64) {
		w.entry(0, 1, i, request(i, 1100, protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType),
			fmt.Sprint("u", i))))
	}), forLogs},
	{"log of puts, each of another key", logOf(func(w *logFiles, i uint64) {
		w.entry(0, 1, i, request(i, 4, protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType),
			strconv.FormatUint(i, 36))))
	}), append([]string{"history k DIR", "rebuild --log DIR --to last -o OUT.db"}, forLogs...)},
	{"log of puts by many processes", logOf(func(w *logFiles, i uint64) {
		w.entry(0, 1, i, request(i<<30, 4, protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType),
			"k")))
	}), append([]string{"dumplog DIR --lives"}, forLogs...)},
	{"log of large puts", logOf(func(w *logFiles, i uint64) { // as large as servers accept by default
		w.entry(0, 1, i, request(i, 4, protowire.AppendBytes(protowire.AppendTag(protowire.AppendString(
			protowire.AppendTag(nil, 1, protowire.BytesType), strconv.FormatUint(i, 36)), 2, protowire.BytesType),
			bytes.Repeat([]byte{byte(i)}, 1<<20))))
	}), append([]string{"history k DIR", "rebuild --log DIR --to last -o OUT.db", "dumplog DIR -w jsonl"}, forLogs...)},
	{"log of one transaction", logOfOne(func(n int) []byte { // of reads, each two bytes
		return request(1, 6, bytes.Repeat([]byte{3<<3 | 2, 0}, n/2))
	}), forLogs},
	{"log of one compare", logOfOne(func(n int) []byte {
		return request(1, 6, bytes.Repeat([]byte{1<<3 | 2, 0}, n/2))
	}), forLogs},
	{"log of one role", logOfOne(func(n int) []byte { return request(1, 1200, bytes.Repeat([]byte{'r'}, n)) }),
		forLogs},
	{"log of one put", logOfOne(func(n int) []byte {
		return request(1, 4, protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), make([]byte, n)))
	}), forLogs},
	{"log of one snapshot record", func(t *testing.T, dir string, size int64) {
		logOf(func(w *logFiles, i uint64) {
			w.add(5, append(fields(0, i, 1), protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType),
				bytes.Repeat([]byte{8, 1}, int(min(size, 400<<20))/2))...))
		})(t, dir, size)
	}, forLogs},
	{"log of one conf change", func(t *testing.T, dir string, size int64) {
		logOf(func(w *logFiles, i uint64) {
			urls := strings.Repeat(`"",`, int(min(size, 400<<20))/3)
			w.entry(1, 1, i, protowire.AppendString(protowire.AppendTag(fields(i, 0, i), 4, protowire.BytesType),
				`{"id":1,"peerURLs":[`+urls+`""]}`))
		})(t, dir, size)
	}, forLogs},
	{"log of nested transactions", logOf(func(w *logFiles, i uint64) {
		w.entry(0, 1, i, request(i, 6, nested(100, put(strconv.FormatUint(i, 36)))))
	}), forLogs},
	{"log of wide transactions", logOf(func(w *logFiles, i uint64) {
		w.entry(0, 1, i, request(i, 6, bytes.Repeat(thenOp(2, put("k")), 20_000)))
	}), forLogs},
	{"log of transactions that nest as deep as they are wide", logOf(func(w *logFiles, i uint64) {
		w.entry(0, 1, i, request(i, 6, nested(60, bytes.Repeat(put("k"), 1))))
		w.entry(0, 1, i, request(i, 6, bytes.Repeat(thenOp(4, nested(30, put("k"))), 300)))
	}), forLogs},
	{"log of large keys", logOf(func(w *logFiles, i uint64) {
		w.entry(0, 1, i, request(i, 4, put(fmt.Sprint(i)+strings.Repeat("/", 500_000))))
	}), forLogs},
	{"log of deletes", logOf(func(w *logFiles, i uint64) {
		w.entry(0, 1, i, request(i, 5, text(text(nil, 1, "\x00"), 2, "\x00")))
	}), forLogs},
	{"log of roles", logOf(func(w *logFiles, i uint64) { w.entry(0, 1, i, request(i, 1200, text(nil, 1, fmt.Sprint("r", i)))) }),
		forLogs},
	{"log of permissions", logOf(func(w *logFiles, i uint64) {
		if i == 1 {
			w.entry(0, 1, i, request(i, 1200, text(nil, 1, "r")))
			return
		}
		perm := text(text(fields(2), 2, fmt.Sprint("k", i)), 3, fmt.Sprint("l", i))
		w.entry(0, 1, i, request(i, 1203, text(text(nil, 1, "r"), 2, string(perm))))
	}), forLogs},
	{"log of granted roles", logOf(func(w *logFiles, i uint64) {
		switch role := fmt.Sprint("r", i/2); {
		case i == 1:
			w.entry(0, 1, i, request(i, 1100, text(nil, 1, "u")))
		case i%2 == 0:
			w.entry(0, 1, i, request(i, 1200, text(nil, 1, role)))
		default:
			w.entry(0, 1, i, request(i, 1103, text(text(nil, 1, "u"), 2, role)))
		}
	}), forLogs},
	{"log of alarms", logOf(func(w *logFiles, i uint64) { w.entry(0, 1, i, request(i, 10, fields(1, i, 1))) }),
		forLogs},
	{"log of lease revokes", logOf(func(w *logFiles, i uint64) { w.entry(0, 1, i, request(i, 9, fields(i))) }),
		forLogs},
	{"log of compactions", logOf(func(w *logFiles, i uint64) { w.entry(0, 1, i, request(i, 7, fields(i))) }),
		forLogs},
	{"log of v2 requests", logOf(func(w *logFiles, i uint64) {
		v2 := text(text(text(fields(i), 2, "PUT"), 3, fmt.Sprintf("/0/members/%x/attributes", i)), 4, `{"name":"n"}`)
		w.entry(0, 1, i, request(i, 2, v2))
	}), forLogs},
	{"log of many processes and users", logOf(func(w *logFiles, i uint64) {
		header := text(fields(i<<30), 2, fmt.Sprint("u", i))
		w.entry(0, 1, i, text(request(i, 4, put("k")), 100, string(header)))
	}), forLogs},
	{"small segments", func(t *testing.T, dir string, size int64) {
		logOf(func(w *logFiles, i uint64) {
			w.open(i)
			w.entry(0, 1, i, nil)
		})(t, dir, min(size, 10_000*100))
	}, forLogs},
	{"database of large keys", dbOf("key", func(i uint64) ([]byte, []byte) {
		return revisionRowOf(i, fmt.Sprint(i)+strings.Repeat("/", 700_000))
	}), forKeys},
	{"database of slashes", dbOf("key", func(i uint64) ([]byte, []byte) {
		return revisionRowOf(i, strings.Repeat(fmt.Sprint(i, "/"), 200))
	}), forKeys},
	{"database of users with roles", dbOf("authUsers", func(i uint64) ([]byte, []byte) {
		k := fmt.Appendf(nil, "%012d", i)
		return k, bytes.Join([][]byte{text(nil, 1, string(k)), bytes.Repeat(text(nil, 3, "r"), 100)}, nil)
	}), forDBs},
	{"database of one user with roles", dbOf("authUsers", func(i uint64) ([]byte, []byte) {
		k := fmt.Appendf(nil, "%012d", i)
		return k, bytes.Join([][]byte{text(nil, 1, string(k)), bytes.Repeat(text(nil, 3, "r"), 500_000)}, nil)
	}), forDBs},
	{"database of roles with permissions", dbOf("authRoles", func(i uint64) ([]byte, []byte) {
		k := fmt.Appendf(nil, "%012d", i)
		return k, bytes.Join([][]byte{text(nil, 1, string(k)),
			bytes.Repeat(text(nil, 2, string(text(fields(2), 2, "k"))), 10_000)}, nil)
	}), forDBs},
	{"database of one member with URLs", dbOf("members", func(i uint64) ([]byte, []byte) {
		return fmt.Appendf(nil, "%x", i), fmt.Appendf(nil, `{"id":%d,"peerURLs":[%s""]}`, i, strings.Repeat(`"",`, 300_000))
	}), forDBs},
	{"database of tiny keys", dbOf("key", revisionRow), forKeys},
	{"database of one key", dbOf("key", func(i uint64) ([]byte, []byte) { return revisionRowOf(i, "k") }), forKeys},
	{"database of large values", dbOf("key", func(i uint64) ([]byte, []byte) {
		k, v := revisionRow(i)
		return k, protowire.AppendBytes(protowire.AppendTag(v, 5, protowire.BytesType), make([]byte, 1<<20))
	}), forKeys},
	{"database of leases", dbOf("lease", func(i uint64) ([]byte, []byte) { return number(i), fields(i, 60) }), forDBs},
	{"database of users", dbOf("authUsers", nameRow), forDBs},
	{"database of roles", dbOf("authRoles", nameRow), forDBs},
	{"database of members", dbOf("members", func(i uint64) ([]byte, []byte) {
		return fmt.Appendf(nil, "%x", i), fmt.Appendf(nil, `{"id":%d}`, i)
	}), forDBs},
	{"database of removed members", dbOf("members_removed", func(i uint64) ([]byte, []byte) {
		return fmt.Appendf(nil, "%x", i), []byte("removed")
	}), forDBs},
	{"database of alarms", dbOf("alarm", func(i uint64) ([]byte, []byte) { return fields(i, 1), nil }), forDBs},
	{"database of other rows", dbOf("meta", func(i uint64) ([]byte, []byte) { return number(i), nil }), forDBs},
	{"database of buckets", dbOf("", func(i uint64) ([]byte, []byte) { return number(i), nil }), forDBs},
	{"database of noise", dbOfNoise, forDBs},
	{"snapshot of small nodes", func(t *testing.T, dir string, size int64) {
		writeSnap(t, dir, size, func(w *strings.Builder, i int) { fmt.Fprintf(w, `,"%x":{}`, i) })
	}, []string{"diagnose DIR -w json", "dumplog DIR --snaps -w json"}},
	{"snapshot of deep nodes", func(t *testing.T, dir string, size int64) {
		n := int(min(size, 200<<20)) / 20 / deepest
		writeSnap(t, dir, size, func(w *strings.Builder, i int) {
			if i <= n {
				fmt.Fprintf(w, `,"%x":%s{}%s`, i, strings.Repeat(`{"Children":{"d":`, deepest), strings.Repeat("}}", deepest))
				return
			}
			w.WriteString(`,"e":{}`)
		})
	}, []string{"diagnose DIR -w json", "dumplog DIR --snaps -w json"}},
	{"snapshot of members", func(t *testing.T, dir string, size int64) {
		memberDirs(t, dir)
		var w strings.Builder
		w.WriteString(`{"Root":{"Children":{"0":{"Children":{"members":{"Children":{"1":{}`)
		for i := 2; int64(w.Len()) < min(size, 200<<20); i++ {
			fmt.Fprintf(&w, `,"%x":{"Children":{"attributes":{"Value":"{\"name\":\"n\"}"}}}`, i)
		}
		w.WriteString(`}}}}}}}`)
		if err := os.WriteFile(filepath.Join(dir, "member", "snap", "0000000000000001-0000000000000001.snap"),
			snapFile([]byte(w.String()), 1), 0o600); err != nil {
			t.Fatal(err)
		}
	}, []string{"diagnose DIR -w json", "dumplog DIR --snaps -w json"}},
	{"snapshot files", func(t *testing.T, dir string, size int64) {
		memberDirs(t, dir)
		for i := range min(size/100, 100_000) { // 100 bytes each, of a block
			name := filepath.Join(dir, "member", "snap", fmt.Sprintf("%016x-%016x.snap", 1, i+1))
			if err := os.WriteFile(name, snapFile([]byte(`{"Root":{}}`), uint64(i+1)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}, []string{"diagnose DIR -w json", "dumplog DIR --snaps -w json"}},
	{"archive of small members", archiveOf(1000, memberFiles), []string{"diagnose DIR/a.tar.gz -w json"}},
	{"archive of too many members", archiveOf(99_000, memberFiles), []string{"diagnose DIR/a.tar.gz -w json"}},
	{"archive of small files", archiveOf(99_000, func(i int) map[string][]byte {
		return map[string][]byte{fmt.Sprintf("n/member/snap/%x", i): {1}}
	}), []string{"diagnose DIR/a.tar.gz -w json", "verify DIR/a.tar.gz -w json"}},
}

func memberDirs(t *testing.T, dir string) {
	t.Helper()
	for _, d := range []string{"wal", "snap"} {
		if err := os.MkdirAll(filepath.Join(dir, "member", d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// request is an InternalRaftRequest with an ID and one other field.
func request(id uint64, field protowire.Number, body []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(fields(id), field, protowire.BytesType), body)
}

// text adds a field of bytes.
func text(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

// put is a PutRequest of a key.
func put(key string) []byte { return text(nil, 1, key) }

// thenOp is a TxnRequest's operation in case of success: 2 put, 4 txn.
func thenOp(kind protowire.Number, body []byte) []byte {
	return text(nil, 2, string(text(nil, kind, string(body))))
}

// nested is a TxnRequest of one put below so many others.
func nested(depth int, put []byte) []byte {
	b := thenOp(2, put)
	for range depth {
		b = thenOp(4, b)
	}
	return b
}

func number(i uint64) []byte { return binary.BigEndian.AppendUint64(nil, i) }

func nameRow(i uint64) (key, value []byte) {
	key = fmt.Appendf(nil, "%012d", i)
	return key, protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), key)
}

func revisionRow(i uint64) (key, value []byte) { return revisionRowOf(i, strconv.FormatUint(i, 36)) }

func revisionRowOf(i uint64, name string) (key, value []byte) {
	key = append(append(number(i+1), '_'), make([]byte, 8)...)
	value = protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), name)
	for n, v := range []uint64{i + 1, i + 1, 1} {
		value = protowire.AppendVarint(protowire.AppendTag(value, protowire.Number(n+2), protowire.VarintType), v)
	}
	return key, value
}

// logFiles writes the segments of a log.
type logFiles struct {
	t          *testing.T
	dir        string
	f          *os.File
	w          *bufio.Writer
	b          []byte
	chain      uint32
	seq        int
	here, size int64
	spoilNext  bool
}

const segmentBytes = 64_000_000

// deepest is how deep the nodes of a v2 store lie.
const deepest = 4000

func (w *logFiles) open(first uint64) {
	w.t.Helper()
	w.close()
	name := fmt.Sprintf("%016x-%016x.wal", w.seq, first)
	f, err := os.Create(filepath.Join(w.dir, "member", "wal", name))
	if err != nil {
		w.t.Fatal(err)
	}
	w.f, w.w, w.here = f, bufio.NewWriterSize(f, 1<<20), 0
	w.seq++
	w.add(crcType, nil)
	w.add(1, fields(7, 9))
}

func (w *logFiles) close() {
	w.t.Helper()
	if w.f == nil {
		return
	}
	if err := w.w.Flush(); err != nil {
		w.t.Fatal(err)
	}
	if err := w.f.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *logFiles) add(typ uint64, data []byte) {
	if typ != crcType {
		w.chain = crc32.Update(w.chain, castagnoli, data)
	}
	w.b = appendRecord(w.b[:0], typ, w.chain, data)
	if w.spoilNext {
		w.b[len(w.b)-9] ^= 0x10
		w.spoilNext = false
	}
	n, err := w.w.Write(w.b)
	if err != nil {
		w.t.Fatal(err)
	}
	w.here += int64(n)
	w.size += int64(n)
}

func (w *logFiles) entry(typ, term, index uint64, data []byte) {
	e := fields(typ, term, index)
	if data != nil {
		e = protowire.AppendBytes(protowire.AppendTag(e, 4, protowire.BytesType), data)
	}
	w.add(2, e)
}

// logOf writes a data dir whose log has records of one kind.
func logOf(record func(w *logFiles, i uint64)) func(*testing.T, string, int64) {
	return func(t *testing.T, dir string, size int64) {
		memberDirs(t, dir)
		w := &logFiles{t: t, dir: dir}
		w.open(0)
		w.add(5, fields(0, 0))
		for i := uint64(1); w.size < size; i++ {
			if w.here > segmentBytes {
				w.open(i)
			}
			record(w, i)
		}
		w.close()
	}
}

// logOfOne writes a log of requests that are as large as a record may be.
func logOfOne(data func(n int) []byte) func(*testing.T, string, int64) {
	return func(t *testing.T, dir string, size int64) {
		logOf(func(w *logFiles, i uint64) { w.entry(0, 1, i, data(int(min(size, 400<<20)))) })(t, dir, size)
	}
}

// dbOf writes a data dir whose database has rows of one kind, in order. Without a bucket the rows are buckets.
func dbOf(bucket string, row func(i uint64) (key, value []byte)) func(*testing.T, string, int64) {
	return func(t *testing.T, dir string, size int64) {
		memberDirs(t, dir)
		db, err := bbolt.Open(filepath.Join(dir, "member", "snap", "db"), 0o600, &bbolt.Options{NoSync: true,
			NoFreelistSync: true, NoGrowSync: true, FreelistType: bbolt.FreelistMapType, InitialMmapSize: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		i, written := uint64(1), int64(0)
		for written < size*8/10 {
			err := db.Update(func(tx *bbolt.Tx) error {
				for _, name := range []string{"key", "meta", bucket} {
					if name == "" {
						continue
					}
					if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
						return err
					}
				}
				for end := i + 50_000; i < end && written < size*8/10; i++ {
					k, v := row(i)
					written += int64(len(k)+len(v)) + 20
					if bucket == "" {
						written += 60
						if _, err := tx.CreateBucket(k); err != nil {
							return err
						}
						continue
					}
					b := tx.Bucket([]byte(bucket))
					b.FillPercent = 1
					if err := b.Put(k, v); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// dbOfNoise writes a database whose pages but for the first hold the heads of pages, and nothing that makes sense.
func dbOfNoise(t *testing.T, dir string, size int64) {
	dbOf("key", revisionRow)(t, dir, size)
	f, err := os.OpenFile(filepath.Join(dir, "member", "snap", "db"), os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for page := int64(4); page*4096 < st.Size(); page += 2 {
		if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, 64), page*4096+16); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
