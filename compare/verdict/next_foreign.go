package verdict

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/shell"
)

// nextForeign separates the sources by cluster.
func (ad *advice) nextForeign(add func(text string, command shell.Command)) {
	if ad.nextOfMembers(add) {
		return
	}
	add("sort the sources by cluster ID and diagnose each cluster on its own", none)
	groups := ad.byCluster()
	if len(groups) < 2 {
		return
	}
	for _, group := range groups {
		text := "cluster " + group[0].ClusterID.String()
		if group[0].ClusterID == 0 {
			text = "of no known cluster"
		}
		var names []string
		for _, m := range group {
			names = append(names, m.Label())
		}
		add(text, shell.Format("etcd-medic diagnose").Sources(names...))
	}
}

// byCluster groups the sources by cluster ID. A backup or database file carries none: it belongs to a source with which
// it has a member in common. Those without a list of members are together.
func (ad *advice) byCluster() (groups [][]*evidence.Member) {
	place := func(m *evidence.Member, same func(o *evidence.Member) bool) {
		i := slices.IndexFunc(groups, func(g []*evidence.Member) bool { return slices.ContainsFunc(g, same) })
		if i < 0 {
			groups = append(groups, []*evidence.Member{m})
		} else {
			groups[i] = append(groups[i], m)
		}
	}
	for _, m := range ad.Members {
		if m.ClusterID != 0 {
			place(m, func(o *evidence.Member) bool { return o.ClusterID == m.ClusterID })
		}
	}
	for _, m := range ad.Members {
		if m.ClusterID == 0 {
			place(m, func(o *evidence.Member) bool {
				unlisted := o.ClusterID == 0 && len(o.Membership.Bucket)+len(m.Membership.Bucket) == 0
				return unlisted || m.ListsMemberOf(o) || o.ListsMemberOf(m)
			})
		}
	}
	return groups
}

// nextOfMembers leaves the data dirs of another history out, where newer ones of the same members are given; it reports
// whether there are any.
func (ad *advice) nextOfMembers(add func(text string, command shell.Command)) bool {
	var out, rest []string
	for i := range ad.Findings {
		if f := &ad.Findings[i]; f.Kind == check.KindOlderHistory {
			out = append(out, f.Members...)
		}
	}
	for _, m := range ad.Members {
		if !slices.Contains(out, m.Label()) {
			rest = append(rest, m.Label())
		}
	}
	if len(out) == 0 || len(ad.byCluster()) > 1 {
		return false
	}
	add("start no server on "+plural.List(out)+"; diagnose the others again, to see the state of the cluster",
		shell.Format("etcd-medic diagnose").Sources(rest...))
	return true
}
