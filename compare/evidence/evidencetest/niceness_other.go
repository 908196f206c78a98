//go:build !linux

package evidencetest

// niceness is read on Linux only: no command changes it elsewhere.
func niceness() int { return 0 }
