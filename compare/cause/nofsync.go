package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"

	"github.com/etcd-medic/etcd-medic/release"
)

var unsafeNoFsync = described(Cause{
	ID: UnsafeNoFsync,
	Match: func(in *Input) *Match {
		m := stateOf(in, check.D04, "servers that ran without the flag",
			func(x *evidence.Member) bool { return x.Version.MayFollow(release.NoFsyncOption) })
		if m == nil || len(m.Members) < 2 {
			return nil
		}
		m.Certainty, m.Secondary = Hint, true
		return m
	},
})
