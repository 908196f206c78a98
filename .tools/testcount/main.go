// Command testcount reads the output of `go test -json` from standard input, shows what failed, one line per package,
// and closes with the counts:
//
//	1234 passed, 0 failed
//
// Before the counts it lists the slowest tests. It ends with code 1 if a test failed or was skipped, a package did not
// build, or no test ran at all: a run that proves nothing must not look like one that does. If TESTCOUNT_FILE is set,
// the counts are written to that file too.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// event is one line of `go test -json`; see `go doc test2json` and `go help buildjson`.
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string
}

// counter adds up a run. Output of a test is kept until it ends, and shown if it ends badly.
type counter struct {
	out                     io.Writer
	passed, failed, skipped int
	brokenPackages          int
	output                  map[string][]string
	running                 map[string]bool
	slow                    []slowTest
}

// slowTest is a test with its duration in seconds, without the time it waited for others. Tests within tests do not
// count.
type slowTest struct {
	name    string
	seconds float64
}

// maxSlow is how many slow tests are listed, leastSlow the shortest duration of one.
const (
	maxSlow   = 15
	leastSlow = 5
)

func main() {
	c := &counter{out: os.Stdout, output: map[string][]string{}, running: map[string]bool{}}
	if err := c.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
		os.Exit(1)
	}
	c.slowest()
	line := c.line()
	fmt.Println(line)
	if file := os.Getenv("TESTCOUNT_FILE"); file != "" {
		if err := os.WriteFile(file, []byte(line+"\n"), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "testcount:", err)
			os.Exit(1)
		}
	}
	if !c.good() {
		os.Exit(1)
	}
}

func (c *counter) line() string {
	s := fmt.Sprintf("%d passed, %d failed", c.passed, c.failed)
	if c.skipped > 0 {
		s += fmt.Sprintf(", %d skipped", c.skipped)
	}
	return s
}

func (c *counter) good() bool {
	return c.failed == 0 && c.skipped == 0 && c.brokenPackages == 0 && c.passed > 0
}

func (c *counter) read(r io.Reader) error {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) == nil && e.Action != "" {
				c.add(e)
			} else {
				fmt.Fprint(c.out, line) // not JSON: a message of the go command itself
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *counter) add(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "run":
		c.running[key] = true
	case "output":
		c.output[key] = append(c.output[key], e.Output)
	case "build-output":
		fmt.Fprint(c.out, e.Output)
	case "pass", "fail", "skip":
		delete(c.running, key)
		if e.Test == "" {
			c.endPackage(e, key)
		} else {
			c.endTest(e, key)
		}
		delete(c.output, key)
	}
}

// slowest lists the slowest tests.
func (c *counter) slowest() {
	slices.SortStableFunc(c.slow, func(a, b slowTest) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, s := range c.slow[:min(len(c.slow), maxSlow)] {
		fmt.Fprintf(c.out, "slow %s %.1fs\n", s.name, s.seconds)
	}
}

func (c *counter) endTest(e event, key string) {
	if e.Elapsed >= leastSlow && !strings.Contains(e.Test, "/") {
		c.slow = append(c.slow, slowTest{key, e.Elapsed})
	}
	switch e.Action {
	case "pass":
		c.passed++
	case "skip":
		c.skipped++
		c.show(key)
	case "fail":
		c.failed++
		c.show(key)
	}
}

func (c *counter) endPackage(e event, key string) {
	if e.Action == "fail" {
		c.brokenPackages++
		for k := range c.running { // a panic or a timeout ended the program under them
			if strings.HasPrefix(k, e.Package+" ") {
				c.failed++
				c.show(k)
				delete(c.running, k)
			}
		}
		c.show(key)
	}
	if e.Action == "skip" {
		fmt.Fprintf(c.out, "none %s: no test files\n", e.Package)
		return
	}
	fmt.Fprintf(c.out, "%s %s %.1fs\n", e.Action, e.Package, e.Elapsed)
}

func (c *counter) show(key string) {
	for _, s := range c.output[key] {
		fmt.Fprint(c.out, s)
	}
}
