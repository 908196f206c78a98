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

// TestRowsMended: wrong rows of bucket members are mended where servers of the line cannot remove them, and only if
// that works for all members that stay, together with what prevents a start.
func TestRowsMended(t *testing.T) {
	for name, c := range map[string]struct {
		minor   int
		m       Member
		repairs []string
		want    bool
	}{
		"all can be mended": {minor: 6, m: Member{Source: "n1", Action: Keep, Startable: true},
			repairs: []string{MendMeta}, want: true},
		"with its log": {minor: 6, m: Member{Source: "n1", Action: Replace},
			repairs: []string{MendLog, MendMeta}, want: true},
		"one to be started": {minor: 6, m: Member{Source: "n1", Action: Start},
			repairs: []string{MendMeta}, want: true},
		"servers of 3.5 drop them": {minor: 5, m: Member{Source: "n1", Action: Keep}, repairs: []string{MendMeta}},
		"it starts and is replaced": {minor: 6, m: Member{Source: "n1", Action: Replace, Startable: true},
			repairs: []string{MendMeta}},
		"it joins":                        {minor: 6, m: Member{Source: "n1", Action: Join}, repairs: []string{MendMeta}},
		"its log alone":                   {minor: 6, m: Member{Source: "n1", Action: Keep}, repairs: []string{MendLog}},
		"nothing was mended":              {minor: 6, m: Member{Source: "n1", Action: Keep}},
		"it was not seen":                 {minor: 6, m: Member{Action: Keep}, repairs: []string{MendMeta}},
		"it is retired, and not mendable": {minor: 6, m: Member{Source: "n1", Action: Retire}, want: true},
	} {
		c.m.Name = "n1"
		p := &Plan{Cluster: Cluster{Minor: c.minor, Startable: 3, Quorum: 2}, Members: []Member{c.m,
			{Name: "n2", Source: "n2", Action: Best, Startable: true},
			{Name: "z", Action: Remove, Obstacle: ObstacleBucketOnly}}}
		p.Mends = []Mend{{Member: "n2", Repairs: []string{MendMeta}, Works: true}}
		if c.repairs != nil {
			p.Mends = append(p.Mends, Mend{Member: "n1", Repairs: c.repairs, Works: true})
		}
		pr := &procedures{roster: &roster{p: p}}
		if got := pr.rowsMended(); got != c.want || pr.mendFirst() != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
	w := (&procedures{roster: &roster{p: &Plan{Members: []Member{{Name: "n1", Source: "n1"}}}}}).mendWay()
	if w.Possible || w.Mode != MendFiles || len(w.Steps) > 0 || w.Why == "" {
		t.Errorf("nothing to mend: %+v", w)
	}
}
