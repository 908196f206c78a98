package run

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// begun is a session of a plan that has begun a run.
func begun(t *testing.T, p *plan.Plan) *session {
	t.Helper()
	s := &session{plan: p, file: filepath.Join(t.TempDir(), "plan.yaml"), o: onCopies(t).Options, out: &Outcome{}}
	s.o.fill()
	if err := s.journal(plan.Reseed); err != nil {
		t.Fatal(err)
	}
	j := s.j
	t.Cleanup(func() { _ = j.close() })
	return s
}

// noFolder is a path that can be removed, and at which no folder can be made: it goes through a link to nowhere.
func noFolder(t *testing.T) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(t.TempDir(), "gone"), link); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(link, "scratch")
}

// noMark is a path at which a folder can be made, and in it a folder members, but not the mark: its path is too long.
func noMark(t *testing.T) string {
	t.Helper()
	const longest = 4095
	dir := t.TempDir()
	want := longest - len("/"+markFile) + 1
	for len(dir) < want {
		n := min(want-len(dir)-1, 200)
		if want-len(dir)-1-n == 1 { // a slash alone would be left
			n--
		}
		dir += "/" + strings.Repeat("d", n)
	}
	return dir
}

// sandboxAt is a host of scripted members in a folder.
func sandboxAt(dir string) *sandboxHost {
	return &sandboxHost{dir: dir, runs: map[string]*node.Member{}, clients: map[*node.Member]*clientv3.Client{}}
}

// opened are the sources of a plan.
func opened(t *testing.T, p *plan.Plan) *evidence.Set {
	t.Helper()
	set, err := evidence.Open(t.Context(), p.Specs(), evidence.Options{Hash: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	return set
}

// touchedDB changes a source after it was opened.
func touchedDB(t *testing.T, p *plan.Plan) {
	t.Helper()
	db := filepath.Join(p.Inputs[0].Where, "member", "snap", "db")
	st, err := os.Stat(db)
	if err == nil {
		err = os.Truncate(db, st.Size()+1)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestScratchIsNotMade: scratch of an earlier run that cannot be removed, a folder that cannot be made and a mark that
// cannot be written are errors, for each kind of run.
func TestScratchIsNotMade(t *testing.T) {
	for name, dir := range map[string]string{"it cannot be removed": filepath.Join(plainFile(t), "scratch"),
		"no folder": noFolder(t), "no mark": noMark(t)} {
		s := begun(t, synthPlan(t))
		if _, err := (sandboxRun{s}).copySources(t.Context(), sandboxAt(dir), &evidence.Set{}); err == nil {
			t.Errorf("%s: copies are made", name)
		}
		if err := (&mending{s: s, st: sandboxAt(dir)}).clean(); err == nil {
			t.Errorf("%s: files are mended", name)
		}
		r := newRunner(s.state(), nil, s.o.limits)
		r.some = []*plan.Member{}
		ctx := t.Context()
		_, err := cloning{s}.prove(ctx, r, sandboxAt(dir), t.TempDir(), node.Server{})
		if err == nil {
			t.Errorf("%s: clones are proven", name)
		}
	}
}

// TestCopiesOfSources: a source that cannot be copied, or that changed meanwhile, is an error.
func TestCopiesOfSources(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(p *plan.Plan)
		want  string
	}{
		"as it was": {func(*plan.Plan) {}, ""},
		"changed":   {func(p *plan.Plan) { touchedDB(t, p) }, "changed"},
		"gone": {func(p *plan.Plan) {
			if err := os.RemoveAll(p.Inputs[0].Where); err != nil {
				t.Fatal(err)
			}
		}, "no such file"},
	} {
		p := synthPlan(t)
		s, set := begun(t, p), opened(t, p)
		tc.spoil(p)
		_, err := sandboxRun{s}.copySources(t.Context(), sandboxAt(filepath.Join(t.TempDir(), "work")), set)
		wantError(t, name, err, tc.want)
	}
}

// TestStepsAreNotNoted: a run that cannot note where its data dirs will be, does not make them.
func TestStepsAreNotNoted(t *testing.T) {
	p := synthPlan(t)
	s := begun(t, p)
	s.j = closedJournal(t)
	out := filepath.Join(t.TempDir(), "out")
	m := &mending{s: s, st: sandboxAt(t.TempDir()), out: out, r: newRunner(s.state(), nil, s.o.limits)}
	for name, err := range map[string]error{
		"clone":   cloning{s}.steps(t.Context(), plan.Clone, plan.Clone, out, t.TempDir(), nil, node.Server{}),
		"mend":    m.steps(t.Context()),
		"publish": reseeding{s}.publish(t.Context(), t.TempDir(), out),
	} {
		var u *UnfinishedError
		if !errors.As(err, &u) || !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("data dirs were made: %v", err)
	}
}

// TestPlaysNoFurther: a run in a sandbox ends at the first thing that fails: the copies, the sandbox, a member.
func TestPlaysNoFurther(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(s *session, st *sandboxHost, server *node.Server)
		step  string
		want  string
	}{
		"no copies": {func(_ *session, st *sandboxHost, _ *node.Server) { st.dir = noFolder(t) }, "00-copy",
			"file exists"},
		"no sandbox": {func(s *session, _ *sandboxHost, _ *node.Server) {
			s.plan.Members[0].PeerURLs = []string{"http://["}
		}, "", "http://["},
		"the kept one ends": {func(*session, *sandboxHost, *node.Server) {}, "01-start", "node1"},
	} {
		p := synthPlan(t)
		p.Members[0].PeerURLs = []string{"http://192.0.2.1:2380"}
		s, set := begun(t, p), opened(t, p)
		st, server := sandboxAt(filepath.Join(t.TempDir(), "work")), scriptedServer(t, scriptEnds)
		st.patience = s.o.limits.step
		p.Members = p.Members[:1]
		tc.spoil(s, st, &server)
		r := newRunner(s.state(), st, s.o.limits)
		s.out.Way = plan.Live
		err := sandboxRun{s}.play(t.Context(), r, st, set, server)
		var u *UnfinishedError
		if errors.As(err, &u) != (tc.step != "") || u != nil && u.Step != tc.step {
			t.Errorf("%s: %v", name, err)
		}
		wantError(t, name, err, tc.want)
	}
}

// TestIsolationIsNotTried: without a place for its scratch, isolation is not known to work.
func TestIsolationIsNotTried(t *testing.T) {
	s := begun(t, synthPlan(t))
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "gone"))
	if err := s.tryIsolation(t.Context(), node.Server{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestServerOfNoLog: logs that are not read to their ends do not say which server they need.
func TestServerOfNoLog(t *testing.T) {
	p := synthPlan(t)
	set := opened(t, p)
	p.Cluster.ID = set.Members[0].ClusterID
	s := begun(t, p)
	if _, err := s.server(t.Context(), set, true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.server(canceled(t), set, true); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestProofOfNoDirs: data dirs that are missing or cannot be read prove nothing, and are an error.
func TestProofOfNoDirs(t *testing.T) {
	p := synthPlan(t)
	p.Members = p.Members[:1]
	s := begun(t, p)
	st := sandboxAt(t.TempDir())
	r := newRunner(s.state(), st, s.o.limits)
	if _, err := (dirsProof{s}).ofSandbox(t.Context(), r, st); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no data dir: %v", err)
	}
	folders(t, st.dataDir(&p.Members[0]))
	if _, err := (dirsProof{s}).ofSandbox(t.Context(), r, st); err == nil {
		t.Error("an empty data dir is proven")
	}
	spec := evidence.Spec{Name: "node1", Where: p.Inputs[0].Where}
	if err := (dirsProof{s}).kept(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(spec.Where, "member", "snap", "db"), 0); err != nil {
		t.Fatal(err)
	}
	before := len(s.out.Proofs)
	if err := (dirsProof{s}).kept(t.Context(), spec); err == nil || len(s.out.Proofs) != before {
		t.Errorf("a database that cannot be read is kept: %v, %+v", err, s.out.Proofs)
	}
	if _, err := (dirsProof{s}).of(t.Context(), []evidence.Spec{spec}); err == nil {
		t.Error("a database that cannot be read is proven")
	}
}
