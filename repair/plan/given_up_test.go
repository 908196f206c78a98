package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestGivenUp: where no data dir is usable, what the plan gives up is counted from what it makes or restores, and not
// from the source that the diagnosis ranks first.
func TestGivenUp(t *testing.T) {
	const none = "no committed write that another member still has"
	for name, tc := range map[string]struct {
		logs, backup, mended, rebuilt uint64
		mode                          plan.Mode
		lost                          int
		says, save                    string
	}{
		"a backup is restored": {logs: 20, backup: 12, mode: plan.Restore, lost: 8, says: "8 committed entries",
			save: "etcd-medic dumplog node1="},
		"a backup that holds all is restored": {logs: 20, backup: 20, mode: plan.Restore, says: none},
		"no backup is at hand": {logs: 20, mode: plan.Restore,
			says: "everything after the backup that is restored, and no source shows how much that is"},
		"mended, and a backup holds less": {logs: 20, backup: 12, mended: 20, mode: plan.MendFiles, says: none},
		"mended, and a backup holds more": {logs: 18, backup: 20, mended: 18, mode: plan.MendFiles, lost: 2,
			says: "2 committed entries", save: "etcd-medic extract "},
		"rebuilt on a backup": {logs: 20, backup: 12, rebuilt: 18, mode: plan.Rebuild, lost: 2,
			says: "entries 19 to 20, which were committed, and no log at hand holds all of them",
			save: "etcd-medic dumplog --index 19..20 --values -w jsonl -- "},
		"rebuilt from logs alone": {logs: 20, rebuilt: 18, mode: plan.Rebuild, lost: 2,
			says: "entries 19 to 20, which were committed, and no log at hand holds all of them",
			save: "etcd-medic dumplog --index 19..20 --values -w jsonl -- "},
		"rebuilt to the end": {logs: 20, backup: 12, rebuilt: 20, mode: plan.Rebuild, says: none},
	} {
		t.Run(name, func(t *testing.T) {
			specs := cluster(t, tc.logs, tc.logs, tc.logs)
			made := map[string]string{}
			for _, s := range specs {
				made[s.Name] = evidencetest.Copy(t, s.Where)
			}
			blank(t, specs...)
			if tc.backup > 0 {
				specs = append(specs, backupOf(t, "backup", memberDir(t, 0, history{last: tc.backup})))
			}
			x := &trials{}
			if tc.mended > 0 {
				x.mend = func(j *plan.MendJob) (string, error) { return made[j.Source.Name], nil }
			}
			if tc.rebuilt > 0 {
				x.rebuild = madeUpTo(t, tc.rebuilt)
			}
			p := newPlan(t, specs, x, plan.Options{})
			l := &p.Lost
			if p.Mode != tc.mode || l.CommittedEntries != tc.lost || l.AfterEnd != tc.lost || p.GivenUp() != tc.says {
				t.Errorf("mode %s, %d lost, %d after the end: %s", p.Mode, l.CommittedEntries, l.AfterEnd, p.GivenUp())
			}
			if (tc.save != "") != (len(l.Save) == 1) || tc.save != "" && !strings.HasPrefix(l.Save[0], tc.save) {
				t.Errorf("saved by %q, want %q", l.Save, tc.save)
			}
			if l.AfterBackup != (tc.mode == plan.Restore && tc.backup == 0) {
				t.Errorf("after a backup: %t", l.AfterBackup)
			}
			if w := p.Why; tc.mode == plan.MendFiles && strings.HasSuffix(w, "without giving anything up") != (tc.lost == 0) {
				t.Errorf("the way says %q", w)
			}
			wantSaid(t, p, tc.mode == plan.MendFiles && tc.lost > 0)
		})
	}
}

// wantSaid: lost effects are said once. Of a rebuilt database and of a restore another warning says it.
func wantSaid(t *testing.T, p *plan.Plan, want bool) {
	t.Helper()
	if said := hasCaution(p, "will be lost; save them first"); said != want {
		t.Errorf("warnings %q, want lost effects among them: %t", p.Cautions, want)
	}
}

// TestMendedBeside: entries that only the log of a member holds which is started beside the mended ones are not lost.
func TestMendedBeside(t *testing.T) {
	specs := cluster(t, 18, 18, 20)
	made := map[string]string{}
	for _, s := range specs {
		made[s.Name] = evidencetest.Copy(t, s.Where)
	}
	blank(t, specs...)
	x := &trials{mend: func(j *plan.MendJob) (string, error) { return made[j.Source.Name], nil }}
	if p := newPlan(t, specs, x, plan.Options{}); p.Mode != plan.MendFiles || p.Lost.CommittedEntries != 0 {
		t.Errorf("mode %s, lost %+v", p.Mode, p.Lost)
	}
	// The one that has come furthest cannot be mended: what only its log holds is lost.
	x.mend = func(j *plan.MendJob) (string, error) {
		if j.Source.Name == "node3" {
			return "", errors.New("nothing mends it")
		}
		return made[j.Source.Name], nil
	}
	p := newPlan(t, specs, x, plan.Options{})
	if p.Mode != plan.MendFiles || p.Lost.CommittedEntries != 2 || p.GivenUp() != "2 committed entries" ||
		len(p.Lost.Save) != 1 || !strings.Contains(p.Lost.Save[0], "--index 19..20") ||
		!strings.Contains(p.Lost.Save[0], specs[2].Where) {
		t.Errorf("mode %s, %s, saved by %q", p.Mode, p.GivenUp(), p.Lost.Save)
	}
}
