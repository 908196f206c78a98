package evidence

// Before returns the member with its database as it was one transaction earlier. It returns nil if that state cannot be
// read, or if the last transaction moved the consistent index. Otherwise the last transaction changed rows without an
// entry of the log, or completed the entry at that index. The last transaction never reuses pages of the one before it,
// so that state is intact.
func (m *Member) Before() *Member {
	if !m.HasDB() || len(m.DB.Handle.Metas()) != 2 {
		return nil
	}
	metas := m.DB.Handle.Metas()
	if !metas[0].Valid || !metas[1].Valid || metas[0].Txid+1 != metas[1].Txid && metas[1].Txid+1 != metas[0].Txid ||
		metas[0].Root == metas[1].Root {
		return nil
	}
	h, err := m.DB.Handle.PreviousView()
	if err != nil {
		return nil
	}
	d := &DB{File: m.DB.File, Handle: h}
	d.readBuckets()
	if len(d.Damage) > 0 || d.Meta.ConsistentIndex == nil || m.DB.Meta.ConsistentIndex == nil ||
		*d.Meta.ConsistentIndex != *m.DB.Meta.ConsistentIndex {
		return nil
	}
	return &Member{Source: m.Source, MemberID: m.MemberID, ClusterID: m.ClusterID, DB: d, Version: m.Version,
		AppliedMin: m.AppliedMin, AppliedMax: m.AppliedMax, Redact: m.Redact}
}
