package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/release"
)

var leaseRevokedByDeposed = described(Cause{
	ID: LeaseRevokedByDeposedLeader,
	Match: func(in *Input) *Match {
		for _, m := range in.Members {
			if m.Version.Follows(release.RevokeChecksLeader) {
				return nil
			}
		}
		m := aside(in, check.L07, "a client that revoked those leases; votes that make the proposer the leader "+
			"of that term", every)
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
})
