package run

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

// TestPublishFails: data dirs that cannot be synced or moved are not handed out, and stay in the scratch folder.
func TestPublishFails(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(work string) (out string)
		want  string
	}{
		"nothing to hand out": {func(work string) string {
			if err := os.Rename(filepath.Join(work, "members"), filepath.Join(work, "others")); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(t.TempDir(), "out")
		}, "no such file"},
		"no folder for them": {func(string) string { return filepath.Join(plainFile(t), "above", "out") },
			"not a directory"},
		"a name that is too long": {func(string) string { return filepath.Join(t.TempDir(), strings.Repeat("o", 300)) },
			"(put --work on the same file system as -o)"},
	} {
		s, work := publishing(t)
		s.out.prove("it works", holds, "")
		err := s.publish(t.Context(), work, tc.spoil(work))
		var u *UnfinishedError
		if !errors.As(err, &u) || u.Step != stepHandOut || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		if len(s.out.Dirs) > 0 || s.j.state(stepHandOut) != StateFailed {
			t.Errorf("%s: data dirs %v, %s", name, s.out.Dirs, s.j.state(stepHandOut))
		}
	}
}

// resuming is a run that was killed after it had handed out the data dir of its only member.
func resuming(t *testing.T) (s reseeding, out string) {
	t.Helper()
	p := synthPlan(t)
	p.Members = p.Members[:1]
	out = filepath.Join(t.TempDir(), "out")
	if err := os.CopyFS(filepath.Join(out, "node1"), os.DirFS(p.Inputs[0].Where)); err != nil {
		t.Fatal(err)
	}
	s = reseeding{begun(t, p)}
	return s, out
}

// TestResume: data dirs that were handed out are compared once more. Where that fails, or they do not hold what they
// should, they are not handed out once more.
func TestResume(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(s reseeding, out string)
		want  string
		last  string
	}{
		"a journal that cannot be read": {func(s reseeding, _ string) { s.file = noJournal(t) },
			"not a regular file", ""},
		"they are gone": {func(_ reseeding, out string) {
			if err := os.RemoveAll(out); err != nil {
				t.Fatal(err)
			}
		}, "no such file", stepCompare},
		"as they should be":        {func(reseeding, string) {}, "", stepHandOut},
		"they hold something else": {func(s reseeding, _ string) { s.plan.Best.HashKV++ }, "", stepCompare},
	} {
		s, out := resuming(t)
		h := hashOf(t, filepath.Join(out, "node1", "member", "snap", "db"))
		s.plan.Best.Revision, s.plan.Best.Compact, s.plan.Best.HashKV = h.Rev, h.CompactRev, h.Hash
		tc.spoil(s, out)
		wantError(t, name, s.resume(t.Context(), out), tc.want)
		last := ""
		if n := len(s.out.Steps); n > 0 {
			last = s.out.Steps[n-1].ID
		}
		handed := tc.last == stepHandOut
		done := s.j != nil && s.j.state(stepHandOut) == StateDone
		if last != tc.last || done != handed || s.out.provenWell() != handed {
			t.Errorf("%s: the last step is %q, %+v", name, last, s.out.Proofs)
		}
		if s.j != nil {
			_ = s.j.close()
		}
	}
}

// wayBackOf is, for a live repair of node2, the way back after steps of these kinds about it: the last
// one began, the others are done.
func wayBackOf(t *testing.T, mode plan.Mode, kinds ...plan.StepKind) *WayBack {
	t.Helper()
	p := fakePlan(t, 3, "node2")
	if err := p.LayOut(); err != nil {
		t.Fatal(err)
	}
	file := sealed(t, p)
	j, err := openJournal(file, p.Digest, mode, false, func(Record, bool) {})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.close() }()
	steps := p.Way(plan.Live).Steps
	for i, k := range kinds {
		id := string(k)
		for _, st := range steps {
			if st.Kind == k && st.Member == "node2" {
				id = st.ID
			}
		}
		err := j.write(Record{State: StateBegin, Step: id})
		if err == nil && i < len(kinds)-1 {
			err = j.write(Record{State: StateDone, Step: id})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w, err := Abort(file)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestAbortUnderWay: a step that began and is not recorded as done is named. The way back is that of both outcomes,
// with what shows which one it is.
func TestAbortUnderWay(t *testing.T) {
	w := wayBackOf(t, plan.Live, plan.StepSave, plan.StepStop)
	text, final := backOf(w, "node2")
	if w.UnderWay == nil || !strings.Contains(w.UnderWay.ID, "stop") || len(w.Done) != 1 || final ||
		!strings.Contains(text, "if node2 runs, it was not done. Not done: as it was before this run. Done: stopped, "+
			"and still a member") {
		t.Errorf("under way %+v, done %+v, %q", w.UnderWay, w.Done, text)
	}
	w = wayBackOf(t, plan.Live, plan.StepStop, plan.StepSetAside)
	if text, final = backOf(w, "node2"); final || !strings.Contains(text, "Done: stopped, its data dir is moved aside") ||
		!strings.Contains(text, "mv -T DATA_DIR.before-repair DATA_DIR") || !strings.Contains(text, "systemctl start") {
		t.Errorf("set aside: final %v, %q", final, text)
	}
	w = wayBackOf(t, plan.Live, plan.StepStop, plan.StepRemove)
	if text, final = backOf(w, "node2"); final || w.Untouched ||
		!strings.Contains(text, "if member list shows the ID 2, it was not done. Not done: stopped, and still a member") ||
		strings.Index(text, "systemctl start etcd") > strings.Index(text, "member add") {
		t.Errorf("remove: final %v, %q", final, text)
	}
}

// TestAbortOfCopies: a run that changes copies only has changed no member of the cluster.
func TestAbortOfCopies(t *testing.T) {
	w := wayBackOf(t, plan.Clone, plan.StepStop)
	if w.Mode != plan.Clone || w.Run != 1 || len(w.Look) > 0 || len(w.Members) > 0 {
		t.Errorf("%+v", w)
	}
}

// TestAbortOfARestart: a member that was only started is named, and may go on.
func TestAbortOfARestart(t *testing.T) {
	p := fakePlan(t, 3)
	m := p.Member("node2")
	p.Ways = []plan.Way{{Mode: plan.Live, Steps: []plan.Step{{ID: "s", Kind: plan.StepStart, Member: "node2"}}}}
	b := &back{p: p, w: &WayBack{Done: []StepResult{{ID: "s"}}}}
	mb := b.memberBack(m)
	if mb.State != "started on its own data dir: that may stay" || mb.Final || len(mb.Back) == 0 ||
		!strings.Contains(mb.Back[0].Run, "stop") {
		t.Errorf("%+v", mb)
	}
}

// TestRebuiltIsAnother: data dirs are only made of the database that the plan promises.
func TestRebuiltIsAnother(t *testing.T) {
	p, err := plan.New(t.Context(), []evidence.Spec{cutLog(t)}, try.In(""),
		plan.Options{Gone: []string{"node1", "node2"}})
	if err != nil {
		t.Fatal(err)
	}
	s, set := begun(t, p), opened(t, p)
	out := filepath.Join(t.TempDir(), "out")
	promise := *p.Rebuilt.Promise
	p.Rebuilt.Promise = &promise
	promise.HashKV++
	_, err = cloning{s}.make(t.Context(), plan.Rebuild, out, set)
	wantError(t, "another hash", err, "the rebuilt database is another one than the plan says")
	if _, err := (cloning{s}).make(t.Context(), plan.Rebuild, filepath.Join(out, "gone", "out"), set); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("no place: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestReseedFails: a run that fails in the sandbox hands nothing out, and continues with the same command.
func TestReseedFails(t *testing.T) {
	p, o := synthPlan(t), onCopies(t)
	p.Members = p.Members[:1]
	p.Members[0].PeerURLs = []string{"http://192.0.2.1:2380"}
	o.Mode = plan.Reseed
	out, err := Apply(t.Context(), sealed(t, p), o)
	var u *UnfinishedError
	if !errors.As(err, &u) || u.Step != bootStep.ID || out == nil || out.Reached {
		t.Errorf("%v, %+v", err, out)
	}
	if _, err := os.Lstat(o.Out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("data dirs were handed out: %v", err)
	}
	if _, err := os.Stat(filepath.Join(o.Work, "members", "node1", "member", "snap", "db")); err != nil {
		t.Errorf("the copies are gone: %v", err)
	}
}

// TestMendedOfAnother: a data dir that was mended while a source changed is removed.
func TestMendedOfAnother(t *testing.T) {
	m := mendedAlone(t)
	p := synthPlan(t)
	m.set = opened(t, p)
	touchedDB(t, p)
	m.out = t.TempDir()
	did, err := m.makeDir(t.Context(), &plan.Step{Member: "node1"})
	wantError(t, "a source changed", err, "changed")
	if left, err := os.ReadDir(m.out); did != "" || err != nil || len(left) > 0 {
		t.Errorf("%q, %v is left, %v", did, left, err)
	}
}
