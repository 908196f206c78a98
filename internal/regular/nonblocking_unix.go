//go:build unix

package regular

import "syscall"

// nonBlocking lets the open of a named pipe return at once, and no terminal becomes the one of the process.
const nonBlocking = syscall.O_NONBLOCK | syscall.O_NOCTTY
