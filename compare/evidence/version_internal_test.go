package evidence

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestMinorOf: only texts of 3.x versions have a minor version.
func TestMinorOf(t *testing.T) {
	for text, want := range map[string]int{"3.5.0": 5, "3.6": 6, "3.12.1": 12, "3.0.0": 0, "3": -1, "": -1, "4.5.0": -1,
		"3.x.0": -1, "3..1": -1, "v3.5": -1} {
		got, ok := MinorOf(text)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %d, %t; want %d", text, got, ok, want)
		}
	}
}

// TestVersionWithoutDatabase: a snapshot record with a ConfState is of 3.5 or later; the newest .snap file knows more.
func TestVersionWithoutDatabase(t *testing.T) {
	for incident, want := range map[string]string{"m-healthy-3.5": "3.5.x", "m-healthy-3.6": "3.6.x",
		"m-healthy-3.7": "3.7.x"} {
		dir := evidencetest.Copy(t, filepath.Join(evidencetest.Incident(t, incident), "node2"))
		if err := os.Remove(filepath.Join(dir, "member", "snap", "db")); err != nil {
			t.Fatal(err)
		}
		set, err := Open(t.Context(), []Spec{{Where: dir}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := set.Members[0].Version.Text; got != want {
			t.Errorf("%s: %s, want %s", incident, got, want)
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
}
