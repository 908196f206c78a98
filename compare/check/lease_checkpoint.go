package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

var leaseCheckpoints = described(Check{
	ID:    L06,
	Needs: NeedReplay,
	Run:   runLeaseCheckpoints,
})

func runLeaseCheckpoints(in *Input) Result {
	fs := neverAsked(in)
	var stored, dropped []int
	show := map[int]replay.LeaseFact{}
	for i, r := range in.Replay.Members {
		kept, lost := 0, 0
		for _, l := range r.Leases {
			switch {
			case l.Checkpoint == 0 || l.AskedRemaining == 0:
				continue
			case l.StoredRemaining == l.AskedRemaining:
				kept++
			case l.StoredRemaining == 0:
				lost++
			default:
				continue // an older checkpoint: the setting was changed in between
			}
			if _, ok := show[i]; !ok || l.Checkpoint > show[i].Checkpoint {
				show[i] = l
			}
		}
		switch {
		case lost > 0 && kept == 0:
			dropped = append(dropped, i)
		case kept > 0:
			stored = append(stored, i)
		}
	}
	switch {
	case len(fs) > 0 && len(dropped) == 0:
		return outcome(fs, "")
	case len(stored)+len(dropped) == 0:
		return Result{Reason: "no lease with a checkpoint of its remaining TTL is in log and database"}
	case len(dropped) == 0:
		return Result{Outcome: Holds}
	}
	f := Finding{Kind: KindCheckpointsNotStored, Severity: Info, Title: "checkpoints of remaining TTLs are in the " +
		"log and not stored",
		Explanation: "lease checkpoints are on without persistence: leases start again with their full TTL when the " +
			"leader changes"}
	if len(stored) > 0 {
		f.Kind, f.Severity, f.Title = KindCheckpointsStoredBySome, Warning, "only some members store the remaining "+
			"TTLs of leases"
		f.Explanation = "the members run with different settings or lines: on some, leases keep their remaining TTL " +
			"over a restart, on others they start again"
	}
	for _, i := range append(dropped, stored...) {
		m, l := in.Members[i], show[i]
		f.Members = append(f.Members, m.Label())
		f.add(leaseEvidence(m, l, "remaining TTL", l.StoredRemaining,
			fmt.Sprintf("%d s, as the checkpoint in entry %d sets", l.AskedRemaining, l.Checkpoint)), 0, l.Checkpoint)
	}
	return outcome(append(fs, in.cut(f)), "")
}

// neverAsked are the findings about remaining TTLs that no checkpoint sets. A server stores one when it executes a
// checkpoint, and at no other time.
func neverAsked(in *Input) []Finding {
	var fs []Finding
	for i, r := range in.Replay.Members {
		m := in.Members[i]
		f := Finding{Kind: KindRemainingNeverSet, Severity: Error, Class: ClassLatentDivergence,
			Members: []string{m.Label()}}
		for _, l := range r.Leases {
			if l.NeverAsked {
				f.add(leaseEvidence(m, l, "remaining TTL", l.StoredRemaining,
					fmt.Sprintf("no such value: no checkpoint after the grant in entry %d sets it", l.Index)), l.Term,
					l.Index)
			}
		}
		if n := len(f.Evidence); n > 0 {
			f.Title = fmt.Sprintf("%s: %s that no checkpoint in the log sets", m.Label(),
				plural.Of(n, "lease has a remaining TTL", "leases have remaining TTLs"))
			f.Explanation = "the lease rows were changed by other means; these leases expire early when this member " +
				"leads"
			fs = append(fs, in.cut(f))
		}
	}
	return fs
}
