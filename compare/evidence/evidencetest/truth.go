package evidencetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Expected is the truth.json of an incident: what is known about it because of how it was made. The fields common to
// all incidents are typed; Raw is the whole document.
type Expected struct {
	// ID is the name given by the run that made the incident; the directory may have another name.
	ID string `json:"id"`
	// Kind is the coarse kind, for instance "cluster" or "backup".
	Kind string `json:"kind"`
	// EtcdVersion is the version that wrote the data dirs.
	EtcdVersion string `json:"etcd_version"`
	// Verdict is the expected result of a diagnosis.
	Verdict Verdict `json:"verdict"`
	// Best names the members to keep; all are equally good.
	Best Best `json:"best_node"`
	// MustReport are the findings that a diagnosis must have, MustNotReport those that would be false.
	MustReport    []MustReport `json:"must_report"`
	MustNotReport []string     `json:"must_not_report"`
	// Nodes are the facts of each member by the name of its directory; numbers are json.Number.
	Nodes map[string]map[string]any `json:"nodes"`
	// Raw is the whole document; numbers are json.Number, so 64-bit IDs keep every digit.
	Raw map[string]any `json:"-"`
}

// Verdict is the verdict of a truth.json; incidents have more fields than these (Raw["verdict"]).
type Verdict struct {
	Healthy bool   `json:"healthy"`
	Class   string `json:"class"`
	// Cause is empty if nothing is wrong. The names are coarser than those of the cause catalog.
	Cause string `json:"cause"`
	// FirstBrokenInvariant is one English sentence.
	FirstBrokenInvariant string `json:"first_broken_invariant"`
	// BadNode is the one faulty member, if there is one.
	BadNode string `json:"bad_node"`
}

// Best names the best members. truth.json has one name or a list of names.
type Best struct {
	Names Names  `json:"name"`
	Why   string `json:"why"`
}

// Names is one JSON string or a list of them.
type Names []string

// UnmarshalJSON reads a string as a list of one.
func (n *Names) UnmarshalJSON(b []byte) error {
	var one string
	if err := json.Unmarshal(b, &one); err == nil {
		*n = Names{one}
		return nil
	}
	var many []string
	if err := json.Unmarshal(b, &many); err != nil {
		return fmt.Errorf("neither a name nor a list of names: %w", err)
	}
	*n = many
	return nil
}

// MustReport is a finding that a diagnosis must have. Further fields depend on ID (Expected.Raw).
type MustReport struct {
	ID       string `json:"id"`
	Node     string `json:"node"`
	Note     string `json:"note"`
	Severity string `json:"severity"`
}

// Truth reads testdata/incidents/NAME/truth.json.
func Truth(t testing.TB, name string) *Expected {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(Root(t), "testdata", "incidents", name, "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	e := &Expected{}
	if err := decode(b, e); err != nil {
		t.Fatalf("%s: truth.json: %v", name, err)
	}
	if err := decode(b, &e.Raw); err != nil {
		t.Fatalf("%s: truth.json: %v", name, err)
	}
	return e
}
