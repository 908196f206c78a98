package run

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// synthPlan is a plan with the ways that are tried on copies, for three members of which one is the only source.
func synthPlan(t *testing.T) *plan.Plan {
	t.Helper()
	p := fakePlan(t, 3)
	dir := clustertest.Synth{Members: 1, Entries: 40, Keys: 5, Value: 16}.Write(t, t.TempDir())[0]
	if err := os.Truncate(oneOf(t, filepath.Join(dir, "member", "wal", "*.wal")), 1<<16); err != nil { // less to read
		t.Fatal(err)
	}
	p.Inputs = []plan.Input{{Name: "node1", Where: dir}}
	p.Rebuilt = &plan.Rebuilt{Promise: &plan.Promise{}}
	steps := []plan.Step{{ID: "a", Kind: plan.StepProve}, {ID: "b", Kind: plan.StepProve}}
	for _, mode := range []plan.Mode{plan.Live, plan.MendFiles, plan.Clone, plan.Rebuild, plan.Reseed, plan.Restore} {
		p.Ways = append(p.Ways, plan.Way{Mode: mode, Possible: true, Uses: plan.Live, Steps: steps})
	}
	return p
}

// sealed writes a plan to a file.
func sealed(t *testing.T, p *plan.Plan) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := errors.Join(p.Seal(), p.Save(file)); err != nil {
		t.Fatal(err)
	}
	return file
}

// onCopies are the options of a run that has all it needs to begin.
func onCopies(t *testing.T) ApplyOptions {
	t.Helper()
	return ApplyOptions{Out: filepath.Join(t.TempDir(), "out"), Options: Options{Isolation: node.Proxy,
		EtcdBinary: scriptedServer(t, scriptEnds).Path, AllowUpgrade: true, Work: filepath.Join(t.TempDir(), "work"),
		room: func(string) (int64, bool) { return 1 << 40, true }}}
}

// TestPlanIsNotRead: a plan that is not there, a lock that cannot be taken and a journal that cannot be read are
// errors of everything that works with a plan.
func TestPlanIsNotRead(t *testing.T) {
	locked := sealed(t, synthPlan(t))
	folders(t, locked+".lock")
	unread := sealed(t, synthPlan(t))
	folders(t, JournalPath(unread))
	for name, tc := range map[string]struct {
		file, want string
		status     bool // what writes nothing reads it, too
	}{
		"no plan":              {filepath.Join(t.TempDir(), "plan.yaml"), "there is no plan", true},
		"its lock is a folder": {locked, "is a directory", false},
		"an unread journal":    {unread, "not a regular file", true},
	} {
		if tc.file != unread {
			out, err := Apply(t.Context(), tc.file, onCopies(t))
			wantError(t, name, err, tc.want)
			more, other := Rehearse(t.Context(), tc.file, onCopies(t).Options)
			wantError(t, name, other, tc.want)
			if out != nil || more != nil {
				t.Errorf("%s: outcomes %+v, %+v", name, out, more)
			}
		}
		if !tc.status {
			continue
		}
		st, err := Status(tc.file)
		wantError(t, name, err, tc.want)
		back, other := Abort(tc.file)
		wantError(t, name, other, tc.want)
		if st != nil || back != nil {
			t.Errorf("%s: %+v, %+v", name, st, back)
		}
	}
}

// TestPlanOfASigner: with keys only a plan is taken that one of them has signed, and the outcome says which.
func TestPlanOfASigner(t *testing.T) {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	line, err := ssh.NewPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	private, keys, file := filepath.Join(dir, "key"), filepath.Join(dir, "keys"), filepath.Join(dir, "plan.yaml")
	if err := errors.Join(os.WriteFile(private, pem.EncodeToMemory(block), 0o600),
		os.WriteFile(keys, ssh.MarshalAuthorizedKey(line), 0o600)); err != nil {
		t.Fatal(err)
	}
	signer, err := plan.Signer(private, file)
	if err != nil {
		t.Fatal(err)
	}
	p := synthPlan(t)
	if err := errors.Join(p.Seal(), p.SaveSigned(file, signer)); err != nil {
		t.Fatal(err)
	}
	for _, with := range []string{"", keys} {
		s, err := open(file, Options{VerifyWith: with})
		if err != nil {
			t.Fatal(err)
		}
		s.close()
		said := slices.Contains(s.out.Notes, "the plan is signed with the key "+signer.Fingerprint())
		if said != (with != "") || len(s.out.Notes) > 1 {
			t.Errorf("with %q: %q", with, s.out.Notes)
		}
	}
	if _, err := open(sealed(t, p), Options{VerifyWith: keys}); err == nil {
		t.Error("a plan without a signature is taken")
	}
}

// TestRunDoesNotBegin: what a run on copies lacks is an error before it begins, and there is no outcome.
func TestRunDoesNotBegin(t *testing.T) {
	onAll := []plan.Mode{plan.Clone, plan.Rebuild, plan.MendFiles, plan.Reseed}
	for name, tc := range map[string]struct {
		modes []plan.Mode
		spoil func(p *plan.Plan, o *ApplyOptions)
		want  string
	}{
		"the source is gone": {onAll, func(p *plan.Plan, _ *ApplyOptions) {
			p.Inputs[0].Where = filepath.Join(t.TempDir(), "gone")
		}, "the sources of the plan cannot be read: "},
		"another source": {onAll, func(p *plan.Plan, _ *ApplyOptions) {
			p.Sources = []plan.Source{{Name: "node2"}}
		}, "source node2 of the plan is missing"},
		"no server": {onAll, func(_ *plan.Plan, o *ApplyOptions) {
			o.EtcdBinary = filepath.Join(t.TempDir(), "gone")
		}, "no such file"},
		"no room": {onAll, func(p *plan.Plan, o *ApplyOptions) {
			p.Rebuilt.Bytes = 1 << 30
			o.room = func(string) (int64, bool) { return -1, true }
		}, " are needed below "},
		"files of another program": {onAll, func(_ *plan.Plan, o *ApplyOptions) {
			folders(t, filepath.Join(o.Work, "others"))
		}, "is not empty, and not of an earlier run"},
		"inside of the source": {onAll, func(p *plan.Plan, o *ApplyOptions) {
			o.Out, o.Work = filepath.Join(p.Inputs[0].Where, "out"), filepath.Join(p.Inputs[0].Where, "work")
		}, "to which nothing is written"},
		"no such database": {[]plan.Mode{plan.Clone}, func(p *plan.Plan, _ *ApplyOptions) { p.Best.Name = "node2" },
			"the database of node2 cannot be read any more"},
		"a server that mends no rows": {[]plan.Mode{plan.Reseed}, func(p *plan.Plan, _ *ApplyOptions) {
			p.Members[1].RestartOn, p.Ways[0].Steps = "etcd 9", []plan.Step{{ID: "s", Kind: plan.StepStart}}
		}, "does not mend bucket members when it starts"},
	} {
		for _, mode := range tc.modes {
			p, o := synthPlan(t), onCopies(t)
			o.Mode, o.Rehearse = mode, mode
			tc.spoil(p, &o)
			file := sealed(t, p)
			out, err := Apply(t.Context(), file, o)
			wantError(t, name+", apply "+string(mode), err, tc.want)
			tried, other := Rehearse(t.Context(), file, o.Options)
			wantError(t, name+", rehearse "+string(mode), other, tc.want)
			if out != nil || tried != nil {
				t.Errorf("%s: %+v, %+v", name, out, tried)
			}
			if _, err := os.Lstat(JournalPath(file)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s, %s: a journal was begun", name, mode)
			}
		}
	}
}

// TestRunWithoutJournal: a run on copies that cannot open its journal does not begin.
func TestRunWithoutJournal(t *testing.T) {
	for _, mode := range []plan.Mode{plan.Clone, plan.Rebuild, plan.MendFiles, plan.Reseed} {
		file, o := sealed(t, synthPlan(t)), onCopies(t)
		o.Mode = mode
		folders(t, JournalPath(file))
		out, err := Apply(t.Context(), file, o)
		wantError(t, string(mode), err, "not a regular file")
		if out != nil {
			t.Errorf("%s: %+v", mode, out)
		}
	}
}

// TestRunIsRefused: a way that people go is not gone by a run, and a rehearsal needs a way that can be tried.
func TestRunIsRefused(t *testing.T) {
	p, o := synthPlan(t), onCopies(t)
	o.Mode, o.Rehearse = plan.Restore, plan.Restore
	file := sealed(t, p)
	_, err := Apply(t.Context(), file, o)
	wantError(t, "apply", err, "restore is done by hand")
	wantRefusal(t, err)
	_, err = Rehearse(t.Context(), file, o.Options)
	wantError(t, "rehearse", err, "the plan has no way restore that is possible")
	wantRefusal(t, err)
	for _, ways := range [][]plan.Way{nil, {{Mode: plan.Reseed, Uses: plan.Live}}} {
		s := &session{plan: &plan.Plan{Mode: plan.Restore, Ways: ways}}
		err := sandboxRun{s}.do(t.Context(), rehearsal, o.Work, "")
		wantError(t, "no way", err, "a plan to restore has no steps that could be tried on copies")
	}
}

// TestRehearseWithoutPlace: a rehearsal of new data dirs needs the folder above its scratch.
func TestRehearseWithoutPlace(t *testing.T) {
	o := onCopies(t)
	o.Rehearse, o.Work = plan.Clone, filepath.Join(t.TempDir(), "gone", "work")
	out, err := Rehearse(t.Context(), sealed(t, synthPlan(t)), o.Options)
	if !errors.Is(err, fs.ErrNotExist) || out != nil {
		t.Errorf("%v, %+v", err, out)
	}
}

// TestFreshOutput: an output folder that cannot be looked at, or that a journal which cannot be read may name, is an
// error.
func TestFreshOutput(t *testing.T) {
	s := &session{file: noJournal(t)}
	wantError(t, "below a file", s.fresh(filepath.Join(plainFile(t), "out"), plan.Clone, "a"), "not a directory")
	wantError(t, "no journal", s.fresh(t.TempDir(), plan.Clone, "a"), "not a regular file")
}

// TestScratchOfARun: it is removed at the end, unless it is kept.
func TestScratchOfARun(t *testing.T) {
	for _, keep := range []bool{false, true} {
		work := filepath.Join(t.TempDir(), "work")
		folders(t, filepath.Join(work, "members"))
		s := &session{o: Options{Keep: keep}}
		if err := s.emptied(work)(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(work); (err == nil) != keep {
			t.Errorf("kept %v: %v", keep, err)
		}
	}
	s := &session{}
	if err := s.emptied("\x00")(); err == nil || !strings.Contains(err.Error(), "invalid argument") {
		t.Errorf("a folder that cannot be removed: %v", err)
	}
}
