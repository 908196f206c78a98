package evidence

// StoredIndex returns meta/consistent_index as stored in the database, 0 if absent; see ConsistentIndex.
func (m *Member) StoredIndex() uint64 {
	if m.DB == nil || m.DB.Meta.ConsistentIndex == nil {
		return 0
	}
	return *m.DB.Meta.ConsistentIndex
}

// HasIndexOverride reports whether ConsistentIndex returns another index than the stored one.
func (m *Member) HasIndexOverride() bool { return m.indexOverride != 0 }

// OverrideConsistentIndex replaces the stored consistent index and recomputes everything derived from it; 0 restores
// the stored one. Use it if logs and database contradict the stored index. Trusting that index would mark entries as
// committed that no log contains, and report every member as missing them.
func (m *Member) OverrideConsistentIndex(index uint64) {
	m.indexOverride = index
	name := m.NodeName
	m.Membership, m.confApplied = Membership{}, 0
	m.membershipLoading().load()
	m.NodeName = name
	m.loading().applied()
}

// AppliedBeyond notes that the database holds effects of entries above its consistent index, up to the given one at
// least: what the entries between change, it may hold or not. 0 takes the note back.
func (m *Member) AppliedBeyond(index uint64) {
	m.beyond = index
	m.loading().applied()
}

// NeverCommitted reports whether the entry at the member's stored consistent index was never committed, as the members
// at hand show: the logs of so many other voters end below it that the rest is not a majority. A log with damage, or
// one that ends below its own database, may have lost the entry.
func (m *Member) NeverCommitted(members []*Member) bool {
	below := 0
	for _, o := range members {
		if o.MemberID != m.MemberID && o.ClusterID == m.ClusterID && m.Membership.IsVoter(o.MemberID) && o.HasLog() &&
			len(o.WAL.Summary.Damage) == 0 && o.LastIndex() < m.StoredIndex() && o.StoredIndex() <= o.LastIndex() {
			below++
		}
	}
	voters := len(m.Membership.Voters)
	return voters > 1 && voters-below < m.Membership.Quorum()
}
