package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/release"
)

var cindexFrozen = Cause{
	ID: "cindex-frozen-by-stale-term", Title: "the consistent index is never stored, because meta/term is above the " +
		"cluster's term",
	Doc: `A backup of a 3.5 cluster was restored with an etcdctl of 3.4: it resets the consistent index and leaves meta/term as it was. 3.5.0 to 3.5.2
refuse to store an index of a lower term, so the index stays at the number of initial members while terms count up from 1. Every restart executes
the whole log again: revisions and versions grow, compares go another way than before, and members that were restarted a different number of
times hold different data.
Proven by the term alone: it is above every term of the member's log, and committed entries stand above its index.`,
	Affected: []string{"3.5.0 - 3.5.2, on data restored by a 3.4 tool from a 3.5 backup"},
	FixedIn:  []string{"3.5.3"},
	Refs:     []string{"https://github.com/etcd-io/etcd/issues/13514", "https://github.com/etcd-io/etcd/pull/13908"},
	LookAlikes: "a member right after its restore: small consistent index, but term 1 or none; a database and a log " +
		"of different times (the index then is near the end of a log)",
	Recovery: "upgrade to 3.5.3 or later before the next start; then restore again with its tool, or reseed the " +
		"members from one that was never restarted",
	Loss: "none; revisions, versions and the results of compares are wrong on every member that was restarted",
	Match: func(in *Input) *Match {
		if len(in.Findings["C01"]) == 0 {
			return nil
		}
		return &Match{Certainty: Proof, Members: membersOf(in, "C01"), Because: ids(in, "C01", "C04"),
			RefutedBy: "an entry or HardState of that term in the member's log"}
	},
}

var cindexNotSavedByDefrag = Cause{
	ID: "cindex-not-saved-by-defrag", Title: "a defragmentation stored data without its consistent index, and " +
		"entries were applied twice",
	Doc: `Up to 3.5.5 a defragmentation committed what was pending in the backend past the hook that adds the consistent index. A member that is
killed before its next ordinary commit starts with an index below its data and executes a block of entries a second time: equal keys and values
stand there twice, revisions and versions are higher by the length of the block from then on.
Strong when the block ends where a restart of the member begins (or, before the restart, when the database holds records of entries above its index);
the defragmentation itself leaves no mark but a compact file. Entries about auth in the block are executed again too: granting a permission or
changing a password raises the auth revision each time, so it can end above the other members'.`,
	Affected: []string{"3.5.0 - 3.5.5"},
	FixedIn:  []string{"3.5.6"},
	Refs: []string{"https://github.com/etcd-io/etcd/pull/14685", "https://github.com/etcd-io/etcd/pull/14730",
		"https://github.com/etcd-io/etcd/issues/14749"},
	LookAlikes: "clients that repeat a request (each is an entry of its own); cindex-frozen-by-stale-term (repeats " +
		"at every restart, meta/term is too high)",
	Recovery: "reseed that member from one without repeated entries; when it has not been restarted yet, do not " +
		"start it on its log; upgrade, and never kill a server that defragments",
	Loss:  "none; surplus revisions and versions, and compares that went another way",
	Match: matchDefragIndex,
}

// matchDefragIndex wants repeated entries or data above the index on 3.5, no frozen index and no received snapshot that
// explains it.
func matchDefragIndex(in *Input) *Match {
	m := &Match{Certainty: Strong, RefutedBy: "a restart of the member at another place than behind the repeated " +
		"entries; a server that never ran 3.5.0 to 3.5.5", Because: []string{}}
	if in.Replay == nil {
		return nil
	}
	authToo := repeated35(in)
	for _, x := range in.Members {
		if !x.Version.MayFollow(release.DefragLosesIndex) || x.IndexFrozen() || x.ConsistentIndex() == 0 ||
			x.ConsistentIndex() < snapshotIndex(x) || !holdsMember(in, x.Label(), "C03", "C04") &&
			!slices.Contains(authToo, x.Label()) {
			continue
		}
		m.Members = append(m.Members, x.Label())
		m.Because = append(m.Because, idsOf(in, x.Label(), "C03", "C04", "A02", "A04")...)
	}
	if len(m.Members) == 0 {
		return nil
	}
	return m
}

var cindexMissing = Cause{
	ID: "cindex-missing", Title: "a database with records has no consistent index",
	Doc: `The database was built by hand or by a foreign tool, or was put in the place of one that was removed: records are there, the index is absent or
0. A server executes its whole log on top of them at the next start.
Proven as a state; who wrote the database so is not told.`,
	LookAlikes: "a member that has not committed yet: its database holds no records either",
	Recovery:   "do not start it on this log; restore a backup properly, or reseed the member from another one",
	Loss:       "none if handled before a start; duplicate effects afterwards",
	Match: func(in *Input) *Match {
		if len(in.Findings["C02"]) == 0 {
			return nil
		}
		return &Match{Certainty: Proof, Members: membersOf(in, "C02"), Because: ids(in, "C02"),
			RefutedBy: "a consistent index in the database"}
	},
}

var metaTermBehind = Cause{
	ID: "meta-term-does-not-match-log", Title: "a binary of 3.4 or older wrote the database last",
	Doc: `From 3.5 on index and term are stored together and name one entry of the log. A server of 3.4 or older moves the index and leaves the term, so the
term is lower than that of the entry at the index: the data dir went back to an older version, or was restored by its tool.`,
	Affected: []string{"data of 3.5 and later"},
	Refs:     []string{"https://github.com/etcd-io/etcd/pull/12964", "https://github.com/etcd-io/etcd/issues/13514"},
	LookAlikes: "an entry purged from the log (then nothing is checked); a term above that of the entry: log and " +
		"database come from different times",
	Recovery: "start every member on one version of 3.5.3 or later, which stores both again with the next entry",
	Loss:     "none by itself",
	Match:    matchMetaTermBehind,
}

func matchMetaTermBehind(in *Input) *Match {
	m := &Match{Certainty: Strong, Because: []string{},
		RefutedBy: "an entry of the log at that index with the stored term"}
	for _, f := range in.Findings["D05"] {
		if x := in.member(f.Members[0]); x != nil && x.DB.Meta.Term != nil && *x.DB.Meta.Term < f.At.Term {
			m.Members, m.Because = append(m.Members, f.Members...), append(m.Because, f.ID)
		}
	}
	if len(m.Members) == 0 {
		return nil
	}
	return m
}

// member finds a source by its label, nil when there is none.
func (in *Input) member(label string) *evidence.Member {
	for _, m := range in.Members {
		if m.Label() == label {
			return m
		}
	}
	return nil
}

// snapshotIndex is the newest snapshot that the member's log names.
func snapshotIndex(m *evidence.Member) (index uint64) {
	if !m.HasWAL() {
		return 0
	}
	for i := range m.WAL.Summary.Snapshots {
		index = max(index, m.WAL.Summary.Snapshots[i].Index)
	}
	return index
}

// idsOf lists the IDs of the findings of the checks that name the member.
func idsOf(in *Input, label string, checks ...string) []string {
	out := []string{}
	for _, c := range checks {
		for _, f := range in.Findings[c] {
			for _, m := range f.Members {
				if m == label {
					out = append(out, f.ID)
				}
			}
		}
	}
	return out
}

func holdsMember(in *Input, label string, checks ...string) bool {
	return len(idsOf(in, label, checks...)) > 0
}

var cindexAltered = Cause{
	ID: "cindex-bytes-altered", Title: "the consistent index of one member's database was altered",
	Doc: `The row meta/consistent_index names an entry far beyond the member's log, and the database holds nothing from behind the log. A bit flipped on the
disk, in memory or on the way between them; bbolt has no checksum over data pages, so etcd takes the number as it is and skips every entry up to it.
Proven where the index is so high that no log reaches it (2^32 entries beyond), or where a majority of the voters' logs end below an index that is
one bit away from the right one. On a single member strong: a log that lost a long tail of reads and logins alone would look the same.`,
	LookAlikes: "wal-tail-lost: the database then holds effects of the lost entries, or the index is a few entries " +
		"ahead; an edit by hand",
	Recovery: "reseed the member from another one; of a single member set the index in a copy (repair meta " +
		"--set-consistent-index) and start that. Test the memory of the machine",
	Loss: "none as long as the member was not started since; afterwards every write that it skipped",
	Match: func(in *Input) *Match {
		m := proofOf(in, "C05", "an entry at the stored index in a log of this cluster", every)
		if m != nil && !slices.ContainsFunc(in.Findings["C05"],
			func(f check.Finding) bool { return beyondDoubt(in, in.member(f.Members[0])) }) {
			m.Certainty = Strong
		}
		return m
	},
}

// farBeyond is how many entries no log can have lost.
const farBeyond = 1 << 32

// beyondDoubt tells whether the logs of a majority of the member's voters are at hand and end below its stored index,
// or none could reach it.
func beyondDoubt(in *Input, m *evidence.Member) bool {
	if m.StoredIndex()-m.LastIndex() >= farBeyond {
		return true
	}
	below := 0
	for _, o := range in.Members {
		if o.HasLog() && o.ClusterID == m.ClusterID && m.Membership.IsVoter(o.MemberID) &&
			o.LastIndex() < m.StoredIndex() {
			below++
		}
	}
	return len(m.Membership.Voters) > 1 && below >= m.Membership.Quorum()
}
