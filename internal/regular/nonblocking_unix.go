//go:build unix

package regular

import "syscall"

// nonBlocking makes the open of a named pipe return at once, and keeps a terminal from becoming the controlling one.
const nonBlocking = syscall.O_NONBLOCK | syscall.O_NOCTTY
