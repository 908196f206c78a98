package run

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

// touch gives the files below dir other modification times, again and again, until ctx ends. It returns when that has
// begun; ended tells the first error.
func touch(ctx context.Context, dir string) (ended <-chan error) {
	began, done := make(chan struct{}), make(chan error, 1)
	go func() {
		at := time.Now()
		for n := 0; ctx.Err() == nil; n++ {
			at = at.Add(time.Second)
			if err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return err
				}
				return os.Chtimes(p, at, at)
			}); err != nil {
				done <- err
				break
			}
			if n == 0 {
				close(began)
			}
			time.Sleep(time.Millisecond)
		}
		close(done)
	}()
	select {
	case <-began:
	case <-time.After(time.Minute):
	}
	return done
}

// TestChangeDuringApply: a source that changes while data dirs are mended, rebuilt or cloned ends the run with an error
// that names the change, in a rehearsal too, and no result is left.
func TestChangeDuringApply(t *testing.T) {
	for mode, c := range map[plan.Mode]struct {
		incident string
		members  []string
		o        plan.Options
		damage   func(t *testing.T, dir string)
	}{
		plan.MendFiles: {"f-bbolt-page-corruption", []string{"node1"}, plan.Options{}, nil},
		plan.Clone:     {"h-misconfigured-member-add", []string{"node1", "node2", "node3"}, plan.Options{}, nil},
		plan.Rebuild: {"f2-empty-db", []string{"node3"}, plan.Options{Gone: []string{"node1", "node2"}},
			func(t *testing.T, dir string) {
				t.Helper()
				if err := os.Truncate(oneOf(t, filepath.Join(dir, "node3", "member", "wal", "*.wal")), 20000); err != nil {
					t.Fatal(err)
				}
			}},
	} {
		t.Run(string(mode), func(t *testing.T) {
			dir := evidencetest.Copy(t, evidencetest.Incident(t, c.incident))
			if c.damage != nil {
				c.damage(t, dir)
			}
			var specs []evidence.Spec
			for _, m := range c.members {
				specs = append(specs, evidence.Spec{Name: m, Where: filepath.Join(dir, m)})
			}
			p, err := plan.New(t.Context(), specs, try.In(""), c.o)
			if err != nil {
				t.Fatal(err)
			}
			if w := p.Way(mode); w == nil || !w.Possible {
				t.Fatalf("the way is %+v", w)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := touch(ctx, dir)
			for _, rehearse := range []bool{true, false} {
				file, out := filepath.Join(t.TempDir(), "plan.yaml"), filepath.Join(t.TempDir(), "out")
				if err := p.Save(file); err != nil {
					t.Fatal(err)
				}
				var done *Outcome
				if rehearse {
					done, err = Rehearse(t.Context(), file, Options{Rehearse: mode})
				} else {
					done, err = Apply(t.Context(), file, ApplyOptions{Mode: mode, Out: out})
				}
				var changed *evidence.ChangedError
				if !errors.As(err, &changed) || done != nil && done.Reached {
					t.Errorf("rehearsal %v: %+v, %v", rehearse, done, err)
				}
				if _, err := os.Lstat(out); err == nil {
					left, _ := filepath.Glob(filepath.Join(out, "*"))
					if len(left) > 0 {
						t.Errorf("%v is left", left)
					}
				}
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
