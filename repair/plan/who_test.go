package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// anonymous makes the data dir of a source one that does not show whose it is.
func anonymous(r *compare.Report, i int, label string) {
	f := &r.Members[i]
	f.MemberID, f.ClusterID, f.NodeName, f.WAL = 0, 0, "", nil
	r.Sources[i].Name, f.Name = label, label
}

// otherPlace gives a source a label and a server name that no member of the configuration has.
func otherPlace(r *compare.Report, i int, label string) {
	r.Members[i].Name, r.Members[i].NodeName, r.Sources[i].Name = label, "somebody", label
}

// TestWhoseDataDir: a data dir belongs to the member whose ID its log carries. One that carries none, or another, is
// never started in the place of a member.
func TestWhoseDataDir(t *testing.T) {
	const other = dumplog.ID(0xc9)
	for name, tc := range map[string]struct {
		class  check.Class
		change func(r *compare.Report)
		// member is what the plan does to this one, and why.
		member   string
		action   plan.Action
		obstacle plan.Obstacle
		why      string
		caution  string
	}{
		"the one that is left over": {change: func(r *compare.Report) { anonymous(r, 2, "third") }, member: "third",
			action: plan.Replace, obstacle: plan.ObstacleMisplaced,
			why: "its data dir does not show which member it belongs to: it has no log"},
		"left over, and two members are absent": {change: func(r *compare.Report) {
			anonymous(r, 2, "third")
			without(r, 1)
		}, member: "third", action: plan.Retire, obstacle: plan.ObstacleNoIdentity,
			why: "it does not tell whose data dir it is: it has no log"},
		"two that are left over": {change: func(r *compare.Report) {
			another(r, "third", func(*evidence.Facts) {})
			anonymous(r, 3, "third")
			anonymous(r, 2, "fourth")
		}, member: "fourth", action: plan.Retire, obstacle: plan.ObstacleNoIdentity,
			why: "it does not tell whose data dir it is: it has no log"},
		"another cluster under the server name": {change: func(r *compare.Report) { r.Members[2].ClusterID = other },
			member: "node4", action: plan.Replace, obstacle: plan.ObstacleMisplaced,
			why:     "in its place is the data dir of another cluster (c9)",
			caution: "what was written to node4 as another cluster is given up; save it first"},
		"a member that was removed": {change: func(r *compare.Report) { gone(r)(&r.Members[2]) }, member: "node4",
			action: plan.Replace, obstacle: plan.ObstacleMisplaced,
			why: "in its place is the data dir of member dead, which the cluster removed"},
		"a member that nobody knows": {change: func(r *compare.Report) { r.Members[2].MemberID = stranger },
			member: "node4", action: plan.Replace, obstacle: plan.ObstacleMisplaced,
			why: "in its place is the data dir of member dead, which the cluster does not know"},
		"a learner's place": {change: func(r *compare.Report) {
			asLearner(r, 2)
			r.Members[2].MemberID = stranger
		}, member: "node4", action: plan.Remove, obstacle: plan.ObstacleMisplaced,
			why: "in its place is the data dir of member dead"},
		"the peer URL of a member": {change: func(r *compare.Report) {
			f := &r.Members[2]
			row := *rowOf(f, f.MemberID)
			row.ID, f.MemberID = dumpdb.ID(stranger), stranger
			f.Membership.Members = append(f.Membership.Members, row)
			otherPlace(r, 2, "somewhere")
		}, member: "somewhere", action: plan.Replace, obstacle: plan.ObstacleMisplaced,
			why: "in its place is the data dir of member dead"},
		"no member, and no place of one": {change: func(r *compare.Report) {
			another(r, "more", func(f *evidence.Facts) { f.MemberID, f.NodeName = stranger, "more" })
		}, member: "more", action: plan.Retire, obstacle: plan.ObstacleNotMember,
			why: "the cluster has no such member"},
		"another cluster, and no place of a member": {change: func(r *compare.Report) {
			another(r, "more", func(f *evidence.Facts) { f.ClusterID, f.MemberID, f.NodeName = other, stranger, "more" })
		}, member: "more", action: plan.Join, obstacle: plan.ObstacleNotMember,
			why: "it runs as a separate cluster (cluster ID c9)"},
		"a cluster with the same IDs": {class: check.ClassForeignCluster, change: func(r *compare.Report) {
			another(r, "twin", func(*evidence.Facts) {})
		}, member: "twin", action: plan.Retire, obstacle: plan.ObstacleSecondCopy,
			why:     "a separate cluster with the name and peer URL of node4: move its data dir aside",
			caution: "what was written to twin as another cluster is given up"},
		"a second copy": {change: func(r *compare.Report) { another(r, "twin", func(*evidence.Facts) {}) },
			member: "twin", action: plan.Retire, obstacle: plan.ObstacleSecondCopy,
			why: "another copy of the data dir of node4, with its member ID"},
	} {
		t.Run(name, func(t *testing.T) {
			class := tc.class
			if class == "" {
				class = check.ClassMembership
			}
			r := reported(t, "m-healthy-3.5", class, "")
			tc.change(r)
			p := planned(t, r, plan.Options{Best: "node1", Gone: absent(r)})
			m := p.Member(tc.member)
			if m == nil || m.Action != tc.action || m.Obstacle != tc.obstacle || !strings.Contains(m.Why, tc.why) ||
				m.Startable {
				t.Fatalf("%+v, want %s, %s, %q", m, tc.action, tc.obstacle, tc.why)
			}
			if tc.caution != "" && (!hasCaution(p, tc.caution) ||
				!strings.Contains(strings.Join(p.Lost.Save, "\n"), "lost-held-by-"+tc.member+".jsonl")) {
				t.Errorf("cautions %q, saved by %q", p.Cautions, p.Lost.Save)
			}
			if got := stepsAbout(p, plan.Live, m.Name); p.Way(plan.Live).Possible && m.Action == plan.Retire &&
				m.Obstacle == plan.ObstacleNotMember && !slices.Equal(got, []string{"save", "stop", "set-aside"}) {
				t.Errorf("live does %q to it", got)
			}
			if m.Obstacle == plan.ObstacleNoIdentity {
				for _, w := range p.Ways {
					if got := stepsAbout(p, w.Mode, m.Name); len(got) > 0 {
						t.Errorf("%s: %q on a host that is not known", w.Mode, got)
					}
				}
			}
		})
	}
}

// absent are the members whose data dirs are not among the sources, by server name.
func absent(r *compare.Report) (out []string) {
	for _, id := range r.Members[0].Membership.Voters {
		has := false
		for i := range r.Members {
			has = has || r.Members[i].MemberID == id
		}
		if row := rowOf(&r.Members[0], id); !has && row.Name != "node4" {
			out = append(out, row.Name)
		}
	}
	return out
}

func rowOf(f *evidence.Facts, id dumplog.ID) *dumpdb.Member {
	for i := range f.Membership.Members {
		if dumplog.ID(f.Membership.Members[i].ID) == id {
			return &f.Membership.Members[i]
		}
	}
	return nil
}

// TestBetterCopyIsTheMember: of two copies of a member the one that ranks higher is its data dir, whichever comes
// first.
func TestBetterCopyIsTheMember(t *testing.T) {
	for _, better := range []string{"node4", "twin"} {
		r := reported(t, "m-healthy-3.5", check.ClassMemberLostData, cause.DataDirClonedRunningTwice)
		another(r, "twin", func(*evidence.Facts) {})
		for i := range r.Best.Ranking {
			if k := &r.Best.Ranking[i]; k.Member == better {
				r.Best.Ranking[0], *k = *k, r.Best.Ranking[0]
			}
		}
		p := planned(t, r, plan.Options{Best: "node1"})
		want := map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep, "node4": plan.Retire, "twin": plan.Retire}
		want[better] = plan.Replace
		wantActions(t, p, want)
		if m := p.Member(better); !strings.HasPrefix(m.Why, "two processes ran under its ID (node4, twin)") ||
			!hasCaution(p, "what was acknowledged with the help of both copies may be missing everywhere") {
			t.Errorf("%s: %s, cautions %q", better, m.Why, p.Cautions)
		}
	}
}

// TestKeptCopyIsTheMember: the copy that is kept is the member's data dir, whatever the others rank.
func TestKeptCopyIsTheMember(t *testing.T) {
	r := reported(t, "m-healthy-3.5", check.ClassMemberLostData, "")
	another(r, "twin", func(*evidence.Facts) {})
	p := planned(t, r, plan.Options{Best: "twin"})
	wantActions(t, p, map[string]plan.Action{"node1": plan.Keep, "node2": plan.Keep, "node4": plan.Retire,
		"twin": plan.Best})
}

// TestNamesAreUnique: steps refer to names, so a member whose name is the label of another one's source goes by its ID.
func TestNamesAreUnique(t *testing.T) {
	r := reported(t, "m-healthy-3.5", check.ClassDBDamage, "")
	id := r.Members[1].MemberID
	without(r, 1)
	otherPlace(r, 1, "node2") // the data dir of node4, which the user calls node2
	p := planned(t, r, plan.Options{Best: "node1"})
	wantActions(t, p, map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep, id.String(): plan.Replace})
	if m := p.Member(id.String()); m.ServerName() != "node2" || m.Source != "" {
		t.Errorf("%+v, want the member whose server is called node2", m)
	}
}
