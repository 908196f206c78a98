package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"hash/fnv"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"google.golang.org/protobuf/encoding/protowire"
)

// mutation changes the files of a set of data dirs.
type mutation struct {
	name string
	do   func(r *rand.Rand, set *set) error
	// seen is true if a check must detect the change: a diagnosis that reports the set as healthy is then wrong.
	seen bool
}

// set is the private copy of an incident that a run mutates.
type set struct {
	dir     string
	members []string // paths of the sources
	// names are the names of sources, by path.
	names map[string]string
	// archive replaces all sources if it is set.
	archive string
}

// errNothing says that the set has nothing to mutate in this way.
var errNothing = errors.New("nothing to mutate")

// mutations are all ways to mutate a set.
var mutations = []mutation{
	{name: "flip a bit", do: flipBit},
	{name: "random bytes", do: randomBytes},
	{name: "zeros", do: zeroRun},
	{name: "cut", do: cut},
	{name: "append", do: lengthen},
	{name: "flip a bit in a log record", do: flipInRecord, seen: true},
	{name: "committed entry with the chain mended", do: mendedEntry, seen: true},
	{name: "database gone", do: databaseGone, seen: true},
	{name: "length of a log record", do: recordLength},
	{name: "log record with the chain mended", do: mendedRecord},
	{name: "snapshot file with the CRC mended", do: mendedSnap},
	{name: "meta page with the checksum mended", do: mendedMeta},
	{name: "page header", do: pageHeader},
	{name: "page element", do: pageElement},
	{name: "remove a file", do: removeFile},
	{name: "rename a file", do: renameFile},
	{name: "swap files of two members", do: swapFiles},
	{name: "special file", do: specialFile},
	{name: "odd names", do: oddNames},
	{name: "archive", do: asArchive},
	{name: "damaged archive", do: damagedArchive},
}

// files returns the regular files of all members.
func (s *set) files(match func(path string) bool) (out []string) {
	for _, m := range s.members {
		_ = filepath.WalkDir(m, func(p string, d fs.DirEntry, err error) error { // what cannot be listed is not mutated
			if err == nil && d.Type().IsRegular() && match(p) {
				out = append(out, p)
			}
			return nil
		})
	}
	return out
}

func isAny(string) bool                 { return true }
func isWAL(p string) bool               { return strings.HasSuffix(p, ".wal") }
func isSnap(p string) bool              { return strings.HasSuffix(p, ".snap") }
func isDB(p string) bool                { return filepath.Base(p) == "db" || strings.HasSuffix(p, ".db") }
func one[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// pick selects one file and reads its start.
func (s *set) pick(r *rand.Rand, match func(string) bool) (path string, b []byte, err error) {
	all := s.files(match)
	if len(all) == 0 {
		return "", nil, errNothing
	}
	path = one(r, all)
	if b, err = head(path); err != nil || len(b) < 16 {
		return "", nil, errNothing
	}
	return path, b, nil
}

func flipBit(r *rand.Rand, s *set) error {
	path, b, err := s.pick(r, isAny)
	if err != nil {
		return err
	}
	at := r.IntN(len(b))
	return overwrite(path, int64(at), []byte{b[at] ^ 1<<r.IntN(8)})
}

func randomBytes(r *rand.Rand, s *set) error {
	path, b, err := s.pick(r, isAny)
	if err != nil {
		return err
	}
	junk := make([]byte, 1+r.IntN(600))
	for i := range junk {
		junk[i] = byte(r.Uint32())
	}
	return overwrite(path, int64(r.IntN(len(b))), junk)
}

func zeroRun(r *rand.Rand, s *set) error {
	path, b, err := s.pick(r, isAny)
	if err != nil {
		return err
	}
	return overwrite(path, int64(r.IntN(len(b))), make([]byte, 1+r.IntN(5000)))
}

func cut(r *rand.Rand, s *set) error {
	path, b, err := s.pick(r, isAny)
	if err != nil {
		return err
	}
	return os.Truncate(path, int64(r.IntN(len(b))))
}

func lengthen(r *rand.Rand, s *set) error {
	path, _, err := s.pick(r, isAny)
	if err != nil {
		return err
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, st.Size()+int64(r.IntN(1<<20)))
}

// recordsOf selects a segment with records.
func (s *set) recordsOf(r *rand.Rand) (path string, b []byte, rs []record, err error) {
	if path, b, err = s.pick(r, isWAL); err != nil {
		return "", nil, nil, err
	}
	if rs = records(b); len(rs) < 4 {
		return "", nil, nil, errNothing
	}
	return path, b, rs, nil
}

// flipInRecord flips a bit in the data of a record that is neither the first nor the last of its segment.
func flipInRecord(r *rand.Rand, s *set) error {
	path, b, rs, err := s.recordsOf(r)
	if err != nil {
		return err
	}
	x := rs[1+r.IntN(len(rs)-2)]
	if len(x.data) == 0 {
		return errNothing
	}
	at := x.end - (x.end-x.off-8)%8 - 1 - r.IntN(len(x.data))
	for at >= x.end || b[at] == 0 && at > x.off+12 {
		at--
	}
	return overwrite(path, int64(at), []byte{b[at] ^ 1<<r.IntN(8)})
}

func recordLength(r *rand.Rand, s *set) error {
	path, b, rs, err := s.recordsOf(r)
	if err != nil {
		return err
	}
	x := one(r, rs)
	word := binary.LittleEndian.Uint64(b[x.off:])
	word = []uint64{word + 8, word - 8, word ^ 1<<r.IntN(64), 0, 1<<63 - 1, uint64(r.Uint32())}[r.IntN(6)]
	return overwrite(path, int64(x.off), binary.LittleEndian.AppendUint64(nil, word))
}

// mendedRecord changes the content of a record and recomputes the chain of the whole log.
func mendedRecord(r *rand.Rand, s *set) error {
	path, b, rs, err := s.recordsOf(r)
	if err != nil {
		return err
	}
	x := rs[r.IntN(len(rs)-1)+1]
	if len(x.data) == 0 {
		return errNothing
	}
	for range 1 + r.IntN(4) {
		x.data[r.IntN(len(x.data))] ^= byte(1 << r.IntN(8)) // data aliases b
	}
	if err := overwrite(path, 0, b); err != nil {
		return err
	}
	return mendLog(filepath.Dir(path))
}

// lastEntries is how many entries at the end mendedEntry keeps: they may be uncommitted.
const lastEntries = 30

// mendedEntry flips a bit in the request of an entry that another member also has, and recomputes the chain. Then two
// logs differ at an index that both have committed.
func mendedEntry(r *rand.Rand, s *set) error {
	path, b, rs, err := s.recordsOf(r)
	if err != nil {
		return err
	}
	rs = slices.DeleteFunc(rs, func(x record) bool { return x.typ != 2 || len(x.data) < 24 })
	if len(rs) <= lastEntries {
		return errNothing
	}
	x := one(r, rs[:len(rs)-lastEntries])
	others := s.files(func(p string) bool { return isWAL(p) && !strings.HasPrefix(p, filepath.Dir(path)) })
	if !slices.ContainsFunc(others, func(p string) bool {
		other, err := head(p)
		return err == nil && bytes.Contains(other, x.data)
	}) {
		return errNothing
	}
	x.data[len(x.data)-1] ^= byte(1 << r.IntN(8)) // data aliases b
	if err := overwrite(path, 0, b); err != nil {
		return err
	}
	return mendLog(filepath.Dir(path))
}

// databaseGone removes the database of a member, or cuts it before its second meta page.
func databaseGone(r *rand.Rand, s *set) error {
	all := s.files(isDB)
	if len(all) == 0 {
		return errNothing
	}
	if r.IntN(2) == 0 {
		return os.Remove(one(r, all))
	}
	return os.Truncate(one(r, all), int64(r.IntN(4096)))
}

// mendedSnap changes the content of a .snap file and writes it with the right CRC.
func mendedSnap(r *rand.Rand, s *set) error {
	path, _, err := s.pick(r, isSnap)
	if err != nil {
		return err
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var x record // the same fields under other numbers: {1 crc, 2 data}
	if !x.parse(whole) || len(x.data) == 0 {
		return errNothing
	}
	for range 1 + r.IntN(4) {
		x.data[r.IntN(len(x.data))] ^= byte(1 << r.IntN(8))
	}
	out := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType),
		uint64(crc32.Checksum(x.data, castagnoli)))
	out = protowire.AppendBytes(protowire.AppendTag(out, 2, protowire.BytesType), x.data)
	return os.WriteFile(path, out, 0o600)
}

// The meta page of bbolt: a header of 16 bytes, 56 bytes of fields and their FNV-1a.
const metaHeader, metaFields = 16, 56

// mendedMeta changes a field of a meta page.
func mendedMeta(r *rand.Rand, s *set) error {
	path, b, err := s.pick(r, isDB)
	if err != nil {
		return err
	}
	page := 4096 * r.IntN(2)
	if len(b) < page+metaHeader+metaFields+8 {
		return errNothing
	}
	fields := b[page+metaHeader : page+metaHeader+metaFields]
	at := 8 * r.IntN(metaFields/8)
	binary.LittleEndian.PutUint64(fields[at:],
		[]uint64{0, 1, r.Uint64(), 1 << 40, binary.LittleEndian.Uint64(fields[at:]) + 1}[r.IntN(5)])
	h := fnv.New64a()
	_, _ = h.Write(fields) // a hash never fails to write
	return overwrite(path, int64(page+metaHeader), binary.LittleEndian.AppendUint64(fields, h.Sum64()))
}

// pageHeader changes number, flags, count or overflow of a page.
func pageHeader(r *rand.Rand, s *set) error {
	path, b, err := s.pick(r, isDB)
	if err != nil {
		return err
	}
	page := 4096 * r.IntN(max(1, len(b)/4096))
	return overwrite(path, int64(page+r.IntN(16)), []byte{byte(r.Uint32())})
}

// pageElement changes a pointer or a size of an element of a page.
func pageElement(r *rand.Rand, s *set) error {
	path, b, err := s.pick(r, isDB)
	if err != nil {
		return err
	}
	page := 4096 * r.IntN(max(1, len(b)/4096))
	v := binary.LittleEndian.AppendUint32(nil, []uint32{0, 1<<32 - 1, r.Uint32(), 4096, 17}[r.IntN(5)])
	return overwrite(path, int64(page+16+4*r.IntN(64)), v)
}

func removeFile(r *rand.Rand, s *set) error {
	all := s.files(isAny)
	if len(all) == 0 {
		return errNothing
	}
	return os.Remove(one(r, all))
}

// oddName are names that a terminal, a shell or a table may misinterpret.
var oddName = []string{"a\x1b[31mred", "b\u202etxt", "c d;e", "$(touch X)", "-oProxyCommand=x", "x\ny", "q\"'`",
	"\u009b31m", "ff\xff", "0000000000000003-ffffffffffffffff.wal", "ffffffffffffffff-ffffffffffffffff.snap"}

func renameFile(r *rand.Rand, s *set) error {
	all := s.files(isAny)
	if len(all) == 0 {
		return errNothing
	}
	p := one(r, all)
	return os.Rename(p, filepath.Join(filepath.Dir(p), one(r, oddName)))
}

func swapFiles(r *rand.Rand, s *set) error {
	of := one(r, []func(string) bool{isWAL, isDB, isSnap})
	all := s.files(of)
	if len(all) < 2 {
		return errNothing
	}
	a, b := one(r, all), one(r, all)
	if a == b {
		return errNothing
	}
	return errors.Join(os.Rename(a, a+".x"), os.Rename(b, a), os.Rename(a+".x", b))
}

// specialFile replaces a file by a special file, or adds one next to it.
func specialFile(r *rand.Rand, s *set) error {
	all := s.files(isAny)
	if len(all) == 0 {
		return errNothing
	}
	p := one(r, all)
	if r.IntN(2) == 0 {
		p = filepath.Join(filepath.Dir(p), one(r, oddName))
	} else if err := os.Remove(p); err != nil {
		return err
	}
	switch r.IntN(5) {
	case 0:
		return syscall.Mkfifo(p, 0o600)
	case 1:
		return os.Symlink("/dev/zero", p)
	case 2:
		return os.Symlink(p, p)
	case 3:
		return os.Mkdir(p, 0o700)
	}
	return os.Symlink("..", p)
}

// oddNames gives sources names that must be escaped on a terminal.
func oddNames(r *rand.Rand, s *set) error {
	s.names = map[string]string{}
	for i, m := range s.members {
		name := one(r, oddName[:7])
		if i > 0 {
			name += m[len(m)-1:]
		}
		s.names[m] = name
	}
	return nil
}

// asArchive packs the set.
func asArchive(_ *rand.Rand, s *set) error {
	s.archive = s.dir + ".tar.gz"
	f, err := os.Create(s.archive)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, p := range s.files(isAny) {
		if err := pack(t, s.dir, p); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(t.Close(), z.Close(), f.Close())
}

func pack(t *tar.Writer, dir, p string) error {
	st, err := os.Stat(p)
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(dir, p)
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Name: filepath.ToSlash(rel), Mode: 0o600, Size: min(st.Size(), maxHead),
		ModTime: st.ModTime()}); err != nil {
		return err
	}
	in, err := os.Open(p)
	if err != nil {
		return err
	}
	_, err = io.Copy(t, io.LimitReader(in, maxHead)) // the rest of a segment is preallocated zeros
	return errors.Join(err, in.Close())
}

// damagedArchive packs the set and damages the archive.
func damagedArchive(r *rand.Rand, s *set) error {
	if err := asArchive(r, s); err != nil {
		return err
	}
	st, err := os.Stat(s.archive)
	if err != nil {
		return err
	}
	if r.IntN(2) == 0 {
		return os.Truncate(s.archive, r.Int64N(st.Size()))
	}
	return overwrite(s.archive, r.Int64N(st.Size()), []byte{byte(r.Uint32()), byte(r.Uint32())})
}
