package soak

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

const healthyKind = "healthy"

// Config is what a run is asked for.
type Config struct {
	// Case, if set, is the name of the one case to judge, or how the names of faults begin: then all cases of these are
	// judged.
	Case string
	// Keep, if set, is a folder that gets the sources of every case that is wrong; with Case, of every case.
	Keep     string
	Diagnose Diagnoser
	Table    *Table
	// Faults is how many faults of the catalogue a history gets, 0 for the usual number.
	Faults int
}

// Run makes the history of a seed and judges its cases.
func Run(t testing.TB, seed uint64, cfg Config) {
	t.Helper()
	setup := SetupOf(seed)
	made := false
	defer func() {
		if !made {
			cfg.Table.Broken(seed, fmt.Sprintf("%s on %s; see the log of the test", setup.Shape.Name, setup.Line))
		}
	}()
	col := Make(t, setup, t.TempDir())
	made = true
	if col.Doubt != "" {
		made = false
		t.Logf("seed %d: %s", seed, col.Doubt)
		return
	}
	r := &runner{t: t, cfg: cfg, col: col, done: map[string]bool{}, base: map[string][]Problem{}}
	if setup.Shape.Defect {
		r.defect()
		return
	}
	r.healthy()
	r.faults()
	r.pairs()
	r.backups()
}

type runner struct {
	t   testing.TB
	cfg Config
	col *Collected
	// done are the names of the cases that were judged.
	done map[string]bool
	// base are the ways in which the answer for undamaged members is wrong, by their names.
	base map[string][]Problem
	// foreign is the data dir of another cluster, forced that of a member that continued by itself; made when a fault
	// asks for them.
	foreign, forced string
	// kept is true if the history was made earlier, without servers at hand.
	kept bool
}

// wants reports whether a case is selected by its name or by a prefix of its kind.
func (c *Config) wants(name string) bool {
	if strings.Contains(c.Case, "/") {
		return name == c.Case
	}
	return strings.HasPrefix(name, c.Case)
}

// wantsKind reports whether a case of that kind is selected.
func (c *Config) wantsKind(kind string) bool {
	want, _, exact := strings.Cut(c.Case, "/")
	return kind == want || !exact && strings.HasPrefix(kind, want)
}

// healthy judges what the servers left: all members, each alone, pairs, with backups and dirs of removed members.
func (r *runner) healthy() {
	truth := Truth{Kind: healthyKind, Healthy: true}
	for _, sources := range subsets(r.col.Members, true) {
		r.judge(healthyKind, sources, truth)
	}
	for _, x := range r.col.Extras {
		r.judge(healthyKind, append(slices.Clone(r.col.Members), x), truth)
		r.judge(healthyKind, []Source{r.col.Members[0], x}, truth)
		if strings.HasPrefix(x.Name, "backup") {
			r.judge(healthyKind, []Source{x}, truth)
		}
	}
	if len(r.col.Extras) > 1 {
		r.judge(healthyKind, append(slices.Clone(r.col.Members), r.col.Extras...), truth)
	}
}

// caseName is KIND/SOURCE+SOURCE, or KIND/all.
func caseName(kind string, sources, members []Source) string {
	var names []string
	all := len(sources) == len(members)
	for i, s := range sources {
		names = append(names, s.Name)
		all = all && s.Name == members[i].Name
	}
	if all && len(members) > 1 {
		return kind + "/all"
	}
	return kind + "/" + strings.Join(names, "+")
}

// judge diagnoses the sources in two orders and enters what is wrong into the table.
func (r *runner) judge(kind string, sources []Source, truth Truth) {
	c := Case{Seed: r.col.Setup.Seed, Name: caseName(kind, sources, r.col.Members), Shape: r.col.Setup.Shape.Name,
		Line: r.col.Setup.Line, Sources: sources, Truth: truth}
	if !r.cfg.wants(c.Name) || r.done[c.Name] {
		return
	}
	r.done[c.Name] = true
	problems := Examine(&c, r.cfg.Diagnose)
	if kind != healthyKind && !r.col.Setup.Shape.Defect {
		base := r.baseOf(sources)
		if slices.ContainsFunc(base, func(p Problem) bool { return p.Sort != Inconclusive }) {
			r.cfg.Table.Skipped()
			return
		}
		if len(base) > 0 { // what keeps the undamaged members from being judged is not the fault's
			problems = slices.DeleteFunc(problems, func(p Problem) bool { return p.Sort == Inconclusive })
		}
	}
	r.cfg.Table.Add(c, problems)
	if r.cfg.Keep != "" && (len(problems) > 0 || r.cfg.Case != "") {
		if err := Keep(r.cfg.Keep, c, problems, r.col); err != nil {
			r.t.Errorf("keep %s: %v", c.Name, err)
		}
	}
}

// baseOf returns what is wrong with the answer for the same members without the fault. Where that is a false alarm, the
// fault cannot be judged.
func (r *runner) baseOf(sources []Source) []Problem {
	var same []Source
	for _, s := range sources {
		for _, m := range slices.Concat(r.col.Members, r.col.Extras) {
			if m.Name == s.Name {
				same = append(same, m)
			}
		}
	}
	name := caseName(healthyKind, same, r.col.Members)
	if _, ok := r.base[name]; !ok {
		c := Case{Sources: same, Truth: Truth{Kind: healthyKind, Healthy: true}}
		r.base[name] = Judge(&c, r.cfg.Diagnose(same))
	}
	return r.base[name]
}

// Examine diagnoses the sources of a case, also in another order, and compares the answers with the truth.
func Examine(c *Case, diagnose Diagnoser) []Problem {
	before := hashes(c.Sources)
	a := diagnose(c.Sources)
	problems := Judge(c, a)
	if len(c.Sources) > 1 {
		other := slices.Clone(c.Sources)
		rng := Rand(c.Seed, c.Name)
		rng.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
		if other[0].Name == c.Sources[0].Name {
			slices.Reverse(other)
		}
		if s := SameAnswer(a, diagnose(other)); s != "" {
			problems = append(problems, Problem{Order, s})
		}
	}
	if !slices.Equal(before, hashes(c.Sources)) {
		problems = append(problems, Problem{Failed, "the diagnosis changed its sources"})
	}
	return problems
}

// Damage applies faults to copies of every kept case without a fault below root, which needs no servers. Faults that
// need some are left out.
func Damage(t testing.TB, root string, cfg Config) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "*-"+healthyKind+"-*", caseFile))
	if err != nil || len(files) == 0 {
		t.Fatalf("no kept cases without a fault below %s: %v", root, err)
	}
	seen := map[uint64]bool{}
	for _, f := range files {
		c, err := readCase(f)
		if err != nil {
			t.Fatal(err)
		}
		col := &Collected{Setup: SetupOf(c.Seed)}
		col.Setup.Line, col.Setup.Shape.Name = c.Line, c.Shape
		for _, s := range c.Sources {
			if s.Aged {
				col.Extras = append(col.Extras, s)
			} else {
				col.Members = append(col.Members, s)
			}
		}
		if len(col.Members) < col.Setup.Shape.Members || col.Setup.Shape.Defect || seen[c.Seed] {
			continue // not all of the cluster, or its faults were judged
		}
		seen[c.Seed] = true
		if b, err := os.ReadFile(filepath.Join(filepath.Dir(f), historyFile)); err == nil {
			col.Log = strings.Split(strings.TrimSpace(string(b)), "\n")
			col.Restored = slices.ContainsFunc(col.Log,
				func(l string) bool { return strings.HasPrefix(l, "restore [") })
		}
		r := &runner{t: t, cfg: cfg, col: col, done: map[string]bool{}, base: map[string][]Problem{}, kept: true}
		r.faults()
		r.pairs()
		r.backups()
		wrong, judged := cfg.Table.Wrong()
		t.Logf("%s: %d of %d cases are wrong so far", filepath.Base(filepath.Dir(f)), wrong, judged)
	}
}

func readCase(file string) (*Case, error) {
	doc, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c := &Case{}
	if err := json.Unmarshal(doc, c); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i, s := range c.Sources {
		c.Sources[i].Path = filepath.Join(filepath.Dir(file), s.Path)
	}
	return c, nil
}

func hashes(sources []Source) []string {
	var out []string
	for _, s := range sources {
		h, err := evidencetest.TreeHash(s.Path)
		out = append(out, fmt.Sprint(h, err))
	}
	return out
}

// caseFile holds a kept case, with paths relative to it, historyFile what was done.
const (
	caseFile    = "case.json"
	historyFile = "history.txt"
)

// Keep copies the sources of a case to a separate folder, with its truth and what was wrong.
func Keep(root string, c Case, problems []Problem, col *Collected) error {
	dir := filepath.Join(root, fmt.Sprintf("%d-%s", c.Seed, strings.ReplaceAll(c.Name, "/", "-")))
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return err
	}
	c.Sources = slices.Clone(c.Sources)
	for i, s := range c.Sources {
		if err := evidencetest.CopyTo(s.Path, filepath.Join(dir, s.Name)); err != nil {
			return err
		}
		c.Sources[i].Path = s.Name
	}
	doc, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	var says strings.Builder
	for _, p := range problems {
		fmt.Fprintf(&says, "%s: %s\n", p.Sort, p.Says)
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, caseFile), doc, 0o600),
		os.WriteFile(filepath.Join(dir, "problems.txt"), []byte(says.String()), 0o600), col.KeepLog(dir))
}

// Again judges every kept case below root once more.
func Again(root string, cfg Config) error {
	files, err := filepath.Glob(filepath.Join(root, "*", caseFile))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no kept cases below %s: %w", root, err)
	}
	for _, f := range files {
		c, err := readCase(f)
		if err != nil {
			return err
		}
		if !cfg.wants(c.Name) {
			continue
		}
		cfg.Table.Add(*c, Examine(c, cfg.Diagnose))
	}
	return nil
}
