package run

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// dirsProof compares stopped data dirs with what the plan promises.
type dirsProof struct{ *session }

// ofSandbox is the offline part of the proof: the diagnosis of the stopped data dirs over all buckets, and the best
// member's keys as they were.
func (s dirsProof) ofSandbox(ctx context.Context, r *runner, st *sandboxHost) (string, error) {
	var specs []evidence.Spec
	for _, m := range r.present() {
		if _, err := os.Stat(st.dataDir(m)); err != nil {
			return "", err
		}
		specs = append(specs, evidence.Spec{Name: m.Name, Where: st.dataDir(m)})
	}
	return s.of(ctx, specs)
}

func (s dirsProof) of(ctx context.Context, specs []evidence.Spec) (string, error) {
	report, err := compare.Diagnose(ctx, specs, compare.Options{Version: s.o.Version, Progress: s.o.Progress})
	if err != nil {
		return "", err
	}
	s.healthy(report)
	for i := range report.Members {
		if db := report.Members[i].DB; db != nil && report.Members[i].Name == s.plan.Best.Name {
			s.out.Bytes = max(s.out.Bytes, db.Size)
		}
	}
	for _, sp := range specs {
		if err := s.kept(ctx, sp); err != nil {
			return "", err
		}
	}
	return string(report.Verdict.Class), nil
}

// healthy requires a diagnosis without new findings: those of the best member alone remain.
func (s dirsProof) healthy(report *compare.Report) {
	const healthy = "diagnose says healthy of the stopped data dirs, over all buckets"
	var known, fresh []string
	for i := range report.Findings {
		f := &report.Findings[i]
		switch {
		case s.plan.Restarts() && f.Check == check.M07 && f.Severity.Rank() >= check.Warning.Rank():
			fresh = append(fresh, f.ID)
		case !plan.Breaks(f):
		case slices.Contains(s.plan.Best.Known, f.Check):
			known = append(known, f.ID)
		case f.Check == check.A02 && s.plan.Cluster.Auth && !s.plan.Cluster.Has(release.IndexWithEveryEntry).Certain():
			// Up to 3.4 the database does not show how far auth operations were applied, so starting a copy applies the
			// last ones again.
			known = append(known, f.ID)
		default:
			fresh = append(fresh, f.ID)
		}
	}
	switch h := report.Verdict.Health; {
	case len(fresh) > 0 && h == check.Healthy:
		s.out.prove(healthy, violated, fmt.Sprintf("bucket members is as it was: %s does not mend it (%s)",
			s.out.Server, strings.Join(fresh, ", ")))
	case h == check.Healthy:
		s.out.prove(healthy, holds, string(report.Verdict.Class))
	case h == check.HealthUnknown:
		s.out.prove(healthy, notChecked, report.Verdict.Summary)
	case len(fresh) == 0 && len(known) > 0:
		s.out.prove("the members do not differ in any bucket; what diagnose finds came with "+s.plan.Best.Name, holds,
			string(report.Verdict.Class)+": "+strings.Join(known, ", "))
		s.out.Notes = append(s.out.Notes, s.plan.Best.Name+" is kept as it is, and all members are equal in what "+
			"diagnose said of it: "+s.plan.Verdict.Summary)
	default:
		s.out.prove(healthy, violated, string(report.Verdict.Class)+": "+report.Verdict.Summary)
	}
}

// kept compares one data dir with the best member's content at the time of the plan: HashKV at that revision
// covers every key, value, revision and lease attachment up to it.
func (s dirsProof) kept(ctx context.Context, sp evidence.Spec) error {
	what := fmt.Sprintf("%s holds all that %s held at revision %d", sp.Name, s.plan.Best.Name, s.plan.Best.Revision)
	parts, err := evidence.Locate(ctx, sp)
	if err != nil {
		return err
	}
	defer func() { _ = parts.Close() }() // only read
	db, err := dumpdb.Open(parts.DB)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // only read
	h, err := db.HashKV(ctx, s.plan.Best.Revision)
	switch {
	case err != nil:
		s.out.prove(what, notChecked, err.Error())
	case h.CompactRev != s.plan.Best.Compact:
		s.out.prove(what, notChecked, fmt.Sprintf("it was compacted at %d meanwhile, before at %d", h.CompactRev,
			s.plan.Best.Compact))
	case h.Hash != s.plan.Best.HashKV:
		s.out.prove(what, violated, fmt.Sprintf("HashKV is %d, was %d", h.Hash, s.plan.Best.HashKV))
	default:
		s.out.prove(what, holds, fmt.Sprintf("HashKV %d", h.Hash))
	}
	return nil
}
