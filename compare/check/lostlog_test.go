package check

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// TestVersionByLog: the cluster version is compared with the log as far as the log holds all that was applied.
func TestVersionByLog(t *testing.T) {
	for name, c := range map[string]struct {
		applied, last uint64
		gaps          []replay.Gap
		stored        string
		want          int
	}{
		"as the log set it":              {20, 20, nil, "3.5.0", 0},
		"another one":                    {20, 20, nil, "3.6.0", 1},
		"the log ends before it":         {25, 20, nil, "3.6.0", 0},
		"a hole before what was applied": {20, 20, []replay.Gap{{From: 12, To: 14}}, "3.6.0", 0},
		"a hole before the entry":        {20, 20, []replay.Gap{{From: 5, To: 8}}, "3.6.0", 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := &evidence.Member{Source: &evidence.Source{}, DB: &evidence.DB{}, AppliedMin: c.applied,
				AppliedMax: c.applied}
			m.DB.Cluster.Version = c.stored
			versions := []replay.VersionSet{{Index: 10, Version: "3.5.0"}}
			in := &Input{Members: []*evidence.Member{m}, Replay: &replay.Result{First: 1, Last: c.last, Gaps: c.gaps,
				Survey: &replay.Survey{Versions: versions}}}
			if got := in.clusterVersions().impossible(m); len(got) != c.want {
				t.Errorf("%+v, want %d findings", got, c.want)
			}
		})
	}
}
