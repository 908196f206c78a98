//go:build !linux

package node

import "errors"

// becomeMemory fails: only Linux has files in memory.
func becomeMemory(string, []string) error { return errors.ErrUnsupported }
