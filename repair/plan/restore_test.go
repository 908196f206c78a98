package plan_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// noMetaPage overwrites both meta pages of a data dir's database.
func noMetaPage(t *testing.T, dir string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "member", "snap", "db"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(slices.Repeat([]byte{0xa5}, 8192), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// restored plans a restore: member node1 was removed, node2 to node4 are damaged, and node2 is given twice. The backup
// is a copy of the database of node1.
func restored(t *testing.T, o plan.Options) *plan.Plan {
	t.Helper()
	dir := evidencetest.Copy(t, evidencetest.Incident(t, "m-healthy-3.5-removed-member"))
	t.Chdir(dir)
	db, err := os.ReadFile(filepath.Join("node1", "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("old.db", db, 0o600); err != nil {
		t.Fatal(err)
	}
	var specs []evidence.Spec
	for _, name := range []string{"node1", "node2", "node3", "node4"} {
		noMetaPage(t, name)
		specs = append(specs, evidence.Spec{Name: name, Where: name})
	}
	if err := os.CopyFS("twice", os.DirFS("node2")); err != nil {
		t.Fatal(err)
	}
	specs = append(specs, evidence.Spec{Name: "twice", Where: "twice"}, evidence.Spec{Name: "old", Where: "old.db"})
	o.Compare = compare.Options{Version: "test"}
	p, err := plan.New(t.Context(), specs, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	if p.Mode != plan.Restore {
		t.Fatalf("mode %s: %s", p.Mode, p.Why)
	}
	return p
}

// TestRestoreOfMembersOnly: a restored cluster has the members of the newest configuration, each once. A member that
// was removed counts in its majority only if it is brought back.
func TestRestoreOfMembersOnly(t *testing.T) {
	at := func(name string) string { return name + "=http://127.146.0." + name[4:] + ":2380" }
	three := []string{at("node2"), at("node3"), at("node4")}
	for name, tc := range map[string]struct {
		o       plan.Options
		node1   plan.Action
		initial []string
		restore string
	}{
		"removed": {plan.Options{}, plan.Retire, three, "etcd-medic restore old.db -o OUT"},
		"brought back": {plan.Options{Replace: []string{"node1"}}, plan.Replace, slices.Insert(slices.Clone(three), 0,
			at("node1")), "etcd-medic restore old.db -o OUT --initial-cluster "},
	} {
		t.Run(name, func(t *testing.T) {
			p := restored(t, tc.o)
			wantActions(t, p, map[string]plan.Action{"node1": tc.node1, "node2": plan.Replace, "node3": plan.Replace,
				"node4": plan.Replace, "twice": plan.Retire})
			initial := strings.Join(tc.initial, ",")
			if strings.HasSuffix(tc.restore, " ") {
				tc.restore += initial
			}
			tc.restore += " --accept-unproven-content"
			if got := p.FirstCommands("plan.yaml"); len(got) != 1 || got[0].String() != tc.restore {
				t.Errorf("first are %q, want %q", got, tc.restore)
			}
			var hosts []string
			for _, c := range p.Way(plan.Restore).Steps[0].ByHand {
				if c.With != "etcdutl" {
					continue
				}
				// A database that was copied has no sha256 at its end.
				hosts = append(hosts, c.On)
				if !strings.HasPrefix(c.Run, "etcdutl snapshot restore old.db --name "+c.On+" --data-dir DATA_DIR "+
					"--initial-cluster "+initial+" ") || !strings.HasSuffix(c.Run, " --skip-hash-check") {
					t.Errorf("on %s: %s", c.On, c.Run)
				}
			}
			if len(hosts) != len(tc.initial) {
				t.Errorf("restored on %q, want %q", hosts, tc.initial)
			}
		})
	}
}
