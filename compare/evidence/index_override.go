package evidence

// StoredIndex returns meta/consistent_index as it stands in the database, 0 when absent; see ConsistentIndex.
func (m *Member) StoredIndex() uint64 {
	if m.DB == nil || m.DB.Meta.ConsistentIndex == nil {
		return 0
	}
	return *m.DB.Meta.ConsistentIndex
}

// HasIndexOverride tells whether the stored index was replaced by another one for every reader of ConsistentIndex.
func (m *Member) HasIndexOverride() bool { return m.indexOverride != 0 }

// OverrideConsistentIndex makes index the consistent index of the member for all that follows, and derives again what
// hangs on it; 0 goes back to the stored one. It is for a stored index that the database and the logs contradict: taken
// at its word it would prove entries committed that nobody has ever seen, and accuse every member that lacks them.
func (m *Member) OverrideConsistentIndex(index uint64) {
	m.indexOverride = index
	name := m.NodeName
	m.Membership = Membership{}
	m.loadMembership()
	m.NodeName = name
	m.applied()
}
