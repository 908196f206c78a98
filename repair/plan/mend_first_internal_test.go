package plan

import "testing"

// TestMendFirst: files are mended before anything else where no majority can be started without them and a majority
// can with them, or else the member that would be kept cannot be started.
func TestMendFirst(t *testing.T) {
	for name, c := range map[string]struct {
		startable int
		best      string
		// bestStarts is whether the best member can be started as it is.
		bestStarts bool
		learner    bool
		// sound is that nothing has to be mended.
		sound, want bool
	}{
		"a majority starts":                          {startable: 3, best: "n2", bestStarts: true},
		"a majority starts with it":                  {startable: 2, best: "n2", bestStarts: true, want: true},
		"a learner makes no majority":                {startable: 2, best: "n2", bestStarts: true, learner: true},
		"no majority with it either":                 {startable: 1, best: "n2", bestStarts: true},
		"no majority, and the best one cannot start": {startable: 1, best: "n2", want: true},
		"no majority, and no best one":               {startable: 1, best: "gone", want: true},
		"no majority, and nothing to mend":           {startable: 1, best: "gone", sound: true},
	} {
		p := &Plan{Cluster: Cluster{Startable: c.startable, Quorum: 3}, Members: []Member{
			{Name: "n1", Source: "n1", Action: Keep, Learner: c.learner},
			{Name: "n2", Source: "n2", Action: Best, Startable: c.bestStarts}}}
		p.Best.Name = c.best
		p.Mends = []Mend{{Member: "n1", Repairs: []string{"wal"}, Works: !c.sound}}
		pr := &procedures{roster: &roster{p: p}}
		if got := pr.mendFirst(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
