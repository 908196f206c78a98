package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// copyFindings are the findings about sources that carry one member ID.
func copyFindings(in *Input, ms []*evidence.Member) (fs []Finding) {
	older := in.Replay.OlderCopies()
	for i, m := range in.Members {
		if newer, ok := older[i]; ok && slices.Contains(ms, m) {
			fs = append(fs, olderCopyFinding(m, in.Members[newer]))
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
