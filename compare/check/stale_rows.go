package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

var learnerFlags = described(Check{
	ID:    M07,
	Needs: NeedDB | NeedLog,
	Run:   runLearnerFlags,
})

func runLearnerFlags(in *Input) Result {
	var stale []*staleRows
	var fs []Finding
	checked := 0
	for _, m := range in.Members {
		if !m.HasDB() || !m.ListComparable() || len(m.DB.Members) == 0 || m.AppliedMax < confIndexOf(m) ||
			m.DatabaseOfAnotherCluster(in.Members) {
			continue
		}
		checked++
		for _, s := range staleRowsOf(m) {
			rest, lost := in.Membership().splitLost(s)
			for i := range lost {
				fs = append(fs, lost[i].finding())
			}
			if rest != nil {
				stale = rest.joined(stale)
			}
		}
	}
	if checked == 0 {
		return Result{Reason: "no source shows both raft's configuration and the member list at its applied index"}
	}
	for _, s := range stale {
		fs = append(fs, in.cut(s.finding()))
	}
	return outcome(fs, "")
}

// staleRows are rows of bucket members that disagree with raft in one way, the same on all its members.
type staleRows struct {
	kind    Kind
	members []*evidence.Member
	// rows are those of each member, by ID in order.
	rows [][]*dumpdb.Member
}

// staleRowsOf returns the rows of a member that raft's configuration or bucket members_removed contradicts, by what
// contradicts them.
func staleRowsOf(m *evidence.Member) []*staleRows {
	var out []*staleRows
	for i := range m.DB.Members {
		row := &m.DB.Members[i]
		kind := contradicted(m, row)
		if kind == "" {
			continue
		}
		at := slices.IndexFunc(out, func(s *staleRows) bool { return s.kind == kind })
		if at < 0 {
			at = len(out)
			out = append(out, &staleRows{kind: kind, members: []*evidence.Member{m}, rows: make([][]*dumpdb.Member, 1)})
		}
		out[at].rows[0] = append(out[at].rows[0], row)
	}
	return out
}

// contradicted returns in which way a row is wrong, "" where it is not.
func contradicted(m *evidence.Member, row *dumpdb.Member) Kind {
	id, ms := dumplog.ID(row.ID), &m.Membership
	switch voter, learner := ms.IsVoter(id), slices.Contains(ms.Learners, id); {
	case slices.Contains(m.DB.Removed, row.ID):
		return KindMemberListedAndRemoved
	case row.IsLearner && voter:
		return KindVoterListedAsLearner
	case !row.IsLearner && learner:
		return KindLearnerListedAsVoter
	case !voter && !learner:
		return KindMemberZombie
	}
	return ""
}

// joined adds the rows of one member to the fact that they are part of.
func (s *staleRows) joined(all []*staleRows) []*staleRows {
	for _, other := range all {
		if other.kind == s.kind && slices.EqualFunc(other.rows[0], s.rows[0],
			func(a, b *dumpdb.Member) bool { return a.ID == b.ID }) {
			other.members, other.rows = append(other.members, s.members...), append(other.rows, s.rows...)
			return all
		}
	}
	return append(all, s)
}

// namedRows is how many rows a title names.
const namedRows = 4

// rowWords are what a kind says of one row and of several, and what evidence shows.
var rowWords = map[Kind]struct{ one, many, field, observed, expected string }{
	KindMemberListedAndRemoved: {"member %s is listed and removed at once", "members %s are listed and removed at once",
		"zombie", "in members and in members_removed", "in one of them"},
	KindVoterListedAsLearner: {"member %s is a voter for raft and a learner in bucket members",
		"members %s are voters for raft and learners in bucket members",
		"isLearner", "learner", "voter, as raft's configuration says"},
	KindLearnerListedAsVoter: {"member %s is a learner for raft and a voter in bucket members",
		"members %s are learners for raft and voters in bucket members",
		"isLearner", "voter", "learner, as raft's configuration says"},
	KindMemberZombie: {"member %s is in bucket members, raft does not know it",
		"members %s are in bucket members, raft does not know them",
		"zombie", "in members", "a voter or learner of raft's configuration"},
}

func (s *staleRows) finding() Finding {
	w := rowWords[s.kind]
	f := Finding{Kind: s.kind, Severity: Error, Class: ClassMembership, Each: true,
		Explanation: "the server counts votes by raft's configuration; from 3.6 on it lists members, and from 3.7 on " +
			"builds its voters, from the bucket"}
	if s.kind == KindLearnerListedAsVoter && slices.ContainsFunc(s.members, func(m *evidence.Member) bool {
		return m.Version.MayLack(release.IndexWithEveryEntry)
	}) {
		f.Explanation += ". Up to 3.4 the bucket can have a promotion that the log lost with its end; another " +
			"member's log would show it"
	}
	var ids []string
	for _, row := range s.rows[0] {
		f.Facts.About, ids = append(f.Facts.About, dumplog.ID(row.ID)), append(ids, dumplog.ID(row.ID).String())
	}
	for i, m := range s.members {
		f.Members = append(f.Members, m.Label())
		// the lowest known one, in any order of the members: a purged log holds none
		if at := confIndex(m); at.Index > 0 && (f.At.Index == 0 || at.Index < f.At.Index) {
			f.At = at
		}
		show := showDB(m, "members")
		for _, row := range s.rows[i] {
			f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: m.DB.File, Page: Uint64(row.Page),
				Bucket: "members", Key: Bytes(dumplog.ID(row.ID).String()), Field: w.field, Observed: w.observed,
				Expected: w.expected, Show: show})
		}
	}
	words := w.one
	if len(ids) > 1 {
		words = w.many
	}
	f.Title = plural.List(f.Members) + ": " + fmt.Sprintf(words, plural.Some(ids, namedRows))
	return f
}

func confIndexOf(m *evidence.Member) uint64 {
	if !m.HasWAL() {
		return 0
	}
	return confIndex(m).Index
}
