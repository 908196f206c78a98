package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/release"
)

var cindexFrozen = described(Cause{
	ID: CindexFrozenByStaleTerm,
	Match: func(in *Input) *Match {
		if !in.found(check.C01) {
			return nil
		}
		return &Match{Certainty: Proof, Members: membersOf(in, check.C01), Because: ids(in, check.C01, check.C04),
			RefutedBy: "an entry or HardState of that term in the member's log"}
	},
})

var cindexNotSavedByDefrag = described(Cause{
	ID:    CindexNotSavedByDefrag,
	Match: matchDefragIndex,
})

// matchDefragIndex requires repeated entries or data above the index on 3.5, no frozen index and no received snapshot
// that explains it.
func matchDefragIndex(in *Input) *Match {
	m := &Match{Certainty: Strong, RefutedBy: "a restart of the member at another place than after the repeated " +
		"entries; a server that never ran 3.5.0 to 3.5.5", Because: []string{}}
	if in.Replay == nil {
		return nil
	}
	authToo := repeated35(in)
	for _, x := range in.Members {
		if !x.Version.MayFollow(release.DefragLosesIndex) || x.IndexFrozen() || x.ConsistentIndex() == 0 ||
			x.ConsistentIndex() < x.NewestRecord().Index || !holdsMember(in, x.Label(), check.C03, check.C04) &&
			!slices.Contains(authToo, x.Label()) {
			continue
		}
		m.Members = append(m.Members, x.Label())
		m.Because = append(m.Because, idsOf(in, x.Label(), check.C03, check.C04, check.A02, check.A04)...)
	}
	if len(m.Members) == 0 {
		return nil
	}
	return m
}

var cindexMissing = described(Cause{
	ID: CindexMissing,
	Match: func(in *Input) *Match {
		if !in.found(check.C02) {
			return nil
		}
		return &Match{Certainty: Proof, Members: membersOf(in, check.C02), Because: ids(in, check.C02),
			RefutedBy: "a consistent index in the database"}
	},
})

var metaTermBehind = described(Cause{
	ID:    MetaTermDoesNotMatchLog,
	Match: matchMetaTermBehind,
})

// termFindings are the findings about the term of a database next to its own log, without those of databases of another
// cluster, of which the terms are of another log.
func termFindings(in *Input) (out []check.Finding) {
	var foreign []string
	if m := foreignDatabase(in); m != nil {
		foreign = m.Members
	}
	for _, f := range in.Findings[check.D05] {
		if f.Kind != check.KindBackupTermDiffers && f.Kind != check.KindDatabaseTermsDiffer &&
			!slices.Contains(foreign, f.Members[0]) {
			out = append(out, f)
		}
	}
	return out
}

func matchMetaTermBehind(in *Input) *Match {
	m := &Match{Certainty: Strong, Because: []string{},
		RefutedBy: "an entry of the log at that index with the stored term"}
	for _, f := range termFindings(in) {
		if x := in.member(f.Members[0]); x != nil && x.DB.Meta.Term != nil && *x.DB.Meta.Term < f.At.Term {
			m.Members, m.Because = append(m.Members, f.Members...), append(m.Because, f.ID)
		}
	}
	if len(m.Members) == 0 {
		return nil
	}
	return m
}

// member returns the source with that label, nil when there is none.
func (in *Input) member(label string) *evidence.Member {
	for _, m := range in.Members {
		if m.Label() == label {
			return m
		}
	}
	return nil
}

// idsOf lists the IDs of the findings of the checks that name the member.
func idsOf(in *Input, label string, checks ...check.ID) []string {
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

func holdsMember(in *Input, label string, checks ...check.ID) bool {
	return len(idsOf(in, label, checks...)) > 0
}

var cindexAltered = described(Cause{
	ID: CindexBytesAltered,
	Match: func(in *Input) *Match {
		altered := func(f check.Finding) bool { return f.Kind != check.KindIndexForeign }
		m := proofOf(in, check.C05, "an entry at the stored index in a log of this cluster", altered)
		if m != nil && !slices.ContainsFunc(in.Findings[check.C05], func(f check.Finding) bool {
			return altered(f) && beyondDoubt(in, in.member(f.Members[0]))
		}) {
			m.Certainty = Strong
		}
		return m
	},
})

// farBeyond is how many entries no log can have lost.
const farBeyond = 1 << 32

// beyondDoubt reports whether no log could reach the stored index, or no majority can have held the entry.
func beyondDoubt(in *Input, m *evidence.Member) bool {
	return m.StoredIndex()-m.LastIndex() >= farBeyond || m.NeverCommitted(in.Members)
}
