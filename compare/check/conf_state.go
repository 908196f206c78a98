package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

var confStateKnown = described(Check{
	ID:    M18,
	Needs: NeedDB | NeedLog,
	Run:   runConfState,
})

func runConfState(in *Input) Result {
	var fs []Finding
	checked := false
	for _, m := range in.Members {
		if m.HasDB() && m.HasLog() && m.DB.Meta.ConfState != nil && m.Version.Follows(release.TermInMeta) {
			f, ok := in.judgeConfState(m)
			checked = checked || ok
			if f != nil {
				fs = append(fs, *f)
			}
		}
	}
	if !checked {
		return Result{Reason: "no source holds a confState that its log or another source can be compared with"}
	}
	return outcome(fs, "")
}

// judgeConfState returns a finding when the confState of a member names unknown members; ok is false when nothing shows
// that it may not.
func (in *Input) judgeConfState(m *evidence.Member) (f *Finding, ok bool) {
	why := ""
	switch index, since := in.confStateStored(m); {
	case in.foundedHere():
		why = "the logs reach back to the founding of the cluster"
	case since:
		why = fmt.Sprintf("the conf change in entry %d stored it", index)
	}
	unknown := in.unknownMembers(m)
	if why == "" && len(unknown) > 0 {
		if o := in.sameConfChanges(m); o != nil {
			why = o.Label() + " has applied the same conf changes and stores members only that are known"
		}
	}
	if why == "" || len(unknown) == 0 {
		if f := in.neverConfigured(m); f != nil {
			return f, true
		}
		o := in.sameConfChanges(m)
		if o == nil || len(unknown) > 0 {
			return nil, why != ""
		}
		return in.confStateDiffers(m, o), true
	}
	cs := m.DB.Meta.ConfState
	return &Finding{Kind: KindConfStateUnknownMember, Severity: Error, Class: ClassMembership,
		Members: []string{m.Label()},
		At:      At{Index: m.AppliedMin, Term: in.termAt(m.AppliedMin)},
		Title: fmt.Sprintf("%s: meta/confState names %s, which never was a member", m.Label(),
			strings.Join(unknown, ", ")),
		Explanation: why + ", and no log, member list or configuration names that ID. The row was edited or damaged; " +
			"3.7 and later count votes by it",
		Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("confState"),
			Field:    "confState",
			Observed: fmt.Sprintf("voters %v learners %v", cs.Voters, cs.Learners),
			Expected: fmt.Sprintf("voters %v learners %v", m.Membership.Voters, m.Membership.Learners),
			Show:     showDB(m, "meta")}}}, true
}

// neverConfigured returns a finding if the row equals none of the configurations that the cluster had since its founding.
// It may be an older one: releases up to 3.4 leave it as it is.
func (in *Input) neverConfigured(m *evidence.Member) *Finding {
	cs := m.DB.Meta.ConfState
	if !in.foundedHere() || len(cs.VotersOutgoing)+len(cs.LearnersNext) > 0 {
		return nil
	}
	at := slices.IndexFunc(in.Members, func(o *evidence.Member) bool {
		return o.HasLog() && o.ClusterID == m.ClusterID && o.WAL.Summary.Start == dumplog.StartBootstrap &&
			len(o.WAL.Summary.Jumps)+len(o.WAL.Summary.Damage) == 0 && o.WAL.Summary.FirstIndex == 1 &&
			o.LastIndex() >= m.AppliedMax
	})
	if at < 0 || wasConfigured(in.Members[at], cs) {
		return nil
	}
	return &Finding{Kind: KindConfStateNeverHeld, Severity: Error, Class: ClassMembership,
		Members: []string{m.Label()}, At: At{Index: m.AppliedMin, Term: in.termAt(m.AppliedMin)},
		Title: m.Label() + ": meta/confState is a configuration that the cluster never had",
		Explanation: "the logs hold every conf change since the founding of the cluster, and after none of them " +
			"raft's configuration was this. The row was edited or damaged; 3.7 and later count votes by it",
		Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("confState"),
			Field: "confState", Observed: fmt.Sprintf("voters %v learners %v", cs.Voters, cs.Learners),
			Expected: fmt.Sprintf("voters %v learners %v", m.Membership.Voters, m.Membership.Learners),
			Show:     showDB(m, "meta")}}}
}

// confStateDiffers compares the row with that of a member that has applied the same conf changes and stores raft's
// configuration.
func (in *Input) confStateDiffers(m, o *evidence.Member) *Finding {
	cs := m.DB.Meta.ConfState
	if sameConfState(cs, o.DB.Meta.ConfState) {
		return nil
	}
	return &Finding{Kind: KindConfStateDiffers, Severity: Error, Class: ClassMembership,
		Members: []string{m.Label()}, At: At{Index: m.AppliedMin, Term: in.termAt(m.AppliedMin)},
		Title: m.Label() + ": meta/confState is not raft's configuration",
		Explanation: fmt.Sprintf("%s has applied the same conf changes and stores another one, which is raft's. The row was "+
			"edited or damaged, unless the member ran 3.4 once more when it applied the last conf change. 3.7 and later "+
			"count votes by it", o.Label()),
		Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("confState"),
			Field: "confState", Observed: fmt.Sprintf("voters %v learners %v", cs.Voters, cs.Learners),
			Expected: fmt.Sprintf("voters %v learners %v", o.Membership.Voters, o.Membership.Learners),
			Show:     showDB(m, "meta")}}}
}

func sameConfState(a, b *dumpdb.ConfState) bool {
	same := func(x, y []dumpdb.ID) bool {
		return slices.Equal(slices.Sorted(slices.Values(x)), slices.Sorted(slices.Values(y)))
	}
	return same(a.Voters, b.Voters) && same(a.Learners, b.Learners)
}

// wasConfigured reports whether the configuration was that of raft after some conf change in a log that holds all of
// them.
func wasConfigured(m *evidence.Member, cs *dumpdb.ConfState) bool {
	learner := map[dumplog.ID]bool{} // by member
	for _, c := range m.WAL.Conf {
		switch id := c.Change.NodeID; {
		case c.Refused || c.Change.Type == dumplog.ConfChangeUpdateNode:
		case c.Change.Type == dumplog.ConfChangeRemoveNode:
			delete(learner, id)
		default:
			learner[id] = c.Change.Type == dumplog.ConfChangeAddLearnerNode
		}
		if len(learner) != len(cs.Voters)+len(cs.Learners) {
			continue
		}
		holds := func(ids []dumpdb.ID, want bool) bool {
			return !slices.ContainsFunc(ids, func(id dumpdb.ID) bool {
				is, known := learner[dumplog.ID(id)]
				return !known || is != want
			})
		}
		if holds(cs.Voters, false) && holds(cs.Learners, true) {
			return true
		}
	}
	return false
}

// foundedHere reports whether the logs hold every entry since the bootstrap of the cluster, and it was not restored.
func (in *Input) foundedHere() bool {
	return in.Replay != nil && in.Replay.First == 1 && len(in.Replay.Gaps)+len(in.Replay.LogDiffs) == 0 &&
		!in.anyRestored() &&
		slices.ContainsFunc(in.Members, func(m *evidence.Member) bool {
			return m.HasLog() && m.WAL.Summary.Start == dumplog.StartBootstrap && BootstrapVoters(m) > 0
		})
}

// confStateStored returns the last conf change that the member has applied, and whether the server stored the
// configuration with it. That the server was 3.5 or later by then is shown by a snapshot record before it that carries
// a ConfState.
func (in *Input) confStateStored(m *evidence.Member) (index uint64, stored bool) {
	for _, c := range m.WAL.Conf {
		if c.Index <= m.AppliedMin && c.Index > BootstrapVoters(m) && !c.Refused {
			index = c.Index
		}
	}
	for i := range m.WAL.Summary.Snapshots {
		s := &m.WAL.Summary.Snapshots[i]
		stored = stored || index > 0 && s.ConfState != nil && s.Index < index && s.Index > BootstrapVoters(m)
	}
	for _, j := range m.WAL.Summary.Jumps { // another server may have stored the row of a received database
		stored = stored && j.To < index
	}
	return index, stored
}

// unknownMembers lists the IDs in meta/confState of a member that no source names anywhere else.
func (in *Input) unknownMembers(m *evidence.Member) []string {
	cs := m.DB.Meta.ConfState
	var out []string
	for _, ids := range [][]dumpdb.ID{cs.Voters, cs.Learners, cs.VotersOutgoing, cs.LearnersNext} {
		for _, id := range ids {
			if !in.named(dumplog.ID(id)) && !slices.Contains(out, id.String()) {
				out = append(out, id.String())
			}
		}
	}
	return out
}

// named reports whether any source names the member in its log, its configuration or its member lists.
func (in *Input) named(id dumplog.ID) bool {
	return slices.ContainsFunc(in.Members, func(m *evidence.Member) bool {
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

// sameConfChanges returns another member of the cluster whose confState is raft's configuration. No conf change may be between the applied indexes of the two. It is nil when there is none.
func (in *Input) sameConfChanges(m *evidence.Member) *evidence.Member {
	for _, o := range in.Members {
		if o == m || !o.HasDB() || !o.HasLog() || o.ClusterID != m.ClusterID || o.DB.Meta.ConfState == nil ||
			!o.Version.Follows(release.TermInMeta) {
			continue
		}
		if o.ConfigurationCurrent() && storesConfiguration(o) && !in.confChangeBetween(m, o) {
			return o
		}
	}
	return nil
}

// storesConfiguration reports whether the confState of the member is raft's configuration.
func storesConfiguration(m *evidence.Member) bool {
	raft := &dumpdb.ConfState{}
	for _, id := range m.Membership.Voters {
		raft.Voters = append(raft.Voters, dumpdb.ID(id))
	}
	for _, id := range m.Membership.Learners {
		raft.Learners = append(raft.Learners, dumpdb.ID(id))
	}
	return sameConfState(m.DB.Meta.ConfState, raft)
}

// confChangeBetween reports whether a conf change may be between the applied indexes of two members.
func (in *Input) confChangeBetween(a, b *evidence.Member) bool {
	from, to := min(a.AppliedMin, b.AppliedMin), max(a.AppliedMax, b.AppliedMax)
	if in.Replay == nil || !in.Replay.Covers(from, to) {
		return true
	}
	return slices.ContainsFunc(in.Members, func(m *evidence.Member) bool {
		return m.HasWAL() && slices.ContainsFunc(m.WAL.Conf,
			func(c evidence.ConfEntry) bool { return c.Index > from && c.Index <= to })
	})
}
