// Package copies makes scratch copies of sources on which servers can run. It also says how to start their members, and
// which server they need. Sources are opened for reading only.
package copies

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// Cluster is the cluster of the sources.
type Cluster struct {
	ClusterID dumplog.ID
	Members   []Member
	// Voters is the number of voters in raft's newest configuration among the sources, Present how many of them are
	// given.
	Voters, Present int
	// Peers are all peer URLs in any source, including those of absent and removed members.
	Peers []string
	Need  node.Need
}

// Quorum returns the number of voters in a majority.
func (c *Cluster) Quorum() int { return c.Voters/2 + 1 }

// Member is one source and how its copy is started. Its data dir is set when the copy is made.
type Member struct {
	Source *evidence.Member
	Config node.MemberConfig
}

// Of reads how the members of a set are started. It returns a *refusal.Error for sources that cannot run together:
// other sources than data dirs, members of different clusters, the same member twice.
func Of(ctx context.Context, set *evidence.Set) (*Cluster, error) {
	c := &Cluster{}
	seen := map[dumplog.ID]string{}
	var newest *evidence.Member
	for _, m := range set.Members {
		if reason := unfit(m); reason != "" {
			return nil, refuse(m.Label(), reason, "give data dirs; a backup becomes one with etcd-medic restore")
		}
		switch {
		case c.ClusterID == 0:
			c.ClusterID = m.ClusterID
		case c.ClusterID != m.ClusterID:
			return nil, refuse(m.Label(), fmt.Sprintf("it is of cluster %s, the others are of %s", m.ClusterID,
				c.ClusterID), "give the members of one cluster")
		}
		if other := seen[m.MemberID]; other != "" {
			return nil, refuse(m.Label(), fmt.Sprintf("it is the same member as %s (%s)", other, m.MemberID),
				"give one copy of each member")
		}
		seen[m.MemberID] = m.Label()
		if newest == nil || m.Commit > newest.Commit {
			newest = m
		}
	}
	if newest == nil {
		return nil, errors.New("no source")
	}
	for _, m := range set.Members {
		one, err := member(m, newest)
		if err != nil {
			return nil, err
		}
		c.Members = append(c.Members, one)
		for _, urls := range m.Membership.PeerURLs {
			c.Peers = append(c.Peers, urls...)
		}
		if newest.Membership.IsVoter(m.MemberID) {
			c.Present++
		}
	}
	c.Voters = len(newest.Membership.Voters)
	slices.Sort(c.Peers)
	c.Peers = slices.Compact(c.Peers)
	var err error
	c.Need, err = NeedOf(ctx, set.Members, func(*evidence.Member) bool { return true })
	return c, err
}

func refuse(what, reason, hint string) error {
	return &refusal.Error{What: "running " + what, Reason: reason, Hint: hint}
}

// unfit returns why no server can run on a copy of a source, "" if one can.
func unfit(m *evidence.Member) string {
	switch {
	case m.Source.Kind != evidence.KindDataDir:
		return "it is " + m.Source.Kind.Noun() + ", not a data dir"
	case !m.HasWAL() || m.MemberID == 0:
		return "it has no log, which identifies the member"
	case m.Source.Parts().DB == "":
		return "it has no database"
	}
	return ""
}

// member returns the flags of a member. Names and URLs are those of the newest member list among the sources, which a
// lagging member is about to receive.
func member(m, newest *evidence.Member) (Member, error) {
	c := node.MemberConfig{}
	for _, from := range []*evidence.Member{newest, m} {
		if c.Name == "" {
			c.Name = from.Membership.Names[m.MemberID]
		}
		if len(c.PeerURLs) == 0 {
			c.PeerURLs = from.Membership.PeerURLs[m.MemberID]
		}
		if from.DB == nil || len(c.ClientURLs) > 0 {
			continue
		}
		if i := slices.IndexFunc(from.DB.Members,
			func(d dumpdb.Member) bool { return dumplog.ID(d.ID) == m.MemberID }); i >= 0 {
			c.ClientURLs = from.DB.Members[i].ClientURLs
		}
	}
	if c.Name == "" {
		c.Name = m.Label()
	}
	if len(c.PeerURLs) == 0 {
		return Member{}, refuse(m.Label(), fmt.Sprintf("no source contains the peer URLs of member %s", m.MemberID), "")
	}
	return Member{Source: m, Config: c}, nil
}
