package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

var rightsKept = described(Check{
	ID:    A07,
	Needs: NeedReplay,
	Run:   runRightsKept,
})

func runRightsKept(in *Input) Result {
	f := Finding{Kind: KindEffectBeyondRights, Severity: Warning}
	known := false
	seen := map[uint64]bool{}
	for i, r := range in.Replay.Members {
		known = known || r.Checked && r.AuthKnown
		for _, b := range r.Beyond {
			if i > 0 && seen[b.Index] {
				continue
			}
			seen[b.Index] = true
			f.add(beyondEvidence(in, i, b), b.Term, b.Index)
		}
		if len(r.Beyond) > 0 {
			f.Members = append(f.Members, in.Members[i].Label())
		}
	}
	switch {
	case !known:
		return Result{Reason: "the log does not reach back to the first auth entry"}
	case len(f.Evidence) == 0:
		return Result{Outcome: Holds}
	}
	f.Title = plural.Of(len(f.Evidence), "transaction", "transactions") +
		" took effect beyond the rights of their user"
	f.Explanation = "an inner operation reached a key that the user has no permission for; review the keys and what " +
		"was exposed"
	return outcome([]Finding{in.cut(f)}, "")
}

func beyondEvidence(in *Input, pos int, b replay.Beyond) Evidence {
	return in.inLog(Evidence{Bucket: "key", Key: Bytes(b.Key), Field: fmt.Sprintf("entry %d/%d", b.Term, b.Index),
		Observed: fmt.Sprintf("%s user=%s: %s, applied", b.What, b.User, b.How),
		Expected: "refused: permission denied"}, pos, b.Index)
}
