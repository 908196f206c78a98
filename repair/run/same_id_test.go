package run

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestSeparateClustersOfOneName: data dirs that were restored with the flags of one member have its ID, name and URLs.
// The plan calls those that are given up by their sources: under the others the member answers that is kept.
func TestSeparateClustersOfOneName(t *testing.T) {
	p, err := planIncident(t, "o-restored-set-wrong-same-flags", plan.Options{Best: "r3"})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]bool{}
	for _, name := range []string{"r1", "r2"} {
		m := p.Member(name)
		if m.ServerName() != name || len(m.ClientURLs)+len(m.PeerURLs) > 0 {
			t.Errorf("%s is stopped as %s at %v", name, m.ServerName(), m.ClientURLs)
		}
		files[savePath("backup.db", m)] = true
	}
	if len(files) != 2 {
		t.Errorf("snapshots of both go to %v", files)
	}
	if m := p.Member("r3"); m.ServerName() != "infra0" || len(m.ClientURLs) == 0 {
		t.Errorf("r3 is %+v", m)
	}
}

// TestEndpointsOfOneID: where several members of the plan have one ID, an endpoint is that of the member that the
// operator named.
func TestEndpointsOfOneID(t *testing.T) {
	f := whereOf(t, 3, []string{"node1=http://a:1", "node2=http://b:1", "http://c:1"}, nil)
	two := f.r.plan.Member("node2")
	two.ID, two.Action, two.ClientURLs = 1, plan.Retire, nil
	byID := map[uint64]string{1: "node1", 3: "node3"}
	for e, want := range map[string]string{"http://a:1": "node1", "http://b:1": "node2", "http://c:1": "node1"} {
		if got := f.where.whose(e, 1, byID); got != want {
			t.Errorf("%s is that of %q, want %s", e, got, want)
		}
	}
	if got := f.where.whose("http://b:1", 3, byID); got != "node3" {
		t.Errorf("member 3 answers, and the endpoint is said to be that of %q", got)
	}
	if !f.where.sharedID(1) || f.where.sharedID(3) {
		t.Error("node1 and node2 share an ID, node3 does not")
	}
}

// TestStopOfAMemberWithoutURL: whether a member has stopped whose URL nobody knows, only those can say who stopped it.
func TestStopOfAMemberWithoutURL(t *testing.T) {
	f := whereOf(t, 3, []string{"node1=http://a:1", "node2=http://b:1", "node3=http://c:1"}, nil)
	f.r.steps = []plan.Step{{ID: "01-stop-twin", Kind: plan.StepStop, Member: "twin"}}
	f.r.plan.Members = append(f.r.plan.Members, plan.Member{Name: "twin", ID: 1, Action: plan.Retire})
	m := f.r.plan.Member("twin")
	if f.down(t.Context(), m) {
		t.Error("it was not stopped yet")
	}
	if err := f.r.j.write(Record{State: StateDone, Step: "01-stop-twin"}); err != nil {
		t.Fatal(err)
	}
	if !f.down(t.Context(), m) {
		t.Error("it was stopped, and is said to run")
	}
}
