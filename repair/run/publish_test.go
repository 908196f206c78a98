package run

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// publishing is a run that hands out the data dirs of node1 to node4, of which work has folders.
func publishing(t *testing.T) (s reseeding, work string) {
	t.Helper()
	dir := t.TempDir()
	p := fakePlan(t, 4, "node2")
	p.Member("node3").Action, p.Member("node4").Action = plan.Remove, plan.Retire
	p.Ways = []plan.Way{{Mode: plan.Reseed, Steps: []plan.Step{{Kind: plan.StepHandOut,
		ByHand: []plan.Command{{With: "note", Note: plan.CopyOut}}}}}}
	o := Options{}
	o.fill()
	s = reseeding{&session{plan: p, file: filepath.Join(dir, "plan.yaml"), o: o, out: &Outcome{}}}
	if err := s.journal(plan.Reseed); err != nil {
		t.Fatal(err)
	}
	j := s.j
	t.Cleanup(func() { _ = j.close() })
	work = filepath.Join(dir, "work")
	for i := range p.Members {
		if err := os.MkdirAll(filepath.Join(work, "members", p.Members[i].Folder(), "member"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return s, work
}

// TestPublish: the folder is announced in the journal before it appears, and then moved as a whole. The outcome lists
// the data dirs of the members that remain, and the commands only if the proofs hold. A second process finds it there.
func TestPublish(t *testing.T) {
	for _, proven := range []bool{false, true} {
		s, work := publishing(t)
		out := filepath.Join(t.TempDir(), "new", "dirs") // its parent does not exist either
		s.j.observe = func(r Record, _ bool) {
			if _, err := os.Lstat(out); err == nil && r.State != StateDone {
				t.Errorf("%s is there at %+v", out, r)
			}
		}
		if proven {
			s.out.prove("it works", holds, "")
		}
		if err := s.publish(t.Context(), work, out); err != nil {
			t.Fatal(err)
		}
		if s.j.value("out") != out || s.j.state(stepHandOut) != StateDone {
			t.Errorf("announced %q, step %q", s.j.value("out"), s.j.state(stepHandOut))
		}
		if _, err := os.Lstat(filepath.Join(work, "members")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the data dirs are in the scratch folder still: %v", err)
		}
		want := map[string]string{"node1": filepath.Join(out, "node1"), "node2": filepath.Join(out, "node2")}
		if d := cmp.Diff(want, s.out.Dirs); d != "" {
			t.Errorf("data dirs (-want +got):\n%s", d)
		}
		if (len(s.out.Install) > 0) != proven {
			t.Errorf("proven %v: commands %v", proven, s.out.Install)
		}
		s.j.observe = func(Record, bool) {}
		if err := s.publish(t.Context(), work, out); err != nil {
			t.Fatal(err)
		}
		if last := s.out.Steps[len(s.out.Steps)-1]; last.Detail != "they are there" || last.State != "done" {
			t.Errorf("a second time: %+v", last)
		}
	}
}

// TestDirsThatAreMissing: the outcome lists no data dir that does not exist.
func TestDirsThatAreMissing(t *testing.T) {
	s, work := publishing(t)
	if err := os.RemoveAll(filepath.Join(work, "members", "node2")); err != nil {
		t.Fatal(err)
	}
	s.dirs(filepath.Join(work, "members"), nil)
	if _, there := s.out.Dirs["node1"]; len(s.out.Dirs) != 1 || !there {
		t.Errorf("%v", s.out.Dirs)
	}
}

// TestInstall: the commands of the hand-out get the folder, and those of later steps are listed as they are. What comes
// earlier was done by the run.
func TestInstall(t *testing.T) {
	s, work := publishing(t)
	command := func(note string) []plan.Command { return []plan.Command{{With: "note", Note: note}} }
	s.plan.Ways[0].Steps = []plan.Step{
		{Kind: plan.StepMend, ByHand: command("earlier")},
		{Kind: plan.StepHandOut, ByHand: append(command(plan.CopyOut), command("another")...)},
		{Kind: plan.StepVerify, ByHand: command("later")},
	}
	s.install(plan.Reseed, work+"/./")
	var notes []string
	for _, c := range s.out.Install {
		notes = append(notes, c.Note)
	}
	want := []string{"first copy " + work + " to every host, under the same path", "another", "later"}
	if d := cmp.Diff(want, notes); d != "" {
		t.Errorf("commands (-want +got):\n%s", d)
	}
}

// finishing is a session that has begun a run, with proofs that have these outcomes.
func finishing(t *testing.T, mode plan.Mode, outcomes ...string) *session {
	t.Helper()
	s, _ := publishing(t)
	s.plan.Lost.CommittedEntries = 2
	s.out.Mode = mode
	for _, o := range outcomes {
		s.out.prove("it works", o, "")
	}
	return s.session
}

// TestFinish: a run that reached its goal is recorded as ended, and its scratch is removed. Without a proof, or with
// one that is violated, it is neither. What could not be checked does not violate. Only runs that do not change a
// running cluster say again what is given up: the others have said it before they began.
func TestFinish(t *testing.T) {
	for name, tc := range map[string]struct {
		mode     plan.Mode
		outcomes []string
		reached  bool
		notes    int
	}{
		"proven":               {plan.Reseed, []string{holds, notChecked}, true, 1},
		"proven while it runs": {plan.Live, []string{holds}, true, 0},
		"one is violated":      {plan.Reseed, []string{holds, violated}, false, 0},
		"nothing is proven":    {plan.Reseed, nil, false, 0},
	} {
		s := finishing(t, tc.mode, tc.outcomes...)
		cleaned := false
		out, err := s.finish(nil, func() error { cleaned = true; return nil })
		if (err == nil) != tc.reached || out == nil || out.Reached != tc.reached || cleaned != tc.reached ||
			len(out.Notes) != tc.notes {
			t.Errorf("%s: cleaned %v, %+v, %v", name, cleaned, out, err)
		}
		var u *UnfinishedError
		if !tc.reached && (!errors.As(err, &u) || u.Step != "proof" || u.Hint == "") {
			t.Errorf("%s: %v", name, err)
		}
		ended := slices.ContainsFunc(s.j.records, func(r Record) bool { return r.State == StateEnd })
		if ended != tc.reached {
			t.Errorf("%s: recorded as ended %v", name, ended)
		}
	}
}

// TestFinishAfterAnError: before the journal was opened nothing was begun, so there is no outcome. Afterwards there is
// one, which has not reached its goal.
func TestFinishAfterAnError(t *testing.T) {
	failed := errors.New("failed")
	s := finishing(t, plan.Reseed, holds)
	kept := func() error { t.Error("the scratch of a run that continues is removed"); return nil }
	if out, err := s.finish(failed, kept); !errors.Is(err, failed) || out == nil || out.Reached {
		t.Errorf("%+v, %v", out, err)
	}
	s.j = nil
	if out, err := s.finish(failed, kept); !errors.Is(err, failed) || out != nil {
		t.Errorf("%+v, %v", out, err)
	}
}
