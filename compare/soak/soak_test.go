package soak

import (
	"reflect"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

func TestParseSeeds(t *testing.T) {
	for text, want := range map[string][]uint64{"7": {7}, "3..5": {3, 4, 5}, "0..0": {0}} {
		if got, err := ParseSeeds(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "5..3", "1..", "1..99999", "-1..3"} {
		if got, err := ParseSeeds(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func TestSeedDecidesEverything(t *testing.T) {
	for seed := range uint64(50) {
		if a, b := SetupOf(seed), SetupOf(seed); !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d: %+v, then %+v", seed, a, b)
		}
	}
	if a, b := Rand(1, "history"), Rand(1, "faults"); a.Uint64() == b.Uint64() {
		t.Error("two purposes share their random numbers")
	}
}

func TestSeedsCoverShapesAndReleases(t *testing.T) {
	pairs, lines := map[string]bool{}, map[string]bool{}
	for seed := range uint64(len(shapes) * len(Lines)) {
		s := SetupOf(seed)
		pairs[shapes[seed%uint64(len(shapes))].Name+" "+Lines[seed%uint64(len(Lines))]] = true
		lines[s.Line] = true
		if s.Shape.Auth && !s.Shape.Defect && (s.Line == "3.4.3" || s.Line == "3.3.18") {
			t.Errorf("seed %d: auth on %s is no history without a fault", seed, s.Line)
		}
		if s.Shape.Name == "restore" && s.Line < "3.5" {
			t.Errorf("seed %d: restore on %s", seed, s.Line)
		}
	}
	want := map[string]bool{}
	for _, s := range shapes {
		for _, l := range Lines {
			want[s.Name+" "+l] = true
		}
	}
	if !reflect.DeepEqual(pairs, want) {
		t.Errorf("%d pairs of shape and release, want %d", len(pairs), len(want))
	}
	for _, l := range []string{"3.3.18", "3.4.3", "3.4.23", "3.5.35", "3.6.16", "3.7.3"} {
		if !lines[l] {
			t.Errorf("no seed runs %s", l)
		}
	}
}

func TestSubsets(t *testing.T) {
	three := []Source{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	var got []string
	for _, s := range subsets(three, true) {
		got = append(got, caseName("k", s, three))
	}
	if s := strings.Join(got, " "); s != "k/all k/a k/a+b k/a+c k/b k/b+c k/c" {
		t.Error(s)
	}
	if got := subsets(three[:1], true); len(got) != 1 {
		t.Errorf("one source has %d subsets", len(got))
	}
	if got := caseName("k", three[:1], three[:1]); got != "k/a" {
		t.Error(got)
	}
}
