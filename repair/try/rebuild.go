package try

import (
	"context"
	"errors"
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/majority"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// Rebuild makes the database in a new file, up to the last entry that is proven committed. It is an error when the
// outcome of entries is uncertain.
func Rebuild(ctx context.Context, j plan.RebuildJob, file string) (*plan.RebuiltFile, error) {
	version := release.Version{}
	var specs []evidence.Spec
	for _, m := range j.Logs {
		specs = append(specs, evidence.Spec{Name: m.Label(), Where: m.Source.Parts().WAL})
		version = version.Newer(m.Version.Release())
	}
	how := rebuild.Options{Base: j.Base, Logs: specs, To: rebuild.Target{Last: true}, Out: file, Version: version,
		Progress: j.Progress}
	if len(j.Logs) > 0 {
		how.Majority = majority.Find(j.Logs[0].ClusterID, j.Logs)
	}
	res, err := rebuild.Run(ctx, how)
	var gap *rebuild.MissingError
	// what no log holds is lost, but not the entries before it
	if errors.As(err, &gap) && len(gap.Missing) > 0 && gap.Missing[0].From > 1 {
		how.To = rebuild.Target{Index: gap.Missing[0].From - 1}
		res, err = rebuild.Run(ctx, how)
	}
	if err != nil {
		return nil, err
	}
	if res.Unsettled > 0 || res.DoubtfulCount > 0 && !res.Equal() {
		return nil, fmt.Errorf("the outcome of %d entries is not settled", max(res.Unsettled, res.DoubtfulCount))
	}
	return &plan.RebuiltFile{Path: file, Index: res.To.Index, Term: res.To.Term, Keys: res.Keys,
		ByMajority: res.ByMajority}, nil
}
