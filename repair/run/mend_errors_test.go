package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// scriptedMending is a run that has mended the data dir of node1, the only source. Its servers do what a script says.
func scriptedMending(t *testing.T, script string) *mending {
	t.Helper()
	p := synthPlan(t)
	p.Members[0].Startable = false
	for i, url := range []string{"http://192.0.2.1:2380", "http://192.0.2.2:2380", "http://192.0.2.3:2380"} {
		p.Members[i].PeerURLs = []string{url}
	}
	p.Member("node2").Source, p.Member("node3").Source = "", ""
	s, set := begun(t, p), opened(t, p)
	st := sandboxAt(t.TempDir())
	st.patience, s.o.limits.step = time.Minute, 20*time.Millisecond
	m := &mending{s: s, st: st, set: set, out: t.TempDir(), r: newRunner(s.state(), st, s.o.limits),
		specs: plan.SpecsOf(set), server: scriptedServer(t, script)}
	m.r.sandbox, m.r.clones = true, true
	if err := os.CopyFS(filepath.Join(m.out, "node1"), os.DirFS(p.Inputs[0].Where)); err != nil {
		t.Fatal(err)
	}
	h := hashOf(t, m.db())
	p.Mends = []plan.Mend{{Member: "node1", Works: true, Repairs: []string{plan.MendDB},
		Promise: &plan.Promise{Revision: h.Rev, HashKV: h.Hash, Compact: h.CompactRev}}}
	return m
}

// hashOf is HashKV of a database at its revision.
func hashOf(t *testing.T, path string) dumpdb.HashKV {
	t.Helper()
	db, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // only read
	h, err := db.HashKV(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// db is the mended database.
func (m *mending) db() string { return filepath.Join(m.out, "node1", "member", "snap", "db") }

// TestMendedIsNotProven: mended data dirs that cannot be read, copied or started are an error of the proof.
func TestMendedIsNotProven(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil  func(m *mending)
		quorum int
		want   string
	}{
		"it is gone": {func(m *mending) { m.out = t.TempDir() }, 2, "node1"},
		"its database cannot be read": {func(m *mending) {
			if err := os.Truncate(m.db(), 0); err != nil {
				t.Fatal(err)
			}
		}, 2, "neither meta page is valid"},
		"it is less than promised":  {func(m *mending) { m.s.plan.Mends[0].Promise.Revision += 1000 }, 2, "revision"},
		"scratch cannot be removed": {func(m *mending) { m.st.dir = plainFile(t) }, 2, "not a directory"},
		"alone, no copy":            {func(m *mending) { m.st.dir = noFolder(t) }, 2, "file exists"},
		"together, no copy":         {func(m *mending) { m.st.dir = noFolder(t) }, 1, "file exists"},
		"alone, it ends":            {func(*mending) {}, 2, "node1"},
		"together, it ends":         {func(*mending) {}, 1, "node1"},
	} {
		m := scriptedMending(t, scriptEnds)
		m.s.plan.Cluster.Quorum = tc.quorum
		tc.spoil(m)
		class, err := m.prove(t.Context())
		wantError(t, name, err, tc.want)
		if name == "alone, it ends" || name == "together, it ends" {
			var ended *node.StartError
			if !errors.As(err, &ended) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if class != "" && !strings.HasPrefix(name, "together") {
			t.Errorf("%s: class %q", name, class)
		}
	}
}

// TestMendedIsNotDiagnosed: a diagnosis that is interrupted, or of sources that changed, is an error.
func TestMendedIsNotDiagnosed(t *testing.T) {
	m := scriptedMending(t, scriptEnds)
	if class, err := m.diagnose(canceled(t)); class != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("%q, %v", class, err)
	}
	touchedDB(t, m.s.plan)
	class, err := m.diagnose(t.Context())
	wantError(t, "a source changed", err, "changed")
	if class != "" || len(m.s.out.Proofs) > 0 {
		t.Errorf("%q, %+v", class, m.s.out.Proofs)
	}
}

// TestMendedTogether: another member than the kept one is asked where that is not among those that run, or is a
// learner. Without a program none starts.
func TestMendedTogether(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(p *plan.Plan)
		want string
	}{
		"the kept one runs":  {func(*plan.Plan) {}, "node1"},
		"it is not a source": {func(p *plan.Plan) { p.Best.Name = "node3" }, "node1"},
		"it is a learner":    {func(p *plan.Plan) { p.Members[0].Learner = true }, "node1"},
		"the second one is asked": {func(p *plan.Plan) {
			p.Best.Name, p.Member("node2").Source = "node2", "node2"
		}, "node2"},
	} {
		m := scriptedMending(t, scriptEnds)
		tc.set(m.s.plan)
		m.s.plan.Mends = append(m.s.plan.Mends, plan.Mend{Member: "node2", Works: true})
		m.s.plan.Member("node2").Startable = false
		for _, from := range []string{"node1", "node2"} {
			folders(t, filepath.Join(m.out, from, "member", "wal"), filepath.Join(m.out, from, "member", "snap"))
		}
		if err := m.together(t.Context()); err == nil {
			t.Errorf("%s: a member that ends serves", name)
		}
		if m.r.plan.Best.Name != tc.want {
			t.Errorf("%s: %s is asked", name, m.r.plan.Best.Name)
		}
	}
	m := scriptedMending(t, scriptEnds)
	if err := os.Remove(m.server.Path); err != nil {
		t.Fatal(err)
	}
	if err := m.together(t.Context()); !errors.Is(err, os.ErrNotExist) || m.st.newest(m.r.some[0]) != nil {
		t.Errorf("without a program: %v", err)
	}
}

// TestMendingSandbox: a sandbox that cannot be made is an error, and nothing is done in it.
func TestMendingSandbox(t *testing.T) {
	for name, spoil := range map[string]func(m *mending){
		"an old one cannot be removed": func(m *mending) { m.st.dir = plainFile(t) },
		"a URL that cannot be read":    func(m *mending) { m.s.plan.Members[1].PeerURLs = []string{"http://["} },
	} {
		m := scriptedMending(t, scriptEnds)
		spoil(m)
		if err := m.sandbox(t.Context(), func() error { t.Errorf("%s: it is used", name); return nil }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestMendingHasNoPlace: mended data dirs need a scratch folder and a place.
func TestMendingHasNoPlace(t *testing.T) {
	for name, spoil := range map[string]func(m *mending){
		"scratch":   func(m *mending) { m.st.dir = noFolder(t) },
		"data dirs": func(m *mending) { m.out = noFolder(t) },
	} {
		m := scriptedMending(t, scriptEnds)
		spoil(m)
		var u *UnfinishedError
		if err := m.steps(t.Context()); !errors.As(err, &u) || u.Step != "a" || len(m.s.out.Steps) > 0 {
			t.Errorf("%s: %v, %+v", name, err, m.s.out.Steps)
		}
	}
}

// TestClonesAreNotProven: new data dirs that are missing or on which no server runs are an error of the proof.
func TestClonesAreNotProven(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(s *session, out string)
		want  string
	}{
		"they are gone": {func(_ *session, out string) {
			if err := os.RemoveAll(filepath.Join(out, "node1")); err != nil {
				t.Fatal(err)
			}
		}, "no such file"},
		"no log": {func(_ *session, out string) {
			err := os.RemoveAll(filepath.Join(out, "node1", "member", "wal"))
			if err != nil {
				t.Fatal(err)
			}
			folders(t, filepath.Join(out, "node1", "member"))
		}, "no such file"},
		"no sandbox": {func(s *session, _ string) { s.plan.Members[0].PeerURLs = []string{"http://["} }, "http://["},
		"it ends":    {func(*session, string) {}, "node1"},
	} {
		p := synthPlan(t)
		p.Members = p.Members[:1]
		p.Members[0].PeerURLs = []string{"http://192.0.2.1:2380"}
		s, out := begun(t, p), t.TempDir()
		if err := os.CopyFS(filepath.Join(out, "node1"), os.DirFS(p.Inputs[0].Where)); err != nil {
			t.Fatal(err)
		}
		tc.spoil(s, out)
		st := sandboxAt(filepath.Join(t.TempDir(), "work"))
		st.patience = time.Minute
		_, err := cloning{s}.prove(t.Context(), newRunner(s.state(), st, s.o.limits), st, out,
			scriptedServer(t, scriptEnds))
		wantError(t, name, err, tc.want)
	}
	p := synthPlan(t)
	p.Members = p.Members[:1]
	p.Members[0].PeerURLs = []string{"http://192.0.2.1:2380"}
	s, st := begun(t, p), sandboxAt(t.TempDir())
	r := newRunner(s.state(), st, s.o.limits)
	if err := (cloning{s}).start(t.Context(), r, st, scriptedServer(t, scriptEnds)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no data dir: %v", err)
	}
}

// TestClonesAreThere: data dirs that an earlier process has made are not made a second time.
func TestClonesAreThere(t *testing.T) {
	s := begun(t, synthPlan(t))
	said, err := cloning{s}.make(t.Context(), plan.Clone, t.TempDir(), &evidence.Set{})
	if err != nil || said != "they are there" {
		t.Errorf("%q, %v", said, err)
	}
}

// TestClonesHaveNoAlarm: the alarm CORRUPT is about the members that are replaced, so that the clones do not have it.
func TestClonesHaveNoAlarm(t *testing.T) {
	for _, alarm := range []string{"CORRUPT", "NOSPACE"} {
		c, m, dir := leftDir(t, func(h *clustertest.Hand) {
			b, err := (&etcdserverpb.AlarmMember{MemberID: 0xa2, Alarm: etcdserverpb.AlarmType_CORRUPT}).Marshal()
			if err != nil {
				t.Fatal(err)
			}
			h.Row("alarm", string(b), "")
		})
		_, best := oldDirOf(t, c, m, dir)
		p := synthPlan(t)
		p.Cluster.Alarms = []evidence.AlarmFacts{{MemberID: 0xa2, Alarm: alarm}}
		s, out := begun(t, p), filepath.Join(t.TempDir(), "out")
		target := datadir.Target{Name: "node2", MemberID: 0xa2, ClusterID: fakeClusterID}
		_, err := cloning{s}.write(t.Context(), best, []datadir.Target{target}, out, datadir.CloneOptions{})
		if err != nil {
			t.Fatal(err)
		}
		db, err := dumpdb.Open(filepath.Join(out, "node2", "member", "snap", "db"))
		if err != nil {
			t.Fatal(err)
		}
		alarms, err := db.Alarms()
		if err != nil || (len(alarms) == 0) != (alarm == "CORRUPT") {
			t.Errorf("%s: %+v, %v", alarm, alarms, err)
		}
		_ = db.Close()
	}
}
