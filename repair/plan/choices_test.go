package plan_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// TestApplyCommand: the command to carry a plan out has what the cluster needs: addresses, certificates, a user.
func TestApplyCommand(t *testing.T) {
	const live = "etcd-medic repair apply plan.yaml --mode live --endpoints "
	at := func(urls ...string) (ms []plan.Member) {
		for i, u := range urls {
			ms = append(ms, plan.Member{Name: string(rune('a' + i)), ClientURLs: []string{u, "http://other:2379"}})
		}
		return ms
	}
	retired := append(at("http://10.0.0.1:2379", "http://10.0.0.2:2379", "http://10.0.0.3:2379"), plan.Member{Name: "new",
		Action: plan.StandIn})
	retired[1].Action, retired[2].Action = plan.Retire, plan.Remove
	for name, tc := range map[string]struct {
		p         plan.Plan
		mode      plan.Mode
		endpoints []string
		want      string
	}{
		"files": {plan.Plan{}, plan.Clone, nil, "etcd-medic repair apply plan.yaml --mode clone -o OUT"},
		"a server writes the files": {plan.Plan{}, plan.Reseed, nil,
			"etcd-medic repair apply plan.yaml --mode reseed -o OUT --etcd-binary ETCD_BINARY"},
		"no addresses": {plan.Plan{Members: []plan.Member{{Name: "a"}}}, plan.Live, nil, live + "CLIENT_URLS"},
		"addresses": {plan.Plan{Members: at("http://10.0.0.1:2379", "http://10.0.0.2:2379")}, plan.Live, nil,
			live + "http://10.0.0.1:2379,http://10.0.0.2:2379"},
		"members that do not stay, and one that joins": {plan.Plan{Members: retired}, plan.Live, nil,
			live + "http://10.0.0.1:2379 --endpoints CLIENT_URL_OF_NEW"},
		"addresses that were found": {plan.Plan{Members: retired}, plan.Live, []string{"http://h:1", "http://h:2"},
			live + "http://h:1,http://h:2"},
		"certificates": {plan.Plan{Members: at("https://10.0.0.1:2379")}, plan.Live, nil,
			live + "https://10.0.0.1:2379 --cacert CA.crt --cert CLIENT.crt --key CLIENT.key"},
		"auth": {plan.Plan{Members: at("http://10.0.0.1:2379"), Cluster: plan.Cluster{Auth: true}}, plan.Live, nil,
			live + "http://10.0.0.1:2379 --user root"},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.p.ApplyCommand("plan.yaml", tc.mode, tc.endpoints, shell.ToFill("OUT"))
			if got.String() != tc.want {
				t.Errorf("%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// TestWhatIsTried: a rehearsal tries the recommended way if it writes files, else the steps on copies. A reader sees
// the steps of what is recommended or tried.
func TestWhatIsTried(t *testing.T) {
	way := func(m plan.Mode, possible bool) plan.Way { return plan.Way{Mode: m, Possible: possible} }
	reseed := plan.Way{Mode: plan.Reseed, Possible: true, Uses: plan.Live}
	for name, tc := range map[string]struct {
		p      plan.Plan
		tried  plan.Mode
		shown  plan.Mode
		others int
	}{
		"live": {plan.Plan{Mode: plan.Live, Ways: []plan.Way{way(plan.Live, true), way(plan.Clone, true), reseed}},
			plan.Reseed, plan.Live, 3},
		"live, and no sandbox": {plan.Plan{Mode: plan.Live, Ways: []plan.Way{way(plan.Live, true), way(plan.Clone, true),
			way(plan.Reseed, false)}}, plan.Clone, plan.Live, 3},
		"clones": {plan.Plan{Mode: plan.Clone, Ways: []plan.Way{way(plan.Clone, true), reseed}}, plan.Clone, plan.Clone, 2},
		"mended files": {plan.Plan{Mode: plan.MendFiles, Ways: []plan.Way{way(plan.MendFiles, true), reseed}},
			plan.MendFiles, plan.MendFiles, 2},
		"a restore": {plan.Plan{Mode: plan.Restore, Ways: []plan.Way{way(plan.Restore, true)}}, "", plan.Restore, 1},
		"rehearsal only": {plan.Plan{Mode: plan.RehearseOnly, Tries: plan.Reseed, Ways: []plan.Way{way(plan.Live, true),
			way(plan.Clone, true), reseed}}, plan.Reseed, plan.Live, 0},
		"rehearsal of clones only": {plan.Plan{Mode: plan.RehearseOnly, Tries: plan.Clone, Ways: []plan.Way{
			way(plan.Clone, true), reseed}}, plan.Clone, plan.Clone, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.p.Tried(); got != tc.tried {
				t.Errorf("tries %q, want %q", got, tc.tried)
			}
			if got := tc.p.Shown(); got == nil || got.Mode != tc.shown {
				t.Errorf("shows %+v, want %s", got, tc.shown)
			}
			if got := len(tc.p.OtherWays()); got != tc.others {
				t.Errorf("%d other ways, want %d", got, tc.others)
			}
			i := slices.IndexFunc(tc.p.Ways, func(w plan.Way) bool { return w.Mode == tc.p.Mode })
			if i < 0 {
				return
			}
			tc.p.Ways[i].Recommended = true
			for _, w := range tc.p.OtherWays() {
				if w.Mode == tc.p.Mode {
					t.Errorf("the recommended way %s is among the others", w.Mode)
				}
			}
		})
	}
}

// TestBestBySeveralNames: --best takes a label, a server name or an ID. Two sources of one name are none.
func TestBestBySeveralNames(t *testing.T) {
	specs := cluster(t, 20, 20, 20)
	for i, label := range []string{"x", "y", "z"} {
		specs[i].Name = label
	}
	for _, name := range []string{"y", "a2"} {
		p := newPlan(t, specs, &trials{}, plan.Options{Best: name, Replace: []string{"z"}})
		if p.Best.Name != "y" || p.Best.ID != 0xa2 || p.Best.By != "operator" || p.Member("z").Action != plan.Replace {
			t.Errorf("--best %s keeps %+v", name, p.Best)
		}
	}
	twice := append(slices.Clone(specs), evidence.Spec{Name: "y2", Where: specs[1].Where})
	for name, of := range map[string][]evidence.Spec{"nobody": specs, "a2": twice} {
		_, err := plan.New(t.Context(), of, nil, plan.Options{Best: name})
		refusedWith(t, err, "--best "+name+" is not one of the sources", "the sources are x, y, z")
	}
}

// TestPlanAgainKeepsChoices: the commands that plan again repeat what the operator chose, and where the sources are.
func TestPlanAgainKeepsChoices(t *testing.T) {
	specs := []evidence.Spec{{Name: "node1", Where: "copies/1", WALDir: "wal/1"}, {Where: "-copies"}, {Where: "more",
		WALDir: "wal/2"}}
	r := reported(t, "m-healthy-3.5", check.ClassMembership, "")
	for i := range r.Members {
		r.Members[i].Membership.Voters = append(r.Members[i].Membership.Voters, 0xd1)
	}
	without(r, 2)
	without(r, 1)
	p, err := plan.From(r, specs, plan.Options{Best: "node1", Gone: []string{"d1"}, Replace: []string{"node2"}})
	if err != nil {
		t.Fatal(err)
	}
	const again = "etcd-medic repair plan node1=copies/1 --wal-dir node1=wal/1 ./-copies more --wal-dir wal/2 " +
		"--best node1 --lost d1 --replace node2"
	want := []string{again + " node2=DATA_DIR_OF_NODE2 node4=DATA_DIR_OF_NODE4 -o NEW_PLAN.yaml",
		again + " --lost node2 --lost node4 -o NEW_PLAN.yaml"}
	if d := cmp.Diff(want, shell.Texts(p.ApplyCommands("plan.yaml"))); d != "" || p.Mode != plan.RehearseOnly {
		t.Errorf("mode %s, commands (-want +got):\n%s", p.Mode, d)
	}
	if d := cmp.Diff(specs, p.Specs()); d != "" {
		t.Errorf("the sources of the plan (-want +got):\n%s", d)
	}
}

// TestPlanFileOfAnyText: names with characters that a terminal obeys are written in quotes, and read as they were.
func TestPlanFileOfAnyText(t *testing.T) {
	for _, name := range []string{"node\u202e1", "a\x1b[31mred", "no: yes", "true", "12", "", "- x", "täglich"} {
		p := &plan.Plan{SchemaVersion: plan.SchemaVersion, Mode: plan.Restore, Why: name, Members: []plan.Member{{
			Name: name, PeerURLs: []string{name}}}, Lost: plan.Lost{Save: []string{"ls -l"},
			SaveArgs: []shell.Command{shell.Format("ls -l")}}}
		if err := p.Seal(); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "plan.yaml")
		if err := p.Save(file); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !shell.IsSafe(b) || !strings.Contains(string(b), "\n    - [ls, -l]\n") {
			t.Errorf("%q: the file is\n%s", name, b)
		}
		back, err := plan.Load(file)
		if err != nil {
			t.Errorf("%q: %v\n%s", name, err, b)
			continue
		}
		if back.Why != name || back.Members[0].Name != name || back.Members[0].PeerURLs[0] != name {
			t.Errorf("%q is read as %q, %+v", name, back.Why, back.Members)
		}
	}
}

// TestPlanFileContradictsItself: a plan whose text of a command is not its list of arguments is refused, whatever its
// digest says.
func TestPlanFileContradictsItself(t *testing.T) {
	ls := shell.Format("ls -l")
	good, bad := plan.Typed("note", ls), plan.Command{With: "note", Run: "ls -a", Args: ls}
	step := func(c plan.Command) []plan.Way {
		return []plan.Way{{Mode: plan.Live, Steps: []plan.Step{{ID: "01-stop", ByHand: []plan.Command{c}}}}}
	}
	for name, tc := range map[string]struct {
		p    plan.Plan
		says string
	}{
		"a step that agrees": {plan.Plan{Ways: step(good)}, ""},
		"a step": {plan.Plan{Ways: step(bad)},
			"a command of step 01-stop is not what its list of arguments says"},
		"what is missing": {plan.Plan{Missing: &plan.Missing{Give: good, GiveUp: good}}, ""},
		"what to give":    {plan.Plan{Missing: &plan.Missing{Give: bad, GiveUp: good}}, "a command that plans again"},
		"what to give up": {plan.Plan{Missing: &plan.Missing{Give: good, GiveUp: bad}}, "a command that plans again"},
		"what to save": {plan.Plan{Lost: plan.Lost{Save: []string{"ls -a"}, SaveArgs: []shell.Command{ls}}},
			"a command that saves what is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.p.SchemaVersion = plan.SchemaVersion
			if err := tc.p.Seal(); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "plan.yaml")
			if err := tc.p.Save(file); err != nil {
				t.Fatal(err)
			}
			_, err := plan.Load(file)
			if tc.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			refusedWith(t, err, tc.says, "make a new plan with etcd-medic repair plan")
		})
	}
}

// TestCommandsForPeople: the text before a command says on which host it is typed, and placeholders are filled.
func TestCommandsForPeople(t *testing.T) {
	m := &plan.Member{Name: "node 1"}
	c := plan.OnHost(m, "systemd", shell.Format("mv <DATA_DIR> <DATA_DIR>.old"))
	if got := c.Prefix(); got != "systemd     ['node 1'] " {
		t.Errorf("prefix %q", got)
	}
	if got := c.Fill(map[string]string{"DATA_DIR": "/var/lib/my etcd"}); got.Run != got.Args.String() ||
		got.Run != "mv '/var/lib/my etcd' '/var/lib/my etcd.old'" {
		t.Errorf("filled %q", got.Run)
	}
	if got := plan.Typed("etcdctl", plan.Etcdctl(m)); got.Prefix() != "etcdctl     " ||
		got.Run != "etcdctl --endpoints CLIENT_URL_OF_NODE_1" {
		t.Errorf("%q %q", got.Prefix(), got.Run)
	}
}

// TestBackupBesideMembers: a backup among the sources is no member of the plan.
func TestBackupBesideMembers(t *testing.T) {
	r := reported(t, "m-healthy-3.5", check.ClassDBDamage, "")
	brokenDB(r, 2)
	r.Sources = append(r.Sources, compare.Source{Name: "backup", Kind: evidence.KindBackup})
	f := r.Members[0]
	f.Name, f.MemberID, f.WAL = "backup", 0, nil
	r.Members = append(r.Members, f)
	p := planned(t, r, plan.Options{Best: "node1"})
	wantActions(t, p, map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep, "node4": plan.Replace})
}
