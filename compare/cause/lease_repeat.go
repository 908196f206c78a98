package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

var leaseOpsReapplied = described(Cause{
	ID:    LeaseOpsReappliedOnRestart,
	Match: matchLeaseRepeat,
})

// matchLeaseRepeat requires that every difference of a member is a lease whose entries a restart applied again.
func matchLeaseRepeat(in *Input) *Match {
	if in.Replay == nil || in.found(check.D07, check.A01, check.L02) {
		return nil
	}
	m := &Match{Certainty: Hint, Because: []string{}, RefutedBy: "an operation on the lease after the start; a key " +
		"write between the operations and the start"}
	for i, r := range in.Replay.Members {
		x := in.Members[i]
		if !r.Checked || len(r.StateDiffs) == 0 || !x.Version.MayLack(release.IndexWithEveryEntry) ||
			r.FirstBad() != nil || len(r.Extra) > 0 || !onlyRepeated(r) {
			continue
		}
		m.Members, m.Because = append(m.Members, x.Label()),
			append(m.Because, idsOf(in, x.Label(), check.K03, check.L01, check.L09)...)
	}
	if len(m.Members) == 0 {
		return nil
	}
	return m
}

func onlyRepeated(r *replay.MemberResult) bool {
	return !slices.ContainsFunc(r.StateDiffs, func(d replay.StateDiff) bool {
		id, err := dumplog.ParseID(d.Key)
		if err != nil || d.Bucket != "lease" {
			return true
		}
		_, repeated := r.Repeats[int64(id)]
		return !repeated
	})
}
