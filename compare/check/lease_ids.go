package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

var leaseIDs = described(Check{
	ID:    L05,
	Needs: NeedDB,
	Run:   runLeaseIDs,
})

func runLeaseIDs(in *Input) Result {
	var fs []Finding
	for i, m := range in.Members {
		if !m.HasDB() {
			continue
		}
		f := Finding{Kind: KindLeaseIDNegative, Severity: Warning, Members: []string{m.Label()}}
		if m.Version.Follows(release.LeasesOfAllIDs) {
			f.Severity = Info
		}
		for j := range m.DB.Leases {
			if l := &m.DB.Leases[j]; int64(l.ID) < 0 {
				negativeLease(in.Replay, &f, i, m, l)
			}
		}
		if n := len(f.Evidence); n > 0 {
			f.Title = fmt.Sprintf("%s: %s a negative ID", m.Label(), plural.Of(n, "lease has", "leases have"))
			if f.Severity == Error {
				f.Title += fmt.Sprintf(", and the revoke at index %d had no effect", f.At.Index)
			}
			f.Explanation = "a server up to 3.4.19 or of 3.5.0 to 3.5.2 does not load them at a start; revokes then " +
				"pass over them on that member only"
			fs = append(fs, in.cut(f))
		}
	}
	return outcome(fs, "")
}

func negativeLease(rp *replay.Result, f *Finding, pos int, m *evidence.Member, l *dumpdb.Lease) {
	e := Evidence{Member: m.Label(), File: m.DB.File, Page: Uint64(l.Page), Offset: Int64(l.Offset), Bucket: "lease",
		Key: Bytes(l.ID.String()), Field: "ID",
		Observed: fmt.Sprint(int64(l.ID)), Expected: "a positive number", Show: showDB(m, "lease")}
	if rp != nil {
		for _, k := range rp.Members[pos].Kept {
			if k.ID != int64(l.ID) {
				continue
			}
			f.Severity, f.Class = Error, ClassLatentDivergence
			if f.At.Index == 0 || k.Index < f.At.Index {
				f.At = At{Term: k.Term, Index: k.Index}
			}
			e.Observed, e.Expected = fmt.Sprintf("%d, still there", int64(l.ID)),
				fmt.Sprintf("gone since entry %d/%d revoked it", k.Term, k.Index)
		}
	}
	f.Evidence = append(f.Evidence, e)
}
