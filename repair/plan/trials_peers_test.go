package plan_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// spoilLog damages a record in the middle of a member's log.
func spoilLog(t *testing.T, dir string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	flipAt(t, segments[0], 700)
}

// TestMendsWithLogs: a log is mended with the log of any other member that is whole, even if no server starts on that
// member's data dir. A database takes that of members that are sound first.
func TestMendsWithLogs(t *testing.T) {
	for name, tc := range map[string]struct {
		logs, dbs []int
		given     int
		tried     []string
	}{
		"a log, all others sound": {[]int{0}, nil, 3, []string{"node1: wal", "node1: wal with node2 with node3"}},
		"a log, one other blank": {[]int{0}, []int{2}, 3, []string{"node1: wal", "node1: wal with node2 with node3",
			"node3: db", "node3: db with node2"}},
		"a log and its database": {[]int{0}, []int{0}, 3, []string{"node1: wal db",
			"node1: wal db with node2 with node3"}},
		"a log, and only a blank one": {[]int{0}, []int{1}, 2, []string{"node1: wal", "node1: wal with node2",
			"node2: db"}},
		"two blank":  {nil, []int{0, 1}, 2, []string{"node1: db", "node1: db with node2", "node2: db", "node2: db with node1"}},
		"blank, one": {nil, []int{0}, 1, []string{"node1: db"}},
	} {
		t.Run(name, func(t *testing.T) {
			specs := cluster(t, 20, 20, 20)[:tc.given]
			for _, i := range tc.logs {
				spoilLog(t, specs[i].Where)
			}
			for _, i := range tc.dbs {
				blank(t, specs[i])
			}
			x := &trials{}
			p, err := plan.New(t.Context(), specs, x.scratch, plan.Options{})
			if !slices.Equal(x.mends, tc.tried) {
				t.Errorf("tried %q, want %q", x.mends, tc.tried)
			}
			if err != nil {
				wantRefusal(t, err)
				return
			}
			for _, m := range p.Mends {
				if m.Works || m.Why != "nothing mends it" || p.Way(plan.MendFiles) != nil {
					t.Errorf("%+v", m)
				}
			}
		})
	}
}

// TestMendedWithAnOpenEnd: what a member acknowledged after the end of the logs at hand is not known. Mending its log
// is said to give nothing up only if a majority of the logs is whole.
func TestMendedWithAnOpenEnd(t *testing.T) {
	whole := memberDir(t, 0, history{last: 18})
	for given, says := range map[int]string{
		2: "up to the end of the logs among the sources (whether node1 had acknowledged more is not known)",
		3: "without giving anything up",
	} {
		specs := cluster(t, 18, 18, 18)[:given]
		specs[0].Where = memberDir(t, 0, history{last: 18, commit: 20})
		if given == 3 {
			blank(t, specs[2])
		}
		p := newPlan(t, specs, &trials{mend: func(j *plan.MendJob) (string, error) {
			if j.Source.Name != "node1" {
				return "", errors.New("nothing mends it")
			}
			return whole, nil
		}}, plan.Options{})
		if p.Mode != plan.MendFiles || !strings.HasSuffix(p.Why, "and damaged files can be mended "+says) ||
			!strings.Contains(p.Way(plan.MendFiles).Why, "the files of node1 can be mended "+says) {
			t.Errorf("%d given: mode %s: %s; %s", given, p.Mode, p.Why, p.Way(plan.MendFiles).Why)
		}
		const caution = "node1 may have acknowledged entries above 18, where the logs among the sources end"
		if hasCaution(p, caution) != (given == 2) {
			t.Errorf("%d given: cautions %q", given, p.Cautions)
		}
		beside := p.BesideMended()
		if len(beside) != 1 || beside[0].Name != "node2" || p.Member("node1").Action != plan.MendIt {
			t.Errorf("%d given: beside the mended one %+v run", given, beside)
		}
		if m := p.Member("node3"); given == 2 && (m.Action != plan.Keep ||
			m.Why != "its data dir is not among the sources: not judged, and not touched") {
			t.Errorf("node3 %s: %s", m.Action, m.Why)
		}
	}
}
