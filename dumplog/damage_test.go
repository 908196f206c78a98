package dumplog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestDamage runs the files of testdata/damage: each builds a log with etcd's own writer, damages it by the words of
// lab.damage, and shows what this package reads and what etcd's own reader does. Rewrite them with -rewrite.
func TestDamage(t *testing.T) {
	datadriven.Walk(t, "testdata/damage", func(t *testing.T, path string) {
		b := &lab{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			b.t = t
			return b.run(d)
		})
	})
}

// lab is the log under test.
type lab struct {
	t   *testing.T
	dir string
	// others are logs built before, by name, to take segments from.
	others map[string]string
}

func (b *lab) run(d *datadriven.TestData) string {
	switch d.Cmd {
	case "wal":
		b.build(d)
		return ""
	case "damage":
		for _, line := range lines(d.Input) {
			b.damage(strings.Fields(line))
		}
		return ""
	case "dump":
		return b.dump()
	case "scan":
		return b.scan()
	case "etcd":
		return etcdReads(b.t, b.dir)
	}
	b.t.Fatalf("%s: no command %q", d.Pos, d.Cmd)
	return ""
}

func lines(s string) []string {
	return slices.DeleteFunc(strings.Split(s, "\n"), func(l string) bool { return l == "" })
}

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
		cc = raftpb.ConfChange{ID: id, Type: raftpb.ConfChangeAddNode, NodeID: hexID(b.t, f[2]), Context: []byte(`{"id":` + strconv.FormatUint(hexID(b.t, f[2]), 10) + `,"peerURLs":["http://a:2380"],"name":"a"}`)}
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

// place finds a byte: recN.len, .type, .crc, .data, .pad, .end of the N-th record of the segment, or end (behind the last
// record), with an offset behind it.
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

func (b *lab) dump() string {
	var w strings.Builder
	evidencetest.Unchanged(b.t, b.dir)
	l, err := dumplog.Open(b.dir)
	if err != nil {
		return err.Error()
	}
	segment := ""
	for r, err := range l.Records(context.Background()) {
		if d, ok := errors.AsType[*dumplog.DamageError](err); ok {
			fmt.Fprintf(&w, "%s#0x%04x  DAMAGE %s: %v; %d bytes", short(d.Segment), d.Offset, d.Kind, d.Err, d.Len)
			if d.LostFrom > 0 {
				fmt.Fprintf(&w, "; lost %d..%s", d.LostFrom, strings.TrimPrefix(fmt.Sprint(d.LostTo), "0"))
			}
			fmt.Fprintln(&w)
			continue
		}
		must(b.t, err)
		if r.Segment != segment {
			segment = r.Segment
		}
		fmt.Fprintf(&w, "%s#0x%04x(%d)  %s%s%s\n", short(r.Segment), r.Offset, r.Len, r.Type, describe(b.t, &r), map[dumplog.CRCState]string{dumplog.CRCUnchecked: " crc-unchecked", dumplog.CRCMismatch: " crc-mismatch"}[r.CRC])
	}
	return strings.ReplaceAll(w.String(), b.dir, "DIR")
}

func short(segment string) string { return strings.TrimLeft(segment[:15], "0") + segment[15:16] }

func describe(t testing.TB, r *dumplog.Record) string {
	switch r.Type {
	case dumplog.RecordEntry:
		e, err := r.Entry()
		must(t, err)
		q, err := e.Decode()
		must(t, err)
		return fmt.Sprintf(" %d/%d %s", e.Term, e.Index, q.Describe(dumplog.DescribeOptions{}))
	case dumplog.RecordState:
		h, err := dumplog.DecodeHardState(r.Data)
		must(t, err)
		return fmt.Sprintf(" term %d vote %s commit %d", h.Term, h.Vote, h.Commit)
	case dumplog.RecordSnapshot:
		s, err := dumplog.DecodeSnapshotRecord(r.Data)
		must(t, err)
		return fmt.Sprintf(" %d/%d", s.Term, s.Index)
	}
	return ""
}

func (b *lab) scan() string {
	var w strings.Builder
	l, err := dumplog.Open(b.dir)
	if err != nil {
		return "Open: " + strings.ReplaceAll(err.Error(), b.dir, "DIR")
	}
	s, err := l.Scan(context.Background())
	must(b.t, err)
	fmt.Fprintf(&w, "start %s, effective %d/%d..%d/%d, commit %d\n", s.Start, s.FirstTerm, s.FirstIndex, s.LastTerm, s.LastIndex, s.Committed())
	for _, g := range s.Segments {
		fmt.Fprintf(&w, "segment %s: %d records, entries %d..%d, data end 0x%x, end %s\n", short(g.Name), g.Records, g.FirstEntry, g.LastEntry, g.DataEnd, g.End)
	}
	for _, o := range s.Overwrites {
		fmt.Fprintf(&w, "overwrite %s#0x%x: %d/%d replaces up to %d/%d, commit was %d\n", short(o.Segment), o.Offset, o.Term, o.Index, o.OldTerm, o.OldLast, o.Commit)
	}
	for _, j := range s.Jumps {
		fmt.Fprintf(&w, "jump %s#0x%x: %d..%d by snapshot\n", short(j.Segment), j.Offset, j.From, j.To)
	}
	for _, p := range s.ForceNewCluster {
		fmt.Fprintf(&w, "force-new-cluster %s#0x%x\n", short(p.Segment), p.Offset)
	}
	for _, d := range s.Damage {
		fmt.Fprintf(&w, "%s: etcd %s\n", d.Kind, d.Server)
	}
	return w.String()
}

// etcdReads shows what etcd 3.6 itself does with a copy: opens for writing as the server does, repairs once, and reads.
func etcdReads(t *testing.T, dir string) (out string) {
	scratch := evidencetest.Copy(t, dir)
	defer func() {
		if p := recover(); p != nil {
			out = fmt.Sprintf("panics: %.80s", fmt.Sprint(p))
		}
	}()
	for try := 0; ; try++ {
		first, last, err := readAll(scratch)
		switch {
		case err == nil && try == 0:
			return fmt.Sprintf("reads entries %d..%d", first, last)
		case err == nil:
			return fmt.Sprintf("repairs, then reads entries %d..%d", first, last)
		case errors.Is(err, io.ErrUnexpectedEOF) && try == 0 && wal.Repair(zap.NewNop(), scratch):
			continue
		}
		text := strings.ReplaceAll(err.Error(), scratch, "DIR")
		return "refuses: " + text
	}
}

func readAll(dir string) (first, last uint64, err error) {
	w, err := wal.Open(zap.NewNop(), dir, walpb.Snapshot{})
	if err != nil {
		return 0, 0, err
	}
	defer w.Close()
	_, _, ents, err := w.ReadAll()
	if err == nil && len(ents) > 0 {
		first, last = ents[0].Index, ents[len(ents)-1].Index
	}
	return first, last, err
}
