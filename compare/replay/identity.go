package replay

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Overlap is a member of which two processes proposed at the same time: an entry of an older process is between
// entries of a newer one. Request IDs carry the start time of the process (pkg/idutil/id.go, 3.0 to 3.8).
type Overlap struct {
	Member dumplog.ID
	// Publish is the index at which the newer process published itself. Old is a later entry of the older process, New
	// an entry of the newer process after Old.
	Publish, Old, New uint64
	OldID, NewID      RequestID
}

// clockSlack is how far apart in milliseconds process starts must be to count as two processes.
const clockSlack = 1000

// lives tracks the process starts of each proposer through the log.
type lives struct {
	by map[uint16]*life
}

type life struct {
	// published is the request ID of the newest publish entry, at its index; old is a later entry of an older process.
	published RequestID
	index     uint64
	old       uint64
	oldID     RequestID
	told      bool
}

// note takes the next committed entry and returns an overlap the first time one is proven. A clock that was set back
// between two starts makes a newer process look older, but then no entry of the other one follows.
func (l *lives) note(index uint64, id RequestID, publish bool) *Overlap {
	if id == 0 {
		return nil
	}
	if l.by == nil {
		l.by = map[uint16]*life{}
	}
	p := l.by[id.ProposerPrefix()]
	switch {
	case publish && p == nil:
		l.by[id.ProposerPrefix()] = &life{published: id, index: index}
	case publish:
		p.published, p.index, p.old = id, index, 0
	case p == nil || p.told:
	case id.StartMillis()+clockSlack < p.published.StartMillis():
		p.old, p.oldID = index, id
	case p.old > 0 && id.StartMillis() >= p.published.StartMillis():
		p.told = true
		return &Overlap{Publish: p.index, Old: p.old, New: index, OldID: p.oldID, NewID: id}
	}
	return nil
}

// overlap records it if the 16 bits of the request ID identify one member.
func (r *Result) overlap(o *Overlap, s *Survey) {
	if o.Member = s.Proposer(o.NewID); o.Member != 0 {
		r.Overlaps = append(r.Overlaps, *o)
	}
}

// Copies are two sources of one member, compared record by record.
type Copies struct {
	// A and B are positions in Result.Members; A is the one whose log ends first.
	A, B int
	// Forked is true if each has a record that the other lacks: both ran after they were copied. It is false if A is an
	// older copy of B.
	Forked bool
	// Index is the highest entry index that they have in common, 0 when none.
	Index uint64
	// PosA and PosB are the first records that differ.
	PosA, PosB dumplog.Pos
	// Compared is false when the logs have no segment in common.
	Compared bool
}

// copies compares the logs of sources that carry one member ID and cluster ID.
func copies(ctx context.Context, members []*evidence.Member) ([]Copies, error) {
	var out []Copies
	for i, a := range members {
		for j, b := range members[:i] {
			if a.MemberID == 0 || a.MemberID != b.MemberID || a.ClusterID != b.ClusterID || !a.HasWAL() ||
				!b.HasWAL() ||
				a.MixedLog() || b.MixedLog() {
				continue
			}
			c, err := compareCopies(ctx, members, j, i)
			if err != nil {
				return nil, err
			}
			out = append(out, c)
		}
	}
	return out, nil
}

func compareCopies(ctx context.Context, members []*evidence.Member, a, b int) (Copies, error) {
	c := Copies{A: a, B: b}
	la, lb := &members[a].WAL, &members[b].WAL
	from := commonSegment(&la.Summary, &lb.Summary)
	if from == "" {
		return c, nil
	}
	c.Compared = true
	na, stopA := records(ctx, la, from)
	defer stopA()
	nb, stopB := records(ctx, lb, from)
	defer stopB()
	for {
		ra, okA, errA := na()
		rb, okB, errB := nb()
		if err := errors.Join(errA, errB); err != nil {
			return c, err
		}
		switch {
		case !okA || !okB:
			if okA {
				c.A, c.B = b, a
			}
			return c, nil
		case ra.Type != rb.Type || !slices.Equal(ra.Data, rb.Data):
			c.Forked, c.PosA, c.PosB = true, ra.Pos, rb.Pos
			return c, nil
		}
		if ra.Type == dumplog.RecordEntry {
			if e, err := ra.Entry(); err == nil {
				c.Index = max(c.Index, e.Index)
			}
		}
	}
}

// commonSegment is the first segment that both logs have.
func commonSegment(a, b *dumplog.Summary) string {
	for i := range a.Segments {
		if slices.ContainsFunc(b.Segments, func(s dumplog.Segment) bool { return s.Name == a.Segments[i].Name }) {
			return a.Segments[i].Name
		}
	}
	return ""
}

// records pulls the good records of a log from a segment on, without CRC records and damage.
func records(ctx context.Context, w *evidence.WAL, from string) (next func() (dumplog.Record, bool, error),
	stop func()) {
	pull, stop := iter.Pull2(w.Log.RecordsOf(ctx, &w.Summary))
	begun := false
	return func() (dumplog.Record, bool, error) {
		for {
			rec, err, ok := pull()
			if !ok {
				return rec, false, nil
			}
			if err != nil {
				var d *dumplog.DamageError
				if errors.As(err, &d) {
					continue
				}
				return rec, false, err
			}
			begun = begun || rec.Segment == from
			if begun && rec.Type != dumplog.RecordCRC {
				return rec, true, nil
			}
		}
	}, stop
}
