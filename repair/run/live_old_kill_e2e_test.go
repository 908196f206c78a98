//go:build e2e

package run

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestE2EKilledAtMemberAdd ends runs that replace one of two voters of 3.3 between the call of member add and the first
// line of the journal about it. The new member votes without having run, so that nothing is decided any more; the next
// run starts it, at once and after the leader has noticed.
func TestE2EKilledAtMemberAdd(t *testing.T) {
	for _, pause := range []time.Duration{0, 5 * time.Second} {
		a := attending{version: "3.3.18", members: 2, replace: []string{"node2"}}.attend(t)
		a.w.stop()
		a.live.HostActions = a.h.do // here the majority is lost for a while
		killed := false
		func() {
			defer func() { killed = recover() != nil }()
			_, err := a.apply(t.Context(), Options{observe: func(r Record, flushed bool) {
				if r.State == StateNote && slices.Contains(slices.Collect(maps.Keys(r.Values)), "id:node2") && !flushed {
					panic("killed")
				}
			}})
			t.Error("not killed:", err)
		}()
		if !killed {
			t.FailNow()
		}
		time.Sleep(pause)
		begin := time.Now()
		out, err := a.apply(t.Context(), Options{})
		mustReach(t, out, err)
		t.Logf("continued after %v, in %v", pause, time.Since(begin))
		if out.Mode != plan.Live || !out.Resumed {
			t.Errorf("%+v", out)
		}
		for i := range a.s.c.Size() {
			a.s.c.WaitServing(i)
			a.s.holdsAll(i, a.p)
		}
	}
}
