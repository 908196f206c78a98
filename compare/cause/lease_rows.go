package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var danglingLease = described(Cause{
	ID: DanglingLeaseReference,
	Match: func(in *Input) *Match {
		if !in.found(check.L02) {
			return nil
		}
		m := &Match{Certainty: Proof, Members: membersOf(in, check.L02), Because: ids(in, check.L02, check.L01),
			RefutedBy: "the lease's row, read from another copy of this database"}
		if slices.ContainsFunc(m.Members, func(label string) bool { return holdsMember(in, label, check.X05) }) {
			m.Certainty = Hint // pages of different times contradict each other anyway
		}
		return m
	},
})

var negativeLeaseID = described(Cause{
	ID:    NegativeLeaseID,
	Match: matchNegativeLease,
})

func matchNegativeLease(in *Input) *Match {
	if in.Replay == nil || !in.found(check.L05, check.L03, check.K06) {
		return nil
	}
	m := &Match{Certainty: Proof, Because: ids(in, check.L03, check.L05, check.K06, check.L01, check.K02, check.K01),
		RefutedBy: "a grant of the same lease after the revoke; a member that refused and did not restart"}
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
		m.Certainty = Strong // the members differ since a put that named the lease; no revoke proves the cause
		for _, i := range first.Lacking {
			m.Members = append(m.Members, in.Members[i].Label())
		}
	}
	return m
}

// firstParting is the first entry whose required effect is missing on some member, nil when no effect is missing.
func firstParting(in *Input) *replay.Event {
	for _, e := range in.Replay.Events {
		if len(e.Lacking) > 0 {
			return e
		}
	}
	return nil
}

var leaseTTLClamp = described(Cause{
	ID: LeaseTTLClampMismatch,
	Match: func(in *Input) *Match {
		m := aside(in, check.L04, "a lease on one of the members whose TTL is neither as requested nor that minimum",
			func(f check.Finding) bool {
				return f.Severity == check.Warning && len(f.Members) > 1 && !f.Is(check.KindRemainingDiffers)
			})
		if m != nil {
			m.Certainty = Strong // no source holds the election timeouts
		}
		return m
	},
})

var leaseCheckpointNotPersisted = described(Cause{
	ID: LeaseCheckpointNotPersisted,
	Match: func(in *Input) *Match {
		return aside(in, check.L06, "a lease row with the remaining TTL of the newest checkpoint",
			func(f check.Finding) bool { return f.Severity == check.Info })
	},
})

var leaseCheckpointMixed = described(Cause{
	ID: LeaseCheckpointPersistMixed,
	Match: func(in *Input) *Match {
		return aside(in, check.L06, "a checkpoint above the applied index of the members without the remaining TTL",
			func(f check.Finding) bool { return f.Severity == check.Warning })
	},
})

// aside builds a proof from the findings of a check that fit, for causes that explain no verdict.
func aside(in *Input, id check.ID, refutedBy string, fits func(check.Finding) bool) *Match {
	m := proofOf(in, id, refutedBy, fits)
	if m != nil {
		m.Secondary = true
	}
	return m
}
