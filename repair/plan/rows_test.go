package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// zombieRow adds a row of bucket members that raft does not know to node1, and the finding about it.
func zombieRow(r *compare.Report, learner bool) {
	ms := &r.Members[0].Membership
	ms.Members = append(ms.Members, dumpdb.Member{ID: 0xb9, Name: "old", IsLearner: learner,
		PeerURLs: []string{"http://127.9.9.9:2380"}})
	r.Findings = append(r.Findings, check.Finding{Check: check.M07, Kind: check.KindMemberZombie,
		Members: []string{"node1"}, Facts: check.Facts{About: []dumplog.ID{0xb9}}})
}

// TestRestartsMendRows: which servers mend rows of bucket members when they start depends on what is wrong in them and
// on the release. The plan names them, and restarts the members on these.
func TestRestartsMendRows(t *testing.T) {
	promoted := func(*compare.Report) {}
	for name, tc := range map[string]struct {
		incident string
		id       cause.ID
		change   func(r *compare.Report)
		on       string
		rule     *release.Rule
	}{
		"a promotion on 3.5": {"m-healthy-3.5", cause.LearnerPromotionNotPersisted, promoted,
			"etcd 3.5.24 or later of 3.5", release.PromotionSynced},
		"a promotion on 3.6": {"m-healthy-3.6", cause.LearnerPromotionNotPersisted, promoted,
			"the newest etcd 3.6", release.PromotionSynced},
		"a zombie on 3.5": {"m-healthy-3.5", cause.ZombieMembersV3Bucket,
			func(r *compare.Report) { zombieRow(r, false) }, "etcd 3.5.26 or later of 3.5", release.ZombiesRemoved},
		"a zombie on 3.6":   {"m-healthy-3.6", cause.ZombieMembersV3Bucket, func(r *compare.Report) { zombieRow(r, false) }, "", nil},
		"another damage":    {"m-healthy-3.5", cause.DBTruncated, func(r *compare.Report) { brokenDB(r, 2) }, "", nil},
		"a zombie, another": {"m-healthy-3.5", cause.DBTruncated, func(r *compare.Report) { zombieRow(r, false); brokenDB(r, 2) }, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := reported(t, tc.incident, check.ClassMembership, tc.id)
			tc.change(r)
			p := planned(t, r, plan.Options{})
			if p.RestartOn() != tc.on || p.Restarts() != (tc.on != "") || p.RestartRule() != tc.rule {
				t.Errorf("restarts %v on %q, which need %v; want %q, %v", p.Restarts(), p.RestartOn(), p.RestartRule(),
					tc.on, tc.rule)
			}
			got := stepsAbout(p, plan.Live, "node2")
			if want := []string{"stop", "start"}; tc.on != "" && (!slices.Equal(got, want) ||
				p.Member("node2").Action != plan.Restart) {
				t.Errorf("steps of node2: %q, want %q", got, want)
			} else if tc.on == "" && p.Member("node2").Action == plan.Restart {
				t.Errorf("node2 is restarted: %s", p.Member("node2").Why)
			}
			best := p.Way(plan.Live).Steps
			i := slices.IndexFunc(best, func(s plan.Step) bool { return s.Kind == plan.StepStart })
			if tc.on != "" && (best[i].Title != "start node1 again, on "+tc.on &&
				best[i].Title != "start node2 again, on "+tc.on || best[i].Precondition != "its server is "+tc.on) {
				t.Errorf("step %+v", best[i])
			}
		})
	}
}

// TestNoRestartOfWhatIsGone: a member whose data dir was not given, or that is replaced, is not restarted.
func TestNoRestartOfWhatIsGone(t *testing.T) {
	r := reported(t, "m-healthy-3.5", check.ClassMembership, cause.LearnerPromotionNotPersisted)
	without(r, 2)
	p := planned(t, r, plan.Options{Replace: []string{"node2"}})
	wantActions(t, p, map[string]plan.Action{"node1": plan.Best, "node2": plan.Replace, "node4": plan.Keep})
	for _, m := range p.Members {
		if (m.RestartOn != "") != (m.Name == "node1") {
			t.Errorf("%s is restarted on %q", m.Name, m.RestartOn)
		}
	}
	if p.RestartOn() != "etcd 3.5.24 or later of 3.5" {
		t.Errorf("restarts on %q", p.RestartOn())
	}
}

// TestWhatZombiesMean: from 3.6 on, a row that raft does not know counts as a voter, unless it is that of a learner.
// What to do about it, and what never to do, depends on the release.
func TestWhatZombiesMean(t *testing.T) {
	const never, before, meta = "never run etcdctl member remove for b9 on etcd 3.6: etcd 3.6 panics on every member",
		"up to 3.5 no server counts b9, but 3.6 and later list it: before an upgrade let every member start once on " +
			"3.5.26", "without a stop of the cluster: one member at a time, stop it, etcd-medic repair meta DATA_DIR " +
			"--members-from-raft"
	for name, tc := range map[string]struct {
		incident       string
		learner        bool
		voters, quorum int
		says           []string
	}{
		"3.5":              {"m-healthy-3.5", false, 3, 2, []string{never, before}},
		"3.6":              {"m-healthy-3.6", false, 3, 2, []string{never, meta}},
		"3.7":              {"m-healthy-3.7", false, 4, 3, nil},
		"a learner on 3.7": {"m-healthy-3.7", true, 3, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := reported(t, tc.incident, check.ClassMembership, cause.ZombieMembersV3Bucket)
			zombieRow(r, tc.learner)
			zombieRow(r, tc.learner) // said twice, it is one member
			p := planned(t, r, plan.Options{})
			if p.Cluster.Voters != tc.voters || p.Cluster.Quorum != tc.quorum || len(p.Members) != 4 {
				t.Errorf("%d voters, quorum %d, %d members; want %d, %d, 4", p.Cluster.Voters, p.Cluster.Quorum,
					len(p.Members), tc.voters, tc.quorum)
			}
			for _, text := range []string{never, before, meta} {
				if hasCaution(p, text) != slices.Contains(tc.says, text) {
					t.Errorf("it says %q: %v", text, hasCaution(p, text))
				}
			}
		})
	}
}

// TestZombiesWithoutAMajority: servers of 3.7 count such a member, so that a lost voter is one too many, and only new
// databases help.
func TestZombiesWithoutAMajority(t *testing.T) {
	r := reported(t, "m-healthy-3.7", check.ClassMembership, cause.ZombieMembersV3Bucket)
	zombieRow(r, false)
	brokenDB(r, 2)
	p := planned(t, r, plan.Options{})
	const why = "so 2 of 4 voters can be started and 3 are needed, and a forced start does not drop them"
	if p.Mode != plan.Clone || !strings.Contains(p.Why, why) || !strings.HasSuffix(p.Why, "; new databases have raft's "+
		"own list") {
		t.Errorf("mode %s: %s", p.Mode, p.Why)
	}
	if w := p.Way(plan.ForceNewCluster); w.Possible || !strings.Contains(w.Why, why) {
		t.Errorf("forced start %v: %s", w.Possible, w.Why)
	}
	for _, s := range p.Way(plan.Clone).Steps {
		if s.Kind == plan.StepRemove {
			t.Errorf("clones do not have the row, and a step removes %s", s.Member)
		}
	}
	// Without the third voter's data dir there are no clones.
	without(r, 1)
	p = planned(t, r, plan.Options{})
	if p.Mode != plan.RehearseOnly && p.Mode != plan.Clone || p.Missing == nil {
		t.Errorf("mode %s (%s), missing %+v", p.Mode, p.Why, p.Missing)
	}
}
