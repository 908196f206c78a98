package main

import (
	"io"
	"strings"
	"testing"
)

func TestCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		in, line string
		good     bool
	}{
		"good": {`{"Action":"run","Package":"p","Test":"A"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"pass","Package":"p"}`, "1 passed, 0 failed", true},
		"failed": {`{"Action":"fail","Package":"p","Test":"A"}
{"Action":"pass","Package":"p","Test":"B"}
{"Action":"fail","Package":"p"}`, "1 passed, 1 failed", false},
		"skipped": {`{"Action":"pass","Package":"p","Test":"A"}
{"Action":"skip","Package":"p","Test":"B"}
{"Action":"pass","Package":"p"}`, "1 passed, 0 failed, 1 skipped", false},
		"died": {`{"Action":"run","Package":"p","Test":"A"}` + "\n" + `{"Action":"fail","Package":"p"}`,
			"0 passed, 1 failed", false},
		"no build": {`{"Action":"pass","Package":"q","Test":"A"}` + "\n" +
			`{"Action":"fail","Package":"p","FailedBuild":"p"}`, "1 passed, 0 failed", false},
		"no test":   {`{"Action":"skip","Package":"p"}`, "0 passed, 0 failed", false},
		"no output": {"", "0 passed, 0 failed", false},
	} {
		c := &counter{out: io.Discard, output: map[string][]string{}, running: map[string]bool{}}
		if err := c.read(strings.NewReader(tc.in)); err != nil {
			t.Fatal(err)
		}
		if c.line() != tc.line || c.good() != tc.good {
			t.Errorf("%s: %q good=%v, want %q good=%v", name, c.line(), c.good(), tc.line, tc.good)
		}
	}
}

// TestSlowest: the slowest tests come first; short ones and tests within tests are not listed.
func TestSlowest(t *testing.T) {
	var out strings.Builder
	c := &counter{out: &out, output: map[string][]string{}, running: map[string]bool{}}
	if err := c.read(strings.NewReader(`{"Action":"pass","Package":"p","Test":"A","Elapsed":6}
{"Action":"pass","Package":"p","Test":"B","Elapsed":4.9}
{"Action":"pass","Package":"p","Test":"C/sub","Elapsed":20}
{"Action":"fail","Package":"q","Test":"C","Elapsed":20.25}
`)); err != nil {
		t.Fatal(err)
	}
	c.slowest()
	if want := "slow q C 20.2s\nslow p A 6.0s\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
