package rebuild

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// member is one row of bucket members as servers write it (server/etcdserver/api/membership/member.go).
type member struct {
	ID         uint64   `json:"id"`
	PeerURLs   []string `json:"peerURLs"`
	IsLearner  bool     `json:"isLearner,omitempty"`
	Name       string   `json:"name,omitempty"`
	ClientURLs []string `json:"clientURLs,omitempty"`
}

// members are the rows of bucket members, and the membership against which the next conf change is checked.
type members struct {
	byID  map[uint64]*member
	rules *apply.Members
}

func readMembers(tx *bbolt.Tx, v release.Version) (*members, error) {
	ms := &members{byID: map[uint64]*member{}, rules: apply.NewMembers(v)}
	err := tx.Bucket([]byte("members")).ForEach(func(_, v []byte) error {
		var m member
		if err := json.Unmarshal(v, &m); err != nil {
			return err
		}
		ms.byID[m.ID] = &m
		ms.rules.Set(dumplog.ID(m.ID), apply.Member{PeerURLs: m.PeerURLs, IsLearner: m.IsLearner})
		return nil
	})
	if err != nil {
		return nil, refuse("bucket members of the base does not decode: %v", err)
	}
	if err := ms.readRaft(tx.Bucket([]byte("meta")).Get([]byte("confState"))); err != nil {
		return nil, refuse("meta/confState of the base does not decode: %v", err)
	}
	return ms, tx.Bucket([]byte("members_removed")).ForEach(func(k, _ []byte) error {
		id, err := strconv.ParseUint(string(k), 16, 64)
		if err == nil {
			ms.rules.Removed[dumplog.ID(id)] = true
		}
		return nil
	})
}

// confState is meta/confState, raft's configuration. A row of bucket members may differ from it: the update of a
// learner made its row that of a voter, and a promotion could be missing in the row (release.UpdateKeepsLearner,
// release.PromotionSynced).
type confState struct {
	Voters    []uint64 `json:"voters,omitempty"`
	Learners  []uint64 `json:"learners,omitempty"`
	AutoLeave bool     `json:"auto_leave"`
}

// readRaft reads which of the members raft has as learners; stored is nil up to 3.4.
func (ms *members) readRaft(stored []byte) error {
	if stored == nil {
		return nil
	}
	var c confState
	if err := json.Unmarshal(stored, &c); err != nil {
		return err
	}
	for id, m := range ms.byID {
		learner := slices.Contains(c.Learners, id)
		if learner == m.IsLearner || !learner && !slices.Contains(c.Voters, id) {
			continue
		}
		ms.rules.Set(dumplog.ID(id), apply.Member{PeerURLs: m.PeerURLs, IsLearner: learner})
		ms.rules.ListAsVoter(dumplog.ID(id))
	}
	return nil
}

func memberKey(id uint64) []byte { return strconv.AppendUint(nil, id, 16) }

// encodeRaft returns meta/confState: raft's voters and learners, in order.
func (ms *members) encodeRaft() ([]byte, error) {
	var c confState
	voters, learners := ms.rules.IDs()
	for _, id := range voters {
		c.Voters = append(c.Voters, uint64(id))
	}
	for _, id := range learners {
		c.Learners = append(c.Learners, uint64(id))
	}
	return json.Marshal(c)
}

// confChange executes a conf change.
func (e smallRows) confChange(c *dumplog.ConfChange) error {
	if e.members.rules.Apply(c) != apply.Accepted {
		return nil // it keeps its index and changes nothing
	}
	e.confChanged = true
	id := uint64(c.NodeID)
	switch {
	case c.Type == dumplog.ConfChangeRemoveNode:
		delete(e.members.byID, id)
		if err := e.dropRow("members", memberKey(id)); err != nil {
			return err
		}
		return e.setRow("members_removed", memberKey(id), []byte("removed"))
	case c.Type == dumplog.ConfChangeUpdateNode:
		m := e.members.byID[id]
		m.PeerURLs = c.Member.PeerURLs
		m.IsLearner = m.IsLearner && !e.members.rules.UpdateClearsLearner(c).Certain()
	case c.Member.IsPromote:
		e.members.byID[id].IsLearner = false
	default:
		e.members.byID[id] = &member{ID: id, PeerURLs: c.Member.PeerURLs, IsLearner: c.Member.IsLearner,
			Name: c.Member.Name, ClientURLs: c.Member.ClientURLs}
	}
	return e.saveMember(id)
}

// attributes executes the publication of a member's name and client URLs.
func (e smallRows) attributes(a *dumplog.ClusterMemberAttrSet) error {
	m := e.members.byID[uint64(a.MemberID)]
	if m == nil {
		return nil // of a removed member, which servers skip
	}
	m.Name, m.ClientURLs = a.Name, a.ClientURLs
	return e.saveMember(m.ID)
}

func (e smallRows) saveMember(id uint64) error {
	b, err := json.Marshal(e.members.byID[id])
	if err != nil {
		return err
	}
	return e.setRow("members", memberKey(id), b)
}

// admits reports whether a source shows that an ID became a member. It is used if the log alone does not show how many
// learners are allowed.
func (b *builder) admits(id dumplog.ID) release.Answer {
	if b.listed == nil {
		b.listed = map[dumplog.ID]bool{}
		for _, m := range b.set.Members {
			maps.Copy(b.listed, m.Listed())
		}
	}
	if b.listed[id] {
		return release.Yes
	}
	return release.Unknown
}
