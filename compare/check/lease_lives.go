package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

var leaseLives = described(Check{
	ID:    L09,
	Needs: NeedReplay,
	Run:   runLeaseLives,
})

func runLeaseLives(in *Input) Result {
	var fs []Finding
	checked := 0
	for i, r := range in.Replay.Members {
		if !r.Checked {
			continue
		}
		checked++
		fs = append(fs, lostRevokes(in, in.Members[i], r)...)
		if f := goneLeases(in, in.Members[i], r); f != nil {
			fs = append(fs, *f)
		}
	}
	if checked == 0 {
		return Result{Reason: "no member could be replayed"}
	}
	return outcome(fs, "")
}

// lostRevokes: leases that outlived their revoke, against the rules or by them. A revoke without a user is that of an
// expired lease, which some versions reject each time; any other has a client that got an error.
func lostRevokes(in *Input, m *evidence.Member, r *replay.MemberResult) []Finding {
	bad := Finding{Kind: KindRevokeWithoutEffect, Severity: Error, Class: ClassLatentDivergence,
		Members:     []string{m.Label()},
		Explanation: "the revoke is in the log, and the member has applied it; lease and keys remain there"}
	expired := Finding{Kind: KindRevokeRejected, Severity: Warning, Members: []string{m.Label()},
		Explanation: "this etcd version rejects the revoke, so the lease and its keys remain; members on another " +
			"version may have applied it"}
	asked := Finding{Kind: KindRevokeRejected, Severity: Info, Members: []string{m.Label()},
		Explanation: "the client got an error, and the lease and its keys remained; they end when the lease expires"}
	for _, x := range r.LeaseFaults {
		switch {
		case !x.Kept:
		case x.Reason == replay.ReasonUserEmpty:
			expired.add(keptEvidence(m, x), x.Term, x.Index)
		case x.Reason != replay.ReasonNone && x.Reason != replay.ReasonLease:
			asked.add(keptEvidence(m, x), x.Term, x.Index)
		case x.Missing:
			bad.add(keptEvidence(m, x), x.Term, x.Index)
		default:
			bad.add(keptEvidence(m, x), in.Members.logs().termAt(r.To), r.To)
		}
	}
	var fs []Finding
	for _, f := range []*Finding{&bad, &expired, &asked} {
		n := len(f.Evidence)
		if n == 0 {
			continue
		}
		f.Title = m.Label() + ": " + plural.Of(n, "lease outlived its revoke", "leases outlived their revoke")
		if f != &bad {
			f.Title = fmt.Sprintf("%s: the revoke of %s was rejected, as its etcd version does", m.Label(),
				plural.Of(n, "lease", "leases"))
		}
		fs = append(fs, in.cut(*f))
	}
	return fs
}

func keptEvidence(m *evidence.Member, x replay.LeaseFault) Evidence {
	e := Evidence{Member: m.Label(), Bucket: "lease", Key: Bytes(dumplog.ID(uint64(x.ID)).String()),
		Field:    "revoke without effect",
		Expected: fmt.Sprintf("gone with its keys since entry %d/%d", x.Term, x.Index), Show: showLog(m, x.Index)}
	switch {
	case x.Reason != replay.ReasonNone:
		e.Observed = fmt.Sprintf("still there; refused: %s", x.Reason)
	case x.Row:
		e.Observed = "still there"
	default:
		e.Observed = "the row is gone, the keys are not deleted"
	}
	if row := findLease(m, x.ID); row != nil {
		e.File, e.Page, e.Offset = m.DB.File, Uint64(row.Page), Int64(row.Offset)
	}
	return e
}

// goneLeases: leases that the log grants and does not revoke, without a row.
func goneLeases(in *Input, m *evidence.Member, r *replay.MemberResult) *Finding {
	f := Finding{Kind: KindLeaseGone, Severity: Error, Class: ClassLatentDivergence, Members: []string{m.Label()},
		At: At{Index: r.To},
		Explanation: "no entry of the log ends these leases: the member revoked them, or lost their rows, without " +
			"the log"}
	for _, x := range r.LeaseFaults {
		if x.Kept {
			continue
		}
		e := Evidence{Member: m.Label(), File: m.DB.File, Bucket: "lease",
			Key: Bytes(dumplog.ID(uint64(x.ID)).String()), Field: "lease gone without a revoke",
			Observed: "absent", Expected: fmt.Sprintf("granted at index %d and not revoked", x.Granted),
			Show: showLog(m, x.Granted)}
		if x.Rev > 0 {
			e.Observed = fmt.Sprintf("absent; its keys were deleted at revision %d", x.Rev)
			e.Show = showRev(m, x.Rev)
			if f.At.Revision == nil || x.Rev < f.At.Revision.Main {
				f.At = At{Index: x.Index, Term: in.Members.logs().termAt(x.Index), Revision: &Rev{Main: x.Rev}}
			}
		}
		f.Evidence = append(f.Evidence, e)
	}
	if len(f.Evidence) == 0 {
		return nil
	}
	f.Title = fmt.Sprintf("%s: %s gone that nothing revoked", m.Label(),
		plural.Of(len(f.Evidence), "lease is", "leases are"))
	f = in.cut(f)
	return &f
}
