//go:build !linux

package evidencetest

// Niceness is read on Linux only: no command changes it elsewhere.
func Niceness(int) int { return 0 }
