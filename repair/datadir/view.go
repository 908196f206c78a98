package datadir

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// View is raft's own member list with names and URLs, for all places of a data dir that have one.
type View struct {
	Voters, Learners []uint64
	Members          []Member
	Removed          []uint64
}

// ViewOf returns the View according to a member with a database. A *refusal.Error says what is not known.
func ViewOf(m *evidence.Member) (*View, error) {
	v, err := viewOf(m)
	if err != nil {
		return nil, err
	}
	return &View{v.voters, v.learners, v.members, v.removed}, nil
}

// view is the one member list for all places of the new dirs.
type view struct {
	voters, learners []uint64
	members          []Member
	removed          []uint64
	// differs is true if bucket members of the source differs.
	differs bool
	notes   []string
}

// viewOf uses raft's voters and learners at the last committed conf change, since they decide quorums. URLs and names
// come from the members bucket, then from the v2 store and the log. A source without a log has only its members bucket.
func viewOf(m *evidence.Member) (*view, error) {
	ms := &m.Membership
	v := &view{voters: idsOf(ms.Voters), learners: idsOf(ms.Learners)}
	if !ms.RaftKnown {
		v.voters, v.learners = nil, nil
		for _, b := range m.DB.Members {
			if b.IsLearner {
				v.learners = append(v.learners, uint64(b.ID))
			} else {
				v.voters = append(v.voters, uint64(b.ID))
			}
		}
		v.notes = append(v.notes, fmt.Sprintf("%s shows no ConfState; its members bucket is taken for the voters",
			m.Label()))
	}
	slices.Sort(v.voters)
	slices.Sort(v.learners)
	if len(v.voters) == 0 {
		return nil, refusef("%s does not show who the voters are", m.Label())
	}
	for _, id := range slices.Concat(v.voters, v.learners) {
		mem := memberOf(m, dumplog.ID(id))
		mem.IsLearner = has(v.learners, id)
		if len(mem.PeerURLs) == 0 {
			return nil, refusef("no peer URLs of member %x are known to %s", id, m.Label())
		}
		v.members = append(v.members, mem)
	}
	slices.SortFunc(v.members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	for _, id := range ms.Removed {
		if !has(v.voters, uint64(id)) && !has(v.learners, uint64(id)) {
			v.removed = append(v.removed, uint64(id))
		}
	}
	v.compareBucket(m)
	return v, nil
}

// dropAbsentLearners removes learners without a dir from the list: they have no vote, and the leader would wait for
// them. They count as removed, so that their IDs are not reused.
func (v *view) dropAbsentLearners(targets []Target) {
	for _, id := range slices.Clone(v.learners) {
		if slices.ContainsFunc(targets, func(t Target) bool { return t.MemberID == id }) {
			continue
		}
		v.learners = slices.DeleteFunc(v.learners, func(l uint64) bool { return l == id })
		v.members = slices.DeleteFunc(v.members, func(m Member) bool { return m.ID == id })
		v.removed = append(v.removed, id)
		v.differs = true
		v.notes = append(v.notes, fmt.Sprintf("learner %x gets no dir and is taken out of the member list; add it "+
			"again later", id))
	}
}

// memberOf collects one member's attributes; the bucket has precedence.
func memberOf(m *evidence.Member, id dumplog.ID) Member {
	out := Member{ID: uint64(id), Name: m.Membership.Names[id], PeerURLs: m.Membership.PeerURLs[id]}
	if f := m.NewestSnap(); f != nil && f.V2 != nil {
		for _, x := range f.V2.Members {
			if x.ID == id {
				out.ClientURLs = x.ClientURLs
			}
		}
	}
	for i := range m.DB.Members {
		if x := &m.DB.Members[i]; dumplog.ID(x.ID) == id {
			if x.Name != "" {
				out.Name = x.Name
			}
			if len(x.ClientURLs) > 0 {
				out.ClientURLs = x.ClientURLs
			}
		}
	}
	return out
}

func (v *view) compareBucket(m *evidence.Member) {
	same := len(m.DB.Members) == len(v.members)
	for i := 0; same && i < len(v.members); i++ {
		b, w := m.DB.Members[i], v.members[i]
		same = uint64(b.ID) == w.ID && b.IsLearner == w.IsLearner && slices.Equal(b.PeerURLs, w.PeerURLs)
	}
	removed := 0
	for _, id := range m.DB.Removed {
		if has(v.removed, uint64(id)) {
			removed++
		}
	}
	if v.differs = !same || removed != len(v.removed); v.differs {
		v.notes = append(v.notes, fmt.Sprintf("bucket members of %s says something else than raft's own list; the "+
			"new databases carry raft's", m.Label()))
	}
}
