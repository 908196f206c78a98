//go:build !linux

package node

import "errors"

// becomeMemory fails: only Linux has in-memory files.
func becomeMemory(string, []string) error { return errors.ErrUnsupported }
