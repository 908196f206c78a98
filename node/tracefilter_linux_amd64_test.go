package node_test

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// traceCalls are the system calls that name an address.
var traceCalls = []uint32{unix.SYS_CONNECT, unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_SENDMMSG}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func ret(what uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: what}
}

// addressFilter stops for the tracer at traceCalls.
func addressFilter() []unix.SockFilter {
	prog := []unix.SockFilter{load(0)} // seccomp_data.nr
	for i, nr := range traceCalls {
		prog = append(prog, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
			Jt: uint8(len(traceCalls) - i), K: nr})
	}
	return append(prog, ret(unix.SECCOMP_RET_ALLOW), ret(unix.SECCOMP_RET_TRACE))
}

// namespaceFilter refuses clone with the flag of a new network namespace.
func namespaceFilter() []unix.SockFilter {
	return []unix.SockFilter{
		load(0),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 3, K: unix.SYS_CLONE},
		load(16), // seccomp_data.args[0], the flags
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jf: 1, K: unix.CLONE_NEWNET},
		ret(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)),
		ret(unix.SECCOMP_RET_ALLOW),
	}
}

// install puts a filter on all threads of this process, and all that come from it.
func install(prog []unix.SockFilter) error {
	f := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&f)))
	if e != 0 {
		return e
	}
	return nil
}
