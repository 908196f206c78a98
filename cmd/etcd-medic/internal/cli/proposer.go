package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// proposers joins request IDs with the member list: an ID has only the low 16 bits of the proposer's member ID.
type proposers map[uint16]string

func newProposers(m *evidence.Member) proposers {
	ms := &m.Membership
	ids := slices.Concat(ms.Voters, ms.Learners, ms.Removed, ms.V2, ms.Bucket, ms.MetaConfState)
	for id := range ms.Names {
		ids = append(ids, id)
	}
	if m.MemberID != 0 {
		ids = append(ids, m.MemberID)
	}
	slices.Sort(ids)
	byPrefix := map[uint16][]string{}
	for _, id := range slices.Compact(ids) {
		name := ms.Names[id]
		if name == "" {
			name = id.String()
		}
		byPrefix[uint16(id)] = append(byPrefix[uint16(id)], name)
	}
	p := proposers{}
	for k, names := range byPrefix {
		p[k] = strings.Join(names, "|") // more than one: ambiguous
	}
	return p
}

// of returns the proposer's name; for an unknown member it returns the known digits.
func (p proposers) of(id dumplog.RequestID) string {
	if id == 0 {
		return ""
	}
	if name, ok := p[id.ProposerPrefix()]; ok {
		return name
	}
	return fmt.Sprintf("…%04x", id.ProposerPrefix())
}
