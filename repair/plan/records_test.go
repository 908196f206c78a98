package plan_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestPlanListsTheFirstRecords: a plan counts all wrong records, and lists the first ones.
func TestPlanListsTheFirstRecords(t *testing.T) {
	was := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = 1 << 10
	dirs := clustertest.Synth{Members: 3, Entries: 400, Keys: 350, Value: 20, Purged: 390}.Write(t, t.TempDir())
	wal.SegmentSizeBytes = was
	var wrong []int64
	for rev := int64(4); rev < 124; rev++ {
		wrong = append(wrong, rev)
	}
	var specs []evidence.Spec
	for i, revs := range [][]int64{wrong, {398, 399}, {400, 401}} {
		casetest.EditDBOnce(t, dirs[i], casetest.AlterRecords(revs...))
		specs = append(specs, evidence.Spec{Name: filepath.Base(dirs[i]), Where: dirs[i]})
	}
	p, err := plan.New(t.Context(), specs, nil, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if l := p.Lost; p.Best.Name != "node1" || l.Records.Count != 120 || len(l.Records.Rows) != 100 || l.Mend == "" {
		t.Errorf("keeps %s, %d wrong records, %d listed, mended by %q", p.Best.Name, l.Records.Count,
			len(l.Records.Rows), l.Mend)
	}
}

// TestMendRecords: where the best member holds a record that is proven wrong, the plan has the command that brings the
// right one back, if it worked on a copy or could not be tried, and says what came out of that.
func TestMendRecords(t *testing.T) {
	dirs := clustertest.Synth{Members: 3, Entries: 20, Keys: 5, Value: 20}.Write(t, t.TempDir())
	for i, revs := range [][]int64{{4}, {17, 18}, {19, 20}} {
		casetest.EditDB(t, dirs[i], casetest.AlterRecords(revs...))
	}
	var specs []evidence.Spec
	for _, d := range dirs {
		specs = append(specs, evidence.Spec{Name: filepath.Base(d), Where: d})
	}
	command := "etcd-medic repair db node1=" + dirs[0] + " --rebuild --take-proven --with node2=" + dirs[1] +
		" --with node3=" + dirs[2] + " -o node1-mended"
	for name, c := range map[string]struct {
		trials                *trials
		mend, mended, caution string
	}{
		"it works": {trials: &trials{mend: func(*plan.MendJob) (string, error) { return dirs[1], nil }}, mend: command,
			mended: "this; that", caution: "plan again: " + command + " (on a copy: this; that)"},
		"it does not": {trials: &trials{}, mended: "nothing mends it",
			caution: "the right content cannot be brought back: nothing mends it"},
		"no room": {trials: &trials{room: errors.New("the disk is full")}, mend: command,
			mended: "not tried: the disk is full", caution: command},
	} {
		p, err := plan.New(t.Context(), specs, c.trials.scratch, plan.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if p.Best.Name != "node1" || p.Lost.Records.Count != 1 || p.Lost.CommittedEntries != 1 {
			t.Fatalf("%s: keeps %s, loses %+v", name, p.Best.Name, p.Lost)
		}
		if p.Lost.Mend != c.mend || p.Lost.Mended != c.mended || !slices.ContainsFunc(p.Cautions, func(s string) bool {
			return strings.HasPrefix(s, "1 record of node1 is proven wrong: ") && strings.Contains(s, c.caution)
		}) {
			t.Errorf("%s: mended by %q (%s), %q", name, p.Lost.Mend, p.Lost.Mended, p.Cautions)
		}
		if c.trials.room == nil && !slices.Equal(c.trials.mends, []string{"node1: records with node2 with node3"}) {
			t.Errorf("%s: tried %q", name, c.trials.mends)
		}
		file := filepath.Join(t.TempDir(), "plan.yaml")
		if err := p.Save(file); err != nil {
			t.Fatal(err)
		}
		again, err := plan.Load(file)
		if err != nil || again.Lost.Mend != c.mend || again.Lost.Records.Rows[0].Revision.Main != 4 {
			t.Errorf("%s: read again: %v, %+v", name, err, again)
		}
	}
}
