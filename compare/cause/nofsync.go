package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/evidence"

	"github.com/etcd-medic/etcd-medic/release"
)

var unsafeNoFsync = Cause{
	ID: "unsafe-no-fsync", Title: "several members lost the end of their logs at once, as servers without fsync do",
	Doc: `--unsafe-no-fsync lets the server go on without waiting for the disk. After a crash of the machine the logs of several members end before what their
databases have applied, and even acknowledged entries can be gone from a majority.
A hint: no file tells the flag. Two or more members whose logs, sound to their last record, end before their databases make it likely; storage
that does not keep its word on all machines does the same.`,
	Affected: []string{"3.4.10 and later, 3.5 and later, with the flag; up to 3.4.15 it did not even write the log out"},
	FixedIn:  []string{"3.4.16, 3.5.0 (writes the log out)"},
	Refs: append(refs("etcd-io/etcd", 13066), "https://github.com/etcd-io/etcd/pull/11946",
		"https://github.com/etcd-io/etcd/pull/12751"),
	LookAlikes: "storage that acknowledges what it did not write; older copies of the wal folders",
	Recovery:   "take the member with the most complete log and rebuild the others from it; run without the flag",
	Loss:       "committed entries, even such that a majority had acknowledged",
	Match: func(in *Input) *Match {
		m := stateOf(in, "D04", "servers that ran without the flag",
			func(x *evidence.Member) bool { return x.Version.MayFollow(release.NoFsyncOption) })
		if m == nil || len(m.Members) < 2 {
			return nil
		}
		m.Certainty, m.Aside = Hint, true
		return m
	},
}
