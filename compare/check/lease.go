package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

var leaseRevokesEqual = described(Check{
	ID:    L03,
	Needs: NeedReplay | NeedTwo,
	Run:   runLeaseRevokesEqual,
})

func runLeaseRevokesEqual(in *Input) Result {
	f := Finding{Kind: KindRevokesDiffer, Severity: Critical, Class: ClassDataDivergence}
	var without, against []string
	leases := 0
	for _, e := range in.Replay.Events {
		if e.Kind != dumplog.KindLeaseRevoke || !outcomesDiffer(e) && !againstRules(e) {
			continue
		}
		leases++
		if f.At.Index == 0 {
			f.At = At{Term: e.Term, Index: e.Index}
		}
		for i, o := range e.Outcomes {
			switch {
			case !told(o):
				continue
			case o.Sig == 0:
				without = appendNew(without, in.Members[i].Label())
			case o.Against:
				against = appendNew(against, in.Members[i].Label())
			}
			f.Evidence = append(f.Evidence, revokeEvidence(in, i, e, o))
		}
	}
	if len(f.Evidence) == 0 {
		return Result{Outcome: Holds}
	}
	revokes := plural.Of(leases, "lease revoke", "lease revokes")
	if f.Members = without; len(without) > 0 {
		f.Title = fmt.Sprintf("%s deleted keys on some members and nothing on %s, the first at %d/%d", revokes,
			strings.Join(without, ", "), f.At.Term, f.At.Index)
	} else {
		f.Members = against
		f.Title = fmt.Sprintf("%s deleted keys on %s although the rules refuse it, the first at %d/%d", revokes,
			strings.Join(against, ", "), f.At.Term, f.At.Index)
	}
	f.Explanation = "lease and keys remain where the revoke had no effect; from the first such entry on, contents " +
		"and revisions differ"
	return Result{Outcome: Violated, Findings: []Finding{in.cut(f)}}
}

// againstRules reports whether a member shows an effect of the entry that it cannot have had.
func againstRules(e *replay.Event) bool {
	return slices.ContainsFunc(e.Outcomes, func(o replay.Outcome) bool { return o.Against })
}

func revokeEvidence(in *Input, pos int, e *replay.Event, o replay.Outcome) Evidence {
	id := dumplog.ID(uint64(e.Lease)).String()
	user := "no user"
	if e.User != "" {
		user = "user=" + e.User
	}
	ev := in.inLog(Evidence{Bucket: "lease", Key: Bytes(id), Field: fmt.Sprintf("entry %d/%d", e.Term, e.Index),
		Expected: fmt.Sprintf("lease %s and its keys deleted on all members or on none", id)}, pos, e.Index)
	if o.Sig != 0 {
		ev.Observed = fmt.Sprintf("%s (%s): deleted %s at revision %d", e.What, user,
			plural.Of(len(e.Keys), "key", "keys"), o.Rev)
		if o.Against {
			ev.Observed += ", " + o.Detail
		}
		return ev
	}
	why := string(o.Reason)
	if why == "" {
		why = "without effect"
	}
	ev.Observed = fmt.Sprintf("%s (%s): %s; %s; keys %q stay", e.What, user, why,
		leaseState(in.Members[pos], e.Lease), e.Keys)
	return ev
}

// leaseState describes the lease in the member's database.
func leaseState(m *evidence.Member, lease int64) string {
	if l := findLease(m, lease); l != nil {
		return fmt.Sprintf("lease still in its database with TTL %d s", l.TTL)
	}
	return "lease not in its database"
}

// findLease returns the member's row of a lease, nil when it has none.
func findLease(m *evidence.Member, lease int64) *dumpdb.Lease {
	if m.DB == nil {
		return nil
	}
	for i := range m.DB.Leases {
		if int64(m.DB.Leases[i].ID) == lease {
			return &m.DB.Leases[i]
		}
	}
	return nil
}
