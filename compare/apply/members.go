package apply

import (
	"maps"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// Member is a member according to the rules of conf changes.
type Member struct {
	PeerURLs  []string
	IsLearner bool
	// listedAsVoter is true for a learner of raft that is a voter in the list against which conf changes are checked.
	listedAsVoter bool
}

// Members is the membership against which conf changes are checked.
type Members struct {
	byID map[dumplog.ID]Member
	// withURL counts the members by peer URL, learners counts those listed as such, unknownURL counts the members whose
	// peer URLs are unknown. So the time of a check does not depend on the number of members.
	withURL              map[string]int
	learners, unknownURL int
	// Removed are the IDs of removed members.
	Removed map[dumplog.ID]bool
	Version release.Version
	// Admits, if set, reports whether other evidence shows that an ID became a member. It is used for a learner above
	// the default limit if the limit is an option of the servers, and for a new member if the peer URL of another one
	// is unknown.
	Admits func(id dumplog.ID) release.Answer
}

// NewMembers returns the membership before the first conf change.
func NewMembers(v release.Version) *Members {
	return &Members{byID: map[dumplog.ID]Member{}, withURL: map[string]int{}, Removed: map[dumplog.ID]bool{},
		Version: v}
}

// Get returns the member with an ID.
func (ms *Members) Get(id dumplog.ID) (Member, bool) {
	m, ok := ms.byID[id]
	return m, ok
}

// Set adds or replaces a member.
func (ms *Members) Set(id dumplog.ID, m Member) {
	ms.drop(id)
	ms.byID[id] = m
	ms.count(m, 1)
}

// ListAsVoter notes that the list has a learner of raft as a voter, as UpdateClearsLearner explains.
func (ms *Members) ListAsVoter(id dumplog.ID) {
	if m, ok := ms.byID[id]; ok && m.IsLearner {
		m.listedAsVoter = true
		ms.Set(id, m)
	}
}

// drop removes a member.
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
	if len(m.PeerURLs) == 0 {
		ms.unknownURL += by
	}
	if m.IsLearner && !m.listedAsVoter {
		ms.learners += by
	}
}

// Refusal says why a conf change is not executed. A refused change keeps its index, but changes neither raft nor the
// lists.
type Refusal string

// The refusals of ValidateConfigurationChange, in its order.
const (
	Accepted        Refusal = ""
	WasRemoved      Refusal = "the ID was removed before"
	IDExists        Refusal = "the ID is already a member"
	PeerURLExists   Refusal = "a peer URL belongs to another member"
	NoSuchMember    Refusal = "the ID is not a member"
	NoLearner       Refusal = "the member is not a learner"
	TooManyLearners Refusal = "there are too many learners"
	NoContext       Refusal = "its context does not decode" // servers crash on it
)

// maxLearners is the maximum number of learners, the default if it is an option (release.LearnerLimitOption).
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
	case ms.taken(c.Member.PeerURLs, have), ms.unknownURL > 0 && ms.admits(c.NodeID).Excluded():
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

// full reports whether no further learner is allowed.
func (ms *Members) full(c *dumplog.ConfChange) bool {
	option := ms.Version.Has(release.LearnerLimitOption)
	if option.Certain() && c.Type != dumplog.ConfChangeAddLearnerNode || ms.learners < maxLearners {
		return false
	}
	return option.Excluded() || !ms.admits(c.NodeID).Certain()
}

func (ms *Members) admits(id dumplog.ID) release.Answer {
	if ms.Admits == nil {
		return release.Unknown
	}
	return ms.Admits(id)
}

// taken reports whether a member other than asks has one of the URLs.
func (ms *Members) taken(urls []string, asks Member) bool {
	own := map[string]int{}
	for _, u := range asks.PeerURLs {
		own[u]++
	}
	return slices.ContainsFunc(urls, func(u string) bool { return ms.withURL[u] > own[u] })
}

// Apply executes a conf change, or returns why it is refused. Raft executes an accepted change the same way: there the
// type of the change, not the context, decides whether a new member is a learner, and servers always propose both
// alike.
func (ms *Members) Apply(c *dumplog.ConfChange) Refusal {
	r := ms.Check(c)
	if r == Accepted {
		ms.Take(c)
	}
	return r
}

// Take executes a conf change without checks, as far as possible.
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

// UpdateClearsLearner reports whether an update of a learner turns its row in bucket members into that of a voter.
// Releases that store all raft attributes of the request do that. In raft it remains a learner.
func (ms *Members) UpdateClearsLearner(c *dumplog.ConfChange) release.Answer {
	m := ms.byID[c.NodeID]
	if c.Type != dumplog.ConfChangeUpdateNode || !m.IsLearner || c.Member == nil || c.Member.IsLearner {
		return release.No
	}
	return ms.Version.Has(release.UpdateKeepsLearner).Not()
}

// IDs returns the voters and the learners, sorted.
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

// Reset sets raft's configuration from a snapshot, and keeps other facts about its members.
func (ms *Members) Reset(voters, learners []dumplog.ID) {
	old := ms.byID
	ms.byID, ms.withURL, ms.learners, ms.unknownURL = map[dumplog.ID]Member{}, map[string]int{}, 0, 0
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
