package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// revisionFalls is a finding where a member has a lower revision than another one, although it has applied the same log
// up to the same index or further: no entry lowers the revision. Nil if there is none. Of several it is the first by
// name, in any order of the sources.
func (in contents) revisionFalls() *Finding {
	if in.Replay == nil || len(in.Replay.LogDiffs) > 0 || len(in.Replay.Shifts) > 0 {
		return nil
	}
	var ms []*evidence.Member
	for i, m := range in.Members {
		if in.ordered(i) {
			ms = append(ms, m)
		}
	}
	slices.SortFunc(ms, func(a, b *evidence.Member) int { return cmp.Compare(a.Label(), b.Label()) })
	for _, high := range ms {
		for _, low := range ms {
			if high.AppliedMax <= low.AppliedMin && high.CurrentRevision() > low.CurrentRevision() &&
				continues(low, high) && Restored(low) == Restored(high) { // a restored one begins as its backup
				return revisionFell(high, low)
			}
		}
	}
	return nil
}

func revisionFell(high, low *evidence.Member) *Finding {
	f := &Finding{Kind: KindRevisionFalls, Severity: Critical, Class: ClassDataDivergence, Undecided: true,
		Members: []string{high.Label(), low.Label()}, At: At{Index: low.AppliedMin},
		Title: fmt.Sprintf("%s has applied as much as %s, but its revision is lower", low.Label(), high.Label()),
		Explanation: "both logs agree, and no entry lowers the revision: one database lacks a revision, the other " +
			"has one too many, or an index that is stored with them is wrong"}
	for _, m := range []*evidence.Member{high, low} {
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: m.DB.File, Bucket: "key",
			Field:    fmt.Sprintf("revision at index %d", m.AppliedMin),
			Observed: fmt.Sprint(m.CurrentRevision()), Show: showDB(m, "key", "--stats")})
	}
	f.Evidence[0].Expected = fmt.Sprintf("at most %d", low.CurrentRevision())
	f.Evidence[1].Expected = fmt.Sprintf("at least %d", high.CurrentRevision())
	return f
}

// ordered reports whether the index of a database shows how old its content is.
func (in contents) ordered(i int) bool {
	m := in.Members[i]
	return m.HasDB() && m.DB.KV != nil && !m.DB.KVDamaged && in.Diff.NotCompared[i] == "" &&
		in.Replay.Members[i].Ahead == nil && in.provenance().tornCopy(m) == nil
}

// continues reports whether the log of m shows that it has every entry that the other member had applied.
func continues(m, other *evidence.Member) bool {
	at := min(m.LastIndex(), other.LastIndex())
	return at >= other.AppliedMax && m.WAL.Holds(at) && m.WAL.TermAt(at) == other.WAL.TermAt(at)
}
