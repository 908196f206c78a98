package cause

import "github.com/etcd-medic/etcd-medic/release"

var tokenProviderOff = described(Cause{
	ID: "auth-token-provider-off-after-snapshot",
	Match: func(in *Input) *Match {
		m := besideVerdict(proofOf(in, "L08", "a revoke in that term; a client that kept those leases alive", every))
		return onRelease(in, m, release.TokensStopAtSnapshot, Hint, "L08")
	},
})
