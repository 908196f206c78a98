package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

var secondTool = Cause{
	ID: "db-in-use-by-second-tool", Title: "another program wrote to the database",
	Doc: `A bbolt tool, or any program that opens the file for writing, stores a freelist, which servers of 3.3 and later on Linux do not. It may have
changed nothing else.
A hint, where other members of the cluster store none: a server on Windows or macOS stores one too.`,
	LookAlikes: "a server on Windows or macOS; data of 3.2 and older",
	Recovery:   "compare the file with a copy from before; open databases read-only",
	Loss:       "usually none",
	Match: func(in *Input) *Match {
		m := besideVerdict(byField(in, "a server that stores a freelist itself", "D08", check.FieldFreelistAlone))
		if m != nil {
			m.Certainty = Hint
		}
		return m
	},
}

var ext4FastCommit = Cause{
	ID: "ext4-fast-commit", Title: "the file system may have lost pages at a power loss",
	Doc: `Some Linux kernels lost data that had been synced when the ext4 feature fast_commit was on and the power failed. The meta page then is newer
than pages it refers to: these are zeros and lie at the end of the file, where the last transactions wrote.
A hint: other storage that does not keep its word leaves the same.`,
	Affected:   []string{"Linux 5.10 - 5.10.93, 5.15 - 5.15.26, 5.16, with ext4 fast_commit"},
	FixedIn:    []string{"Linux 5.10.94, 5.15.27, 5.17"},
	Refs:       append(refs("etcd-io/bbolt", 562), "https://github.com/etcd-io/bbolt/pull/675"),
	LookAlikes: "other storage that loses synced data; a torn copy; a zeroed page elsewhere in the file",
	Recovery:   "as for bbolt-page-damage; turn the feature off or update the kernel",
	Loss:       "the pages of the last transactions",
	Match:      matchFastCommit,
}

// matchFastCommit wants every damaged page of a member to be zeros in the last eighth of its file.
func matchFastCommit(in *Input) *Match {
	m := &Match{Certainty: Hint, Because: []string{}, RefutedBy: "a kernel or file system without the feature; a " +
		"machine that never lost power"}
	for _, x := range in.Members {
		list := idsOf(in, x.Label(), "D02")
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
	for _, f := range in.Findings["D02"] {
		if f.Members[0] != m.Label() {
			continue
		}
		e := f.Evidence[0]
		if e.Page == nil || *e.Page < m.DB.Handle.Meta().HighWater/8*7 {
			return false
		}
		p, err := m.DB.Handle.Page(*e.Page)
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
