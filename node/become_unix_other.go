//go:build unix && !linux

package node

// followParent does nothing: only Linux ends a process with its parent.
func followParent() error { return nil }
