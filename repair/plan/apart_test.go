package plan_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/try"
	"github.com/etcd-medic/etcd-medic/shell"
)

// apart plans for an incident whose first two members have their logs outside of the data dirs.
func apart(t *testing.T, incident string, o plan.Options) *plan.Plan {
	t.Helper()
	t.Chdir(evidencetest.Copy(t, evidencetest.Incident(t, incident)))
	var specs []evidence.Spec
	for i, name := range []string{"node1", "node2", "node3"} {
		s := evidence.Spec{Name: "n" + name[4:], Where: name}
		if i < 2 {
			s.WALDir = "log-of-" + name
			if err := os.Rename(filepath.Join(name, "member", "wal"), s.WALDir); err != nil {
				t.Fatal(err)
			}
		}
		specs = append(specs, s)
	}
	p, err := plan.New(t.Context(), specs, try.In(""), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// byHand are the commands of one kind of step about a member, and the notes.
func byHand(w *plan.Way, kind plan.StepKind, member string) (runs, notes []string) {
	for i := range w.Steps {
		if s := &w.Steps[i]; s.Kind != kind || s.Member != "" && s.Member != member {
			continue
		}
		for _, c := range w.Steps[i].ByHand {
			switch {
			case c.Note != "":
				notes = append(notes, c.Note)
			case c.With == "systemd" && (c.On == member || c.On == ""):
				runs = append(runs, c.Run)
			}
		}
	}
	return runs, notes
}

// TestLogOutsideMoves: where a data dir moves, the log outside of it moves too. A copy may have it inside though the
// server does not.
func TestLogOutsideMoves(t *testing.T) {
	p := apart(t, "n-silent-kv-divergence", plan.Options{Replace: []string{"n3"}})
	const data, log = "mv -T DATA_DIR DATA_DIR.before-repair", " && mv -T WAL_DIR WAL_DIR.before-repair"
	const hint = "where the server has --wal-dir, also: mv -T WAL_DIR WAL_DIR.before-repair (on its old log it " +
		"starts under its old ID)"
	for member, want := range map[string]string{"n2": data + log, "n3": data} {
		runs, notes := byHand(p.Way(plan.Live), plan.StepSetAside, member)
		if !slices.Equal(runs, []string{want}) || slices.Contains(notes, hint) == (member == "n2") {
			t.Errorf("%s is set aside with %q, notes %q", member, runs, notes)
		}
		want = "systemctl stop etcd && " + want + " && cp -aT OUT/node" + member[1:] +
			" DATA_DIR && chown -R --reference=DATA_DIR.before-repair DATA_DIR"
		if member == "n2" {
			want += " && mv -T DATA_DIR/member/wal WAL_DIR"
		}
		runs, notes = byHand(p.Way(plan.Clone), plan.StepHandOut, member)
		if runs[0] != want || !strings.Contains(strings.Join(notes, "\n"),
			"where a server has --wal-dir, before it starts: mv -T WAL_DIR WAL_DIR.before-repair, then mv -T "+
				"DATA_DIR/member/wal WAL_DIR") {
			t.Errorf("%s gets its new data dir with\n%q, want\n%q; notes %q", member, runs, want, notes)
		}
		var back []string
		for _, c := range p.PutBack(p.Member(member)) {
			back = append(back, c.Run+c.Note)
		}
		undo := "mv -T DATA_DIR.before-repair DATA_DIR && mv -T WAL_DIR.before-repair WAL_DIR"
		if member == "n3" {
			undo = "mv -T DATA_DIR.before-repair DATA_DIR\nwhere the server has --wal-dir, also: mv -T " +
				"WAL_DIR.before-repair WAL_DIR"
		}
		if got := strings.Join(back, "\n"); got != undo {
			t.Errorf("%s goes back with %q, want %q", member, got, undo)
		}
	}
}

// TestLogOutsideIsNamed: commands that save what is lost name sources as the user did, and read their logs.
func TestLogOutsideIsNamed(t *testing.T) {
	for _, c := range []struct {
		incident string
		o        plan.Options
		want     []string
	}{
		{"n-silent-kv-divergence", plan.Options{Best: "n2"}, []string{
			"etcd-medic extract n1=node1 /acct/065 --format jsonl -o lost-held-by-n1.jsonl",
			"etcd-medic extract n3=node3 /acct/065 --format jsonl -o lost-held-by-n3.jsonl",
			"etcd-medic dumplog n2=node2 --index 81..81 --values -w jsonl --wal-dir n2=log-of-node2 > " +
				"lost-entries.jsonl"}},
	} {
		if got := apart(t, c.incident, c.o).Lost.Save; !slices.Equal(got, c.want) {
			t.Errorf("%s: saved with\n%s\nwant\n%s", c.incident, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	p := &plan.Plan{Inputs: []plan.Input{{Where: "-data", WALDir: "log"}}, Best: plan.Choice{Name: "n1"},
		Members: []plan.Member{{Name: "n1", Source: "n1", Action: plan.Best}}}
	got := shell.Texts([]shell.Command{plan.StepSetAside.ByHand(p, p.Member("n1"))[0].Args})
	if want := "mv -T DATA_DIR DATA_DIR.before-repair && mv -T WAL_DIR WAL_DIR.before-repair"; got[0] != want {
		t.Errorf("the only source has no name: %s", got)
	}
}
