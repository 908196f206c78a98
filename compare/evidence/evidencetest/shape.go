package evidencetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// ShapeTruth is the truth.json of a set under testdata/shapes: the accepted results of a diagnosis of all its sources.
type ShapeTruth struct {
	Summary string `json:"summary"`
	Verdict struct {
		Healthy bool `json:"healthy"`
		// Classes are the accepted classes, Causes the accepted causes; null means that no cause is required.
		Classes OneOrMore `json:"class"`
		Causes  OneOrMore `json:"cause"`
	} `json:"verdict"`
	Best struct {
		Names OneOrMore `json:"name"`
	} `json:"best_node"`
	MustReport    []MustReport `json:"must_report"`
	MustNotReport []string     `json:"must_not_report"`
}

// OneOrMore is one JSON string, a list of them, or null; a null in a list is an empty string.
type OneOrMore []string

// UnmarshalJSON reads a string as a list of one.
func (n *OneOrMore) UnmarshalJSON(b []byte) error {
	var one *string
	if err := json.Unmarshal(b, &one); err == nil {
		if *n = nil; one != nil {
			*n = OneOrMore{*one}
		}
		return nil
	}
	var many []*string
	if err := json.Unmarshal(b, &many); err != nil {
		return fmt.Errorf("neither a name nor a list of names: %w", err)
	}
	for _, s := range many {
		if s == nil {
			s = new(string)
		}
		*n = append(*n, *s)
	}
	return nil
}

// Shape unpacks a set of testdata/shapes and returns its sources, sorted, and its truth.
func Shape(t testing.TB, name string) (sources []string, truth *ShapeTruth) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(Root(t), "testdata", "shapes", name, "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	truth = &ShapeTruth{}
	if err := json.Unmarshal(b, truth); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	sources, err = filepath.Glob(filepath.Join(Incident(t, name), "*"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("%s holds no source: %v", name, err)
	}
	return sources, truth
}
