package soak

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

// pairShare is one pair of faults for so many single ones.
const pairShare = 3

// pairs applies two kinds of fault to two members of one cluster and judges all members together: what one fault shows
// must not hide the other, and the members that are left must not pay for either.
func (r *runner) pairs() {
	rng := Rand(r.col.Setup.Seed, "pairs")
	var all []Fault
	for _, f := range Faults() {
		if f.exists(r.col.lineNow()) {
			all = append(all, f)
		}
	}
	for range cmp.Or(r.cfg.Faults, perSeed) / pairShare {
		i, k := rng.IntN(len(all)), rng.IntN(len(all)-1)
		if k >= i {
			k++
		}
		r.pair(rng, all[i], all[k])
	}
}

// pair judges one pair of faults, if there is a third member and both find something to alter.
func (r *runner) pair(rng *rand.Rand, a, b Fault) {
	victims, kind := r.victims(rng, "all"), "pair-"+a.Name+"+"+b.Name
	if len(victims) < 3 || !r.cfg.wantsKind(kind) {
		return
	}
	root, err := os.MkdirTemp(r.t.TempDir(), "pair")
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(root) }()
	sources := slices.Clone(r.col.Members)
	one := r.damage(a, sources, victims[0], root)
	if one == nil {
		return
	}
	two := r.damage(b, sources, victims[1], root)
	if two == nil {
		return
	}
	first, second := sources[victims[0]].Name, sources[victims[1]].Name
	r.judge(kind, sources, truthOfPair(kind,
		shown(kind, sources, first, one, second, b.Raw), shown(kind, sources, second, two, first, a.Raw)))
}

// shown is the truth about one of two damaged members. The other one is a witness as well, unless bbolt cannot read it.
func shown(kind string, sources []Source, name string, effect *Effect, other string, unreadable bool) Truth {
	among := slices.Clone(sources)
	if unreadable {
		among = slices.DeleteFunc(among, func(s Source) bool { return s.Name == other })
	}
	return truthOf(kind, len(sources), among, map[string]*Effect{name: effect})
}

// truthOfPair joins what may be said of two damaged members: the class is that of one of them.
func truthOfPair(kind string, truths ...Truth) Truth {
	out, anyClass := Truth{Kind: kind, Healthy: true, Unprovable: true, MayShareBest: true}, false
	for _, t := range truths {
		if t.Healthy {
			continue
		}
		out.What += strings.Join(t.Damaged, ", ") + ": " + t.What + "; "
		out.Healthy = false
		out.Unprovable = out.Unprovable && t.Unprovable
		out.MayBeInconclusive = out.MayBeInconclusive || t.MayBeInconclusive
		out.MayShareBest = out.MayShareBest && t.MayShareBest
		out.AnyBest, out.AnyAccused = out.AnyBest || t.AnyBest, out.AnyAccused || t.AnyAccused
		out.Classes, anyClass = append(out.Classes, t.Classes...), anyClass || len(t.Classes) == 0
		out.Damaged = append(out.Damaged, t.Damaged...)
		if !t.Unprovable {
			out.lose(t.Gone)
		}
	}
	if anyClass {
		out.Classes = nil
	}
	if out.Healthy {
		out.Unprovable, out.MayShareBest = false, false
	}
	return out
}
