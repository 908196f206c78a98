// Package compare runs checks over the facts of several members, orders what they found, names the first break, the
// cause and the best member, and yields one Report.
package compare

import (
	"context"
	"errors"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// Options tune a run.
type Options struct {
	// Version is the tool's version, for the report.
	Version string
	// Values puts values of keys into the report; without it they stand as length and digest.
	Values bool
	// MaxRows bounds the evidence rows per finding and the diff rows per bucket; 0 means 50.
	MaxRows int
	// Progress, if set, is told what is being done.
	Progress func(what string)
}

// Diagnose reads all sources and returns the report. The error is non-nil only when no source could be used, or the
// context ended; damage and contradictions are in the report.
func Diagnose(ctx context.Context, specs []evidence.Spec, o Options) (*Report, error) {
	return nil, errors.New("not built yet")
}

// Inspect is Diagnose for one source: facts and the checks that need no other member; Best is nil.
func Inspect(ctx context.Context, spec evidence.Spec, o Options) (*Report, error) {
	return nil, errors.New("not built yet")
}

// Compare holds the sources against each other, bucket by bucket.
func Compare(ctx context.Context, specs []evidence.Spec, o Options) (*Comparison, error) {
	return nil, errors.New("not built yet")
}
