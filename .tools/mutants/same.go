package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// markSame marks the changes that the list names as those that make the same program.
func (r *runner) markSame(all []*mutant) error {
	if r.sameFile == "" {
		return nil
	}
	text, err := os.ReadFile(r.sameFile)
	if err != nil {
		return err
	}
	listed, err := readSame(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", r.sameFile, err)
	}
	found, folders := map[string]bool{}, map[string]bool{}
	for _, m := range all {
		m.same = listed[m.key()]
		found[m.key()] = true
		folders[path.Dir(m.name)] = true
	}
	if r.only != nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(listed)) {
		file, _, _ := strings.Cut(key, " ")
		if folders[path.Dir(file)] && !found[key] {
			return fmt.Errorf("%s lists a change that is none (any more): %s", r.sameFile, key)
		}
	}
	return nil
}

// readSame reads the list: a line per change, as it is printed but without the number of the line, and behind it the
// reason on indented lines. Lines that begin with # are comments.
func readSame(text string) (map[string]bool, error) {
	out := map[string]bool{}
	last, reason := "", true
	for i, line := range strings.Split(text, "\n") {
		switch indented := strings.TrimLeft(line, " \t") != line; {
		case strings.TrimSpace(line) == "" || line[0] == '#':
		case indented && last == "":
			return nil, fmt.Errorf("line %d: a reason of no change", i+1)
		case indented:
			reason = true
		case !reason:
			return nil, fmt.Errorf("line %d: no reason is given for %s", i+1, last)
		case out[line]:
			return nil, fmt.Errorf("line %d: listed twice", i+1)
		default:
			last, reason, out[line] = line, false, true
		}
	}
	if !reason {
		return nil, fmt.Errorf("no reason is given for %s", last)
	}
	return out, nil
}
