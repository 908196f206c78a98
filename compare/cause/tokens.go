package cause

import "github.com/etcd-medic/etcd-medic/release"

var tokenProviderOff = Cause{
	ID: "auth-token-provider-off-after-snapshot", Title: "leases stopped expiring, because a leader that had " +
		"recovered by snapshot could not make its internal token",
	Doc: `With auth on the leader signs the revokes of expired leases with a token of its own. Recovering auth from a received database left the
provider of simple tokens off, until the next start or change of auth: a member that became the leader so granted leases and revoked none.
A hint: the term shows grants and no revoke, and other terms do show revokes; clients that keep their leases alive leave the same.`,
	Affected: []string{"up to 3.4.18", "3.5.0 - 3.5.4"},
	FixedIn:  []string{"3.4.19", "3.5.5"},
	Refs: []string{"https://github.com/etcd-io/etcd/pull/13172", "https://github.com/etcd-io/etcd/pull/13205",
		"https://github.com/etcd-io/etcd/pull/13206"},
	LookAlikes: "clients that keep leases alive; very long TTLs; lease checkpoints that reset the remaining TTL",
	Recovery:   "move the leader, upgrade, and let the leases expire",
	Loss:       "none; space and stale keys",
	Match: func(in *Input) *Match {
		m := besideVerdict(proofOf(in, "L08", "a revoke in that term; a client that kept those leases alive", every))
		return onRelease(in, m, release.TokensStopAtSnapshot, Hint, "L08")
	},
}
