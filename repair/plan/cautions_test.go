package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// TestCautions: what a person must know before the first step.
func TestCautions(t *testing.T) {
	alone := func(r *compare.Report) { without(r, 2); without(r, 1) }
	addVoters := func(n int) func(r *compare.Report) {
		return func(r *compare.Report) {
			removed := gone(r)
			another(r, "old", func(f *evidence.Facts) { removed(f); f.NodeName = "former" })
			for i := range r.Members {
				for v := range n {
					ms := &r.Members[i].Membership
					ms.Voters = append(ms.Voters, dumplog.ID(0xd1+v))
				}
			}
		}
	}
	lacks := func(proposer string, heldBy ...string) func(r *compare.Report) {
		return func(r *compare.Report) {
			r.Best.Lost.CommittedEntries = 1
			r.Best.Lost.Entries = []compare.LostEntry{{ProposedBy: proposer, HeldBy: heldBy}}
		}
	}
	for name, tc := range map[string]struct {
		class  check.Class
		id     cause.ID
		change func(r *compare.Report)
		o      plan.Options
		says   []string
		not    string
	}{
		"data dirs that were not given": {change: func(r *compare.Report) { without(r, 2) },
			o: plan.Options{Replace: []string{"node2"}}, says: []string{"the data dirs of node4 were not looked at"},
			not: "can still be started, that is the better way"},
		"a majority was not given": {change: alone, o: plan.Options{Gone: []string{"node2", "node4"}},
			says: []string{"the data dirs of node2, node4 were not looked at",
				"if node2, node4 can still be started, that is the better way"}},
		"a downgrade": {change: func(r *compare.Report) {
			r.Findings = append(r.Findings,
				check.Finding{Kind: check.KindDowngradeUnfinished, Members: []string{"node1"}})
		}, o: plan.Options{Replace: []string{"node2"}}, says: []string{"a downgrade is enabled", "etcdctl downgrade cancel"}},
		"no downgrade": {change: func(*compare.Report) {}, o: plan.Options{Replace: []string{"node2"}},
			not: "a downgrade is enabled"},
		"a member that was removed": {change: addVoters(0), says: []string{
			"without old the cluster has 3 voters and survives the loss of 1; repair plan --replace old brings it back"}},
		"a member that was removed from five": {change: addVoters(2), says: []string{
			"without old the cluster has 5 voters and survives the loss of 2"}},
		"a promotion that is not in the database": {id: cause.LearnerPromotionNotPersisted,
			change: func(*compare.Report) {}, says: []string{"servers before 3.5.24 do not mend bucket members"}},
		"what nobody holds": {change: lacks("node9"), o: plan.Options{Replace: []string{"node2"}}, says: []string{
			"1 committed effect that node1 lacks will be lost; save them first",
			"no source's database holds 1 of them; node9 proposed them and is not among the sources"}},
		"what another source holds": {change: lacks("node9", "node2"), o: plan.Options{Replace: []string{"node2"}},
			says: []string{"1 committed effect that node1 lacks will be lost; save them first"},
			not:  "no source's database holds"},
		"nothing is lost": {change: func(*compare.Report) {}, o: plan.Options{Replace: []string{"node2"}},
			says: []string{"members that differ keep acknowledging writes that others refuse"}, not: "will be lost"},
		"nobody that runs is replaced": {change: func(r *compare.Report) {
			brokenDB(r, 2)
			r.Best.Members = []string{"node1", "node2"}
		},
			says: []string{"node2 is as good as node1; --best takes another one"},
			not:  "members that differ keep acknowledging"},
		"auth": {change: func(r *compare.Report) {
			r.Members[0].Auth = &evidence.AuthFacts{Enabled: true, Revision: 9}
		}, o: plan.Options{Best: "node1", Replace: []string{"node2"}},
			says: []string{"auth is on: the steps need the root user or a client certificate with CN=root"}},
		"auth that is off": {change: func(r *compare.Report) { r.Members[0].Auth = &evidence.AuthFacts{Revision: 9} },
			o: plan.Options{Best: "node1", Replace: []string{"node2"}}, not: "auth is on"},
		"a defect that comes back": {id: "some-defect", change: func(r *compare.Report) {
			r.Causes = []compare.Cause{{ID: "some-defect", FixedIn: fixedIn(t, "3.5.30")}, {ID: "other",
				FixedIn: fixedIn(t, "3.5.31")}}
		}, o: plan.Options{Replace: []string{"node2"}}, says: []string{"the defect that caused it (some-defect) " +
			"comes back at the next restart unless every member is upgraded to a version without it: 3.5.30"}, not: "3.5.31"},
	} {
		t.Run(name, func(t *testing.T) {
			r := reported(t, "m-healthy-3.5", check.ClassMembership, tc.id)
			tc.change(r)
			p := planned(t, r, tc.o)
			for _, text := range tc.says {
				if !hasCaution(p, text) {
					t.Errorf("no caution says %q: %q", text, p.Cautions)
				}
			}
			if tc.not != "" && hasCaution(p, tc.not) {
				t.Errorf("a caution says %q: %q", tc.not, p.Cautions)
			}
		})
	}
}

func fixedIn(t *testing.T, releases string) []release.Range {
	t.Helper()
	r, err := release.ParseRange(releases)
	if err != nil {
		t.Fatal(err)
	}
	return []release.Range{r}
}

// TestCautionAboutDowngrades: up to 3.4 a server opens the data dirs of newer ones, and damages them.
func TestCautionAboutDowngrades(t *testing.T) {
	for incident, says := range map[string]bool{"gen-healthy-3.4": true, "m-healthy-3.5": false, "m-healthy-3.6": false} {
		p := planned(t, reported(t, incident, check.ClassMembership, ""), plan.Options{Replace: []string{"node2"}})
		if got := hasCaution(p, "an etcd 3.4 server opens newer data dirs silently and damages them"); got != says {
			t.Errorf("%s: cautions %q", incident, p.Cautions)
		}
	}
}

// TestSavedBeforeTheyAreLost: each source that holds some of what is lost gets a command that writes it out, by the
// place of the source or, where none names it, by its label.
func TestSavedBeforeTheyAreLost(t *testing.T) {
	key := func(s string) check.Bytes { return check.Bytes(s) }
	for name, tc := range map[string]struct {
		keys  []check.Bytes
		count int
		where string
		want  string
	}{
		"the keys": {[]check.Bytes{key("a"), key("b c")}, 2, "copies/2",
			"etcd-medic extract copies/2 a 'b c' --format jsonl -o lost-held-by-node2.jsonl"},
		"a source without a place": {[]check.Bytes{key("a")}, 1, "",
			"etcd-medic extract node2 a --format jsonl -o lost-held-by-node2.jsonl"},
		"more keys than are listed": {[]check.Bytes{key("a")}, 2, "copies/2",
			"etcd-medic extract copies/2 --format jsonl -o lost-held-by-node2.jsonl"},
		"a key like a flag": {[]check.Bytes{key("-a"), key("b")}, 2, "copies/2",
			"etcd-medic extract --format jsonl -o lost-held-by-node2.jsonl -- copies/2 -a b"},
		"a key that is not text": {[]check.Bytes{key("a"), key("\x00")}, 2, "copies/2",
			"etcd-medic extract copies/2 --format jsonl -o lost-held-by-node2.jsonl"},
		"an empty key": {[]check.Bytes{key("")}, 1, "copies/2",
			"etcd-medic extract copies/2 --format jsonl -o lost-held-by-node2.jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			r := reported(t, "m-healthy-3.5", check.ClassDataDivergence, "")
			r.Sources[1].Where = tc.where
			l := &r.Best.Lost
			l.CommittedEntries, l.Keys, l.KeyNames = 2, tc.count, tc.keys
			l.Entries = []compare.LostEntry{{HeldBy: []string{"node2"}}, {HeldBy: []string{"node2", "backup"}}}
			l.Command = shell.Format("etcd-medic dumplog --index 7,8 {}", shell.Source("node2"))
			p := planned(t, r, plan.Options{Replace: []string{"node2"}})
			entries := "etcd-medic dumplog --index 7,8 node2 > lost-entries.jsonl"
			if tc.where != "" {
				entries = strings.Replace(entries, "node2", tc.where, 1)
			}
			if want := []string{tc.want, entries}; !slices.Equal(p.Lost.Save, want) ||
				!slices.Equal(shell.Texts(p.Lost.SaveArgs), want) {
				t.Errorf("saved by\n%s\nwant\n%s", strings.Join(p.Lost.Save, "\n"), strings.Join(want, "\n"))
			}
			if p.Lost.CommittedEntries != 2 || p.Lost.Keys != tc.count || len(p.Lost.Entries) != 2 {
				t.Errorf("lost %+v", p.Lost)
			}
		})
	}
}

// TestNothingLostNothingSaved: without a loss there is no command that saves one.
func TestNothingLostNothingSaved(t *testing.T) {
	r := reported(t, "m-healthy-3.5", check.ClassDataDivergence, "")
	r.Best.Lost.Command = shell.Format("etcd-medic dumplog --index 7,8 {}", shell.Source("node2"))
	r.Best.Lost.Unproven = []string{"the log of node2 starts with entry 51"}
	p := planned(t, r, plan.Options{Replace: []string{"node2"}})
	if len(p.Lost.Save) > 0 || !slices.Equal(p.Lost.Unproven, r.Best.Lost.Unproven) {
		t.Errorf("lost %+v", p.Lost)
	}
	// Other clusters have a history of their own, so all that they hold is saved.
	r = reported(t, "m-healthy-3.5", check.ClassForeignCluster, "")
	r.Members[1].ClusterID, r.Best = 0xc9, nil
	p = planned(t, r, plan.Options{Best: "node1"})
	want := []string{"etcd-medic extract " + r.Sources[1].Where + " --format jsonl -o lost-held-by-node2.jsonl"}
	if !slices.Equal(p.Lost.Save, want) || p.Lost.CommittedEntries != 0 {
		t.Errorf("saved by %q, want %q", p.Lost.Save, want)
	}
}
