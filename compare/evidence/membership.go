package evidence

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Membership is the member list according to each place that has one.
type Membership struct {
	// Voters and Learners are raft's configuration at the last committed conf change of this source. They follow from
	// the newest ConfState of snapshot records and .snap files and the later conf changes that servers do not refuse.
	// They decide quorums.
	Voters, Learners []dumplog.ID
	// RaftKnown is false if there is neither a ConfState nor a log from index 1.
	RaftKnown bool
	// Removed are the removed members, from the bucket, the v2 store and the log.
	Removed []dumplog.ID
	// V2, Bucket and MetaConfState are the other places; nil if absent.
	V2            []dumplog.ID
	Bucket        []dumplog.ID
	MetaConfState []dumplog.ID
	// Names and PeerURLs are the newest known ones by member.
	Names    map[dumplog.ID]string
	PeerURLs map[dumplog.ID][]string
	// Started are members that have published their attributes (they have a name with client URLs).
	Started map[dumplog.ID]bool
}

// IsVoter reports whether id is a voter in raft's configuration.
func (ms *Membership) IsVoter(id dumplog.ID) bool { return slices.Contains(ms.Voters, id) }

// Knows reports whether id is or was a member in any list of members, or is named in the log.
func (ms *Membership) Knows(id dumplog.ID) bool {
	_, named := ms.PeerURLs[id]
	return named || slices.Contains(ms.Voters, id) || slices.Contains(ms.Learners, id) ||
		slices.Contains(ms.Removed, id) || slices.Contains(ms.Bucket, id) || slices.Contains(ms.V2, id)
}

// Quorum returns the number of voters in a majority.
func (ms *Membership) Quorum() int { return len(ms.Voters)/2 + 1 }

// NewestRecord returns the snapshot record of the log with the highest index; its index is 0 if there is none.
func (m *Member) NewestRecord() (newest dumplog.SnapshotRecord) {
	for _, s := range m.WAL.Summary.Snapshots {
		if s.Index > newest.Index {
			newest = s
		}
	}
	return newest
}

// UnfinishedSnap reports whether a .snap file is empty or cut short, and newer than every snapshot record of a sound
// log that holds the entries up to it. A server that is killed while it writes the file leaves one: from 3.3.21 and
// 3.4.8 on the record follows the file (etcdserver/storage.go, SaveSnap; 3.6 and later server/storage/storage.go).
func (m *Member) UnfinishedSnap(f *dumplog.SnapFile) bool {
	return f.Cut && !f.Broken && m.HasLog() && len(m.WAL.Summary.Damage) == 0 &&
		f.NameIndex > m.NewestRecord().Index && f.NameIndex <= m.WAL.Summary.LastIndex
}

// AbandonedSnap reports whether a killed server left a .snap file unfinished and another start set it aside. One that
// is cut short and that the log names was whole once.
func (m *Member) AbandonedSnap(f *dumplog.SnapFile) bool {
	return f.Broken && f.Cut && (f.Size == 0 || !m.walNames(f.NameTerm, f.NameIndex))
}

// NewestSnap returns the newest intact .snap file with a record in the WAL; without a WAL, the newest intact one.
func (m *Member) NewestSnap() *dumplog.SnapFile {
	if !m.HasSnap() {
		return nil
	}
	var best *dumplog.SnapFile
	for _, f := range m.Snap.Files {
		if f.Damage != nil || f.Broken || !m.walKnows(f) {
			continue
		}
		if best == nil || f.Index > best.Index {
			best = f
		}
	}
	return best
}

func (m *Member) walKnows(f *dumplog.SnapFile) bool {
	return !m.HasWAL() || m.walNames(f.Term, f.Index)
}

// walNames reports whether the log has a snapshot record.
func (m *Member) walNames(term, index uint64) bool {
	return slices.ContainsFunc(m.WAL.Summary.Snapshots,
		func(s dumplog.SnapshotRecord) bool { return s.Index == index && s.Term == term })
}

// membershipLoading works out a member's raft configuration from its log, snapshots and database.
type membershipLoading struct{ *Member }

func (m *Member) membershipLoading() membershipLoading { return membershipLoading{m} }

func (m membershipLoading) load() {
	ms := &m.Membership
	ms.Names, ms.PeerURLs = map[dumplog.ID]string{}, map[dumplog.ID][]string{}
	ms.Started = map[dumplog.ID]bool{}
	m.fromV2()
	m.fromDB()
	m.fromRaft()
	for _, ids := range [][]dumplog.ID{ms.Removed, ms.V2, ms.Bucket, ms.MetaConfState, ms.Voters, ms.Learners} {
		slices.Sort(ids)
	}
	ms.Removed = slices.Compact(ms.Removed)
	m.NodeName = ms.Names[m.MemberID]
	if m.MemberID == 0 {
		m.NodeName = ""
	}
}

func (m membershipLoading) fromV2() {
	ms := &m.Membership
	f := m.NewestSnap()
	if f == nil || f.V2 == nil {
		return
	}
	for _, v := range f.V2.Members {
		ms.V2 = append(ms.V2, v.ID)
		ms.note(v.ID, v.Name, v.PeerURLs, len(v.ClientURLs) > 0)
	}
	ms.Removed = append(ms.Removed, f.V2.Removed...)
}

func (m membershipLoading) fromDB() {
	ms := &m.Membership
	if m.DB == nil {
		return
	}
	for _, v := range m.DB.Members {
		id := dumplog.ID(v.ID)
		ms.Bucket = append(ms.Bucket, id)
		ms.note(id, v.Name, v.PeerURLs, len(v.ClientURLs) > 0)
	}
	for _, id := range m.DB.Removed {
		ms.Removed = append(ms.Removed, dumplog.ID(id))
	}
	if cs := m.DB.Meta.ConfState; cs != nil {
		for _, id := range append(slices.Clone(cs.Voters), cs.Learners...) {
			ms.MetaConfState = append(ms.MetaConfState, dumplog.ID(id))
		}
	}
}

func (ms *Membership) note(id dumplog.ID, name string, peers []string, started bool) {
	if name != "" {
		ms.Names[id] = name
	}
	if len(peers) > 0 {
		ms.PeerURLs[id] = peers
	}
	ms.Started[id] = ms.Started[id] || started
}

// fromRaft starts with the newest ConfState and applies the later conf changes, as raft does at boot.
func (m membershipLoading) fromRaft() {
	ms := &m.Membership
	if !m.HasWAL() {
		if f := m.NewestSnap(); f != nil {
			ms.Voters, ms.Learners, ms.RaftKnown = slices.Clone(f.ConfState.Voters), slices.Clone(f.ConfState.Learners),
				true
		}
		return
	}
	from := m.baseConfState()
	s := &m.WAL.Summary
	ms.RaftKnown = from > 0 || s.FirstIndex == 1
	commit := max(m.ConsistentIndex(), from)
	if s.HardState != nil {
		commit = max(commit, s.HardState.Commit)
	}
	rules := m.confRules(from)
	synced := false
	m.RemovalsAbove = nil
	now := configuration{newIDList(ms.Voters), newIDList(ms.Learners), newIDList(ms.Removed)}
	for i := range m.WAL.Conf {
		c := &m.WAL.Conf[i]
		c.Refused = false
		if c.Index > commit {
			m.confApplied = m.shownApplied(i, &now)
			commit = max(commit, m.confApplied)
		}
		if c.Index > commit {
			break
		}
		if c.Index > from && !synced {
			synced = true
			rules.sync(ms)
		}
		if c.Refused = rules.refuse(c); c.Refused {
			continue
		}
		if mc := c.Change.Member; mc != nil {
			ms.note(c.Change.NodeID, mc.Name, mc.PeerURLs, false)
		}
		if c.Index > max(from, m.ConsistentIndex()) && m.showsRemoval(&c.Change, &now) {
			m.RemovalsAbove = append(m.RemovalsAbove, *c)
		}
		if c.Index > from {
			now.apply(c.Change)
		}
	}
	ms.Voters, ms.Learners, ms.Removed = now.voters.list(), now.learners.list(), now.removed.list()
}

// baseConfState sets the voters and learners of the newest snapshot and returns its index, 0 if there is none.
func (m membershipLoading) baseConfState() uint64 {
	ms := &m.Membership
	var from uint64
	take := func(index uint64, cs *dumplog.ConfState) {
		if cs != nil && index > from && len(cs.Voters) > 0 {
			from, ms.Voters, ms.Learners = index, slices.Clone(cs.Voters), slices.Clone(cs.Learners)
		}
	}
	for i := range m.WAL.Summary.Snapshots {
		s := &m.WAL.Summary.Snapshots[i]
		take(s.Index, s.ConfState)
	}
	if f := m.NewestSnap(); f != nil {
		take(f.Index, &f.ConfState)
	}
	return from
}

// shownApplied returns the index of the last conf change from that position on whose effect the database shows, 0 if it
// shows none: the server has applied it, so it is committed, though no HardState says so yet. now is the configuration
// before them. Servers up to 3.4 write rows of members without moving the consistent index.
func (m membershipLoading) shownApplied(from int, now *configuration) (index uint64) {
	if m.DB == nil {
		return 0
	}
	rows, gone, urls := map[dumplog.ID]*dumpdb.Member{}, map[dumplog.ID]bool{}, map[dumplog.ID][]string{}
	for i := range m.DB.Members {
		rows[dumplog.ID(m.DB.Members[i].ID)] = &m.DB.Members[i]
	}
	for _, id := range m.DB.Removed {
		gone[dumplog.ID(id)] = true
	}
	for i := range m.WAL.Conf {
		c := &m.WAL.Conf[i].Change
		if i >= from && shows(c, rows[c.NodeID], gone[c.NodeID], urls[c.NodeID], now) {
			index = m.WAL.Conf[i].Index
		}
		if c.Member != nil && len(c.Member.PeerURLs) > 0 {
			urls[c.NodeID] = c.Member.PeerURLs
		}
	}
	return index
}

// shows reports whether the row of a member, or its tombstone, is as this conf change leaves it and not as it was.
// before are the peer URLs that the log gave the member last.
func shows(c *dumplog.ConfChange, row *dumpdb.Member, gone bool, before []string, now *configuration) bool {
	_, voter := now.voters.at[c.NodeID]
	_, learner := now.learners.at[c.NodeID]
	switch {
	case c.Type == dumplog.ConfChangeRemoveNode:
		return (voter || learner) && gone
	case c.Member == nil || row == nil:
		return false
	case !voter && !learner:
		return true
	case c.Type == dumplog.ConfChangeUpdateNode:
		after := c.Member.PeerURLs
		return before != nil && !slices.Equal(before, after) && slices.Equal(row.PeerURLs, after)
	}
	return learner && c.Member.IsPromote && !row.IsLearner
}

// showsRemoval reports whether the database lists a member as removed that this conf change removes. now is the
// configuration before it.
func (m membershipLoading) showsRemoval(c *dumplog.ConfChange, now *configuration) bool {
	return c.Type == dumplog.ConfChangeRemoveNode && m.DB != nil &&
		slices.Contains(m.DB.Removed, dumpdb.ID(c.NodeID)) && shows(c, nil, true, nil, now)
}

// configuration is raft's configuration while conf changes are applied to it. Each change takes constant time.
type configuration struct{ voters, learners, removed idList }

func (c *configuration) apply(change dumplog.ConfChange) {
	id := change.NodeID
	switch change.Type {
	case dumplog.ConfChangeAddNode:
		c.learners.drop(id)
		c.voters.add(id)
	case dumplog.ConfChangeRemoveNode:
		c.voters.drop(id)
		c.learners.drop(id)
		c.removed.add(id)
	case dumplog.ConfChangeAddLearnerNode:
		if _, voter := c.voters.at[id]; !voter {
			c.learners.add(id)
		}
	}
}

// idList is a list of unique IDs in the order in which they were added.
type idList struct {
	ids []dumplog.ID
	at  map[dumplog.ID]int
}

func newIDList(ids []dumplog.ID) idList {
	l := idList{at: map[dumplog.ID]int{}}
	for _, id := range ids {
		l.add(id)
	}
	return l
}

func (l *idList) add(id dumplog.ID) {
	if _, ok := l.at[id]; !ok {
		l.at[id] = len(l.ids)
		l.ids = append(l.ids, id)
	}
}

// drop removes an ID. list later skips its position.
func (l *idList) drop(id dumplog.ID) { delete(l.at, id) }

// list returns the remaining IDs, nil if there are none.
func (l *idList) list() (out []dumplog.ID) {
	for i, id := range l.ids {
		if at, ok := l.at[id]; ok && at == i {
			out = append(out, id)
		}
	}
	return out
}
