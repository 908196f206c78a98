package plan

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/shell"
)

// TestCommandsOfAPlan: the commands that show where a plan is, and whether it helped.
func TestCommandsOfAPlan(t *testing.T) {
	for want, got := range map[string]string{
		"etcd-medic repair status ./-plan.yaml": StatusCommand("-plan.yaml").String(),
		"etcd-medic diagnose FRESH_COPIES":      DiagnoseCommand().String(),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestHandOutStandIn: a member that replaces another one for a while gets its data dir with a reseed only.
func TestHandOutStandIn(t *testing.T) {
	p := &Plan{Members: []Member{{Name: "n9", Action: StandIn}}}
	for way, want := range map[Mode]bool{Reseed: true, Rebuild: false} {
		text := ""
		for _, c := range handOutByHand(&builder{p: p, way: way}, nil) {
			text += c.Note + c.Run + "\n"
		}
		if strings.Contains(text, "its data dir is new") != want || strings.Contains(text, "cp -aT") != want {
			t.Errorf("%s: %s", way, text)
		}
	}
	if byHand := StepHandOut.ByHand(p, nil); len(byHand) == 0 || byHand[0].Note != note(CopyOut).Note {
		t.Errorf("%+v", byHand)
	}
}

// TestMendListAlone: a member list is mended from the member's own log, without the sources of the other repairs.
func TestMendListAlone(t *testing.T) {
	x := &Mend{Member: "n1", Repairs: []string{MendLog, MendMeta}, With: []string{"n2"}}
	got := x.commands(&Member{Name: "n1"}, false)
	if len(got) != 3 || !strings.Contains(got[0].Run, "--with") || strings.Contains(got[1].Run, "--with") ||
		!strings.Contains(got[1].Run, "--members-from-raft") {
		t.Errorf("%+v", got)
	}
}

// TestNothingKnown: what is said where the sources show nothing.
func TestNothingKnown(t *testing.T) {
	r := &compare.Report{Sources: []compare.Source{{Name: "b1", Where: "dir/b1"}}}
	pr := &procedures{roster: &roster{p: &Plan{}, sources: &sources{r: r}}}
	all := cmp.Exporter(func(reflect.Type) bool { return true })
	if label, at := pr.backupAtHand(); label != "BACKUP" || !cmp.Equal(at, shell.ToFill("BACKUP"), all) {
		t.Errorf("no best member: %s at %+v", label, at)
	}
	if got := pr.file(r.Sources[0]); got != "dir/b1" {
		t.Errorf("a source without a name of the user: %s", got)
	}
	pr.p.Inputs = []Input{{Name: "b1", Where: "given"}}
	if got := pr.file(r.Sources[0]); got != "given" {
		t.Errorf("a source with a name of the user: %s", got)
	}
	if got := pr.rankOf(&evidence.Facts{Name: "n1"}); got != 0 {
		t.Errorf("no ranking: %d", got)
	}
	r.Best = &compare.Best{Ranking: []compare.Rank{{Member: "n1"}, {Member: "n2"}}}
	for i, name := range []string{"n1", "n2", "not ranked"} {
		if got := pr.rankOf(&evidence.Facts{Name: name}); got != i {
			t.Errorf("%s: %d, want %d", name, got, i)
		}
	}
	if got := pr.unclonable(); got != "the cluster ID is not known" {
		t.Errorf("clones: %q", got)
	}
	if got := pr.unseenHint(); got != "see the other ways with --best" {
		t.Errorf("nothing is unseen: %q", got)
	}
	if got := hardCommit(&evidence.Facts{WAL: &evidence.WALFacts{}}); got != 0 {
		t.Errorf("no HardState: %d", got)
	}
	one, two := whatStartMends(1), whatStartMends(2)
	if !strings.HasPrefix(one, "has ") || !strings.HasPrefix(two, "have ") {
		t.Errorf("%q, %q", one, two)
	}
	lo := &losses{pr.roster}
	pr.p.Lost.Records.Count = 1
	if got := lo.recordsCaution(); !strings.HasSuffix(got, "no database is known to hold the right content") {
		t.Errorf("%q", got)
	}
	pr.p.Mode = Restore
	if got := lo.bumpCaution(); !strings.Contains(got, ": restore with --bump-revision") {
		t.Errorf("%q", got)
	}
}

// TestGivenUp: a member whose data dir is given up is replaced, whatever it holds.
func TestGivenUp(t *testing.T) {
	ro := &roster{p: &Plan{}, sources: &sources{r: &compare.Report{}}, o: Options{Gone: []string{"n1"}}}
	for name, want := range map[string]string{"n1": "its data dir is given up", "n2": "refused"} {
		if got := ro.mustReplace(&Member{Name: name, Obstacle: ObstacleRefused, NotStartable: "refused"}, nil); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestLostBelowSnapshots: what sound snapshots of the logs know to be committed, and the database lacks, is lost.
func TestLostBelowSnapshots(t *testing.T) {
	for name, c := range map[string]struct {
		log    string
		damage bool
		lost   int
	}{"a snapshot": {log: "n1", lost: 3}, "a damaged one": {log: "n1", damage: true}, "of another": {log: "n2"}} {
		f := evidence.Facts{Name: "n1", Snapshots: []evidence.SnapFacts{{Index: 8}}}
		if c.damage {
			f.Snapshots[0].Damage = &evidence.DamageFacts{}
		}
		x := &Rebuilt{Index: 5, Logs: []string{c.log}}
		x.Lost = lostAbove(&compare.Report{Members: []evidence.Facts{f}}, x.Index, x.Logs)
		if got := x.lost(); got != c.lost {
			t.Errorf("%s: %d, want %d", name, got, c.lost)
		}
	}
}
