package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

var leaseOpsReapplied = Cause{
	ID: "lease-ops-reapplied-on-restart", Title: "a lease was granted or revoked a second time after a restart",
	Doc: `Up to 3.4 granting or revoking a lease without keys does not move the stored index, so a restart executes it again. Usually the second time
ends as the first did; where the state has changed since, one member keeps a lease that the others have not, or lacks one.
A hint: nothing is wrong with the member but rows of leases, and the last operations on each of them lie between the index that was stored and a
start of the member.`,
	Affected: []string{"3.0.0 - 3.4.45"},
	FixedIn:  []string{"3.5.0"},
	Refs:     []string{"https://github.com/etcd-io/etcd/pull/11935"},
	LookAlikes: "lease-ttl-clamp-mismatch (TTLs differ, IDs do not); defrag-orphan-merged (superseded records came " +
		"back as well); a row lost with a damaged page",
	Recovery: "revoke the lease or grant it again; reseed the member if keys differ",
	Loss:     "the time that a lease lives",
	Match:    matchLeaseRepeat,
}

// matchLeaseRepeat wants every difference of a member to be a lease that a restart worked on again.
func matchLeaseRepeat(in *Input) *Match {
	if in.Replay == nil || len(in.Findings["D07"])+len(in.Findings["A01"])+len(in.Findings["L02"]) > 0 {
		return nil
	}
	m := &Match{Certainty: Hint, Because: []string{}, RefutedBy: "an operation on the lease behind the start; a key " +
		"write between the operations and the start"}
	for i, r := range in.Replay.Members {
		x := in.Members[i]
		if !r.Checked || len(r.StateDiffs) == 0 || !x.Version.MayLack(release.IndexWithEveryEntry) ||
			r.FirstBad() != nil || len(r.Extra) > 0 || !onlyRepeated(r) {
			continue
		}
		m.Members, m.Because = append(m.Members, x.Label()),
			append(m.Because, idsOf(in, x.Label(), "K03", "L01", "L09")...)
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
