package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

var leasesExpire = described(Check{
	ID:    L08,
	Needs: NeedLog,
	Run:   runLeasesExpire,
})

// minGrants is how many leases a term without a revoke needs to be reported.
const minGrants = 3

func runLeasesExpire(in *Input) Result {
	if in.Replay == nil || in.Replay.Survey == nil {
		return Result{Reason: "the logs could not be merged"}
	}
	leaders := in.Members.elections().leaders()
	if len(leaders) == 0 {
		return Result{Reason: "the logs at hand do not hold a majority of the votes of any term"}
	}
	elsewhere := 0
	for _, t := range in.Replay.Survey.LeaseTerms {
		elsewhere += t.Revokes
	}
	var fs []Finding
	for _, t := range in.Replay.Survey.LeaseTerms {
		m := in.Members.byID(leaders[t.Term])
		if m == nil || m.MemberID == 0 || t.Grants < minGrants || t.Revokes > 0 || elsewhere == 0 {
			continue
		}
		if at := recoveredBefore(in.Replay, m, t); at > 0 {
			fs = append(fs, Finding{Kind: KindLeasesNeverExpired, Severity: Info, Members: []string{m.Label()},
				At: At{Term: t.Term, Index: t.First},
				Title: fmt.Sprintf("%s led term %d after it had received a snapshot: %s granted "+
					"and none revoked", m.Label(), t.Term, plural.Of(t.Grants, "lease was", "leases were")),
				Explanation: "leases of this cluster expire in other terms; a leader that cannot create its " +
					"internal token never revokes any",
				Evidence: []Evidence{in.inLog(Evidence{
					Field:    fmt.Sprintf("entries %d..%d of term %d", t.First, t.Last, t.Term),
					Observed: fmt.Sprintf("%d grants, no revoke", t.Grants), Expected: "revokes as in other terms"},
					slices.Index(in.Members, m), t.First),
					{Member: m.Label(), Field: "received snapshot",
						Observed: fmt.Sprintf("index %d, no start since", at),
						Expected: "a start, or a change of auth, before it leads", Show: showLog(m, at)}}})
		}
	}
	return outcome(fs, "")
}

// recoveredBefore is the index of the last snapshot that the member received before the term's leases, 0 when there is
// none or if a start of the member or a change of auth has ended the defect since.
func recoveredBefore(rp *replay.Result, m *evidence.Member, t replay.LeaseTerm) uint64 {
	at := uint64(0)
	if m.HasWAL() {
		for _, j := range m.WAL.Summary.Jumps {
			if j.To < t.First {
				at = max(at, j.To)
			}
		}
	}
	s := rp.Survey
	for _, st := range s.Starts[m.MemberID] {
		if st.Index > at && st.Index < t.Last {
			return 0
		}
	}
	for _, a := range s.Auth {
		if a.Index > at && a.Index < t.Last {
			return 0
		}
	}
	return at
}
