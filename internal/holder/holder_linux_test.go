package holder

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain makes this program one that holds a lock, when a test starts it as such.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "hold" {
		hold(os.Args[2], os.Args[3])
		return
	}
	os.Exit(m.Run())
}

// hold takes a lock, says so, and keeps it until its input ends.
func hold(kind, path string) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		l := unix.Flock_t{Type: unix.F_WRLCK}
		switch kind {
		case "flock":
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		case "shared":
			err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		case "fcntl":
			err = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &l)
		case "ofd":
			err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &l)
		}
	}
	if err != nil {
		_, _ = os.Stdout.WriteString(err.Error() + "\n")
		return
	}
	_, _ = os.Stdout.WriteString("held\n")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// TestOf: each kind of lock is seen with its process while another process holds it, no more when that has ended, and
// probing takes none: the process can still lock, and a second probe says the same.
func TestOf(t *testing.T) {
	for kind, want := range map[string]string{"flock": "flock", "shared": "flock", "fcntl": "fcntl", "ofd": "fcntl"} {
		t.Run(kind, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "db")
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			if l, err := Of(path); err != nil || len(l) > 0 {
				t.Fatalf("before: %v, %v", l, err)
			}
			cmd := exec.Command(os.Args[0], "hold", kind, path)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil || line != "held\n" {
				t.Fatalf("%q, %v", line, err)
			}
			for range 2 {
				l, err := Of(path, path+".absent")
				if err != nil || len(l) != 1 || l[0].Kind != want || l[0].PID != cmd.Process.Pid ||
					l[0].Command == "" || l[0].Path != path {
					t.Errorf("%+v, %v, want %s by %d", l, err, want, cmd.Process.Pid)
				}
			}
			_ = in.Close()
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			if l, err := Of(path); err != nil || len(l) > 0 {
				t.Errorf("after: %v, %v", l, err)
			}
		})
	}
}

// TestParse: what the kernel lists, and lines that say nothing.
func TestParse(t *testing.T) {
	got, err := parse(strings.NewReader(`1: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF
1: -> FLOCK  ADVISORY  WRITE 4712 fd:01:1234 0 EOF
2: OFDLCK ADVISORY  WRITE -1 08:10:77 0 EOF
3: LEASE  ACTIVE    READ 1 08:10:78 0 EOF
4: POSIX  ADVISORY  READ x 08:10:79 0 EOF
5: POSIX  ADVISORY  READ 9 08:10 0 EOF
short
`))
	if err != nil || len(got) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	if l := got[file{0xfd, 1, 1234}]; len(l) != 1 || l[0] != (Lock{Kind: "flock", PID: 4711}) {
		t.Errorf("%v", l)
	}
	if l := got[file{8, 0x10, 77}]; len(l) != 1 || l[0] != (Lock{Kind: "fcntl"}) {
		t.Errorf("%v", l)
	}
	if s := (Lock{PID: 4711, Command: "etcd"}).String() + ", " +
		(Lock{}).String(); s != "process 4711 (etcd), a process" {
		t.Error(s)
	}
}
