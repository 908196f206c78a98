//go:build e2e

package compare_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// A scenario is a text file under testdata/scenarios: one step per line, words separated by spaces, # for comments.
// Members are node1, node2, …. It runs real servers, injects faults, takes the data dirs and says what the diagnosis
// must be.
//
//	lines 3.4.3 3.3.18           run everything below once per version
//	cluster 3 snapshot-count=20  start; further words are flags of the server
//	auth                         users root and app, role app over /app/, auth on; clients log in as root
//	…                            steps: see the tables of steps in scenario_steps_e2e_test.go
//	collect                      stop the members and copy their data dirs
//	…                            damage to the copies: see scenario_damage_e2e_test.go
//	diagnose [node2 …]           diagnose the copies, all or the named
//	want …                       expectations, see wants
//
// With ETCD_MEDIC_KEEP_SCENARIO=DIR the diagnosed copies are kept below DIR.
type scenario struct {
	*testing.T
	name, version string
	c             *clustertest.Cluster
	// dirs are the copies by member name; report is the last diagnosis.
	dirs    map[string]string
	backup  string
	report  *compare.Report
	counter int
	leases  map[string]int64
	rand    *rand.Rand
	// kept is where databases are set aside.
	kept string
	// line is the step being executed, for messages.
	line string
}

// TestE2EScenarios runs every scenario on every line that it names.
func TestE2EScenarios(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "scenarios", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(f), ".txt")
		versions, steps := parseScenario(t, string(b))
		for _, v := range versions {
			t.Run(name+"/"+v, func(t *testing.T) {
				t.Parallel()
				s := &scenario{T: t, name: name, version: v, dirs: map[string]string{}, leases: map[string]int64{},
					rand: rand.New(rand.NewPCG(1, 2))}
				s.run(steps)
			})
		}
	}
}

func parseScenario(t *testing.T, text string) (versions []string, steps [][]string) {
	t.Helper()
	for _, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "lines":
			versions = words[1:]
		default:
			steps = append(steps, words)
		}
	}
	if len(versions) == 0 || len(steps) == 0 {
		t.Fatal("a scenario needs lines and steps")
	}
	return versions, steps
}

func (s *scenario) run(steps [][]string) {
	diagnosed := false
	for _, words := range steps {
		s.line = strings.Join(words, " ")
		do := scenarioSteps[words[0]]
		if do == nil {
			do = scenarioDamage[words[0]]
		}
		if do == nil {
			do = scenarioKVSteps[words[0]]
		}
		if do == nil {
			do = memberSteps[words[0]]
		}
		switch {
		case words[0] == "want":
			s.want(words[1:])
			diagnosed = true
		case do == nil:
			s.Fatalf("unknown step %q", s.line)
		default:
			do(s, words[1:])
		}
	}
	if !diagnosed {
		s.Error("the scenario expects nothing")
	}
}

func (s *scenario) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", s.line, err)
	}
}

// node returns the number of a member from its name.
func (s *scenario) node(name string) int {
	s.Helper()
	n, err := strconv.Atoi(strings.TrimPrefix(name, "node"))
	s.must(err)
	return n - 1
}

func (s *scenario) number(words []string, i, otherwise int) int {
	s.Helper()
	if i >= len(words) {
		return otherwise
	}
	n, err := strconv.Atoi(words[i])
	s.must(err)
	return n
}

// collect stops the members and copies their data dirs. "kill" stops them all at once without a chance to save
// anything.
func (s *scenario) collect(words []string) {
	for i := range s.c.Size() {
		if len(words) > 0 && words[0] == "kill" && s.c.Running(i) {
			s.c.Kill(i)
		}
	}
	s.c.StopAll()
	for i := range s.c.Size() {
		s.dirs[s.c.Name(i)] = evidencetest.Copy(s.T, s.c.DataDir(i))
	}
}

// diagnose judges the copies and proves that they are unchanged.
func (s *scenario) diagnose(names []string) {
	var specs []evidence.Spec
	if len(names) == 0 {
		for n := range s.dirs {
			names = append(names, n)
		}
		slices.Sort(names)
	}
	for _, n := range names {
		where := s.dirs[n]
		if n == "backup" {
			where = s.backup
		}
		if where == "" {
			s.Fatalf("%s: nothing collected for %s", s.line, n)
		}
		specs = append(specs, evidence.Spec{Name: n, Where: where})
	}
	s.keep(specs)
	hashes := map[string]string{}
	for _, sp := range specs {
		h, err := evidencetest.TreeHash(sp.Where)
		s.must(err)
		hashes[sp.Where] = h
	}
	s.report = diagnose(s.T, specs)
	for _, sp := range specs {
		if h, err := evidencetest.TreeHash(sp.Where); err != nil || h != hashes[sp.Where] {
			s.Errorf("%s was changed by the diagnosis (%v)", sp.Where, err)
		}
	}
	everyFindingHasEvidence(s.T, s.report)
}

// keep copies the evidence of a scenario to where a person asked for it.
func (s *scenario) keep(specs []evidence.Spec) {
	to := os.Getenv("ETCD_MEDIC_KEEP_SCENARIO")
	if to == "" {
		return
	}
	for _, sp := range specs {
		dst := filepath.Join(to, s.name, s.version, sp.Name)
		s.must(os.RemoveAll(dst))
		s.must(os.MkdirAll(filepath.Dir(dst), 0o700))
		s.must(os.Rename(evidencetest.Copy(s.T, sp.Where), dst))
	}
}
