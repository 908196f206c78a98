package apply

import (
	"maps"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// Member is a member as the rules of conf changes see it.
type Member struct {
	PeerURLs  []string
	IsLearner bool
	// listedAsVoter is true for a learner of raft that the list which conf changes are checked against shows as a
	// voter.
	listedAsVoter bool
}

// Members is the membership against which conf changes are checked.
type Members struct {
	byID map[dumplog.ID]Member
	// withURL counts how often members name a peer URL, learners those that are learners: the time of a check does not
	// depend on how many members there are.
	withURL  map[string]int
	learners int
	// Removed are the IDs that were removed before.
	Removed map[dumplog.ID]bool
	Version release.Version
	// Admits, if set, tells whether other evidence shows that a learner above the default limit became a member, where
	// the limit is an option of the servers.
	Admits func(id dumplog.ID) bool
}

// NewMembers is the membership before the first conf change.
func NewMembers(v release.Version) *Members {
	return &Members{byID: map[dumplog.ID]Member{}, withURL: map[string]int{}, Removed: map[dumplog.ID]bool{},
		Version: v}
}

// Get returns the member with an ID.
func (ms *Members) Get(id dumplog.ID) (Member, bool) {
	m, ok := ms.byID[id]
	return m, ok
}

// Set adds a member, or replaces what is known of it.
func (ms *Members) Set(id dumplog.ID, m Member) {
	ms.drop(id)
	ms.byID[id] = m
	ms.count(m, 1)
}

// drop takes a member off the list.
func (ms *Members) drop(id dumplog.ID) {
	if m, ok := ms.byID[id]; ok {
		delete(ms.byID, id)
		ms.count(m, -1)
	}
}

func (ms *Members) count(m Member, by int) {
	for _, u := range m.PeerURLs {
		if ms.withURL[u] += by; ms.withURL[u] == 0 {
			delete(ms.withURL, u)
		}
	}
	if m.IsLearner {
		ms.learners += by
	}
}

// Refusal says why a conf change is not executed. It then consumes its index and changes nothing, neither in raft nor
// in the lists.
type Refusal string

// The refusals of ValidateConfigurationChange, in its order.
const (
	Accepted        Refusal = ""
	WasRemoved      Refusal = "the ID was removed before"
	IDExists        Refusal = "the ID is a member already"
	PeerURLExists   Refusal = "a peer URL is that of another member"
	NoSuchMember    Refusal = "the ID is no member"
	NoLearner       Refusal = "the member is no learner"
	TooManyLearners Refusal = "there are too many learners"
	NoContext       Refusal = "its context does not decode" // servers stop at it
)

// maxLearners is how many learners a cluster may have, by default where it is an option (release.LearnerLimitOption).
const maxLearners = 1

// Check is ValidateConfigurationChange of server/etcdserver/api/membership/cluster.go.
func (ms *Members) Check(c *dumplog.ConfChange) Refusal {
	have, listed := ms.byID[c.NodeID]
	if ms.Removed[c.NodeID] {
		return WasRemoved
	}
	switch c.Type {
	case dumplog.ConfChangeRemoveNode:
		if !listed {
			return NoSuchMember
		}
		return Accepted
	case dumplog.ConfChangeUpdateNode:
		switch {
		case !listed:
			return NoSuchMember
		case c.Member == nil:
			return NoContext
		case ms.taken(c.Member.PeerURLs, have):
			return PeerURLExists
		}
		return Accepted
	}
	switch {
	case c.Member == nil:
		return NoContext
	case c.Member.IsPromote && ms.Version.Has(release.Learners).Possible():
		return checkPromotion(have, listed)
	case listed:
		return IDExists
	case ms.taken(c.Member.PeerURLs, have):
		return PeerURLExists
	case (c.Member.IsLearner || c.Type == dumplog.ConfChangeAddLearnerNode) && ms.full(c):
		return TooManyLearners
	}
	return Accepted
}

func checkPromotion(have Member, listed bool) Refusal {
	switch {
	case !listed:
		return NoSuchMember
	case !have.IsLearner || have.listedAsVoter:
		return NoLearner
	}
	return Accepted
}

// full tells whether there is no room for another learner.
func (ms *Members) full(c *dumplog.ConfChange) bool {
	option := ms.Version.Has(release.LearnerLimitOption)
	if option.Certain() && c.Type != dumplog.ConfChangeAddLearnerNode || ms.learners < maxLearners {
		return false
	}
	return option.Excluded() || ms.Admits == nil || !ms.Admits(c.NodeID)
}

// taken tells whether a member other than the one that asks has one of the URLs.
func (ms *Members) taken(urls []string, asks Member) bool {
	own := map[string]int{}
	for _, u := range asks.PeerURLs {
		own[u]++
	}
	return slices.ContainsFunc(urls, func(u string) bool { return ms.withURL[u] > own[u] })
}

// Apply executes a conf change, or says why it is refused. What raft makes of an accepted one is the same: the type of
// the change, not the context, tells whether a new member is a learner there, and servers propose both alike.
func (ms *Members) Apply(c *dumplog.ConfChange) Refusal {
	r := ms.Check(c)
	if r == Accepted {
		ms.Take(c)
	}
	return r
}

// Take executes a conf change unchecked, as far as it can be executed.
func (ms *Members) Take(c *dumplog.ConfChange) {
	have, listed := ms.byID[c.NodeID]
	switch {
	case c.Type == dumplog.ConfChangeRemoveNode:
		ms.drop(c.NodeID)
		ms.Removed[c.NodeID] = true
	case c.Type == dumplog.ConfChangeUpdateNode:
		if listed && c.Member != nil {
			have.listedAsVoter = have.listedAsVoter || ms.UpdateClearsLearner(c).Certain()
			have.PeerURLs = c.Member.PeerURLs
			ms.Set(c.NodeID, have)
		}
	case c.Type == dumplog.ConfChangeAddNode && listed:
		have.IsLearner, have.listedAsVoter = false, false
		ms.Set(c.NodeID, have)
	case !listed:
		m := Member{IsLearner: c.Type == dumplog.ConfChangeAddLearnerNode}
		if c.Member != nil {
			m.PeerURLs = c.Member.PeerURLs
		}
		ms.Set(c.NodeID, m)
	}
}

// UpdateClearsLearner tells whether an update of a learner makes its row in bucket members that of a voter, as releases
// do that take all raft attributes of the request. Raft keeps the learner.
func (ms *Members) UpdateClearsLearner(c *dumplog.ConfChange) release.Answer {
	m := ms.byID[c.NodeID]
	if c.Type != dumplog.ConfChangeUpdateNode || !m.IsLearner || c.Member == nil || c.Member.IsLearner {
		return release.No
	}
	return ms.Version.Has(release.UpdateKeepsLearner).Not()
}

// IDs lists the voters and the learners, in order.
func (ms *Members) IDs() (voters, learners []dumplog.ID) {
	for _, id := range slices.Sorted(maps.Keys(ms.byID)) {
		if ms.byID[id].IsLearner {
			learners = append(learners, id)
		} else {
			voters = append(voters, id)
		}
	}
	return voters, learners
}

// Reset makes raft's configuration that of a snapshot, and keeps what else is known of its members.
func (ms *Members) Reset(voters, learners []dumplog.ID) {
	old := ms.byID
	ms.byID, ms.withURL, ms.learners = map[dumplog.ID]Member{}, map[string]int{}, 0
	for i, list := range [][]dumplog.ID{voters, learners} {
		for _, id := range list {
			m := Member{IsLearner: i == 1}
			if have, ok := old[id]; ok {
				m.PeerURLs, m.listedAsVoter = have.PeerURLs, have.listedAsVoter && m.IsLearner
			}
			ms.Set(id, m)
			delete(ms.Removed, id)
		}
	}
}
