package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// told is the report on three sound members, which a test then makes another of; servers are asked with the tag e2e.
func told(t *testing.T, incident string, class check.Class, id cause.ID) *compare.Report {
	t.Helper()
	r, err := compare.Diagnose(t.Context(), []evidence.Spec{{Where: evidencetest.Incident(t, incident)}},
		compare.Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	certainty := cause.Proof
	r.Verdict.Class, r.Verdict.Health = class, check.Unhealthy
	if id != "" {
		r.Verdict.Cause, r.Verdict.Certainty = &id, &certainty
	}
	return r
}

// another adds a source that is like node4.
func another(r *compare.Report, name string, change func(f *evidence.Facts)) {
	f := r.Members[2]
	f.Name = name
	change(&f)
	r.Members = append(r.Members, f)
	r.Sources = append(r.Sources, compare.Source{Name: name, Kind: evidence.KindDataDir})
	rank := r.Best.Ranking[len(r.Best.Ranking)-1]
	rank.Member = name
	r.Best.Ranking = append(r.Best.Ranking, rank)
}

func without(r *compare.Report, i int) {
	r.Members = append(r.Members[:i:i], r.Members[i+1:]...)
	r.Sources = append(r.Sources[:i:i], r.Sources[i+1:]...)
}

const stranger dumplog.ID = 0xdead

// gone makes the facts those of a member that the cluster removed.
func gone(r *compare.Report) func(f *evidence.Facts) {
	for i := range r.Members {
		r.Members[i].Membership.Removed = append(r.Members[i].Membership.Removed, stranger)
	}
	return func(f *evidence.Facts) { f.MemberID = stranger }
}

func planned(t *testing.T, r *compare.Report, o plan.Options) *plan.Plan {
	t.Helper()
	p, err := plan.From(r, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantActions(t *testing.T, p *plan.Plan, want map[string]plan.Action) {
	t.Helper()
	if d := cmp.Diff(want, actions(p)); d != "" {
		t.Errorf("actions (-want +got):\n%s", d)
	}
}

// TestPlanTwoCopiesOfAMember: the copy that stands worse is retired under its own label, so that no hook for it hits
// the other one.
func TestPlanTwoCopiesOfAMember(t *testing.T) {
	r := told(t, "m-healthy-3.5", "member-lost-data", "data-dir-cloned-running-twice")
	another(r, "twin", func(*evidence.Facts) {})
	p := planned(t, r, plan.Options{})
	wantActions(t, p, map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep, "node4": plan.Replace,
		"twin": plan.Retire})
	if m := p.Member("twin"); m.ServerName() != "twin" || len(m.ClientURLs)+len(m.PeerURLs) > 0 ||
		p.Member("node4").Folder() == m.Folder() {
		t.Errorf("the twin is reached as %q at %v", m.ServerName(), m.ClientURLs)
	}
}

// TestPlanRemovedBesideItsSuccessor: nothing is done on hosts for the old data dir, since its name is that of the new
// member.
func TestPlanRemovedBesideItsSuccessor(t *testing.T) {
	r := told(t, "m-healthy-3.5", "membership", "removed-member-data-dir")
	another(r, "old", gone(r))
	p := planned(t, r, plan.Options{Replace: []string{"old"}})
	wantActions(t, p, map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep, "node4": plan.Keep,
		"old": plan.Retire})
	for _, w := range p.Ways {
		for _, s := range w.Steps {
			if s.Member == "old" {
				t.Errorf("%s: step %s", w.Mode, s.ID)
			}
		}
	}
}

// TestPlanRemovedInPlaceOfItsSuccessor: what lies where the successor's data dir should is no second member of the
// plan.
func TestPlanRemovedInPlaceOfItsSuccessor(t *testing.T) {
	r := told(t, "m-healthy-3.5", "membership", "removed-member-data-dir")
	change, id := gone(r), r.Members[2].MemberID
	change(&r.Members[2])
	p := planned(t, r, plan.Options{})
	wantActions(t, p, map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep, "node4": plan.Replace})
	if m := p.Member("node4"); m.ID != id || m.Startable || !strings.Contains(m.Why, stranger.String()) {
		t.Errorf("node4: %+v, want member %s whose place %s has taken", m, id, stranger)
	}
}

// TestPlanRemovedComesBack: --replace brings a removed member back at the peer URL that only old entries of the log
// tell.
func TestPlanRemovedComesBack(t *testing.T) {
	r := told(t, "m-healthy-3.5", "membership", "removed-member-data-dir")
	const url = "http://127.9.9.9:2380"
	change := gone(r)
	another(r, "old", func(f *evidence.Facts) {
		change(f)
		f.NodeName = "former"
		f.Membership.PeerURLs = map[dumplog.ID][]string{stranger: {url}}
	})
	p := planned(t, r, plan.Options{})
	if p.Member("old").Action != plan.Retire || !strings.Contains(strings.Join(p.Cautions, "\n"), "--replace old") {
		t.Errorf("%+v, cautions %q; want it retired, and told how it comes back", p.Member("old"), p.Cautions)
	}
	p = planned(t, r, plan.Options{Replace: []string{"old"}})
	if m := p.Member("old"); m.Action != plan.Join || len(m.PeerURLs) != 1 || m.PeerURLs[0] != url {
		t.Errorf("old: %+v, want it to join at %s", m, url)
	}
}

// TestPlanZombies: what can be done about a row that raft does not know depends on the line.
func TestPlanZombies(t *testing.T) {
	for _, tc := range []struct {
		incident, server  string
		mode              plan.Mode
		others            plan.Action
		removes, restored bool
	}{
		{"m-healthy-3.6", "3.6.x", plan.Clone, plan.Keep, false, false},
		{"m-healthy-3.7", "3.7.x", plan.Live, plan.Keep, true, false},
		{"m-healthy-3.5", "3.5.x", plan.Live, plan.Restart, false, false},
		{"m-healthy-3.5", "3.5.x restored", plan.Live, plan.Restart, false, true},
	} {
		t.Run(tc.server, func(t *testing.T) {
			r := told(t, tc.incident, "membership", "zombie-members-v3-bucket")
			if tc.restored { // a restore of 3.4 leaves such rows, and up to 3.5 nobody counts them
				r.Verdict.Health, r.Verdict.Class, r.Verdict.Cause = check.Healthy, "healthy", nil
			}
			r.Members[0].Membership.Members = append(r.Members[0].Membership.Members,
				dumpdb.Member{ID: 0xb9, Name: "old", PeerURLs: []string{"http://127.9.9.9:2380"}})
			r.Findings = append(r.Findings, check.Finding{Check: "M07", Kind: check.KindMemberZombie,
				Members: []string{"node1"}, Facts: check.Facts{About: []dumplog.ID{0xb9}}})
			p := planned(t, r, plan.Options{})
			wantActions(t, p, map[string]plan.Action{"node1": plan.Best, "node2": tc.others, "node4": tc.others,
				"b9": plan.Remove})
			if p.Mode != tc.mode {
				t.Errorf("mode %s (%s), want %s", p.Mode, p.Why, tc.mode)
			}
			removes := false
			for _, w := range p.Ways {
				for _, s := range w.Steps {
					removes = removes || s.Kind == plan.StepRemove && s.Member == "b9"
				}
			}
			if removes != tc.removes {
				t.Errorf("a step removes it: %v, want %v", removes, tc.removes)
			}
		})
	}
}

// TestPlanAsksForAbsentVoters: a forced start over the head of voters of which nothing was said can only be rehearsed,
// and the plan says what it needs.
func TestPlanAsksForAbsentVoters(t *testing.T) {
	r := told(t, "m-healthy-3.5", "membership", "removed-member-data-dir")
	another(r, "old", gone(r))
	without(r, 1)
	without(r, 1)
	p := planned(t, r, plan.Options{})
	if x := p.Missing; p.Mode != plan.RehearseOnly || p.Tries != plan.Reseed || x == nil ||
		!slices.Equal(x.Members, []string{"node2"}) || p.Shown() != p.Way(plan.ForceNewCluster) {
		t.Fatalf("mode %s (%s), tries %q, missing %+v", p.Mode, p.Why, p.Tries, x)
	}
	if got := shell.Texts(p.FirstCommands("plan.yaml")); !slices.Equal(got, []string{
		"etcd-medic repair plan node2=DATA_DIR_OF_NODE2 -o NEW_PLAN.yaml",
		"etcd-medic repair plan --lost node2 -o NEW_PLAN.yaml",
		"etcd-medic repair rehearse plan.yaml"}) || !slices.Equal(got[:2], shell.Texts(p.ApplyCommands("plan.yaml"))) {
		t.Errorf("next are %q", got)
	}
	if p.Way(plan.ForceNewCluster).Recommended || !strings.Contains(p.Member("node2").Why, "as if it were lost") {
		t.Errorf("ways %+v, node2: %s", p.Ways, p.Member("node2").Why)
	}
	p = planned(t, r, plan.Options{Gone: []string{"node2", "node4"}})
	if p.Mode != plan.ForceNewCluster || p.Member("node2").Action != plan.Replace {
		t.Errorf("mode %s, node2 %+v", p.Mode, p.Member("node2"))
	}
}

// TestPlanDifferentBackups: no ranking decides between backups, and whoever differs from the chosen one is reseeded and
// saved.
func TestPlanDifferentBackups(t *testing.T) {
	r := told(t, "m-healthy-3.5", "data-divergence", "restore-from-different-snapshots")
	f := check.Finding{Check: "K02", Class: "data-divergence", Severity: check.Critical,
		Members: []string{"node1", "node2", "node4"}}
	for m, rev := range map[string]string{"node1": "41", "node2": "51", "node4": "51"} {
		f.Evidence = append(f.Evidence, check.Evidence{Member: m, Bucket: "key", Field: "revision", Observed: rev})
	}
	r.Findings = append(r.Findings, f)
	_, err := plan.From(r, nil, plan.Options{})
	if got := wantRefusal(t, err); !strings.Contains(got.Reason, "different backups") ||
		!strings.Contains(got.Reason, "node4 at revision") {
		t.Errorf("refused for another reason: %v", got)
	}
	p := planned(t, r, plan.Options{Best: "node2"})
	wantActions(t, p, map[string]plan.Action{"node1": plan.Replace, "node2": plan.Best, "node4": plan.Keep})
	if len(p.Lost.Save) != 1 || !strings.Contains(p.Lost.Save[0], "node1") {
		t.Errorf("saved with %q, want what node1 holds", p.Lost.Save)
	}
}
