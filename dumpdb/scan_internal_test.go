package dumpdb

import "testing"

// TestWantedSpans: a page is read when its span, which ends before its last key, meets the wanted one.
func TestWantedSpans(t *testing.T) {
	key := func(s string) []byte {
		if s == "" {
			return nil
		}
		return []byte(s)
	}
	for _, tc := range []struct {
		wantFirst, wantEnd, first, end string
		read                           bool
	}{
		{"", "", "a", "b", true},
		{"", "", "", "", true},
		{"c", "", "a", "b", false},
		{"c", "", "a", "c", false}, // its keys are below c
		{"c", "", "a", "d", true},
		{"c", "", "a", "", true},
		{"", "c", "b", "d", true},
		{"", "c", "c", "d", false}, // keys below c are wanted
		{"", "c", "d", "", false},
		{"b", "c", "b", "c", true},
	} {
		s := &scan{want: span{key(tc.wantFirst), key(tc.wantEnd)}}
		if got := s.wanted(span{key(tc.first), key(tc.end)}); got != tc.read {
			t.Errorf("%q to %q of %q to %q: %v", tc.wantFirst, tc.wantEnd, tc.first, tc.end, got)
		}
	}
}
