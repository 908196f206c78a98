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
	m.loadMembership()
	m.NodeName = name
	m.applied()
}
