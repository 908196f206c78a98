package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/release"
)

// databaseTerms compares the terms of databases that hold the same keys and members at the same consistent index, where
// no log has the entry there. They are of one history, in which that entry has one term. It also returns the number of
// comparisons.
func databaseTerms(in *Input) (made int, fs []Finding) {
	alike := map[string][]*evidence.Member{}
	for _, m := range in.Members {
		if state := stateOf(m); state != "" {
			alike[state] = append(alike[state], m)
		}
	}
	for _, state := range slices.Sorted(maps.Keys(alike)) {
		ms := alike[state]
		if len(ms) < 2 {
			continue
		}
		made++
		if f := termsDiffer(ms); f != nil {
			fs = append(fs, *f)
		}
	}
	return made, fs
}

// stateOf names the keys, members and index of a database whose term no log shows; "" where they are not known.
func stateOf(m *evidence.Member) string {
	if !m.HasDB() || m.DB.Meta.Term == nil || m.DB.Meta.ConsistentIndex == nil || m.DB.KVDamaged ||
		!m.Version.Follows(release.TermInMeta) {
		return ""
	}
	if m.HasWAL() {
		if _, ok := termOf(m, m.ConsistentIndex()); ok {
			return ""
		}
	}
	keys, members := m.DB.Hashes["key"], m.DB.Hashes["members"]
	if keys == "" || members == "" || m.CurrentRevision() < 2 {
		return "" // of databases without keys any may be equal
	}
	return fmt.Sprintf("%d %s %s", m.ConsistentIndex(), keys, members)
}

func termsDiffer(ms []*evidence.Member) *Finding {
	count := map[uint64]int{}
	index := ms[0].ConsistentIndex()
	f := &Finding{Kind: KindDatabaseTermsDiffer, Severity: Error, Class: ClassLatentDivergence, Undecided: true,
		At: At{Index: index}}
	var says []string
	for _, m := range ms {
		term := *m.DB.Meta.Term
		count[term]++
		f.Members = append(f.Members, m.Label())
		says = append(says, fmt.Sprintf("%s %d", m.Label(), term))
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("term"),
			Observed: fmt.Sprint(term), Expected: "equal, as index, keys and members are", Show: showDB(m, "meta")})
	}
	if len(count) == 1 {
		return nil
	}
	for _, m := range ms {
		if most := slices.Max(slices.Collect(maps.Values(count))); 2*most > len(ms) && count[*m.DB.Meta.Term] < most {
			f.Odd = append(f.Odd, m.Label())
		}
	}
	f.Title = fmt.Sprintf("databases with the same keys at index %d store different terms", index)
	f.Explanation = "the terms: " + strings.Join(says, ", ") + ". The entry at an index has one term. A row was " +
		"altered, or an older binary, which stores the index alone, wrote a database last. With a term above that of " +
		"the next entries the index of a server does not move"
	return f
}
