package dumpdb

import "testing"

// TestCitedOnlyIfKept: of a violation that is only counted, no earlier record is read. There is no database here.
func TestCitedOnlyIfKept(t *testing.T) {
	p := &keyPass{keyCheck: &keyCheck{}}
	p.res.chains.list = make([]Violation, maxViolations)
	if got := p.cited(&liveKey{main: 7}); got != (Rev{Main: 7}) {
		t.Errorf("%s", got)
	}
}
