package plan

import (
	"cmp"
	"context"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// recordsTrial is what the command that mends wrong records did to a copy.
type recordsTrial struct {
	works bool
	why   string
}

// tryRecords tries the command that mends the wrong records of the member that is kept. It returns nil where there is
// none, and where nothing can be tried.
func tryRecords(ctx context.Context, r *compare.Report, specs []evidence.Spec, scratch Scratch,
	o *Options) (*recordsTrial, error) {
	if r.Best == nil || r.Best.Lost.Mend.IsZero() || !r.InputsUnchanged || scratch == nil {
		return nil, nil
	}
	trials, err := scratch()
	if err != nil {
		return nil, err
	}
	defer trials.Close()
	set, err := openForTrials(ctx, specs, o)
	if err != nil {
		return nil, err
	}
	defer func() { _ = set.Close() }() // only read
	kept, from := cmp.Or(o.Best, r.Best.Ranking[0].Member), SpecsOf(set)
	job := MendJob{Source: from[kept], Repairs: []string{MendRecords}, Compare: o.Compare}
	for _, s := range r.Sources {
		if s.Name != kept {
			if r.Best.Lost.MendedWith(s.Name) {
				job.Peers = append(job.Peers, from[s.Name])
			}
			continue
		}
		if err := trials.Room(2 * s.Bytes); err != nil {
			return &recordsTrial{works: true, why: "not tried: " + err.Error()}, nil
		}
	}
	did, err := trials.Mend(ctx, job, func(string) {})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return &recordsTrial{why: refusal.Reason(err)}, nil
	}
	return &recordsTrial{works: true, why: strings.Join(did, "; ")}, set.Unchanged(ctx)
}
