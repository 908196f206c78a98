package soak

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/release"
)

// Fault is one way in which a data dir is damaged.
type Fault struct {
	Name string
	// Apply alters the copy and says what that means, or errNotHere when there is nothing that it could alter.
	Apply func(f *Victim) (*Effect, error)
	// Needs is a rule that servers follow where the fault is possible, Not one that they do not; nil asks nothing.
	Needs, Not *release.Rule
	// Raw is true if the database may be damaged afterwards in a way that bbolt cannot read.
	Raw bool
	// Mix is true if files are replaced by others, which may hold the same.
	Mix bool
}

// Victim is a copy of one member's data dir that a fault is applied to.
type Victim struct {
	Dir string
	Rng *rand.Rand
	// Line is the release of the cluster; Others are the data dirs of other sound members, Older is an earlier copy of
	// the same member and Backups are files that were saved earlier.
	Line    string
	Others  []string
	Older   string
	Backups []string
	Live    string
	// Foreign yields the data dir of another cluster, Forced what became of a copy of this one on which a new cluster
	// was forced; nil or "" is neither.
	Foreign, Forced func() string
	// Restored is true if the log begins with a restore: what was there before is in no log.
	Restored bool
	// Led is true if the members ran other releases before Line.
	Led bool
}

// fromStart reports whether the whole content of the database results from the log.
func (f *Victim) fromStart() bool {
	return !f.Restored && startsAtFirstEntry(f.Dir) && !skipsEntries(f.Dir)
}

// Effect says what a fault did and what shows it.
type Effect struct {
	What string
	// Alone is true if the altered data dir shows the fault by itself.
	Alone bool
	// Witness reports whether another member's data dir shows the fault in a comparison; nil if none does.
	Witness func(dir string) bool
	// WithAll is true if the data dirs of all members together show it.
	WithAll bool
	// Benign is true if the copy is as good as before.
	Benign bool
	// Open is true if the right answer is unknown; only accusations of others are judged.
	Open    bool
	Classes []string
	// Inconclusive accepts that answer, MayShareBest that the member is ranked as well as sound ones.
	Inconclusive, MayShareBest bool
	// gone is a row that is lost, "" for none.
	gone string
}

// The classes that faults of each sort may get.
var (
	contentClasses = []string{"data-divergence", "db-damage", "latent-divergence"}
	stateClasses   = []string{"latent-divergence", "data-divergence", "db-damage"}
	memberClasses  = []string{"membership", "db-damage", "data-divergence", "latent-divergence"}
	indexClasses   = []string{"db-damage", "latent-divergence", "data-divergence", "torn-copy", "wal-damage",
		"member-lost-data"}
	pageClasses  = []string{"db-damage"}
	logClasses   = []string{"wal-damage", "member-lost-data", "torn-copy"}
	entryClasses = []string{"wal-damage", "data-divergence", "latent-divergence", "db-damage"}
	snapClasses  = []string{"snapshot-damage", "wal-damage", "torn-copy", "member-lost-data"}
	mixClasses   = []string{"torn-copy", "member-lost-data", "wal-damage", "db-damage", "snapshot-damage",
		"data-divergence"}
)

// Faults is the catalogue.
func Faults() []Fault {
	raw, mix := slices.Clone(pageFaults), slices.Clone(mixFaults)
	for i := range raw {
		raw[i].Raw = true
	}
	for i := range mix {
		mix[i].Mix = true
	}
	return slices.Concat(kvFaults, oldFaults, stateFaults, rowFaults, memberFaults, metaFaults, raw, logFaults,
		recordFaults, entryFaults, snapFaults, foreignFaults, mix)
}

func (f *Fault) exists(line string) bool {
	server := release.Of(line)
	return (f.Needs == nil || server.Has(f.Needs).Certain()) && (f.Not == nil || server.Has(f.Not).Excluded())
}

// perSeed is how many faults a seed applies to copies of its history.
const perSeed = 24

// faults applies some of the catalogue, on one, two or all members or on one that lags, and judges each with all
// members, the damaged one alone and next to a sound one.
func (r *runner) faults() {
	rng := Rand(r.col.Setup.Seed, "faults")
	all := Faults()
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	applied := 0
	for _, f := range all {
		if !f.exists(r.col.lineNow()) {
			continue
		}
		scope := pick(rng, "one", "one", "one", "one", "two", "all", "lagging")
		if r.cfg.Case == "" && applied == cmp.Or(r.cfg.Faults, perSeed) {
			return
		}
		if r.fault(f, scope) {
			applied++
		}
	}
}

// lineNow is the release that the members ran last.
func (c *Collected) lineNow() string { return c.Setup.Line }

// fault applies one fault to copies; it returns false when there was nothing to alter.
func (r *runner) fault(f Fault, scope string) bool {
	kind := f.Name
	if !r.cfg.wantsKind(kind) {
		return false
	}
	rng := Rand(r.col.Setup.Seed, "fault "+kind)
	victims := r.victims(rng, scope)
	if len(victims) == 0 {
		return false
	}
	root, err := os.MkdirTemp(r.t.TempDir(), "fault")
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(root) }()
	sources, effects := slices.Clone(r.col.Members), map[string]*Effect{}
	for _, i := range victims {
		effect := r.damage(f, sources, i, root)
		if effect == nil {
			return false
		}
		effects[sources[i].Name] = effect
	}
	first := sources[victims[0]]
	r.judge(kind, sources, truthOf(kind, len(r.col.Members), sources, effects))
	r.judge(kind, []Source{first}, truthOf(kind, len(r.col.Members), []Source{first}, effects))
	together := func(sources ...Source) {
		r.judge(kind, sources, truthOf(kind, len(r.col.Members), sources, effects))
	}
	for _, s := range sources {
		if effects[s.Name] == nil {
			together(s, first)
			break
		}
	}
	if len(victims) > 1 && len(sources) > 2 { // members damaged in the same way
		together(first, sources[victims[1]])
	}
	if len(r.col.Extras) > 0 {
		x := r.col.Extras[rng.IntN(len(r.col.Extras))]
		together(append(slices.Clone(sources), x)...)
		together(first, x)
	}
	return true
}

// damage applies a fault to a copy of source i below root, which takes the place of the source; nil if there is nothing
// that the fault could alter.
func (r *runner) damage(f Fault, sources []Source, i int, root string) *Effect {
	dir := filepath.Join(root, sources[i].Name)
	if err := evidencetest.CopyTo(sources[i].Path, dir); err != nil {
		r.t.Fatal(err)
	}
	effect, err := f.Apply(r.victim(i, f.Name, dir))
	switch {
	case errors.Is(err, errNotHere):
		return nil
	case err != nil:
		r.t.Errorf("seed %d: fault %s: %v", r.col.Setup.Seed, f.Name, err)
		return nil
	}
	if same(sources[i].Path, dir, !f.Raw) {
		if !f.Mix {
			r.t.Errorf("seed %d: fault %s changed nothing", r.col.Setup.Seed, f.Name)
		}
		return nil
	}
	if !f.Raw {
		effect.gone = gone(sources[i].Path, dir)
	}
	sources[i].Path = dir
	return effect
}

// victim is member i with a copy of its data dir, and what a fault may take from elsewhere.
func (r *runner) victim(i int, kind, dir string) *Victim {
	name := r.col.Members[i].Name
	v := &Victim{Dir: dir, Rng: Rand(r.col.Setup.Seed, "fault "+kind), Line: r.col.Setup.Line,
		Restored: r.col.Restored, Led: r.col.Led, Older: r.col.Older[name],
		Live: r.col.Live[name], Foreign: r.foreignDir,
		Forced: func() string { return r.forcedDir(i) }}
	for k, s := range r.col.Members {
		if k != i && !s.Lags {
			v.Others = append(v.Others, s.Path)
		}
	}
	for _, x := range r.col.Extras {
		if strings.HasPrefix(x.Name, "backup") {
			v.Backups = append(v.Backups, x.Path)
		}
	}
	return v
}

// victims draws the members that a fault is applied to: such as do not lag, unless one that lags is asked for and there
// is one.
func (r *runner) victims(rng *rand.Rand, scope string) []int {
	var fit, lagging []int
	for i, s := range r.col.Members {
		if s.Lags {
			lagging = append(lagging, i)
		} else {
			fit = append(fit, i)
		}
	}
	if scope == "lagging" && len(lagging) > 0 {
		return lagging[:1]
	}
	rng.Shuffle(len(fit), func(i, j int) { fit[i], fit[j] = fit[j], fit[i] })
	n := map[string]int{"one": 1, "lagging": 1, "two": 2, "all": len(r.col.Members)}[scope]
	return fit[:min(n, len(fit))]
}

// truthOf works out what a diagnosis of these sources of a cluster's members may say.
func truthOf(kind string, members int, sources []Source, effects map[string]*Effect) Truth {
	t := Truth{Kind: kind, Healthy: true, Unprovable: true, MayShareBest: true}
	sound, witnesses, alone := 0, 0, 0
	for _, s := range sources {
		if effects[s.Name] == nil && !s.Lags && !s.Aged {
			sound++
		}
	}
	for _, s := range sources {
		e := effects[s.Name]
		if e == nil {
			continue
		}
		t.What = e.What
		if e.Benign {
			continue
		}
		t.Healthy = false
		t.Damaged = append(t.Damaged, s.Name)
		t.Classes = e.Classes
		if e.gone != "" {
			t.lose(map[string]string{s.Name: e.gone})
		}
		t.MayBeInconclusive = t.MayBeInconclusive || e.Inconclusive
		t.MayShareBest = t.MayShareBest && e.MayShareBest
		seen := 0
		for _, o := range sources {
			if effects[o.Name] == nil && !o.Lags && e.Witness != nil && e.Witness(o.Path) {
				seen++
			}
		}
		witnesses = max(witnesses, seen)
		if e.Alone {
			alone++
		}
		if !e.Open && (e.Alone || seen > 0 || e.WithAll && len(sources) == members) {
			t.Unprovable = false
		}
	}
	if t.Healthy {
		t.Unprovable, t.MayShareBest = false, false
		return t
	}
	damaged := len(t.Damaged)
	// It is known who is right if the data dir itself shows it, or if more members are sound than damaged.
	known := alone == damaged || witnesses > damaged
	t.AnyBest = t.Unprovable || !known
	t.AnyAccused = !known && damaged > 1 || sound == 0 && damaged < len(sources)
	return t
}
