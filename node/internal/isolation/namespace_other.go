//go:build !linux

package isolation

import "syscall"

// namespaceAttributes returns no way to start an agent.
func namespaceAttributes() []*syscall.SysProcAttr { return nil }

// enter fails.
func enter(string) (*local, error) { return nil, errNoNamespaces }
