package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// clustersOf groups the sources with a cluster ID by the cluster that they are of: those of one ID, and those whose
// logs hold the same requests whatever their ID.
func clustersOf(ss Sources) [][]*evidence.Member {
	var clusters [][]*evidence.Member
	for _, m := range ss {
		if m.ClusterID == 0 {
			continue
		}
		joined := []*evidence.Member{m}
		clusters = slices.DeleteFunc(clusters, func(c []*evidence.Member) bool {
			of := slices.ContainsFunc(c, func(o *evidence.Member) bool {
				return o.ClusterID == m.ClusterID || sharesRequests(m, o)
			})
			if of {
				joined = append(slices.Clone(c), joined...)
			}
			return of
		})
		clusters = append(clusters, joined)
	}
	return clusters
}

// alteredClusterIDs finds altered metadata in the sources of one cluster: the first entries of a log show which ID is
// right. Where no log shows it, the most frequent ID is; if two are equally frequent, nothing shows which is right.
func alteredClusterIDs(cluster []*evidence.Member) (fs []Finding) {
	by := map[dumplog.ID][]*evidence.Member{}
	for _, m := range cluster {
		by[m.ClusterID] = append(by[m.ClusterID], m)
	}
	if len(by) < 2 {
		return nil
	}
	ids := sortedGroup(by)
	slices.SortStableFunc(ids, func(a, b dumplog.ID) int { return len(by[b]) - len(by[a]) })
	right := slices.DeleteFunc(slices.Clone(ids), func(id dumplog.ID) bool {
		return !slices.ContainsFunc(cluster, func(m *evidence.Member) bool { return foundedID(m) == id })
	})
	founded := len(right) == 1
	if !founded {
		right = ids
		if len(by[ids[0]]) == len(by[ids[1]]) {
			return []Finding{clusterIDFinding(cluster)}
		}
	}
	for _, m := range cluster {
		if m.ClusterID != right[0] {
			f := clusterIDFinding([]*evidence.Member{m}, by[right[0]][0])
			if founded {
				f.Evidence[0].Expected = right[0].String()
				f.Explanation += fmt.Sprintf(". %s is the hash of the IDs of the first members, in the first entries",
					right[0])
			}
			fs = append(fs, f)
		}
	}
	return fs
}

// foundedID returns the cluster ID that follows from the members in the first entries of a log, which a bootstrap or a
// restore wrote. It is 0 if the log does not begin with these entries, or ends with them.
func foundedID(m *evidence.Member) dumplog.ID {
	n := bootstrapAdds(m)
	if !m.HasLog() || n == 0 || m.LastIndex() <= n {
		return 0
	}
	var ids []uint64
	for _, c := range m.WAL.Conf[:n] {
		ids = append(ids, uint64(c.Change.NodeID))
	}
	return dumplog.ID(apply.NewClusterID(ids))
}

// sharesRequests reports whether two logs hold the same requests of servers. Request IDs are unique, unlike the entries
// of a bootstrap and the first entries of leaders. Blocks with more entries than those are therefore equal only in the
// logs of one cluster. Logs that are shorter than a block and end at different entries do not show it.
func sharesRequests(a, b *evidence.Member) bool {
	if !a.HasLog() || !b.HasLog() {
		return false
	}
	if a.WAL.Sums == nil || b.WAL.Sums == nil {
		return false
	}
	evidence.CommonWidth([]*evidence.LogSums{a.WAL.Sums, b.WAL.Sums})
	var shared uint64
	theirs := b.WAL.Sums.Blocks()
	for n, sum := range a.WAL.Sums.Blocks() {
		if theirs[n] == sum {
			shared += sum.Entries()
		}
	}
	return shared > min(foundingEntries(a), foundingEntries(b))
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
		of := "one of them"
		if len(ms) > 2 {
			of = "at least one of them"
		}
		f.Title = fmt.Sprintf("%s: the cluster ID in the WAL metadata of %s was altered", who, of)
		f.Explanation = "the logs hold the same requests, so they are of one cluster. Which ID is right the sources " +
			"do not tell: the servers' logs and metrics do, and the other members' data dirs"
	}
	return f
}
