//go:build e2e

package run

import (
	stdcmp "cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

// trouble is a way to spoil the membership of a real cluster. Its stopped data dirs are planned, rehearsed, applied as
// clones and as reseeded dirs, and the dirs that result are put in the place of the old ones and started by the
// cluster's own servers: the clones on the first line, the reseeded ones on the others.
type trouble struct {
	name string
	// lines are the versions that it is made with; the cluster has forty keys. live are those on which the plan is
	// carried out against the cluster itself, while it runs.
	lines, live []string
	// size is the number of members if not three.
	size int
	opts clustertest.Options
	// spoil returns the sources at hand, as NAME=DIR.
	spoil  func(t *testing.T, s *spoiled) []string
	choice plan.Options
	want   wanted
}

// wanted is what a plan must say. Empty fields are not held against it.
type wanted struct {
	class, cause string
	mode         plan.Mode
	// acts is what is done to each member, by the name that the plan gives it; a member that is not listed is one too
	// many.
	acts map[string]plan.Action
	// why is a part of the reason that the plan gives for a member; says are parts that the cautions must have.
	why  map[string]string
	says []string
	// refused is a part of the refusal; not says why a way is not possible.
	refused string
	not     map[plan.Mode]string
	// missing are the members whose data dirs the plan needs.
	missing []string
}

// spoiled is the cluster that a trouble works on.
type spoiled struct {
	*testing.T
	c       *clustertest.Cluster
	version string
	// made are the keys that were acknowledged, with their values.
	made map[string]string
	// repairedBy is the version that runs the copies, if not the cluster's.
	repairedBy string
}

// runTroubles plays each trouble on each of its lines.
func runTroubles(t *testing.T, troubles []trouble) {
	for _, tr := range troubles {
		name := strings.ReplaceAll(tr.name, " ", "-")
		for _, v := range tr.lines {
			tr.on(t, name+"/"+v, v, tr.play)
		}
		for _, v := range tr.live {
			tr.on(t, name+"/live/"+v, v, tr.playLive)
		}
	}
}

// on runs a trouble with a new cluster.
func (tr *trouble) on(t *testing.T, name, version string, play func(*testing.T, *spoiled)) {
	server := clustertest.Server(t, version)
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		s := &spoiled{T: t, c: clustertest.Start(t, server, stdcmp.Or(tr.size, 3), tr.opts), version: version,
			made: map[string]string{}}
		s.put(0, 40)
		play(t, s)
	})
}

// put writes n keys through member i.
func (s *spoiled) put(i, n int) {
	s.Helper()
	for range n {
		k, v := fmt.Sprintf("/k/%02d", len(s.made)%50), fmt.Sprint("value ", len(s.made))
		if _, twice := s.made[k]; twice {
			k = fmt.Sprintf("/k/more/%d", len(s.made))
		}
		s.c.Put(i, k, v)
		s.made[k] = v
	}
}

// planned spoils the cluster, which is stopped then, and plans its repair from copies. There is no plan where a refusal
// is wanted.
func (tr *trouble) planned(t *testing.T, s *spoiled) (p *plan.Plan, file string) {
	t.Helper()
	specs := sourcesOf(t, tr.spoil(t, s))
	keepTrouble(t, specs)
	for _, sp := range specs {
		evidencetest.Unchanged(t, sp.Where)
	}
	o := tr.choice
	o.Compare = compare.Options{Version: "test"}
	p, err := plan.New(t.Context(), specs, try.In(""), o)
	var refused *refusal.Error
	switch {
	case tr.want.refused != "":
		if !errors.As(err, &refused) || !strings.Contains(refused.Reason, tr.want.refused) || refused.Hint == "" {
			t.Fatalf("error %v, want a refusal with a hint that says %q", err, tr.want.refused)
		}
		t.Log(refused.Reason, "| hint:", refused.Hint)
		return nil, ""
	case err != nil:
		t.Fatal(err)
	}
	tr.want.check(t, p)
	file = filepath.Join(t.TempDir(), "plan.yaml")
	ok(t, p.Save(file))
	return p, file
}

func (tr *trouble) play(t *testing.T, s *spoiled) {
	p, file := tr.planned(t, s)
	if p == nil {
		return
	}
	if p.Mode == plan.RehearseOnly {
		tr.tryOnly(t, s, p, file)
		return
	}
	ro := Options{EtcdBinary: clustertest.Server(t, stdcmp.Or(s.repairedBy, s.version))}
	first := s.version == tr.lines[0]
	modes := []plan.Mode{plan.Clone, plan.Reseed}
	if p.Mode == plan.MendFiles {
		modes = []plan.Mode{plan.MendFiles, plan.Clone}
	}
	if (p.Way(plan.Reseed).Possible || p.Mode == plan.MendFiles) && first { // reseeding does the same steps
		out, err := Rehearse(t.Context(), file, ro)
		mustReach(t, out, err)
	}
	for _, mode := range modes {
		if !p.Way(mode).Possible {
			continue
		}
		dir := filepath.Join(t.TempDir(), string(mode))
		out, err := Apply(t.Context(), file, ApplyOptions{Mode: mode, Out: dir, Options: ro})
		mustReach(t, out, err)
		onlyWhatWasThere(t, p, dir)
		if (mode == plan.Clone) == first || !p.Way(plan.Reseed).Possible || !p.Way(plan.Clone).Possible {
			s.putInPlace(p, out.Dirs)
		}
	}
}

// tryOnly rehearses a plan that lacks data dirs; nothing of it is carried out.
func (tr *trouble) tryOnly(t *testing.T, s *spoiled, p *plan.Plan, file string) {
	ro := Options{EtcdBinary: clustertest.Server(t, stdcmp.Or(s.repairedBy, s.version))}
	out, err := Rehearse(t.Context(), file, ro)
	mustReach(t, out, err)
	for i := range p.Ways {
		var refused *refusal.Error
		_, err := Apply(t.Context(), file, ApplyOptions{Mode: p.Ways[i].Mode, Out: filepath.Join(t.TempDir(), "out"),
			Options: ro})
		if !errors.As(err, &refused) || !strings.Contains(refused.Hint, strings.Join(tr.want.missing, ", ")) {
			t.Errorf("%s: %v, want a refusal that names what is missing", p.Ways[i].Mode, err)
		}
	}
}

func (w *wanted) check(t *testing.T, p *plan.Plan) {
	t.Helper()
	if w.class != "" && string(p.Verdict.Class) != w.class || w.cause != "" && string(p.Verdict.Cause) != w.cause {
		t.Errorf("verdict %s, %s (%s), want %s, %s", p.Verdict.Class, p.Verdict.Cause, p.Verdict.Summary, w.class,
			w.cause)
	}
	if w.mode != "" && p.Mode != w.mode {
		t.Errorf("mode %s (%s), want %s", p.Mode, p.Why, w.mode)
	}
	acts := actions(p)
	for i := range p.Members {
		if m := &p.Members[i]; m.Name == m.ID.String() && m.NodeName == "" { // it never said its name
			delete(acts, m.Name)
			acts["nobody"] = m.Action
		}
	}
	if p.Missing != nil || len(w.missing) > 0 {
		if p.Missing == nil || !slices.Equal(p.Missing.Members, w.missing) {
			t.Errorf("missing %+v, want %q", p.Missing, w.missing)
		}
	}
	if d := cmp.Diff(w.acts, acts); len(w.acts) > 0 && d != "" {
		t.Errorf("actions (-want +got):\n%s", d)
	}
	if len(actions(p)) != len(p.Members) {
		t.Errorf("two members of the plan have one name: %v", plan.MemberNames(p.Members))
	}
	for name, part := range w.why {
		if m := p.Member(name); m == nil || !strings.Contains(m.Why, part) {
			t.Errorf("%s: %+v, want a reason that says %q", name, m, part)
		}
	}
	for _, part := range w.says {
		if !slices.ContainsFunc(p.Cautions, func(c string) bool { return strings.Contains(c, part) }) {
			t.Errorf("cautions %q, want one that says %q", p.Cautions, part)
		}
	}
	for mode, part := range w.not {
		if way := p.Way(mode); way == nil || way.Possible || !strings.Contains(way.Why, part) {
			t.Errorf("way %s: %+v, want it impossible because %q", mode, way, part)
		}
	}
	for i := range p.Members {
		if m := &p.Members[i]; m.Why == "" || !m.Startable && m.NotStartable == "" {
			t.Errorf("%s: no reason given: %+v", m.Name, m)
		}
	}
}

// putInPlace does what the plan leaves to people: the new data dirs take the place of the old ones and the cluster's
// own servers start on them. Everything that was acknowledged must be there.
func (s *spoiled) putInPlace(p *plan.Plan, dirs map[string]string) {
	s.Helper()
	var run []int
	for i := range s.c.Size() {
		m := byServerName(p, s.c.Name(i), dirs)
		if m == nil {
			continue
		}
		s.c.Wipe(i)
		ok(s.T, os.Rename(dirs[m.Name], s.c.DataDir(i)))
		s.c.StartProcess(i)
		run = append(run, i)
	}
	if len(run) != len(dirs) {
		s.Fatalf("%d of the new data dirs found their place: %v", len(run), dirs)
	}
	for _, i := range run {
		s.c.WaitServing(i)
	}
	s.c.WaitApplied()
	for _, i := range run {
		s.holdsAll(i, p)
		if m := byServerName(p, s.c.Name(i), dirs); !m.Learner {
			s.c.Put(i, "/after", "the repair")
		}
	}
	s.c.WaitApplied()
	for _, i := range run {
		s.c.Kill(i)
	}
}

func byServerName(p *plan.Plan, name string, dirs map[string]string) *plan.Member {
	for i := range p.Members {
		if m := &p.Members[i]; m.ServerName() == name && dirs[m.Name] != "" {
			return m
		}
	}
	return nil
}

// holdsAll reads every acknowledged key through a member.
func (s *spoiled) holdsAll(i int, p *plan.Plan) {
	s.Helper()
	if len(p.Lost.Entries) > 0 || p.Best.By == "operator" {
		return // what is missing is listed
	}
	r, err := s.c.Client(i).Get(s.Context(), "/k/", clientv3.WithPrefix(), clientv3.WithSerializable())
	ok(s.T, err)
	have := map[string]string{}
	for _, kv := range r.Kvs {
		have[string(kv.Key)] = string(kv.Value)
	}
	if d := cmp.Diff(s.made, have); d != "" {
		s.Errorf("%s does not hold what was acknowledged (-want +got):\n%s", s.c.Name(i), d)
	}
}

// keepTrouble copies the sources to a folder that a person asked for with ETCD_MEDIC_KEEP_SCENARIO.
func keepTrouble(t *testing.T, specs []evidence.Spec) {
	t.Helper()
	to := os.Getenv("ETCD_MEDIC_KEEP_SCENARIO")
	if to == "" {
		return
	}
	for _, sp := range specs {
		dst := filepath.Join(to, t.Name(), sp.Name)
		ok(t, os.RemoveAll(dst))
		ok(t, os.MkdirAll(filepath.Dir(dst), 0o700))
		ok(t, os.Rename(evidencetest.Copy(t, sp.Where), dst))
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sourcesOf(t *testing.T, sources []string) []evidence.Spec {
	t.Helper()
	var specs []evidence.Spec
	for _, d := range sources {
		spec, err := evidence.ParseSpec(d)
		ok(t, err)
		specs = append(specs, spec)
	}
	return specs
}
