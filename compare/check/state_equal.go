package check

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/release"
)

// stateEqual turns the comparison of small buckets into a result with one finding per bucket that differs. It names the
// members that are shown to be wrong. If nothing shows that, it names all that were compared.
func (in contents) stateEqual(class Class, keep func(*diff.Row) bool, names ...string) Result {
	if in.Diff == nil {
		return Result{Reason: "the databases could not be compared"}
	}
	var fs []Finding
	var reasons []string
	for _, n := range names {
		b := in.Diff.Find(n)
		switch {
		case b == nil:
			reasons = append(reasons, "bucket "+n+" was not compared")
		case b.Equal == release.Unknown:
			reasons = append(reasons, b.Reason)
		default:
			if f := in.stateFinding(class, b, keep); f != nil {
				fs = append(fs, *f)
			} else if b.Reason != "" {
				reasons = append(reasons, b.Reason)
			}
		}
	}
	return outcome(fs, strings.Join(slices.Compact(reasons), "; "))
}

// blame collects over rows or records which members differ, which are shown to be wrong, and why.
type blame struct {
	wrong, odd, all, byHand map[int]bool
	why                     []string
	// open is true if nothing shows who is wrong in one of the rows.
	open bool
	// unsettled is true if members that no witness accuses differ in one of the rows.
	unsettled bool
}

func newBlame() *blame {
	return &blame{wrong: map[int]bool{}, odd: map[int]bool{}, all: map[int]bool{}, byHand: map[int]bool{}}
}

// add takes the members that were compared in one row, those that differ from a majority, and what witnesses say.
func (x *blame) add(in *Input, at, odd []int, ws []witness) {
	for _, pos := range at {
		x.all[pos] = true
	}
	for _, pos := range odd {
		x.odd[pos] = true
	}
	x.open = x.open || len(ws) == 0
	x.unsettled = x.unsettled || len(ws) == 0
	for _, w := range ws {
		x.wrong[w.pos] = true
		if w.byHand {
			x.byHand[w.pos] = true
		}
		if said := in.Members[w.pos].Label() + ": " + w.why; len(x.why) < maxWhy && !slices.Contains(x.why, said) {
			x.why = append(x.why, said)
		}
	}
}

// name fills the members of the finding: those that are shown to be wrong, or all that were compared if others may be
// wrong in some row.
func (x *blame) name(in *Input, f *Finding) {
	named := x.all
	f.Open = x.unsettled
	f.Undecided = len(x.wrong) == 0 || x.open && !subset(x.odd, x.wrong)
	if !f.Undecided {
		named = x.wrong
	}
	f.Members, f.Odd, f.ByHand = in.Members.labelsAt(named), in.Members.labelsAt(x.odd), in.Members.labelsAt(x.byHand)
	if len(x.wrong) > 0 {
		f.Title += ", wrong on " + strings.Join(in.Members.labelsAt(x.wrong), ", ")
	}
	switch {
	case len(x.why) > 0:
		f.Explanation += ". " + strings.Join(x.why, "; ")
	case len(x.odd) > 0:
		f.Explanation += fmt.Sprintf(". %s differs from the majority, which agrees; that is a hint and no proof",
			strings.Join(f.Odd, ", "))
	default:
		f.Explanation += ". Nothing shows which of them is right"
	}
}

// stateFinding is the finding of one bucket, nil when no row that counts differs.
func (in contents) stateFinding(class Class, b *diff.Bucket, keep func(*diff.Row) bool) *Finding {
	f, x, rows := Finding{Kind: KindRowsDiffer, Severity: Error, Class: class}, newBlame(), 0
	low := uint64(math.MaxUint64)
	for i := range b.Rows {
		row := &b.Rows[i]
		if keep != nil && !keep(row) {
			continue
		}
		rows++
		at := in.Diff.Compared(row)
		for _, pos := range at {
			f.At.Index = max(f.At.Index, in.Members[pos].AppliedMin)
			low = min(low, in.Members[pos].AppliedMin)
		}
		ws := in.rowWitnesses().witnesses(b.Name, row, at)
		x.add(in.Input, at, row.Odd(independent(in.Input, at)), ws)
		x.unsettled = x.unsettled || !restAgrees(row, at, ws)
		f.Evidence = append(f.Evidence, stateEvidence(in.Members, b.Name, row, at, ws)...)
		f.Facts.VotersDiffer = f.Facts.VotersDiffer || b.Name == "members" && votersDiffer(in.Members, row, at)
	}
	if rows == 0 {
		return nil
	}
	x.unsettled = x.unsettled || b.Differ > len(b.Rows)
	if keep == nil {
		rows = b.Differ
		f.More = (b.Differ - len(b.Rows)) * len(x.all)
	}
	f.Title = rowsDiffer(rows, b.Compared, b.Name)
	if keep != nil && b.Differ > len(b.Rows) {
		f.Title = "at least " + f.Title
	}
	f.Explanation = fmt.Sprintf("compared at index %d", f.At.Index)
	switch {
	case low < f.At.Index && b.Reason != "": // only TTLs could be compared
		f.Explanation = fmt.Sprintf("stored at the indexes %d to %d; the TTL of a lease stays that of its grant", low,
			f.At.Index)
	case low < f.At.Index:
		f.Explanation = fmt.Sprintf("compared at the indexes %d to %d; no entry between them changes this", low,
			f.At.Index)
	}
	x.name(in.Input, &f)
	cut := in.cut(f)
	return &cut
}

// votersDiffer reports whether members differ in listing the member of a row as a voter, as a learner, or not at all.
func votersDiffer(ss Sources, row *diff.Row, at []int) bool {
	type listed struct{ is, learns bool }
	seen := map[listed]bool{}
	for _, pos := range at {
		var l listed
		for i := range ss[pos].DB.Members {
			if m := &ss[pos].DB.Members[i]; m.ID.String() == string(row.Key) {
				l = listed{true, m.IsLearner}
			}
		}
		seen[l] = true
	}
	return len(seen) > 1
}

// maxWhy bounds the reasons in an explanation.
const maxWhy = 4

func subset(a, b map[int]bool) bool {
	for k := range a {
		if !b[k] {
			return false
		}
	}
	return true
}

// stateEvidence are the members' versions of a row, those that are shown to be wrong first.
func stateEvidence(ss Sources, bucket string, row *diff.Row, at []int, ws []witness) []Evidence {
	var first, rest []Evidence
	for _, pos := range at {
		m := ss[pos]
		e := Evidence{Member: m.Label(), File: m.DB.File, Bucket: bucket, Key: Bytes(row.Key), Field: string(row.Kind),
			Observed: "absent", Expected: "equal on all members", Show: showDB(m, bucket)}
		if c := row.Cells[pos]; c != nil {
			e.Observed = c.Text
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

// restAgrees reports whether the members of a row that no witness accuses hold the same.
func restAgrees(row *diff.Row, at []int, ws []witness) bool {
	first := -1
	for _, i := range at {
		if slices.ContainsFunc(ws, func(w witness) bool { return w.pos == i }) {
			continue
		}
		if first >= 0 && cellOr(row.Cells[i], "absent") != cellOr(row.Cells[first], "absent") {
			return false
		}
		first = i
	}
	return true
}
