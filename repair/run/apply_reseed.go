package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Steps at the end of a run that no plan lists.
const (
	stepCompare = "91-compare"
	stepHandOut = "92-hand-out"
)

// reseeding is a run that publishes the data dirs of a sandbox.
type reseeding struct{ *session }

// apply does the rehearsal's steps and publishes the data dirs.
func (s reseeding) apply(ctx context.Context, o ApplyOptions) (*Outcome, error) {
	if err := s.fresh(o.Out, plan.Reseed, stepHandOut); err != nil {
		return nil, err
	}
	work := s.o.Work
	if work == "" {
		work = o.Out + ".work"
	}
	var err error
	if _, there := os.Lstat(o.Out); there == nil {
		err = s.resume(ctx, o.Out)
	} else if err = sandboxRun(s).do(ctx, plan.Reseed, work, o.Out); err == nil && s.out.provenWell() {
		err = s.publish(ctx, work, o.Out)
	}
	return s.finish(err, s.emptied(work))
}

// resume ends a run whose process was killed after publishing the data dirs and before recording it. Its proofs are
// lost.
func (s reseeding) resume(ctx context.Context, out string) error {
	if err := s.journal(plan.Reseed); err != nil {
		return err
	}
	s.out.Way = s.plan.Way(plan.Reseed).Uses
	r := newRunner(s.state(), nil, s.o.limits)
	var specs []evidence.Spec
	for _, m := range r.present() {
		specs = append(specs, evidence.Spec{Name: m.Name, Where: filepath.Join(out, shell.FileName(m.ServerName()))})
	}
	err := s.always(ctx, r, compareStep, func() (string, error) { return dirsProof(s).of(ctx, specs) })
	if err != nil || !s.out.provenWell() {
		return err
	}
	return s.publish(ctx, "", out)
}

// publish syncs what the servers wrote without fsync and moves it to its place with one rename.
func (s reseeding) publish(ctx context.Context, work, out string) error {
	members := filepath.Join(work, "members")
	r := newRunner(s.state(), nil, s.o.limits)
	step := handOutStep
	if err := r.note(step.ID, "out", absolute(out)); err != nil {
		return r.unfinished(step.ID, err)
	}
	err := s.always(ctx, r, step, func() (string, error) {
		if _, err := os.Lstat(out); err == nil {
			return "they are there", nil // renamed by an earlier process that was killed right after
		}
		if err := syncTree(members); err != nil {
			return "", err
		}
		if err := os.MkdirAll(filepath.Dir(absolute(out)), 0o755); err != nil {
			return "", err
		}
		if err := os.Rename(members, out); err != nil {
			return "", fmt.Errorf("%w (put --work on the same file system as -o)", err)
		}
		return "", syncDir(filepath.Dir(absolute(out)))
	})
	s.dirs(out, err)
	return err
}

// dirs lists the new data dirs in out. How they are put in place is said only if nothing failed.
func (s *session) dirs(out string, failed error) {
	s.out.Dirs = map[string]string{}
	for i := range s.plan.Members {
		m := &s.plan.Members[i]
		if dir := filepath.Join(out, m.Folder()); m.Action != plan.Remove && m.Action != plan.Retire {
			if _, err := os.Stat(dir); err == nil {
				s.out.Dirs[m.Name] = dir
			}
		}
	}
	if failed == nil && s.out.provenWell() {
		s.install(s.out.Mode, out)
	}
}
