package holder

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/etcd-medic/etcd-medic/internal/regular"
)

// maxProcesses and maxLocks bound the search.
const (
	maxProcesses = 20_000
	maxLocks     = 1 << 20
)

// file identifies a file as in the kernel's list of locks.
type file struct {
	major, minor uint32
	inode        uint64
}

// Of returns the locks of other processes on the files, at most one of each kind per file. It skips files that cannot
// be opened. In a container, locks of processes outside may be invisible.
func Of(paths ...string) ([]Lock, error) {
	listed, err := list()
	if err != nil {
		return nil, err
	}
	var out []Lock
	for _, p := range paths {
		out = append(out, locksOf(p, listed)...)
	}
	return out, nil
}

func locksOf(path string, listed map[file][]Lock) []Lock {
	f, _, err := regular.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // closing releases only locks of this process, which has none
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil
	}
	id := file{unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino}
	var out []Lock
	for _, l := range listed[id] {
		l.Path = path
		out = append(out, l)
	}
	// The kernel may list a file under another device (btrfs, overlayfs). It can be asked directly for fcntl locks, but
	// not for flock.
	if len(out) == 0 {
		if l, ok := ask(int(f.Fd())); ok {
			l.Path = path
			out = append(out, l)
		}
	}
	for i := range out {
		if out[i].PID == 0 {
			out[i].PID = opener(&st)
		}
		out[i].Command = command(out[i].PID)
	}
	return out
}

// ask reports whether another process prevents a write lock. F_OFD_GETLK does not take the lock.
func ask(fd int) (Lock, bool) {
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &l); err != nil || l.Type == unix.F_UNLCK {
		return Lock{}, false
	}
	return Lock{Kind: "fcntl", PID: max(int(l.Pid), 0)}, true
}

// list reads the kernel's list of locks: "1: FLOCK ADVISORY WRITE 4711 fd:01:1234 0 EOF". It skips processes that wait
// for a lock ("->").
func list() (map[file][]Lock, error) {
	f, err := os.Open("/proc/locks")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	defer func() { _ = f.Close() }()
	return parse(f)
}

func parse(r io.Reader) (map[file][]Lock, error) {
	out := map[file][]Lock{}
	s := bufio.NewScanner(r)
	for n := 0; s.Scan() && n < maxLocks; n++ {
		w := strings.Fields(s.Text())
		if len(w) < 6 || w[1] == "->" {
			continue
		}
		kind := map[string]string{"FLOCK": "flock", "POSIX": "fcntl", "OFDLCK": "fcntl"}[w[1]]
		pid, e1 := strconv.Atoi(w[4])
		id, e2 := identity(w[5])
		if kind == "" || e1 != nil || e2 != nil || pid == os.Getpid() {
			continue
		}
		out[id] = append(out[id], Lock{Kind: kind, PID: max(pid, 0)})
	}
	return out, s.Err()
}

func identity(s string) (file, error) {
	p := strings.Split(s, ":")
	if len(p) != 3 {
		return file{}, fmt.Errorf("not MAJOR:MINOR:INODE: %q", s)
	}
	major, e1 := strconv.ParseUint(p[0], 16, 32)
	minor, e2 := strconv.ParseUint(p[1], 16, 32)
	inode, e3 := strconv.ParseUint(p[2], 10, 64)
	for _, err := range []error{e1, e2, e3} {
		if err != nil {
			return file{}, err
		}
	}
	return file{uint32(major), uint32(minor), inode}, nil
}

// opener returns a process that has the file open, 0 if none is visible. It is needed for locks of open file
// descriptions, which name no process.
func opener(of *unix.Stat_t) int {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0
	}
	for _, dir := range dirs[:min(len(dirs), maxProcesses)] {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		fds, err := os.ReadDir(dir + "/fd")
		if err != nil {
			continue // ended, or of another user
		}
		for _, fd := range fds {
			var st unix.Stat_t
			if unix.Stat(dir+"/fd/"+fd.Name(), &st) == nil && st.Ino == of.Ino && st.Dev == of.Dev {
				return pid
			}
		}
	}
	return 0
}

func command(pid int) string {
	if pid <= 0 {
		return ""
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(b))
}
