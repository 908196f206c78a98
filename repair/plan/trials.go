package plan

import (
	"context"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// Scratch opens a place where repairs are tried. Package try implements it.
type Scratch func() (Trials, error)

// Trials makes on scratch copies what a plan promises, so that it promises only what worked. The copies are removed
// after look has returned.
type Trials interface {
	// Room refuses when fewer than need bytes are free.
	Room(need int64) error
	// Mend makes the repairs of one member and calls look with the new data dir.
	Mend(ctx context.Context, j MendJob, look func(dir string)) (did []string, err error)
	// Rebuild makes a database and calls look with it.
	Rebuild(ctx context.Context, j RebuildJob, look func(f *RebuiltFile) error) error
	// Close removes the place.
	Close()
}

// MendJob is the surgery on one member: which repairs, with which other sources.
type MendJob struct {
	Source  evidence.Spec
	Peers   []evidence.Spec
	Base    evidence.Spec
	Repairs []string
	Compare compare.Options
}

// RebuildJob names the sources of a database: logs, and a backup, whose Where is "" for none.
type RebuildJob struct {
	Base     evidence.Spec
	Logs     []*evidence.Member
	Progress func(string)
}

// RebuiltFile is a database that was made, the last entry that was executed for it, and the number of its keys.
// ByMajority says how the last entries are known to be committed, if no source shows it.
type RebuiltFile struct {
	Path        string
	Index, Term uint64
	Keys        int64
	ByMajority  string
}
