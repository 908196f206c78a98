package evidence

import "testing"

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
