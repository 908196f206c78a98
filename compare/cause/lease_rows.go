package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var danglingLease = Cause{
	ID: "dangling-lease-reference", Title: "a live key names a lease that is not in bucket lease",
	Doc: `The newest record of a key names a lease, and bucket lease has no such row. No server does that: grant, attachment and revoke are atomic.
The row was lost with a damaged page, by an edit of the stopped database, or in a file put together from two. The proof is of the
contradiction; what removed the row it does not tell.`,
	LookAlikes: "a copy taken while the server wrote, whose pages come from different moments",
	Recovery:   "write the key again without the lease, or reseed the member from one whose rows agree",
	Loss:       "none of data: the key never expires",
	Match: func(in *Input) *Match {
		if len(in.Findings["L02"]) == 0 {
			return nil
		}
		m := &Match{Certainty: Proof, Members: membersOf(in, "L02"), Because: ids(in, "L02", "L01"),
			RefutedBy: "the lease's row, read from another copy of this database"}
		if slices.ContainsFunc(m.Members, func(label string) bool { return holdsMember(in, label, "X05") }) {
			m.Certainty = Hint // pages of different moments contradict each other by themselves
		}
		return m
	},
}

var negativeLeaseID = Cause{
	ID: "negative-lease-id", Title: "a lease with a negative ID was forgotten by a member that restarted",
	Doc: `Leases are loaded from ID 0 on when a server starts, so one whose ID has the top bit set stays in the database but is unknown to the
process. The member then passes over its revoke ("lease not found"), and refuses puts that name it; the others execute both. Lease and keys
live on, and revisions part. Only clients that choose lease IDs themselves meet this.
Proven when the log revokes the lease and its row is still in the database of that member.`,
	Affected: []string{"up to 3.4.19", "3.5.0 - 3.5.2"},
	FixedIn:  []string{"3.4.20", "3.5.3", "3.6.0"},
	Refs: append(refs("etcd-io/etcd", 12535), "https://github.com/etcd-io/etcd/pull/13676",
		"https://github.com/etcd-io/etcd/pull/14239"),
	LookAlikes: "the lease granted again after the revoke (its grant then stands behind it in the log); a member " +
		"that has not applied the revoke",
	Recovery: "delete the keys that are left, or reseed the member from one that executed the revoke; upgrade; let " +
		"clients choose positive IDs",
	Loss:  "none of what was acknowledged if a member that executed the revoke is kept",
	Match: matchNegativeLease,
}

func matchNegativeLease(in *Input) *Match {
	if in.Replay == nil || len(in.Findings["L05"])+len(in.Findings["L03"])+len(in.Findings["K06"]) == 0 {
		return nil
	}
	m := &Match{Certainty: Proof, Because: ids(in, "L03", "L05", "K06", "L01", "K02", "K01"),
		RefutedBy: "a grant of the same lease behind the revoke; a member that refused and did not restart"}
	first := firstParting(in)
	if first != nil && (first.Lease >= 0 || first.Kind != dumplog.KindLeaseRevoke && first.Kind != dumplog.KindPut) {
		return nil
	}
	for i, r := range in.Replay.Members {
		if len(r.Kept) > 0 {
			m.Members = append(m.Members, in.Members[i].Label())
		}
	}
	if len(m.Members) == 0 {
		if first == nil {
			return nil
		}
		m.Certainty = Strong // a put that named the lease parted the members; no revoke proves it
		for _, i := range first.Lacking {
			m.Members = append(m.Members, in.Members[i].Label())
		}
	}
	return m
}

// firstParting is the first entry whose promised effect some member lacks, nil when all members hold all.
func firstParting(in *Input) *replay.Event {
	for _, e := range in.Replay.Events {
		if len(e.Lacking) > 0 {
			return e
		}
	}
	return nil
}

var leaseTTLClamp = Cause{
	ID: "lease-ttl-clamp-mismatch", Title: "the stored TTLs differ because members run with different election timeouts",
	Doc: `A server raises a requested TTL to its own minimum, 1.5 election timeouts rounded up to seconds, before it stores the lease. Members with
different --election-timeout store different TTLs of one lease, and the lease lives as long as the leader of the moment says.
Proven when on each member every raised TTL is the same minimum and every other one is as requested.`,
	Affected:   []string{"all"},
	LookAlikes: "an election timeout that was changed between two starts of one member",
	Recovery:   "run all members with the same --election-timeout and --heartbeat-interval",
	Loss:       "none; when a short lease expires depends on the leader",
	Match: func(in *Input) *Match {
		return aside(in, "L04", "a lease on one of the members whose TTL is neither as requested nor that minimum",
			func(f check.Finding) bool { return f.Severity == check.Warning && len(f.Members) > 1 })
	},
}

var leaseCheckpointNotPersisted = Cause{
	ID: "lease-checkpoint-not-persisted", Title: "checkpoints of remaining TTLs are made and not stored",
	Doc: `With --experimental-enable-lease-checkpoint the leader writes remaining TTLs into the log, but up to 3.4.19 and 3.5.1 no member stores
them, and later only with --experimental-enable-lease-checkpoint-persist or on 3.6. After a change of leader or a restart, long leases start
again with their full TTL. A setting, not damage.`,
	Affected: []string{"3.4.0 - 3.4.19", "3.5.0 - 3.5.1", "later 3.4 and 3.5 without the persist option"},
	FixedIn:  []string{"3.4.20 and 3.5.2 (with the persist option)", "3.6.0"},
	Refs: append(refs("etcd-io/etcd", 9888), "https://github.com/etcd-io/etcd/pull/13491",
		"https://github.com/etcd-io/etcd/pull/13508"),
	LookAlikes: "leases that lived shorter than the interval of checkpoints",
	Recovery:   "turn the persist option on for all members, or upgrade to 3.6",
	Loss:       "none; leases live longer after a change of leader",
	Match: func(in *Input) *Match {
		return aside(in, "L06", "a lease row with the remaining TTL of the newest checkpoint",
			func(f check.Finding) bool { return f.Severity == check.Info })
	},
}

var leaseCheckpointMixed = Cause{
	ID: "lease-checkpoint-persist-mixed", Title: "only some members store the remaining TTLs of leases",
	Doc: `The persist option of lease checkpoints is set on part of the members, or 3.5 and 3.6 run together. The lease rows are equal but for the
remaining TTL. A difference of settings, not of data.`,
	Affected:   []string{"3.4.20 and later 3.4", "3.5.2 and later 3.5", "3.5 and 3.6 together"},
	FixedIn:    []string{"equal settings on all members"},
	Refs:       []string{"https://github.com/etcd-io/etcd/pull/13508"},
	LookAlikes: "members at different applied indexes with a checkpoint between them",
	Recovery:   "give all members the same setting; reseed if rows must be equal",
	Loss:       "none",
	Match: func(in *Input) *Match {
		return aside(in, "L06", "a checkpoint above the applied index of the members without the remaining TTL",
			func(f check.Finding) bool { return f.Severity == check.Warning })
	},
}

// aside builds a proof from the findings of a check that fit, for causes that explain no verdict.
func aside(in *Input, checkID, refutedBy string, fits func(check.Finding) bool) *Match {
	m := proofOf(in, checkID, refutedBy, fits)
	if m != nil {
		m.Aside = true
	}
	return m
}
