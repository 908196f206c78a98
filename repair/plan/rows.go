package plan

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// Rows of bucket members that do not follow raft: zombies, which raft's configuration does not know, and voters that
// the bucket calls learners. Servers up to 3.5 do not use them, and the newest of 3.5 mend them at their next start.
// From 3.6 on the bucket is the member list.

// drifted are the causes in which a row of bucket members is stale.
func drifted(id cause.ID) bool {
	return id == cause.LearnerPromotionNotPersisted || id == cause.ZombieMembersV3Bucket
}

// zombies adds the members that M07 calls zombies. Releases that boot with the bucket count them.
func (ro *roster) zombies() {
	for i := range ro.r.Findings {
		f := &ro.r.Findings[i]
		if !f.Is(check.KindMemberZombie, check.KindMemberListedAndRemoved) {
			continue
		}
		for _, id := range f.Facts.About {
			ro.zombie(id, rowOf(ro.facts(f.Members[0]), id))
		}
	}
}

// zombie adds a row of bucket members to the plan, once.
func (ro *roster) zombie(id dumplog.ID, row *dumpdb.Member) {
	if row == nil || slices.ContainsFunc(ro.p.Members, func(m Member) bool { return m.ID == id }) {
		return
	}
	if c := &ro.p.Cluster; c.Has(release.QuorumFromDB).Certain() && !row.IsLearner {
		c.Voters++ // the cluster's servers count it
		c.Quorum = Majority(c.Voters)
	}
	ro.p.Members = append(ro.p.Members, Member{Name: id.String(), NodeName: row.Name, ID: id,
		Learner: row.IsLearner, PeerURLs: row.PeerURLs,
		ClientURLs: row.ClientURLs, Action: Remove, Why: "a zombie: bucket members lists it, raft's " +
			"configuration does not", Obstacle: ObstacleBucketOnly, NotStartable: "raft does not know it"})
}

// restarts plans restarts for members whose rows a restart mends, if nothing else has to be done.
func (ro *roster) restarts() {
	on := ""
	healthy := ro.r.Verdict.Health == check.Healthy
	switch {
	case ro.p.Verdict.Cause == cause.LearnerPromotionNotPersisted && !ro.p.Cluster.Has(release.MembersFromDB).Certain():
		on = "etcd 3.5.24 or later of 3.5"
	case ro.p.Verdict.Cause == cause.LearnerPromotionNotPersisted:
		on = fmt.Sprintf("the newest etcd 3.%d", ro.p.Cluster.Minor)
	case (healthy || drifted(ro.p.Verdict.Cause)) && !ro.p.Cluster.Has(release.MembersFromDB).Certain() &&
		ro.p.HasBucketOnlyMembers():
		on = "etcd 3.5.26 or later of 3.5"
	}
	if on == "" {
		return
	}
	for i := range ro.p.Members {
		m := &ro.p.Members[i]
		if m.Source != "" && (m.Action == Keep || m.Action == Best) {
			m.RestartOn = on
		}
		if m.RestartOn != "" && m.Action == Keep {
			m.Action, m.Why = Restart, "its content is sound; its bucket members is not, and a start on "+on+" mends it"
		}
	}
}

// HasBucketOnlyMembers reports whether the plan has zombies.
func (p *Plan) HasBucketOnlyMembers() bool {
	return slices.ContainsFunc(p.Members, func(m Member) bool { return m.Zombie() })
}

// Removable reports whether the cluster can remove the member; zombies only from 3.7 on. Up to 3.5 a restart drops
// them. Every server of 3.6 panics, and panics again at each start, when a member is removed that its v2 store does not
// have (membership/storev2.go, mustDeleteMemberFromStore).
func (p *Plan) Removable(m *Member) bool {
	return !m.Zombie() || p.Cluster.Has(release.QuorumFromDB).Certain()
}

// needsClone says why only new databases remove the zombies, "" when something else does or there are none.
func (p *Plan) needsClone() string {
	switch c := &p.Cluster; {
	case !p.HasBucketOnlyMembers():
		return ""
	case c.Has(release.ZombieRemovalPanics).Certain():
		return whyNotRemoved
	case c.Has(release.QuorumFromDB).Certain() && c.Startable < c.Quorum:
		return fmt.Sprintf("servers of this line count members that only bucket members lists, so %d of %d voters "+
			"can be started and %d are needed, and a forced start does not drop them", c.Startable, c.Voters, c.Quorum)
	}
	return ""
}

const whyNotRemoved = "etcd 3.6 panics on every member, and at each start after that, when a member is removed that " +
	"only bucket members lists"

// Restarts reports whether the plan has restarts that mend rows.
func (p *Plan) Restarts() bool {
	return slices.ContainsFunc(p.Members, func(m Member) bool { return m.RestartOn != "" })
}

// RestartRule is the rule that a server must follow for the restarts of the plan, nil if there are none.
func (p *Plan) RestartRule() *release.Rule {
	switch {
	case !p.Restarts():
		return nil
	case p.Verdict.Cause == cause.LearnerPromotionNotPersisted:
		return release.PromotionSynced
	}
	return release.ZombiesRemoved
}

// RestartOn names the servers that mend rows when they start.
func (p *Plan) RestartOn() string {
	for i := range p.Members {
		if on := p.Members[i].RestartOn; on != "" {
			return on
		}
	}
	return ""
}

// Counted reports whether raft counts the member as a voter of the running cluster: servers that do not build raft's
// configuration from bucket members leave zombies out, even where they list them.
func (p *Plan) Counted(m *Member) bool { return m == nil || !m.Zombie() || p.Removable(m) }

// restart stops and starts a member.
func (b *builder) restart(m *Member) {
	if m.RestartOn == "" {
		return
	}
	b.up--
	b.add(StepStop, m)
	b.up++
	b.add(StepStart, m)
}
