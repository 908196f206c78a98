package node_test

import (
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// envNoMemory makes this test's binary become another program that cannot run programs from memory: "create" has the
// kernel refuse memory files, "exec" hides /proc, by which they are run. The command line is that of the program.
const envNoMemory = "ETCD_MEDIC_TEST_NO_MEMORY"

func withoutMemory() (handled bool, code int) {
	how := os.Getenv(envNoMemory)
	if how == "" {
		return false, 0
	}
	var err error
	switch how {
	case "create":
		err = refuseMemoryFiles()
	case "exec":
		err = unix.Mount("none", "/proc", "tmpfs", 0, "")
	}
	if err == nil {
		var env []string
		for _, e := range os.Environ() {
			if !strings.HasPrefix(e, envNoMemory) {
				env = append(env, e)
			}
		}
		err = unix.Exec(os.Args[1], os.Args[1:], env)
	}
	fmt.Fprintln(os.Stderr, "without memory files:", err)
	return true, 1
}

// refuseMemoryFiles lets memfd_create fail, as on kernels before 3.17 and under strict seccomp profiles; children
// inherit it.
func refuseMemoryFiles() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_MEMFD_CREATE, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}
