package main

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/cli"
)

// working are commands that are at work on a large member for a while. OUT is a new path.
var working = []string{
	"diagnose DIR", "diagnose DIR DB -w json", "inspect DIR --full", "compare DIR DIR", "history key-1 DIR",
	"preflight DIR --to 3.6", "verify DB", "verify DB --against DIR", "explain W04 DIR",
	"report DIR -o OUT.html", "bundle DIR -o OUT.tar.zst", "dumplog DIR --stats --user u", "dumplog DIR --lives",
	"dumpdb DB --salvage", "extract DIR -o OUT", "rebuild --log DIR --to last -o OUT.db",
	"restore DIR --initial-cluster a=http://127.0.0.1:2380 -o OUT", "repair plan DIR -o OUT.yaml",
	"repair wal DIR -o OUT", "repair db DIR --rebuild -o OUT", "repair meta DIR --set-consistent-index 5 -o OUT",
}

// waiting are commands that wait: for a reader (prints), for their input (reads), or for an answer from the network at
// URL (asks).
var waiting = map[string]func(*process){
	"dumplog DIR --raw": (*process).prints, "dumplog DIR -w jsonl": (*process).prints,
	"dumpdb DB key -w jsonl": (*process).prints, "dumplog DIR --index ~5 --follow": (*process).prints,
	"explain -": (*process).reads, "verify -": (*process).reads,
	"diagnose --endpoints URL DIR": (*process).asks, "verify URL": (*process).asks,
	"watch --endpoints URL,http://127.0.0.1:9":              (*process).asks,
	"watch --endpoints URL,http://127.0.0.1:9 --once":       (*process).asks,
	"collect --data-dir DIR --endpoints URL -o OUT.tar.zst": (*process).asks,
}

// TestInterrupted: a signal ends every command within a second of work, while it is at work on a large set or waits for
// its input, for its reader or for a server.
func TestInterrupted(t *testing.T) {
	dir, _ := memberWithLog(t, 600_000, putEntry)
	db := t.TempDir()
	dbOf("key", revisionRow)(t, db, 120<<20)
	db = filepath.Join(db, "member", "snap", "db")
	if err := os.Link(db, filepath.Join(dir, "member", "snap", "db")); err != nil {
		t.Fatal(err)
	}
	interrupted := func(command string, atWork func(*process), sig syscall.Signal) {
		t.Run(command, func(t *testing.T) {
			silent := listen(t)
			args := strings.Fields(strings.NewReplacer("DIR", dir, "DB", db, "OUT", filepath.Join(t.TempDir(), "out"),
				"URL", "http://"+silent.Addr().String()).Replace(command))
			p := startProcess(t, args...)
			p.silent = silent
			atWork(p)
			p.interrupt(sig)
		})
	}
	for i, command := range working {
		interrupted(command, (*process).worksFor, []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}[i%2])
	}
	for command, atWork := range waiting {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			interrupted(command, atWork, sig)
		}
	}
}

// listen is a server that never answers.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// asks waits until the program has connected.
func (p *process) asks() {
	p.t.Helper()
	l, ok := p.silent.(*net.TCPListener)
	if !ok {
		p.t.Fatal("no server")
	}
	if err := l.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		p.t.Fatal(err)
	}
	if c, err := l.Accept(); err != nil {
		p.t.Errorf("%v: %v", p.args, err)
	} else {
		p.t.Cleanup(func() { _ = c.Close() })
	}
}

// process is the program at work, with pipes that this test may leave alone.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  io.ReadCloser
	tmp  string
	args []string
	// silent is a server that never answers.
	silent net.Listener
	// started is a file that the program makes once it takes signals.
	started string
}

func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(self, args...), tmp: t.TempDir(), args: args,
		started: filepath.Join(t.TempDir(), "started")}
	p.cmd.Env = append(os.Environ(), asProgram+"="+p.started, "TMPDIR="+p.tmp)
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if p.out, err = p.cmd.StdoutPipe(); err != nil { // not read: the program waits when the pipe is full
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// worksFor waits until the program has worked for a while since it takes signals. How much it works before that
// depends on the load of the machine.
func (p *process) worksFor() {
	p.t.Helper()
	started, before := false, time.Duration(0)
	for range 6000 {
		switch work := cpuTime(p.t, p.cmd.Process.Pid); {
		case !started:
			_, err := os.Stat(p.started)
			started, before = err == nil, work
		case work > before+50*time.Millisecond:
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.t.Errorf("%v: nothing is done in a minute", p.args)
}

// prints waits for the first byte of the output.
func (p *process) prints() {
	p.t.Helper()
	if _, err := io.ReadFull(p.out, make([]byte, 1)); err != nil {
		p.t.Error(err)
	}
}

// reads gives the program more than its pipe holds, so that it has read some of it.
func (p *process) reads() {
	p.t.Helper()
	if _, err := p.in.Write(bytes.Repeat([]byte("not a message of a server\n"), 8<<10)); err != nil {
		p.t.Error(err)
	}
}

// interrupt sends a signal and wants the end. On a busy machine a second may pass in which the program cannot run, so
// what counts is how long it works; the bound on the time is for a program that waits.
func (p *process) interrupt(sig syscall.Signal) {
	p.t.Helper()
	sent, before := time.Now(), cpuTime(p.t, p.cmd.Process.Pid)
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
	_ = p.cmd.Wait() // the code tells
	took, worked := time.Since(sent), p.cmd.ProcessState.UserTime()+p.cmd.ProcessState.SystemTime()-before
	p.t.Logf("%v, %v: ended after %s and %s of work: %v", p.args[0], sig, took.Round(time.Millisecond), worked,
		p.cmd.ProcessState)
	if worked > time.Second || took > 15*time.Second {
		p.t.Errorf("%v: took %s, and worked %s more after the signal", p.args, took, worked)
	}
	want := cli.ExitInterrupted
	if p.args[0] == "watch" && !slices.Contains(p.args, "--once") {
		want = cli.ExitDone // a signal is how it ends
	}
	if code := p.cmd.ProcessState.ExitCode(); code != want {
		p.t.Errorf("%v: exit code %d", p.args, code)
	}
	_, _ = p.in.Close(), p.out.Close()
	if left, err := os.ReadDir(p.tmp); err != nil || len(left) > 0 {
		p.t.Errorf("%v: scratch left: %v %v", p.args, left, err)
	}
}
