package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/release"
)

var leaseRevokedByDeposed = Cause{
	ID: "lease-revoked-by-deposed-leader", Title: "a leader that had been replaced revoked leases that were kept " +
		"alive elsewhere",
	Doc: `A leader blocked on disk or CPU is replaced, the clients renew their leases with the new leader, and when the old one goes on it sends
the revokes of all leases that have expired by its own clock. The new leader commits them. Objects bound to those leases vanish on all members
at once; nothing diverges.`,
	Affected: []string{"up to 3.4.30", "3.5.0 - 3.5.12"},
	FixedIn:  []string{"3.4.31", "3.5.13", "3.6.0"},
	Refs: append(refs("etcd-io/etcd", 15247, 12528), "https://github.com/etcd-io/etcd/pull/16822",
		"https://github.com/etcd-io/etcd/pull/17425"),
	LookAlikes: "clients that revoke several leases in a row through the former leader",
	Recovery:   "create the objects again; upgrade; find out what stalled the member",
	Loss:       "the keys bound to those leases, on all members",
	Match: func(in *Input) *Match {
		for _, m := range in.Members {
			if m.Version.Follows(release.RevokeChecksLeader) {
				return nil
			}
		}
		m := aside(in, "L07", "a client that revoked those leases; votes that make the proposer the leader of that term", func(check.Finding) bool { return true })
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
}
