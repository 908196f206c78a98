package collect

import (
	"context"
	"fmt"
	"io"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// segment is a segment of the log in the copy: its bytes up to end, then zeros up to its size on disk, as in any log in
// use.
type segment struct {
	dumplog.SegmentFile
	end int64
}

func allOf(files []dumplog.SegmentFile) []segment {
	out := make([]segment, len(files))
	for i, f := range files {
		out[i] = segment{f, f.Size}
	}
	return out
}

// endBefore ends the log before the first raft snapshot that is newer than the database. Its .snap file is left out,
// and a server refuses a log whose newest snapshot is newer than its database. The result is what a member has after a
// power loss.
func endBefore(ctx context.Context, dir string, segs []segment, p *parts) ([]segment, string, error) {
	at := firstAbove(p.log.Snapshots, p.index)
	if at == nil {
		return segs, "", nil
	}
	var files []dumplog.SegmentFile
	for i := range segs {
		if segs[i].Name > at.Segment {
			segs = segs[:i]
			break
		}
		f := segs[i].SegmentFile
		if f.Name == at.Segment {
			f.Size = at.Offset
			segs[i].end = at.Offset
		}
		files = append(files, f)
	}
	was := p.log.LastIndex
	l, err := dumplog.OpenFiles(dir, files)
	if err != nil {
		return nil, "", err
	}
	if p.log, err = l.Scan(ctx); err != nil {
		return nil, "", err
	}
	return segs, fmt.Sprintf("the log is copied up to entry %d of %d: the raft snapshot at %d after it is "+
		"newer than the database", p.log.LastIndex, was, at.Index), nil
}

// firstAbove returns the first snapshot record in the log with an index above that one, nil if there is none. Servers
// up to 3.5 save their own snapshots in the background, so the record of a later snapshot, such as one that was
// received meanwhile, may come before it.
func firstAbove(records []dumplog.SnapshotRecord, index uint64) (first *dumplog.SnapshotRecord) {
	for i := range records {
		if r := &records[i]; r.Index > index && (first == nil || r.Segment < first.Segment ||
			r.Segment == first.Segment && r.Offset < first.Offset) {
			first = r
		}
	}
	return first
}

// segments copies the log up to the last complete record.
func (c *collection) segments(w *packed, segs []segment, log *dumplog.Summary) error {
	ends := map[string]int64{}
	if n := len(log.Segments); n > 0 && len(log.Damage) == 0 {
		last := log.Segments[n-1]
		ends[last.Name] = last.DataEnd
	}
	for _, s := range segs {
		end := s.end
		if e, ok := ends[s.Name]; ok {
			end = min(end, e)
		}
		r := io.MultiReader(c.pace.reader(s.Name, end, io.NewSectionReader(s.File, 0, end)), zeros{})
		if err := w.add(c.name("wal", s.Name), s.Size, modTime(s.File), r); err != nil {
			return err
		}
	}
	return nil
}
