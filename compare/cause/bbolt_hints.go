package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

var secondTool = described(Cause{
	ID: DBInUseBySecondTool,
	Match: func(in *Input) *Match {
		m := besideVerdict(byKind(in, "a server that stores a freelist itself", check.KindFreelistStoredAlone))
		if m != nil {
			m.Certainty = Hint
		}
		return m
	},
})

var ext4FastCommit = described(Cause{
	ID:    Ext4FastCommit,
	Match: matchFastCommit,
})

// matchFastCommit requires every damaged page of a member to be zeros in the last eighth of its file.
func matchFastCommit(in *Input) *Match {
	m := &Match{Certainty: Hint, Because: []string{}, RefutedBy: "a kernel or file system without the feature; a " +
		"machine that never lost power"}
	for _, x := range in.Members {
		list := idsOf(in, x.Label(), check.D02)
		if len(list) == 0 || !zeroTail(in, x) {
			continue
		}
		m.Members, m.Because = append(m.Members, x.Label()), append(m.Because, list...)
	}
	if len(m.Members) == 0 {
		return nil
	}
	return m
}

func zeroTail(in *Input, m *evidence.Member) bool {
	if !m.HasDB() {
		return false
	}
	for _, f := range in.Findings[check.D02] {
		if f.Members[0] != m.Label() {
			continue
		}
		first := f.Facts.Page
		if first == nil || *first < m.DB.Handle.Meta().HighWater/8*7 {
			return false
		}
		p, err := m.DB.Handle.Page(*first)
		if err != nil {
			return false
		}
		for _, b := range p.Data {
			if b != 0 {
				return false
			}
		}
	}
	return true
}
