package check

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// configurations answers who is a member according to the sources' raft configurations and member lists.
type configurations Sources

func (ss Sources) configurations() configurations { return configurations(ss) }

// newest is the member with the newest raft configuration. One that may lack conf changes comes after all
// others.
func (ss configurations) newest() *evidence.Member {
	var best *evidence.Member
	for _, m := range ss {
		if !m.Membership.RaftKnown || len(m.Membership.Voters) == 0 || !m.HasWAL() {
			continue
		}
		if best == nil || newerConfiguration(m, best) {
			best = m
		}
	}
	return best
}

// knowsOlder reports whether the source of that voter ends before the newest configuration change.
func (ss configurations) knowsOlder(newest *evidence.Member, id string) bool {
	at := confIndex(newest).Index
	for _, m := range ss {
		if m.MemberID.String() == id {
			return m.Commit < at
		}
	}
	return false
}

// with names the sources whose configuration has that voter.
func (ss configurations) with(voter dumplog.ID) (labels []string) {
	for _, m := range ss {
		if m.Membership.RaftKnown && slices.Contains(m.Membership.Voters, voter) {
			labels = append(labels, m.Label())
		}
	}
	return labels
}

// named reports whether any source names the member in its log, its configuration or its member lists.
func (ss configurations) named(id dumplog.ID) bool {
	return slices.ContainsFunc(ss, func(m *evidence.Member) bool {
		if m.MemberID == id || m.Membership.Knows(id) {
			return true
		}
		if !m.HasWAL() {
			return false
		}
		if changedMember(m, id) {
			return true
		}
		return slices.ContainsFunc(m.WAL.Summary.Snapshots, func(s dumplog.SnapshotRecord) bool {
			return s.ConfState != nil && (slices.Contains(s.ConfState.Voters, id) ||
				slices.Contains(s.ConfState.Learners, id))
		})
	})
}

// unnamed lists the IDs in meta/confState of a member that no source names anywhere else.
func (ss configurations) unnamed(m *evidence.Member) []string {
	cs := m.DB.Meta.ConfState
	var out []string
	for _, ids := range [][]dumpdb.ID{cs.Voters, cs.Learners, cs.VotersOutgoing, cs.LearnersNext} {
		for _, id := range ids {
			if !ss.named(dumplog.ID(id)) && !slices.Contains(out, id.String()) {
				out = append(out, id.String())
			}
		}
	}
	return out
}

// newerConfiguration reports whether a knows a newer configuration than b; of equally new ones that of the lower member
// ID counts, so that the order of the arguments decides nothing.
func newerConfiguration(a, b *evidence.Member) bool {
	if a.ConfigurationCurrent() != b.ConfigurationCurrent() {
		return a.ConfigurationCurrent()
	}
	if a.Commit != b.Commit {
		return a.Commit > b.Commit
	}
	return a.MemberID < b.MemberID
}

// confIndex is where the last conf change of a member is, nowhere if its log holds none.
func confIndex(m *evidence.Member) At {
	if c := lastConf(m); c != nil {
		return At{Term: c.Term, Index: c.Index}
	}
	return At{}
}

// lastConf is the last conf change of a member's log that is committed and had an effect, nil if there is none.
func lastConf(m *evidence.Member) *evidence.ConfEntry {
	for i := len(m.WAL.Conf) - 1; i >= 0; i-- {
		if c := &m.WAL.Conf[i]; c.Index <= m.Commit && !c.Refused {
			return c
		}
	}
	return nil
}
