package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/release"
)

var tokenProviderOff = described(Cause{
	ID: AuthTokenProviderOffAfterSnapshot,
	Match: func(in *Input) *Match {
		m := besideVerdict(proofOf(in, check.L08, "a revoke in that term; a client that kept those leases alive",
			every))
		return onRelease(in, m, release.TokensStopAtSnapshot, Hint, check.L08)
	},
})
