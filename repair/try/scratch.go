package try

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/etcd-medic/etcd-medic/internal/disk"
	"github.com/etcd-medic/etcd-medic/repair/copies"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// In returns a function that opens a folder below dir for trials; "" is the system's folder for temporary files.
func In(dir string) plan.Scratch {
	return func() (plan.Trials, error) {
		dir, err := os.MkdirTemp(dir, "etcd-medic-plan-")
		if err != nil {
			return nil, err
		}
		return &bench{dir: dir}, nil
	}
}

// bench is a scratch folder with one folder below it for each trial.
type bench struct {
	dir string
	n   int
}

// trial makes the folder of one trial.
func (b *bench) trial() (dir string, done func(), err error) {
	b.n++
	dir = filepath.Join(b.dir, fmt.Sprint(b.n))
	return dir, func() { _ = os.RemoveAll(dir) }, os.MkdirAll(dir, 0o700)
}

// Room implements plan.Trials.
func (b *bench) Room(need int64) error {
	return copies.Enough(b.dir, need, disk.Room, copies.OtherScratch)
}

// Mend implements plan.Trials.
func (b *bench) Mend(ctx context.Context, j plan.MendJob, look func(dir string)) (did []string, err error) {
	dir, done, err := b.trial()
	if err != nil {
		return nil, err
	}
	defer done()
	out := filepath.Join(dir, "mended")
	if did, err = Mend(ctx, j, out, dir); err == nil {
		look(out)
	}
	return did, err
}

// Rebuild implements plan.Trials.
func (b *bench) Rebuild(ctx context.Context, j plan.RebuildJob, look func(f *plan.RebuiltFile) error) error {
	dir, done, err := b.trial()
	if err != nil {
		return err
	}
	defer done()
	f, err := Rebuild(ctx, j, filepath.Join(dir, "rebuilt.db"))
	if err != nil {
		return err
	}
	return look(f)
}

// Close implements plan.Trials.
func (b *bench) Close() { _ = os.RemoveAll(b.dir) }
