package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

var revokesByLeader = described(Check{
	ID:    L07,
	Needs: NeedLog,
	Run:   runRevokesByLeader,
})

// earlyInTerm is how many entries after the beginning of a term the queue of the former leader is expected.
const earlyInTerm = 200

func runRevokesByLeader(in *Input) Result {
	if in.Replay == nil || in.Replay.Survey == nil {
		return Result{Reason: "the logs could not be merged"}
	}
	leaders := in.Members.elections().leaders()
	if len(leaders) == 0 {
		return Result{Reason: "the logs at hand do not hold a majority of the votes of any term"}
	}
	f := Finding{Kind: KindRevokedByFormerLeader, Severity: Warning}
	for _, b := range in.Replay.Survey.Bursts {
		leader, known := leaders[b.Term]
		if b.Revokes < minBurst || !known || b.Proposer == 0 || leader == b.Proposer || b.User != "" &&
			b.User != "root" || !ledBefore(leaders, b) || !isEarlyInTerm(in.Members, b) {
			continue
		}
		f.Members = appendNew(f.Members, in.Members.MemberName(b.Proposer))
		f.add(in.inSomeLog(Evidence{Field: fmt.Sprintf("entries %d..%d of term %d", b.First, b.Last, b.Term),
			Observed: fmt.Sprintf("%s proposed by %s, which led an earlier term",
				plural.Of(b.Revokes, "lease revoke", "lease revokes"), in.Members.MemberName(b.Proposer)),
			Expected: fmt.Sprintf("proposed by %s, the leader of term %d", in.Members.MemberName(leader), b.Term)},
			b.First), b.Term, b.First)
	}
	if len(f.Evidence) == 0 {
		return Result{Outcome: Holds}
	}
	f.Title = fmt.Sprintf("a former leader revoked leases at the begin of term %d", f.At.Term)
	f.Explanation = "the leases may have been kept alive with the new leader; their keys were deleted on all members"
	return outcome([]Finding{in.cut(f)}, "")
}

const minBurst = 3

func appendNew(list []string, s string) []string {
	for _, x := range list {
		if x == s {
			return list
		}
	}
	return append(list, s)
}

// ledBefore reports whether the proposer of the burst led an earlier term.
func ledBefore(leaders map[uint64]dumplog.ID, b replay.RevokeBurst) bool {
	for term, id := range leaders {
		if term < b.Term && id == b.Proposer {
			return true
		}
	}
	return false
}

// isEarlyInTerm reports whether the burst is near the beginning of its term.
func isEarlyInTerm(ss Sources, b replay.RevokeBurst) bool {
	for _, m := range ss {
		if !m.HasWAL() {
			continue
		}
		for _, t := range m.WAL.LastByTerm {
			if t.Term == b.Term && b.First-t.First <= earlyInTerm {
				return true
			}
		}
	}
	return false
}
