package dumplog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

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
		fmt.Fprintf(&w, "%s#0x%04x(%d)  %s%s%s\n", short(r.Segment), r.Offset, r.Len, r.Type, describe(b.t, &r),
			map[dumplog.CRCState]string{dumplog.CRCUnchecked: " crc-unchecked",
				dumplog.CRCMismatch: " crc-mismatch"}[r.CRC])
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
	fmt.Fprintf(&w, "start %s, effective %d/%d..%d/%d, commit %d\n", s.Start, s.FirstTerm, s.FirstIndex, s.LastTerm,
		s.LastIndex, s.Committed())
	for _, g := range s.Segments {
		fmt.Fprintf(&w, "segment %s: %d records, entries %d..%d, data end 0x%x, end %s\n", short(g.Name), g.Records,
			g.FirstEntry, g.LastEntry, g.DataEnd, g.End)
	}
	for _, o := range s.Overwrites {
		fmt.Fprintf(&w, "overwrite %s#0x%x: %d/%d replaces up to %d/%d, commit was %d\n", short(o.Segment), o.Offset,
			o.Term, o.Index, o.OldTerm, o.OldLast, o.Commit)
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

// endsThere wants that a log which etcd reads up to a damaged place ends for it with the last entry before that place.
func (b *lab) endsThere(read string) {
	b.t.Helper()
	_, text, ok := strings.Cut(read, "..")
	if !ok {
		return
	}
	last, err := strconv.ParseUint(text, 10, 64)
	must(b.t, err)
	l, err := dumplog.Open(b.dir)
	must(b.t, err)
	s, err := l.Scan(b.t.Context())
	must(b.t, err)
	for _, d := range s.Damage {
		if d.OnStart != dumplog.StartDrops && d.OnStart != dumplog.StartCuts {
			continue
		}
		if d.After != last {
			b.t.Errorf("%s: etcd reads up to entry %d, the last one before the place is %d", d, last, d.After)
		}
		return
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
