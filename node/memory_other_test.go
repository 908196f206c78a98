//go:build !linux

package node_test

// withoutMemory does nothing: only Linux has files in memory.
func withoutMemory() (handled bool, code int) { return false, 0 }
