package clustertest

import (
	"fmt"
	"math/rand/v2"
	"syscall"
)

// processAttributes makes the kernel end a server whose test process died, for instance by its timeout.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// loopbackHost returns an address of 127.0.0.0/8 that outgoing connections do not use as their source, so that a port
// found free on it is still free when the server takes it.
func loopbackHost() string { return fmt.Sprintf("127.%d.%d.1", 64+rand.IntN(128), rand.IntN(256)) }
