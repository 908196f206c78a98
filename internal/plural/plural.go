// Package plural puts a number before the right form of a word.
package plural

import "fmt"

// Of is "1 key", or "3 keys".
func Of(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
