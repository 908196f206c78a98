package soak

import (
	"slices"
	"testing"
)

// TestTruthOfPair: two faults are healthy if both are harmless, unprovable if neither can be shown, and of every class
// if one of them is.
func TestTruthOfPair(t *testing.T) {
	harmless := Truth{Healthy: true}
	shown := Truth{Damaged: []string{"a"}, Classes: []string{"db-damage"}, What: "x"}
	hidden := Truth{Damaged: []string{"b"}, Classes: []string{"membership"}, Unprovable: true, AnyBest: true}
	open := Truth{Damaged: []string{"b"}, AnyAccused: true}
	if p := truthOfPair("k", harmless, harmless); !p.Healthy || p.Unprovable || p.MayShareBest {
		t.Errorf("harmless: %+v", p)
	}
	if p := truthOfPair("k", harmless, hidden); p.Healthy || !p.Unprovable || !slices.Equal(p.Damaged, []string{"b"}) {
		t.Errorf("one hidden: %+v", p)
	}
	p := truthOfPair("k", shown, hidden)
	if p.Healthy || p.Unprovable || !p.AnyBest || !slices.Equal(p.Classes, []string{"db-damage", "membership"}) ||
		!slices.Equal(p.Damaged, []string{"a", "b"}) {
		t.Errorf("one shown: %+v", p)
	}
	if p := truthOfPair("k", shown, open); len(p.Classes) > 0 || !p.AnyAccused {
		t.Errorf("every class: %+v", p)
	}
}
