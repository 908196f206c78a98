// Package plural puts a number before the right form of a word, and several names into one sentence.
package plural

import (
	"fmt"
	"strings"
)

// Of is "1 key", or "3 keys".
func Of[N int | int64 | uint64](n N, one, many string) string {
	return fmt.Sprintf("%d %s", n, Form(n, one, many))
}

// Form is the form of a word without its number.
func Form[N int | int64 | uint64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// List is "a", "a and b", or "a, b and c".
func List(names []string) string { return Some(names, len(names)) }

// Some is the List of up to most names; of more it has the first ones: "a, b and 12 more".
func Some(names []string, most int) string {
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " and " + names[n]
	}
	return strings.Join(names, "")
}
