package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// ApplyOptions say how a plan is applied.
type ApplyOptions struct {
	Options
	// Mode is MendFiles, Clone, Reseed, Live or Rebuild.
	Mode plan.Mode
	// Out is the folder for the new data dirs of all but Live; it must not exist.
	Out string
	// Live says how the running cluster is reached.
	Live LiveOptions
}

// Apply carries a plan out: into new data dirs, or against the running cluster. A *refusal.Error means that nothing was
// done. An *UnfinishedError means that the run stopped at a step that the journal shows; the same call continues from
// there.
func Apply(ctx context.Context, file string, o ApplyOptions) (*Outcome, error) {
	s, err := open(file, o.Options)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if s.plan.Mode == plan.RehearseOnly {
		hint := "bring what is missing and plan again"
		if x := s.plan.Missing; x != nil {
			hint += ": " + x.Text()
		}
		return nil, refusal.New(hint, "this plan may only be rehearsed: %s", s.plan.Why)
	}
	way := s.plan.Way(o.Mode)
	switch {
	case way == nil:
		return nil, refusal.New("see the ways in the plan", "the plan has no way %s", o.Mode)
	case !way.Possible:
		return nil, refusal.New("see the other ways in the plan", "%s is not possible: %s", o.Mode, way.Why)
	}
	if err := s.outside(o.Out, o.Work, o.Live.Backup); err != nil {
		return nil, err
	}
	if err := s.notRepaired(); err != nil {
		return nil, err
	}
	switch o.Mode {
	case plan.MendFiles:
		return mendFiles{s}.apply(ctx, o)
	case plan.Clone, plan.Rebuild:
		return cloning{s}.apply(ctx, o)
	case plan.Reseed:
		return reseeding{s}.apply(ctx, o)
	case plan.Live:
		return s.live(ctx, o)
	}
	return nil, refusal.New("follow the commands under byHand in the plan", "%s is done by hand", o.Mode)
}

// notRepaired refuses to apply a plan whose live repair has reached its goal. What was written since the copies were
// made is not in them, and the members have other IDs.
func (s *session) notRepaired() error {
	records, err := ReadJournal(s.file)
	if err != nil || s.o.Again {
		return err
	}
	var ended *Record
	ours := false
	for i := range records {
		switch r := &records[i]; {
		case r.Mode != plan.Live:
		case r.State == StateRun:
			ours = r.Plan == s.plan.Digest
		case r.State == StateBegin:
			ended = nil
		case r.State == StateEnd && ours:
			ended = r
		}
	}
	if ended == nil {
		return nil
	}
	return refusal.New("if something is wrong now: "+plan.DiagnoseCommand().String()+", and plan again from those; "+
		"--again applies this plan nevertheless, without what was written since its copies were made",
		"the live repair of this plan reached its goal at %s (run %d): nothing is left to do",
		ended.Time.Format(time.RFC3339), ended.Run)
}

// fresh refuses an output folder that exists, unless a run of this plan has just made it.
func (s *session) fresh(out string, mode plan.Mode, step string) error {
	if out == "" {
		return refusal.New("-o DIR", "the folder for the new data dirs is missing")
	}
	if _, err := os.Lstat(out); errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if s.o.Again {
		return refusal.New("name another folder with -o", "%s exists; nothing is overwritten", out)
	}
	records, err := ReadJournal(s.file)
	if err != nil {
		return err
	}
	var ended *Record
	for _, r := range slices.Backward(records) {
		switch {
		case r.Mode != mode:
		case ended == nil && r.State == StateEnd:
			ended = &r
		case r.State == StateEnd || r.State == StateAbandon:
			return refusal.New("name another folder with -o", "%s exists; nothing is overwritten", out)
		case r.Step == step && r.Values["out"] == absolute(out) && ended == nil:
			return nil
		case r.Step == step && r.Values["out"] == absolute(out):
			return refusal.New("use the data dirs, or name another folder with -o", "%s holds what this plan's run %d "+
				"handed out; it reached its goal at %s, nothing is left to do",
				out, ended.Run, ended.Time.Format(time.RFC3339))
		}
	}
	return refusal.New("name another folder with -o", "%s exists; nothing is overwritten", out)
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
