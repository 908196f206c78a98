package locate

import "testing"

// WithBudget lets backups take no more than this room when they are unpacked, until the test ends.
func WithBudget(t testing.TB, allowed int64) {
	before := budget
	budget = func(string) int64 { return allowed }
	t.Cleanup(func() { budget = before })
}

// WithMaxFiles lets an argument have no more than this many files until the test ends.
func WithMaxFiles(t testing.TB, n int) {
	before := maxFiles
	maxFiles = n
	t.Cleanup(func() { maxFiles = before })
}
