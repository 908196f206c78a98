package dumplog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// build writes a log: entry T/I put K=V | big K N | empty | add ID | remove ID; state T VOTE COMMIT; snapshot T/I; cut.
func (b *lab) build(d *datadriven.TestData) {
	b.dir = filepath.Join(b.t.TempDir(), "wal")
	size := 8192
	d.MaybeScanArgs(b.t, "size", &size)
	name := ""
	d.MaybeScanArgs(b.t, "name", &name)
	old := wal.SegmentSizeBytes
	defer func() { wal.SegmentSizeBytes = old }()
	wal.SegmentSizeBytes = int64(size)
	cluster := "a17ce8aab99df29d"
	d.MaybeScanArgs(b.t, "cluster", &cluster)
	w := newWALOf(b.t, b.dir, testMember, hexID(b.t, cluster))
	wal.SegmentSizeBytes = 1 << 40
	st := raftpb.HardState{Term: 1, Vote: testMember}
	for _, line := range lines(d.Input) {
		f := strings.Fields(line)
		switch f[0] {
		case "entry":
			w.save(raftpb.HardState{}, b.entry(f[1:]))
		case "state":
			st = raftpb.HardState{Term: dec(b.t, f[1]), Vote: hexID(b.t, f[2]), Commit: dec(b.t, f[3])}
			w.save(st)
		case "snapshot":
			term, index := b.termIndex(f[1])
			w.snapshot(index, term)
		case "cut":
			wal.SegmentSizeBytes = 1
			w.save(st)
			wal.SegmentSizeBytes = 1 << 40
		default:
			b.t.Fatalf("no line %q", line)
		}
	}
	w.close()
	must(b.t, removeTmp(b.dir))
	if b.others == nil {
		b.others = map[string]string{}
	}
	b.others[name] = b.dir
}

func removeTmp(dir string) error {
	tmp, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
	for _, f := range tmp {
		err = errors.Join(err, os.Remove(f))
	}
	return err
}

func (b *lab) termIndex(s string) (term, index uint64) {
	_, err := fmt.Sscanf(s, "%d/%d", &term, &index)
	must(b.t, err)
	return term, index
}

func (b *lab) entry(f []string) raftpb.Entry {
	term, index := b.termIndex(f[0])
	e := raftpb.Entry{Term: term, Index: index}
	id := uint64(testMember&0xffff)<<48 | 0x9a3c0000000000 | index
	var cc raftpb.ConfChange
	switch f[1] {
	case "put":
		k, v, _ := strings.Cut(f[2], "=")
		e.Data = put(k, []byte(v), id)
		return e
	case "big":
		v := make([]byte, dec(b.t, f[3]))
		for i := range v {
			v[i] = byte(i%251) | 1
		}
		e.Data = put(f[2], v, id)
		return e
	case "empty":
		return e
	case "add":
		cc = raftpb.ConfChange{ID: id, Type: raftpb.ConfChangeAddNode, NodeID: hexID(b.t, f[2]),
			Context: []byte(`{"id":` + strconv.FormatUint(hexID(b.t, f[2]), 10) +
				`,"peerURLs":["http://a:2380"],"name":"a"}`)}
	case "force-remove":
		cc = raftpb.ConfChange{Type: raftpb.ConfChangeRemoveNode, NodeID: hexID(b.t, f[2])}
	default:
		b.t.Fatalf("no entry %v", f)
	}
	data, err := cc.Marshal()
	must(b.t, err)
	e.Type, e.Data = raftpb.EntryConfChange, data
	return e
}

func dec(t testing.TB, s string) uint64 {
	t.Helper()
	v, err := strconv.ParseUint(s, 10, 64)
	must(t, err)
	return v
}

func hexID(t testing.TB, s string) uint64 {
	t.Helper()
	v, err := strconv.ParseUint(s, 16, 64)
	must(t, err)
	return v
}

func (b *lab) segments() []string {
	names, err := filepath.Glob(filepath.Join(b.dir, "*.wal"))
	must(b.t, err)
	return names
}

// damage does one of, SEG counting from 0 and PLACE as in place:
//
//	flip SEG PLACE BIT      zero SEG PLACE N     zero-sectors SEG PLACE N (from the next 512-byte border on)
//	cut SEG PLACE           empty SEG            drop SEG
//	take SEG NAME           (replaces the segment by that of the log built with name=NAME)
//	write SEG PLACE HEX     insert SEG PLACE N   (N foreign bytes)
func (b *lab) damage(f []string) {
	seg := b.segments()[dec(b.t, f[1])]
	data, err := os.ReadFile(seg)
	must(b.t, err)
	var off, n int
	if len(f) > 2 && f[0] != "take" {
		off = b.place(seg, f[2])
	}
	if len(f) > 3 && f[0] != "write" {
		n = int(dec(b.t, f[3]))
	}
	switch f[0] {
	case "flip":
		data[off] ^= 1 << n
	case "zero":
		clear(data[off : off+n])
	case "zero-sectors":
		off = (off + 511) &^ 511
		clear(data[off : off+512*n])
	case "cut":
		data = data[:off]
	case "empty":
		data = nil
	case "drop":
		must(b.t, os.Remove(seg))
		return
	case "take":
		other := filepath.Join(b.others[f[2]], filepath.Base(seg))
		data, err = os.ReadFile(other)
		must(b.t, err)
	case "write":
		copy(data[off:], []byte(f[3]))
	case "insert":
		junk := make([]byte, n)
		for i := range junk {
			junk[i] = byte(i*13 + 0x41)
		}
		data = slices.Insert(data, off, junk...)
	default:
		b.t.Fatalf("no damage %v", f)
	}
	must(b.t, os.WriteFile(seg, data, 0o600))
}

var placeForm = regexp.MustCompile(`^(?:rec(\d+)\.(len|type|crc|data|pad|end)|end)?([+-]\d+)?$`)

// place finds a byte: recN.len, .type, .crc, .data, .pad, .end of the N-th record of the segment, or end (behind the
// last record), with an offset behind it.
func (b *lab) place(seg, s string) int {
	m := placeForm.FindStringSubmatch(s)
	if m == nil {
		b.t.Fatalf("no place %q", s)
	}
	var recs []dumplog.Record
	l, err := dumplog.Open(b.dir)
	must(b.t, err)
	for r := range l.Records(context.Background()) {
		if r.Segment == filepath.Base(seg) && r.Len > 0 {
			recs = append(recs, r)
		}
	}
	last := recs[len(recs)-1]
	off := last.Offset + last.Len
	if m[1] != "" {
		r := recs[dec(b.t, m[1])]
		bodyEnd := r.Offset + r.Len - int64(r.Pad)
		off = map[string]int64{
			"len": r.Offset, "type": r.Offset + 9, "crc": r.Offset + 11, "data": bodyEnd - int64(len(r.Data)),
			"pad": bodyEnd, "end": r.Offset + r.Len,
		}[m[2]]
	}
	if m[3] != "" {
		n, err := strconv.Atoi(m[3])
		must(b.t, err)
		off += int64(n)
	}
	return int(off)
}
