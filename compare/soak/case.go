package soak

import (
	"maps"
	"slices"
)

// Source is one argument of a diagnosis.
type Source struct {
	Name string `json:"name"`
	Path string `json:"path"`
	// Lags is true if the member was stopped before writes that the others hold; it is sound all the same.
	Lags bool `json:"lags,omitempty"`
	// Behind is true if a write that another source holds is in neither its database nor its log.
	Behind bool `json:"behind,omitempty"`
	// Aged is true for what is not a member at its present state: a backup, the dir of a removed member.
	Aged bool `json:"aged,omitempty"`
}

// Case is one diagnosis with its truth.
type Case struct {
	Seed uint64 `json:"seed"`
	// Name is KIND/SOURCES; it and the seed reproduce the case.
	Name    string   `json:"name"`
	Shape   string   `json:"shape"`
	Line    string   `json:"line"`
	Sources []Source `json:"sources"`
	Truth   Truth    `json:"truth"`
}

// Truth is what was done to the sources and what a diagnosis of them may say.
type Truth struct {
	// Kind is "healthy" or the name of the fault.
	Kind string `json:"kind"`
	// What says in words what was done.
	What string `json:"what,omitempty"`
	// Healthy is true if nothing is wrong: any other answer is a false alarm or an unjustified inconclusive.
	Healthy bool `json:"healthy"`
	// Unprovable is true if these sources cannot show the fault: healthy and inconclusive are accepted as well.
	Unprovable bool `json:"unprovable,omitempty"`
	// MayBeInconclusive accepts an inconclusive answer.
	MayBeInconclusive bool `json:"mayBeInconclusive,omitempty"`
	// Classes are the accepted classes of an unhealthy verdict; empty accepts all of them.
	Classes []string `json:"classes,omitempty"`
	// Damaged are the sources that were altered: no other source may be accused.
	Damaged []string `json:"damaged,omitempty"`
	// Gone names, by source, a row that the fault took from it and that its log does not bring back.
	Gone map[string]string `json:"gone,omitempty"`
	// AnyBest and AnyAccused switch off the judgement of best and of accusations, where truth has no answer.
	AnyBest    bool `json:"anyBest,omitempty"`
	AnyAccused bool `json:"anyAccused,omitempty"`
	// MayShareBest is true if the damage costs no content, so that the member may share the first place with sound
	// ones.
	MayShareBest bool `json:"mayShareBest,omitempty"`
}

func (t *Truth) isDamaged(name string) bool { return slices.Contains(t.Damaged, name) }

// lose adds rows that are gone.
func (t *Truth) lose(rows map[string]string) {
	if t.Gone == nil {
		t.Gone = map[string]string{}
	}
	maps.Copy(t.Gone, rows)
}

// sound are the members that are neither damaged nor lag: the best there is.
func (c *Case) sound() []string {
	var out []string
	for _, s := range c.Sources {
		if !c.Truth.isDamaged(s.Name) && !s.Lags && !s.Behind && !s.Aged {
			out = append(out, s.Name)
		}
	}
	return out
}

// markBehind finds the sources that lack writes which others hold: in the database and, where there is one, in the log.
func markBehind(members []Source) {
	type extent struct {
		revision int64
		index    int64
		end      uint64
	}
	all := make([]extent, len(members))
	var top extent
	for i, m := range members {
		if ks, err := readKeyspace(m.Path); err == nil {
			all[i].revision = ks.last
		}
		all[i].index = number(m.Path, "consistent_index")
		_, all[i].end = logBounds(m.Path)
		if all[i].revision > top.revision {
			top = all[i]
		}
	}
	for i := range members {
		// The index of the database with the newest write: before 3.5 that of the write itself.
		members[i].Behind = all[i].revision < top.revision && all[i].end < uint64(top.index)
	}
}

// subsets returns the sources that are diagnosed together: all, pairs and, if wanted, each alone.
func subsets(sources []Source, singles bool) [][]Source {
	out := [][]Source{sources}
	n := len(sources)
	for i := range n {
		if singles && n > 1 {
			out = append(out, sources[i:i+1])
		}
		for k := i + 1; n > 2 && k < n; k++ {
			out = append(out, []Source{sources[i], sources[k]})
		}
	}
	return out
}
