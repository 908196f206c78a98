package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/diff"
)

// stateEqual turns the comparison of small buckets into a result with one finding per bucket that differs. It names the members that are
// shown to be wrong; where nothing shows that, all that were compared.
func (in *Input) stateEqual(class string, keep func(*diff.Row) bool, names ...string) Result {
	if in.Diff == nil {
		return Result{Reason: "the databases could not be compared"}
	}
	var fs []Finding
	var reasons []string
	compared := false
	for _, n := range names {
		b := in.Diff.Find(n)
		switch {
		case b == nil:
			reasons = append(reasons, "bucket "+n+" was not compared")
		case b.Equal == nil:
			reasons = append(reasons, b.Reason)
		default:
			compared = true
			if f := in.stateFinding(class, b, keep); f != nil {
				fs = append(fs, *f)
			}
		}
	}
	reason := strings.Join(slices.Compact(reasons), "; ")
	r := outcome(fs, reason)
	if r.Outcome == NotChecked && compared && len(reasons) < len(names) && len(names) == 1 {
		r.Outcome = Holds
	}
	return r
}

// stateFinding is the finding of one bucket, nil when no row that is kept differs.
func (in *Input) stateFinding(class string, b *diff.Bucket, keep func(*diff.Row) bool) *Finding {
	f := Finding{Severity: Error, Class: class}
	wrong, odd, all, byHand, rows := map[int]bool{}, map[int]bool{}, map[int]bool{}, map[int]bool{}, 0
	var why []string
	unnamed := false
	for i := range b.Rows {
		row := &b.Rows[i]
		if keep != nil && !keep(row) {
			continue
		}
		rows++
		at := in.Diff.Compared(row)
		for _, pos := range at {
			all[pos] = true
			f.At.Index = max(f.At.Index, in.Members[pos].AppliedMin)
		}
		for _, pos := range row.Odd(at) {
			odd[pos] = true
		}
		ws := in.witnesses(b.Name, row, at)
		unnamed = unnamed || len(ws) == 0
		for _, w := range ws {
			wrong[w.pos] = true
			if w.byHand {
				byHand[w.pos] = true
			}
			if said := in.Members[w.pos].Label() + ": " + w.why; len(why) < maxWhy && !slices.Contains(why, said) {
				why = append(why, said)
			}
		}
		f.Evidence = append(f.Evidence, in.stateEvidence(b.Name, row, at, ws)...)
	}
	if rows == 0 {
		return nil
	}
	if keep == nil {
		rows = b.Differ
		f.More = (b.Differ - len(b.Rows)) * len(all)
	}
	named := all
	if len(wrong) > 0 && !(unnamed && len(odd) > 0 && !subset(odd, wrong)) {
		named = wrong
	}
	for _, pos := range slices.Sorted(maps.Keys(named)) {
		f.Members = append(f.Members, in.Members[pos].Label())
	}
	f.Odd, f.ByHand = in.labelsAt(odd), in.labelsAt(byHand)
	f.Title = fmt.Sprintf("%d of %d rows of bucket %s differ between members", rows, b.Compared, b.Name)
	if len(wrong) > 0 {
		f.Title += ", wrong on " + strings.Join(in.labelsAt(wrong), ", ")
	}
	f.Explanation = fmt.Sprintf("compared at index %d", f.At.Index)
	switch {
	case len(why) > 0:
		f.Explanation += ". " + strings.Join(why, "; ")
	case len(odd) > 0:
		f.Explanation += fmt.Sprintf(". %s differs from the majority, which agrees; that is a hint and no proof", strings.Join(f.Odd, ", "))
	default:
		f.Explanation += ". Nothing shows which of them is right"
	}
	cut := in.cut(f)
	return &cut
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

func (in *Input) labelsAt(set map[int]bool) []string {
	return in.labelsOf(slices.Sorted(maps.Keys(set)))
}

// stateEvidence are the members' versions of a row, those that are shown to be wrong first.
func (in *Input) stateEvidence(bucket string, row *diff.Row, at []int, ws []witness) []Evidence {
	var first, rest []Evidence
	for _, pos := range at {
		m := in.Members[pos]
		e := Evidence{Member: m.Label(), File: m.DB.File, Bucket: bucket, Key: Bytes(row.Key), Field: string(row.Kind), Observed: "absent", Expected: "equal on all members", Show: showDB(m, bucket)}
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
