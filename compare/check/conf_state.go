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

// confStateUnread says what a wrong row does: up to 3.8.0-alpha.0 nothing but DetectSchemaVersion in
// server/storage/schema/schema.go of 3.6.0 to 3.6.4 reads it, which asks whether it is there.
const confStateUnread = "No server counts votes by it, and the next conf change mends it"

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
			f, ok := in.Membership().judgeConfState(m)
			checked = checked || ok
			if f != nil {
				fs = append(fs, *f)
			}
		}
	}
	f, ok := in.Membership().keptConfStates(in, fs)
	checked = checked || ok
	if f != nil {
		fs = append(fs, *f)
	}
	if !checked {
		return Result{Reason: "no source holds a confState that its log or another source can be compared with"}
	}
	return outcome(fs, "")
}

// judgeConfState returns a finding when the confState of a member names unknown members; ok is false when nothing shows
// that it may not.
func (mb *Membership) judgeConfState(m *evidence.Member) (f *Finding, ok bool) {
	why := ""
	switch index, since := confStateStored(m); {
	case mb.foundedHere(m):
		why = "the logs reach back to the founding of the cluster"
	case since:
		why = fmt.Sprintf("the conf change in entry %d stored it", index)
	}
	unknown := mb.Members.configurations().unnamed(m)
	// Only unknown members: a restore that the logs do not show may have left the row of the old cluster.
	if why == "" && len(unknown) > 0 && len(unknown) < confStateSize(m.DB.Meta.ConfState) {
		if o := mb.sameConfChanges(m); o != nil {
			why = o.Label() + " has applied the same conf changes and stores members only that are known"
		}
	}
	switch {
	case why == "" && len(unknown) > 0:
		return nil, false
	case len(unknown) == 0:
		if f := mb.neverConfigured(m); f != nil {
			return f, true
		}
		if f := mb.unlikeSnapshot(m); f != nil {
			return f, true
		}
		if o := mb.sameConfChanges(m); o != nil {
			return mb.confStateDiffers(m, o), true
		}
		return nil, why != ""
	}
	return &Finding{Kind: KindConfStateUnknownMember, Severity: Error, Class: ClassMembership,
		Members: []string{m.Label()},
		At:      At{Index: m.AppliedMin, Term: mb.Members.logs().termAt(m.AppliedMin)},
		Title: fmt.Sprintf("%s: meta/confState names %s, which never was a member", m.Label(),
			strings.Join(unknown, ", ")),
		Explanation: why + ", and no log, member list or configuration names that ID. The row was edited or damaged. " +
			confStateUnread,
		Evidence: confStateEvidence(m, m)}, true
}

// confStateEvidence is the row of a member, and the configuration of raft that another member or its own log shows.
func confStateEvidence(m, shown *evidence.Member) []Evidence {
	cs, raft := m.DB.Meta.ConfState, &shown.Membership
	return []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("confState"), Field: "confState",
		Observed: fmt.Sprintf("voters %v learners %v", cs.Voters, cs.Learners),
		Expected: fmt.Sprintf("voters %v learners %v", raft.Voters, raft.Learners),
		Show:     showDB(m, "meta")}}
}

// neverConfigured returns a finding if the row equals none of the configurations that the cluster had since its
// founding, or since a raft snapshot that is older than the conf change which stored the row. It may be an older one:
// releases up to 3.4 leave it as it is, and later ones store those that a start replays, until it has replayed all conf
// changes.
func (mb *Membership) neverConfigured(m *evidence.Member) *Finding {
	cs := m.DB.Meta.ConfState
	if len(cs.VotersOutgoing)+len(cs.LearnersNext) > 0 {
		return nil
	}
	f := &Finding{Kind: KindConfStateNeverHeld, Severity: Error, Class: ClassMembership,
		Members: []string{m.Label()}, At: At{Index: m.AppliedMin, Term: mb.Members.logs().termAt(m.AppliedMin)},
		Evidence: confStateEvidence(m, m)}
	const since = "raft's configuration was this. The row was edited or damaged. " + confStateUnread
	if o := mb.wholeLog(m); o != nil {
		if wasConfigured(o, cs) {
			return nil
		}
		f.Title = m.Label() + ": meta/confState is a configuration that the cluster never had"
		f.Explanation = "the logs hold every conf change since the founding of the cluster, and after none of them " +
			since
		return f
	}
	if f := mb.namesOnlyLater(m, *f); f != nil {
		return f
	}
	stored, r := storedSince(m)
	if r == nil || comesUp(learnersOf(r.ConfState), confAfter(m.WAL.Conf, r.Index), cs) {
		return nil
	}
	f.Title = fmt.Sprintf("%s: meta/confState is not a configuration that raft had since entry %d", m.Label(), r.Index)
	f.Explanation = fmt.Sprintf("the conf change in entry %d stored the row; neither in the raft snapshot at %d nor "+
		"after any later conf change %s", stored, r.Index, since)
	return f
}

// storedSince returns the last conf change that stored the row, and the first raft snapshot before it from which on the
// log holds every conf change; nil where there is none.
func storedSince(m *evidence.Member) (stored uint64, base *dumplog.SnapshotRecord) {
	stored, ok := confStateStored(m)
	s := &m.WAL.Summary
	if !ok || len(s.Damage) > 0 {
		return 0, nil
	}
	from := s.FirstIndex
	for _, j := range s.Jumps {
		from = max(from, j.To+1)
	}
	for i := range s.Snapshots {
		switch r := &s.Snapshots[i]; {
		case r.Index+1 < from || r.Index >= stored:
		case r.ConfState == nil:
			return 0, nil // written by 3.4, which stores no row
		case base == nil || r.Index < base.Index:
			base = r
		}
	}
	return stored, base
}

// unlikeSnapshot compares the row with the first raft snapshot that the member made after the last conf change, nil if
// it is equal or there is none. The server that made the snapshot had applied the change, or replayed it at its start,
// and either stores the row; all later starts replay from the snapshot on.
func (mb *Membership) unlikeSnapshot(m *evidence.Member) *Finding {
	last, _ := confStateStored(m)
	s := &m.WAL.Summary
	received := slices.ContainsFunc(s.Jumps, func(j dumplog.Jump) bool { return j.To >= last })
	if last == 0 || len(s.Damage) > 0 || received {
		return nil
	}
	first := slices.IndexFunc(s.Snapshots, func(r dumplog.SnapshotRecord) bool { return r.Index >= last })
	if first < 0 {
		return nil
	}
	r := &s.Snapshots[first]
	cs := m.DB.Meta.ConfState
	if r.Index > m.AppliedMin || r.ConfState == nil || len(r.ConfState.VotersOutgoing) > 0 ||
		comesUp(learnersOf(r.ConfState), nil, cs) {
		return nil
	}
	f := &Finding{Kind: KindConfStateDiffers, Severity: Error, Class: ClassMembership, Members: []string{m.Label()},
		At:    At{Index: m.AppliedMin, Term: mb.Members.logs().termAt(m.AppliedMin)},
		Title: m.Label() + ": meta/confState is not raft's configuration",
		Explanation: fmt.Sprintf("the last conf change is entry %d, and the member made a raft snapshot at entry %d, "+
			"with another configuration. A server stores the row with each conf change, before its next snapshot: "+
			"the row was edited or damaged, unless a start from an older .snap file ended before it had replayed all. "+
			"%s", last, r.Index, confStateUnread),
		Evidence: confStateEvidence(m, m)}
	f.Evidence[0].Expected = fmt.Sprintf("voters %v learners %v", r.ConfState.Voters, r.ConfState.Learners)
	shown := knownConf{by: m, index: r.Index, ids: slices.Concat(r.ConfState.Voters, r.ConfState.Learners), at: r.Pos,
		field: "snapshot record"}
	f.Evidence = append(f.Evidence, shown.evidence())
	return f
}

// learnersOf says of each member of a configuration whether it is a learner.
func learnersOf(cs *dumplog.ConfState) map[dumplog.ID]bool {
	learner := map[dumplog.ID]bool{}
	for _, id := range cs.Voters {
		learner[id] = false
	}
	for _, id := range cs.Learners {
		learner[id] = true
	}
	return learner
}

func confAfter(changes []evidence.ConfEntry, index uint64) []evidence.ConfEntry {
	return slices.DeleteFunc(slices.Clone(changes), func(c evidence.ConfEntry) bool { return c.Index <= index })
}

// confStateDiffers compares the row with that of a member that has applied the same conf changes and stores raft's
// configuration.
func (mb *Membership) confStateDiffers(m, o *evidence.Member) *Finding {
	cs := m.DB.Meta.ConfState
	if sameConfState(cs, o.DB.Meta.ConfState) {
		return nil
	}
	f := &Finding{Kind: KindConfStateDiffers, Severity: Error, Class: ClassMembership,
		Members: []string{m.Label()}, At: At{Index: m.AppliedMin, Term: mb.Members.logs().termAt(m.AppliedMin)},
		Title: m.Label() + ": meta/confState is not raft's configuration",
		Explanation: fmt.Sprintf("%s has applied the same conf changes and stores another one, which is raft's. The "+
			"row was edited or damaged, unless the member ran 3.4 once more when it applied the last conf change. %s",
			o.Label(), confStateUnread),
		Evidence: confStateEvidence(m, o)}
	if beforeReceived(m, cs) {
		f.Severity, f.Class = Warning, ""
		f.Title = m.Label() + ": meta/confState is older than raft's configuration"
		f.Explanation = "it equals what the member had before it received a snapshot. A start stores again what it " +
			"replays, and the snapshot may come before the next commit; else the row was edited. " +
			confStateUnread
	}
	return f
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
	return comesUp(map[dumplog.ID]bool{}, m.WAL.Conf, cs)
}

// comesUp reports whether a configuration results from one of the changes. learner says of each member at first whether
// it is one.
func comesUp(learner map[dumplog.ID]bool, changes []evidence.ConfEntry, cs *dumpdb.ConfState) bool {
	holds := func(ids []dumpdb.ID, want bool) bool {
		return !slices.ContainsFunc(ids, func(id dumpdb.ID) bool {
			is, known := learner[dumplog.ID(id)]
			return !known || is != want
		})
	}
	same := func() bool {
		return len(learner) == len(cs.Voters)+len(cs.Learners) && holds(cs.Voters, false) && holds(cs.Learners, true)
	}
	if len(learner) > 0 && same() {
		return true
	}
	for _, c := range changes {
		switch id := c.Change.NodeID; {
		case c.Refused || c.Change.Type == dumplog.ConfChangeUpdateNode:
		case c.Change.Type == dumplog.ConfChangeRemoveNode:
			delete(learner, id)
		default:
			learner[id] = c.Change.Type == dumplog.ConfChangeAddLearnerNode
		}
		if same() {
			return true
		}
	}
	return false
}

// beforeReceived reports whether the configuration was that of the member before it received a snapshot. A start marks
// the configurations that it replays to be stored with the next commit (server/storage/hooks.go). If a snapshot comes
// before that commit, the row of the received database is overwritten.
func beforeReceived(m *evidence.Member, cs *dumpdb.ConfState) bool {
	for _, j := range m.WAL.Summary.Jumps {
		if slices.ContainsFunc(m.WAL.Conf, func(c evidence.ConfEntry) bool {
			return c.Index > j.To && c.Index <= m.AppliedMin && !c.Refused
		}) {
			continue // which stored another one
		}
		end := slices.IndexFunc(m.WAL.Conf, func(c evidence.ConfEntry) bool { return c.Index >= j.From })
		before := m.WAL.Conf
		if end >= 0 {
			before = before[:end]
		}
		if m.WAL.Summary.FirstIndex == 1 && comesUp(map[dumplog.ID]bool{}, before, cs) {
			return true
		}
		for i := range m.WAL.Summary.Snapshots {
			r := &m.WAL.Summary.Snapshots[i]
			if r.ConfState == nil || r.Index >= j.From {
				continue
			}
			if comesUp(learnersOf(r.ConfState), confAfter(before, r.Index), cs) {
				return true
			}
		}
	}
	return false
}

// confStateStored returns the last conf change that the member has applied, and whether the server stored the
// configuration with it. That the server was 3.5 or later by then is shown by a snapshot record before it that carries
// a ConfState.
func confStateStored(m *evidence.Member) (index uint64, stored bool) {
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
