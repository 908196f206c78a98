package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// copyFindings are the findings about sources that carry one member ID.
func copyFindings(in *Input, ms []*evidence.Member) (fs []Finding) {
	older := in.Replay.OlderCopies()
	for i, m := range in.Members {
		if newer, ok := older[i]; ok && slices.Contains(ms, m) {
			fs = append(fs, in.olderCopy(i, newer))
		}
	}
	if len(fs) == len(ms)-1 {
		return fs
	}
	id := ms[0].MemberID
	f := Finding{Kind: KindMemberTwice, Severity: Error, Class: ClassTornCopy, Undecided: true,
		Title: fmt.Sprintf("%d sources carry member ID %s", len(ms), id),
		Explanation: "copies of one member taken at different times, or a data dir that was cloned and runs " +
			"twice; they do not confirm each other"}
	for _, m := range ms {
		f.Members = append(f.Members, m.Label())
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), Field: "member ID", Observed: id.String(),
			Expected: "one source per member", Show: showLogAs(m, "--raw")})
	}
	return []Finding{f}
}

// olderCopy is the finding about an older copy of a data dir. Where their logs have nothing in common, records that the
// newer one should hold show whether it continues the older one.
func (in *Input) olderCopy(older, newer int) Finding {
	a, b := in.Members[older], in.Members[newer]
	f := olderCopyFinding(a, b)
	if slices.ContainsFunc(in.Replay.Copies, func(c replay.Copies) bool {
		return c.Compared && (c.A == older && c.B == newer || c.A == newer && c.B == older)
	}) {
		return f
	}
	if !in.ofOtherHistory(a, b) {
		f.Explanation = fmt.Sprintf("both carry member ID %s, and the log of %s begins after that of %s ends. It does "+
			"not confirm what %s says", a.MemberID, b.Label(), a.Label(), b.Label())
		return f
	}
	f.Kind, f.Severity, f.Class = KindOlderHistory, Error, ClassForeignCluster
	f.Title = fmt.Sprintf("%s carries the member ID of %s, which does not continue its records", a.Label(), b.Label())
	f.Explanation = fmt.Sprintf("both carry member ID %s, and revisions that both hold have other records. %s is from "+
		"before the cluster was restored with the same names, peer URLs and token, or records of one of them were "+
		"altered", a.MemberID, a.Label())
	f.Remedy[0].Risk = "a member that is started on the data dir of another history may keep its records"
	return f
}

// ofOtherHistory reports whether the newer copy does not continue the records of the older one, nor does any other
// member: if one does, records of the newer copy were altered.
func (in *Input) ofOtherHistory(older, newer *evidence.Member) bool {
	if _, differs, err := diff.Continues(in.Ctx, older, newer); err != nil || !differs {
		return false
	}
	return !slices.ContainsFunc(in.Members, func(o *evidence.Member) bool {
		if o == older || o == newer || o.AppliedMin < older.AppliedMax {
			return false
		}
		n, _, err := diff.Continues(in.Ctx, older, o)
		return err != nil || n > 0
	})
}

func olderCopyFinding(m, newer *evidence.Member) Finding {
	ends := func(m *evidence.Member) string {
		return fmt.Sprintf("%d/%d", m.WAL.Summary.LastTerm, m.LastIndex())
	}
	f := Finding{Kind: KindOlderCopy, Severity: Warning, Members: []string{m.Label()}, At: At{Index: m.LastIndex()},
		Title: fmt.Sprintf("%s is an older copy of the data dir of %s", m.Label(), newer.Label()),
		Explanation: fmt.Sprintf("both carry member ID %s, and the log of %s continues that of %s. It says nothing "+
			"that %s does not say, and does not confirm it", m.MemberID, newer.Label(), m.Label(), newer.Label()),
		Evidence: []Evidence{
			{Member: m.Label(), Field: "end of the log", Observed: ends(m), Expected: ends(newer), Show: showLogAs(m)},
			{Member: newer.Label(), Field: "end of the log", Observed: ends(newer), Expected: "the same history",
				Show: showLogAs(newer)}},
		Remedy: []Remedy{{Text: "leave " + m.Label() + " out, and start no server on it",
			Risk: "a member that is started on an older copy of its data dir has forgotten entries and votes that it " +
				"acknowledged"}}}
	if m.LastIndex() == newer.LastIndex() {
		f.Class = ClassInconclusive
		f.Title = fmt.Sprintf("%s is another copy of the data dir of %s", m.Label(), newer.Label())
		f.Explanation = fmt.Sprintf("both carry member ID %s and hold the same log. They count as one", m.MemberID)
		f.Remedy[0] = Remedy{Text: fmt.Sprintf("start a server on one of %s and %s only: they are of one member",
			m.Label(), newer.Label()), Risk: "two servers with one member ID vote twice in one term"}
	}
	return f
}

// independent leaves out the positions of older copies: they do not confirm what the newer copy says.
func independent(in *Input, at []int) []int {
	older := in.Replay.OlderCopies()
	if len(older) == 0 {
		return at
	}
	return slices.DeleteFunc(slices.Clone(at), func(i int) bool {
		newer, ok := older[i]
		return ok && slices.Contains(at, newer)
	})
}
