package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// membershipCautions are what a person must know about members that are absent, removed, or listed wrongly.
func (lo *losses) membershipCautions() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	var unseen, zombies, removed []string
	for i := range lo.p.Members {
		m := &lo.p.Members[i]
		switch {
		case m.Zombie():
			zombies = append(zombies, m.ID.String())
		case m.Source == "" && m.Action != Remove:
			unseen = append(unseen, m.Name)
		case m.Action == Retire && m.Obstacle == ObstacleNotMember && !lo.succeeded(m):
			removed = append(removed, m.Name)
		}
	}
	c := &lo.p.Cluster
	if len(unseen) > 0 {
		say("the data dirs of %s were not looked at", strings.Join(unseen, ", "))
	}
	if len(unseen) > 0 && c.Startable < c.Quorum {
		say("if %s can still be started, that is the better way: with them a majority may run again. Copy their data "+
			"dirs, give them to repair plan too, and plan again", strings.Join(unseen, ", "))
	}
	if len(removed) > 0 {
		say("without %s the cluster has %s and survives the loss of %d; repair plan --replace %s brings it back, "+
			"empty and under a new ID",
			strings.Join(removed, ", "), plural.Of(c.Voters, "voter", "voters"), c.Voters-c.Quorum,
			shell.Quote(removed[0]))
	}
	out = append(out, zombieCautions(zombies, c)...)
	if lo.downgrades() {
		say("a downgrade is enabled: once it has lowered the cluster version, a server without data refuses to join "+
			"(incompatible with current running cluster). Finish the downgrade before the first step, or cancel it: %s",
			shell.Format("etcdctl downgrade cancel"))
	}
	if lo.p.Verdict.Cause == cause.LearnerPromotionNotPersisted {
		say("servers before 3.5.24 do not mend bucket members when they start: upgrade to a later 3.5 first, and " +
			"diagnose fresh copies afterwards. Do not go to 3.7 before: it builds the majority from that bucket")
	}
	if src := lo.ofOtherClusters(); len(src) > 0 {
		say("what was written to %s as another cluster is given up; save it first", strings.Join(src, ", "))
	}
	if src := lo.otherBackups(); len(src) > 0 {
		say("keys that only the backups of %s held are given up; see them with etcd-medic compare, save them first",
			strings.Join(src, ", "))
	}
	if lo.p.Verdict.Cause == cause.DataDirClonedRunningTwice {
		say("what was acknowledged with the help of both copies may be missing everywhere: no member can tell")
	}
	return out
}

// downgrades reports whether a downgrade is enabled while a member is to come back empty. Servers from 3.5 on then only
// join a cluster of the next higher version (server/etcdserver/cluster_util.go, allowedVersionRange), and the downgrade
// does not end while a member is not started.
func (lo *losses) downgrades() bool {
	return slices.ContainsFunc(lo.p.Members, func(m Member) bool { return m.Action == Replace }) &&
		slices.ContainsFunc(lo.r.Findings, func(f check.Finding) bool { return f.Is(check.KindDowngradeUnfinished) })
}

// zombieCautions describe the effects on a release while bucket members lists removed members.
func zombieCautions(zombies []string, c *Cluster) []string {
	if len(zombies) == 0 {
		return nil
	}
	list := strings.Join(zombies, ", ")
	var out []string
	if !c.Has(release.QuorumFromDB).Certain() {
		out = append(out, "never run etcdctl member remove for "+list+" on etcd 3.6: "+whyNotRemoved)
	}
	switch {
	case !c.Has(release.MembersFromDB).Certain():
		out = append(out, "up to 3.5 no server counts "+list+", but 3.6 and later list it: before an upgrade let "+
			"every member start once on 3.5.26 or later of 3.5, which drops such rows. If servers of 3.6 run "+
			"already, use --mode clone")
	case c.Has(release.ZombieRemovalPanics).Certain():
		out = append(out, "without a stop of the cluster: one member at a time, stop it, etcd-medic repair meta "+
			"DATA_DIR --members-from-raft -o NEW, put NEW in its place, start it")
	}
	return out
}
