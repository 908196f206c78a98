package check

import (
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// alteredClusterIDs explains several cluster IDs by altered metadata: every source with another ID than the most
// frequent one shares requests with a source that has it. It returns nil if that does not explain all of them.
func alteredClusterIDs(ss Sources, by map[dumplog.ID][]string) []Finding {
	var usual dumplog.ID
	tie := false
	for id, ms := range by {
		switch n := len(by[usual]); {
		case len(ms) > n:
			usual, tie = id, false
		case len(ms) == n:
			tie = true
		}
	}
	var fs []Finding
	for _, m := range ss {
		if m.ClusterID == 0 || m.ClusterID == usual && !tie {
			continue
		}
		o := ss.logs().sharesLogWith(m)
		if o == nil {
			return nil
		}
		if tie {
			return []Finding{clusterIDFinding([]*evidence.Member{m, o})}
		}
		fs = append(fs, clusterIDFinding([]*evidence.Member{m}, o))
	}
	return fs
}

// sharesRequests reports whether two logs hold the same requests of servers. Request IDs are unique, unlike the entries
// of a bootstrap and the first entries of leaders. A range with other entries than those is therefore equal only in the
// logs of one cluster. Logs that are shorter than such a range and end at different entries do not show it.
func sharesRequests(a, b *evidence.Member) bool {
	if !a.HasLog() || !b.HasLog() {
		return false
	}
	if a.WAL.Sums == nil || b.WAL.Sums == nil {
		return false
	}
	evidence.CommonWidth([]*evidence.LogSums{a.WAL.Sums, b.WAL.Sums})
	without := min(foundingEntries(a), foundingEntries(b))
	theirs := b.WAL.Sums.Blocks()
	for n, sum := range a.WAL.Sums.Blocks() {
		if sum.Entries() > without && theirs[n] == sum {
			return true
		}
	}
	return false
}

// foundingEntries is how many entries of a log another cluster can hold as well, at most: those of a bootstrap, and one
// for each leader.
func foundingEntries(m *evidence.Member) uint64 {
	return BootstrapVoters(m) + uint64(len(m.WAL.LastByTerm))
}

// clusterIDFinding is about sources of which one has an altered ID, while others share its log.
func clusterIDFinding(ms []*evidence.Member, beside ...*evidence.Member) Finding {
	f := Finding{Kind: KindClusterIDAltered, Severity: Critical, Class: ClassWALDamage}
	for _, m := range append(ms[:len(ms):len(ms)], beside...) {
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: m.WAL.Summary.Segments[0].Name,
			Field: "cluster ID", Observed: m.ClusterID.String(), Expected: "one cluster ID",
			Show: showLogAs(m, "--raw")})
	}
	f.Evidence[0].Field = "altered cluster ID"
	for _, m := range ms {
		f.Members = append(f.Members, m.Label())
	}
	who := strings.Join(f.Members, ", ")
	f.Title = fmt.Sprintf("%s: the cluster ID in the WAL metadata was altered", who)
	f.Explanation = "its log holds the same requests as logs that carry another cluster ID, so they are of one " +
		"cluster. The other members refuse its messages"
	if len(ms) > 1 {
		f.Title = fmt.Sprintf("%s: the cluster ID in the WAL metadata of one of them was altered", who)
		f.Explanation = "the logs hold the same requests, so they are of one cluster. Which ID is right the sources " +
			"do not tell: the servers' logs and metrics do, and the other members' data dirs"
	}
	return f
}
