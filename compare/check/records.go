package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

var recordsEqual = described(Check{
	ID:    K12,
	Needs: NeedDB | NeedTwo,
	Run:   runRecordsEqual,
})

func runRecordsEqual(in *Input) Result {
	if in.Diff == nil {
		return Result{Reason: "the databases could not be compared"}
	}
	if b := in.Diff.Find("key"); b != nil && b.Equal.Excluded() {
		return in.contents().changedRecords(b)
	}
	r := in.Diff.Records
	switch {
	case r == nil:
		return Result{Reason: "the records were not compared"}
	case r.Equal == release.Unknown:
		return Result{Reason: r.Reason}
	case r.Equal.Certain():
		return Result{Outcome: Holds}
	}
	return Result{Outcome: Violated, Findings: []Finding{in.contents().recordsFinding(r)}}
}

// maxChanged bounds the listed records of changedRecords.
const maxChanged = 50

// changedRecords finds, where live keys differ, the records that differ for another reason, and those that the last
// transaction of a member changed: these are proven wrong whoever is right about the live keys. Those of the differing
// live keys are left out where K01 names who is wrong about them, and what K03 and K04 say.
func (in contents) changedRecords(keys *diff.Bucket) Result {
	rw, untold := in.rowWitnesses(), Result{Reason: "live keys differ already"}
	apart, err := in.Diff.RecordsApart(rw.ctx)
	if err != nil {
		return untold
	}
	r, seen := &diff.Records{Equal: release.No, Differ: apart.Differ - len(apart.Rows)}, map[dumpdb.Rev]bool{}
	add := func(row *diff.RecordRow) {
		if r.Differ++; len(r.Rows) < maxChanged {
			r.Rows = append(r.Rows, *row)
		}
	}
	for i := range apart.Rows {
		if row := &apart.Rows[i]; len(firstWitnesses(row, rw.recordByReplay, rw.recordByHistory)) == 0 {
			seen[row.Rev] = true
			add(row)
		}
	}
	err = in.editedRecords(rw, keys, func(row *diff.RecordRow) {
		if !seen[row.Rev] {
			add(row)
		}
	})
	if err != nil || len(r.Rows) == 0 {
		return untold
	}
	slices.SortFunc(r.Rows, func(a, b diff.RecordRow) int {
		return cmp.Or(cmp.Compare(a.Rev.Main, b.Rev.Main), cmp.Compare(a.Rev.Sub, b.Rev.Sub))
	})
	return Result{Outcome: Violated, Findings: []Finding{in.recordsFinding(r)}}
}

// editedRecords calls fn for the records that the last transaction of a member changed.
func (in contents) editedRecords(rw *rowWitnesses, keys *diff.Bucket, fn func(*diff.RecordRow)) error {
	if !slices.ContainsFunc(in.Members, func(m *evidence.Member) bool {
		return m.HasDB() && rw.earlier.stateBefore(m) != nil
	}) {
		return nil
	}
	named := map[int64]bool{}
	k01 := in.bucketFinding(ClassDataDivergence, keys)
	if in.nameWrongKeys(&k01); !k01.Undecided {
		for i := range keys.Rows {
			named[keys.Rows[i].LastWrite()] = true
		}
	}
	return in.Diff.EachRecord(rw.ctx, 0, func(row *diff.RecordRow) {
		if !named[row.Rev.Main] && len(firstWitnesses(row, rw.recordByReplay, rw.recordByHistory)) == 0 &&
			len(firstWitnesses(row, rw.recordByLastTransaction)) > 0 {
			fn(row)
		}
	})
}

func (in contents) recordsFinding(r *diff.Records) Finding {
	first := &r.Rows[0]
	f := Finding{Kind: KindRecordsDiffer, Severity: Error, Class: ClassDataDivergence,
		At: At{Revision: &Rev{Main: first.Rev.Main, Sub: first.Rev.Sub}},
		Title: fmt.Sprintf("%s between members, the first at revision %s",
			plural.Of(r.Differ, "record of bucket key differs", "records of bucket key differ"), first.Rev)}
	if r.AtLeast {
		f.Title = "at least " + f.Title
	}
	x, rw := newBlame(), in.rowWitnesses()
	for i := range r.Rows {
		row := &r.Rows[i]
		ws := rw.recordWitnesses(row)
		x.add(in.Input, row.At, row.Odd(independent(in.Input, row.At)), ws)
		f.Evidence = append(f.Evidence, rowsOfRecord(in.Members, row, ws)...)
	}
	f.More = r.Differ - len(r.Rows)
	f.Explanation = "all members write the same bytes at a revision" +
		hashText(in.Members, slices.Sorted(maps.Keys(x.all)))
	if slices.ContainsFunc(r.Rows, func(row diff.RecordRow) bool { return row.Created > 0 }) {
		f.Explanation += "; a key that was created at or before a member's revision and not deleted since is on it"
	}
	x.name(in.Input, &f)
	return in.cut(f)
}

// hashText returns the HashKV of the members if they have it at one revision and one compact revision.
func hashText(ss Sources, at []int) string {
	var first *dumpdb.HashKV
	var parts []string
	for _, pos := range at {
		h := ss[pos].DB.HashKV
		if h == nil || first != nil && (h.Rev != first.Rev || h.CompactRev != first.CompactRev) {
			continue
		}
		first = h
		parts = append(parts, fmt.Sprintf("%s %d", ss[pos].Label(), h.Hash))
	}
	if len(parts) < 2 {
		return ""
	}
	return fmt.Sprintf("; HashKV at revision %d, compact revision %d: %s", first.Rev, first.CompactRev,
		strings.Join(parts, ", "))
}

func rowsOfRecord(ss Sources, row *diff.RecordRow, ws []witness) []Evidence {
	var first, rest []Evidence
	for _, pos := range row.At {
		m := ss[pos]
		e := Evidence{Member: m.Label(), File: m.DB.File, Bucket: "key", Key: Bytes(row.Key), Field: "revision " +
			row.Rev.String(), Observed: "absent", Expected: "equal on all members",
			Show: showDB(m, "key", "--from-rev", row.Rev.Main, "--to-rev", row.Rev.Main)}
		if c := row.Cells[pos]; c != nil {
			e.Observed, e.Page, e.Offset = c.Text+" (record digest "+c.Sum+")", Uint64(c.Page), Int64(c.Offset)
		} else if row.Before(m) {
			e.Field = fmt.Sprintf("revisions %d to %d", row.Created, m.CurrentRevision())
			e.Observed = "no record of the key"
			e.Expected = fmt.Sprintf("one: others hold it as created at %d", row.Created)
			e.Show = showDB(m, "key", "--from-rev", row.Created, "--to-rev", m.CurrentRevision())
		}
		if i := slices.IndexFunc(ws, func(w witness) bool { return w.pos == pos }); i >= 0 {
			if ws[i].expected != "" {
				e.Expected = ws[i].expected
			}
			first = append(first, e)
			continue
		}
		rest = append(rest, e)
	}
	return append(first, rest...)
}

// recordWitnesses names the members whose version of a record is shown to be wrong.
func (rw *rowWitnesses) recordWitnesses(row *diff.RecordRow) []witness {
	return firstWitnesses(row, rw.recordByReplay, rw.recordByHistory, rw.recordByLastTransaction)
}

// firstWitnesses returns the answer of the first that names members, but not all of them.
func firstWitnesses(row *diff.RecordRow, asks ...func(*diff.RecordRow) []witness) []witness {
	for _, ask := range asks {
		if ws := ask(row); len(ws) > 0 && len(ws) < len(row.At) {
			return ws
		}
	}
	return nil
}

// recordByReplay: records in the place of those that an entry wrote. Where logs hold different entries, the replay of
// one of them shows nothing about the members with the other.
func (rw *rowWitnesses) recordByReplay(row *diff.RecordRow) []witness {
	var out []witness
	for _, pos := range row.At {
		if e := rw.contradicted(pos, row.Rev.Main); e != nil {
			out = append(out, witness{pos, fmt.Sprintf("entry %d wrote another record", e.Index),
				"what the entry writes", false})
		}
	}
	return out
}

// contradicted returns the entry whose records a member holds differently at a revision, nil for none.
func (rw *rowWitnesses) contradicted(pos int, main int64) *replay.Event {
	if rw.Replay == nil {
		return nil
	}
	if rw.atRevision == nil {
		rw.atRevision = map[memberRevision]*replay.Event{}
		for _, e := range rw.Replay.Events {
			for i, o := range e.Outcomes {
				if o.State == replay.Contradicted && !disputed(rw.Replay, e.Index) {
					rw.atRevision[memberRevision{i, o.Rev}] = e
				}
			}
		}
	}
	return rw.atRevision[memberRevision{pos, main}]
}

// recordByHistory: records that contradict the other records of the same database.
func (rw *rowWitnesses) recordByHistory(row *diff.RecordRow) []witness {
	var out []witness
	for _, pos := range row.At {
		kv := rw.Members[pos].DB.KV
		if kv == nil {
			continue
		}
		i := slices.IndexFunc(kv.Violations, func(v dumpdb.Violation) bool {
			return v.Rev == row.Rev &&
				v.Rule != dumpdb.RuleLease
		})
		if i >= 0 {
			out = append(out, witness{pos, "its own history has no place for the record: " + kv.Violations[i].Rule,
				kv.Violations[i].Expected, false})
		}
	}
	return out
}

// recordByLastTransaction: one transaction earlier, at the same consistent index, the record was different, and equal
// to that of others. A server never changes a record, in no release.
func (rw *rowWitnesses) recordByLastTransaction(row *diff.RecordRow) []witness {
	var out []witness
	for _, pos := range row.At {
		was, now := rw.earlier.recordBefore(rw.ctx, rw.Members[pos], row.Rev), row.Cells[pos]
		if was == nil || now != nil && was.Sum == now.Sum {
			continue
		}
		if slices.ContainsFunc(row.At, func(o int) bool {
			return o != pos && row.Cells[o] != nil &&
				row.Cells[o].Sum == was.Sum
		}) {
			out = append(out, witness{pos, "its last transaction changed the record, which no server does: before " +
				"that it was what others hold", was.Text, true})
		}
	}
	return out
}

// liveRecord returns the record of a live key that all members that have the key wrote at one revision, nil if one of
// them cannot be read there. Others may have compacted that revision: then the comparison of records leaves out who
// lacks it.
func (rw *rowWitnesses) liveRecord(key *diff.Row, main int64) *diff.RecordRow {
	row := &diff.RecordRow{Key: key.Key, Cells: make([]*diff.RecordCell, len(rw.Members))}
	for pos, m := range rw.Members {
		if !rw.Diff.TookPart("key", pos) {
			continue
		}
		row.At = append(row.At, pos)
		for rec, err := range m.DB.Handle.Query(rw.ctx, dumpdb.Query{Key: key.Key, FromRev: main, ToRev: main}) {
			if err != nil || rec.Err != nil || row.Rev.Main > 0 && row.Rev != rec.Rev {
				return nil
			}
			row.Rev, row.Cells[pos] = rec.Rev, diff.CellOf(m, &rec)
		}
	}
	if row.Rev.Main == 0 {
		return nil
	}
	return row
}

// keyByLastTransaction: one transaction earlier, at the same consistent index, a member had the record of a live key
// that it lacks now or holds differently, or lacked a record that it has now although it was past that revision. A
// server does none of this.
func (rw *rowWitnesses) keyByLastTransaction(row *diff.RecordRow) []witness {
	var out []witness
	for _, pos := range row.At {
		m, now := rw.Members[pos], row.Cells[pos]
		was := rw.earlier.recordBefore(rw.ctx, m, row.Rev)
		held := was != nil && slices.ContainsFunc(row.Cells, func(c *diff.RecordCell) bool {
			return c != nil && c.Sum == was.Sum
		})
		switch {
		case now != nil && rw.earlier.lackedBefore(rw.ctx, m, row.Rev):
			out = append(out, witness{pos, "its last transaction added a record below its newest revision, which no " +
				"server does", "absent", true})
		case now != nil && held && was.Sum != now.Sum:
			out = append(out, witness{pos, "its last transaction changed the record, which no server does: before " +
				"that it was what others hold", was.Text, true})
		case now == nil && held && !rw.earlier.compactedSince(m):
			out = append(out, witness{pos, "its last transaction removed a record that others hold, without a " +
				"compaction, which no server does", was.Text, true})
		}
	}
	return out
}
