//go:build e2e

package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// playLive carries the plan out against the cluster itself: those of its members that a person would have found running
// are started again, the others stay down. Nothing that was acknowledged may be missing afterwards, and the stopped
// data dirs must be healthy.
func (tr *trouble) playLive(t *testing.T, s *spoiled) {
	p, file := tr.planned(t, s)
	h := &hands{s: s, p: p}
	o := LiveOptions{HostActions: h.do, Backup: filepath.Join(t.TempDir(), "backup.db"),
		Notice: func(n string) { t.Log("notice:", n) }}
	for i := range s.c.Size() {
		o.Endpoints = append(o.Endpoints, s.c.Endpoint(i))
		if m := h.of(i); m != nil && m.Startable && m.Action != plan.Start && m.Action != plan.Retire {
			s.c.StartProcess(i)
			s.c.WaitUntil("its client port is open", func(ctx context.Context) error {
				if !listens(ctx, s.c.Endpoint(i)) {
					return errSilent
				}
				return nil
			})
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute) // 100,010 proposals before 3.6
	defer cancel()
	out, err := Apply(ctx, file, ApplyOptions{Mode: plan.Live, Live: o})
	if out != nil {
		for _, st := range out.Steps {
			t.Logf("%-28s %-12s %6.2fs %s", st.ID, st.State, st.Seconds, st.Detail)
		}
	}
	mustReach(t, out, err)
	var specs []string
	for i := range s.c.Size() {
		m := h.of(i)
		if m == nil || m.Action == plan.Retire || m.Action == plan.Remove {
			continue
		}
		s.c.WaitServing(i)
		s.holdsAll(i, p)
		if !m.Learner {
			s.c.Put(i, "/after", "the repair")
		}
		specs = append(specs, s.c.Name(i)+"="+s.c.DataDir(i))
	}
	s.c.WaitApplied()
	s.c.StopAll()
	r, err := compare.Diagnose(t.Context(), sourcesOf(t, specs), compare.Options{})
	ok(t, err)
	if r.Verdict.Health != check.Healthy {
		t.Errorf("%s: %s", r.Verdict.Class, r.Verdict.Summary)
	}
}

// hands does on the hosts what a live repair asks for.
type hands struct {
	s *spoiled
	p *plan.Plan
}

// of returns the plan's member whose place is host i.
func (h *hands) of(i int) *plan.Member {
	for j := range h.p.Members {
		if m := &h.p.Members[j]; m.ServerName() == h.s.c.Name(i) || m.Name == h.s.c.Name(i) {
			return m
		}
	}
	return nil
}

func (h *hands) do(_ context.Context, st HostStep) error {
	c := h.s.c
	for i := range c.Size() {
		if m := h.of(i); m == nil || m.Name != st.Member.Name {
			continue
		}
		switch dir := c.DataDir(i); {
		case st.Action == "wipe":
			return os.Rename(dir, dir+".aside")
		case (st.Action == "start") == c.Running(i): // it was told so before
		case st.Action == "stop":
			c.Stop(i)
		case st.InitialCluster != "":
			c.Join(i, st.InitialCluster)
		default:
			c.StartProcess(i)
		}
		return nil
	}
	return fmt.Errorf("no host of %s", st.Member.Name)
}
