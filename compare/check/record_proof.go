package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// RecordProofs answers which records of bucket key are proven wrong on one member. A majority proves nothing.
type RecordProofs struct {
	in  *Input
	rw  *rowWitnesses
	pos int
}

// WrongRecord is a record that is proven wrong on a member.
type WrongRecord struct {
	Row *diff.RecordRow
	// Kept is what the member holds, Expected what the proof says, Why the proof.
	Kept, Expected, Why string
	// Event is the entry that wrote the record, nil where the proof is not the log, or where the entry is below the
	// place from which on entries are judged. Index is its index, 0 where the proof is not the log.
	Event *replay.Event
	Index uint64
	// HeldBy are the members that hold the right record: those that hold what the log or the proof says, or where the
	// proof only shows that this member's is wrong, all others if they agree.
	HeldBy []int
}

// RecordProofs returns the proofs about the member at a position.
func (in *Input) RecordProofs(pos int) *RecordProofs {
	return &RecordProofs{in: in, rw: in.rowWitnesses(), pos: pos}
}

// KnowsBefore reports whether what the member held before its last transaction can prove a record wrong.
func (p *RecordProofs) KnowsBefore() bool {
	return p.rw.earlier.stateBefore(p.rw.Members[p.pos]) != nil
}

// Suspects returns the main revisions at which the member holds other records than an entry of the log wrote, or
// records that its own history rules out.
func (p *RecordProofs) Suspects() (revs []int64) {
	if rp := p.rw.Replay; rp != nil {
		for _, e := range rp.Events {
			if o := e.Outcomes[p.pos]; o.State == replay.Contradicted && p.rw.contradicted(p.pos, o.Rev) == e {
				revs = append(revs, o.Rev)
			}
		}
	}
	if m := p.rw.Members[p.pos]; m.HasDB() && m.DB.KV != nil {
		for i := range m.DB.KV.Violations {
			if v := &m.DB.KV.Violations[i]; v.Rule != dumpdb.RuleLease {
				revs = append(revs, v.Main)
			}
		}
	}
	return revs
}

// Judge decides about a record that differs between members. It returns nil if the member's is not proven wrong. open
// is true if another member may hold the right record.
func (p *RecordProofs) Judge(row *diff.RecordRow) (wrong *WrongRecord, open bool) {
	own := row.Cells[p.pos]
	others := slices.DeleteFunc(slices.Clone(row.At), func(i int) bool {
		return sameCell(row.Cells[i], own) || own != nil && row.Before(p.rw.Members[i]) // nothing is lost with the key
	})
	if !slices.Contains(row.At, p.pos) || len(others) == 0 {
		return nil, false
	}
	if e := p.rw.contradicted(p.pos, row.Rev.Main); e != nil {
		return p.byEntry(row, others, e)
	}
	ws := p.rw.recordWitnesses(row)
	accused := func(pos int) bool {
		return slices.ContainsFunc(ws, func(w witness) bool { return w.pos == pos })
	}
	others = slices.DeleteFunc(others, accused)
	at := slices.IndexFunc(ws, func(w witness) bool { return w.pos == p.pos })
	if at < 0 {
		return nil, len(others) > 0
	}
	w := &ws[at]
	if w.byHand { // it was like theirs
		others = slices.DeleteFunc(others, func(i int) bool {
			return row.Cells[i] == nil || row.Cells[i].Text != w.expected
		})
	}
	return p.wrong(row, others, w), false
}

// JudgeKey decides about the record of a live key that other members have, or lack, at a revision which the member has
// compacted: such records are not compared one by one. It returns nil if the member is not proven wrong.
func (p *RecordProofs) JudgeKey(key *diff.Row) *WrongRecord {
	rev := key.LastWrite()
	if rev <= 0 || rev > p.rw.Members[p.pos].CompactRevision() {
		return nil
	}
	row := p.rw.liveRecord(key, rev)
	if row == nil || !slices.Contains(row.At, p.pos) {
		return nil
	}
	ws := firstWitnesses(row, p.rw.keyByLastTransaction)
	at := slices.IndexFunc(ws, func(w witness) bool { return w.pos == p.pos })
	if at < 0 {
		return nil
	}
	held := slices.DeleteFunc(slices.Clone(row.At), func(i int) bool {
		return slices.ContainsFunc(ws, func(w witness) bool { return w.pos == i }) ||
			(row.Cells[i] == nil) != (row.Cells[p.pos] != nil) ||
			row.Cells[i] != nil && row.Cells[i].Text != ws[at].expected
	})
	return p.wrong(row, held, &ws[at])
}

// byEntry decides about a record of an entry whose records the member does not hold as the entry wrote them. Of those
// of a transaction only some may be wrong, which a member that holds all of them as written shows.
func (p *RecordProofs) byEntry(row *diff.RecordRow, others []int, e *replay.Event) (wrong *WrongRecord, open bool) {
	asWritten := func(i int) bool {
		return e.Outcomes[i].State == replay.Applied && e.Outcomes[i].Rev == row.Rev.Main
	}
	if slices.ContainsFunc(row.At, func(i int) bool { return asWritten(i) && !slices.Contains(others, i) }) {
		return nil, false
	}
	held := slices.DeleteFunc(others, func(i int) bool { return !asWritten(i) })
	if len(held) == 0 && e.Kind != dumplog.KindPut {
		return nil, true
	}
	wrong = p.wrong(row, held, &witness{why: fmt.Sprintf("entry %d wrote another record", e.Index),
		expected: "what the entry writes"})
	wrong.Event, wrong.Index = e, e.Index
	return wrong, false
}

// BelowCompaction returns the keys of the member that the log shows to be wrong at its compact revision, whether or not
// other members hold the same. doubted is the first entry that more databases contradict alike than logs hold it, 0 for
// none; logs is how many these are.
func (p *RecordProofs) BelowCompaction() (out []WrongRecord, doubted uint64, logs int) {
	var rows []belowAlike
	for _, d := range p.in.ownBelow(p.pos) {
		if !d.OfRevision() {
			rows = append(rows, belowAlike{d, p.in.holdAlike(p.pos, &d)})
		}
	}
	for _, d := range append(rows, p.in.wrongAlike(p.pos)...) {
		if p.in.doubtedBelow(&d) {
			if doubted == 0 {
				doubted, logs = d.Index, len(p.in.logsWith(d.Index))
			}
			continue
		}
		rev := d.Wrote
		if rev.Main == 0 {
			rev.Main = d.Rev
		}
		out = append(out, WrongRecord{Row: &diff.RecordRow{Rev: rev, Key: []byte(d.Key)}, Kept: d.Observed,
			Expected: d.Expected, Why: fmt.Sprintf("the log up to entry %d gives another record", d.Index),
			Index: d.Index})
	}
	return out, doubted, logs
}

// wrong describes a wrong record. Members that may hold the right one do not if they differ.
func (p *RecordProofs) wrong(row *diff.RecordRow, held []int, w *witness) *WrongRecord {
	out := &WrongRecord{Row: row, Kept: contentOf(row.Cells[p.pos]), Expected: w.expected, Why: w.why}
	for _, i := range held {
		if !sameCell(row.Cells[i], row.Cells[held[0]]) {
			return out
		}
	}
	if out.HeldBy = held; len(held) > 0 {
		out.Expected = contentOf(row.Cells[held[0]])
	}
	return out
}

// RightBelow are the keys of which the log shows that the member is right at its compact revision, and that another
// one, compared at the same place, is wrong.
func (p *RecordProofs) RightBelow() map[string]bool {
	right := map[string]bool{}
	rp := p.in.Replay
	if rp == nil || p.pos >= len(rp.Members) {
		return right
	}
	own := rp.Members[p.pos]
	if m := p.rw.Members[p.pos]; !own.Checked || !m.HasDB() || m.DB.KVDamaged {
		return right
	}
	for i, r := range rp.Members {
		if i == p.pos || r.BaseIndex != own.BaseIndex || r.BaseRevision != own.BaseRevision {
			continue
		}
		for _, d := range p.in.ownBelow(i) {
			right[d.Key] = !d.OfRevision() && !p.in.doubtedBelow(&belowAlike{d, p.in.holdAlike(i, &d)})
		}
	}
	for i := range own.Below {
		delete(right, own.Below[i].Key)
	}
	return right
}

func sameCell(a, b *diff.RecordCell) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Sum == b.Sum && a.Text == b.Text
}

func contentOf(c *diff.RecordCell) string {
	if c == nil {
		return "absent"
	}
	return c.Content
}
