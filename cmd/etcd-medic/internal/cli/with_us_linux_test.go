package cli

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// commandEnv makes this program one that runs a command as node run does.
const commandEnv = "TEST_RUN_COMMAND"

// TestRunCommand is the process that TestCommandEndsWithUs starts; in an ordinary run there is nothing to do.
func TestRunCommand(t *testing.T) {
	if os.Getenv(commandEnv) == "" {
		return
	}
	o := &nodeRunOptions{output: output{io: System()}, command: []string{"sh", "-c", "echo $$; exec sleep 60"}}
	if err := o.run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

// TestCommandEndsWithUs: the command of node run ends when the program is killed, as its servers do, also under nohup.
func TestCommandEndsWithUs(t *testing.T) {
	own := []string{os.Args[0], "-test.run=^TestRunCommand$"}
	for name, args := range map[string][]string{"plain": own, "nohup": append([]string{"nohup"}, own...)} {
		t.Run(name, func(t *testing.T) { endsWithUs(t, args) })
	}
}

func endsWithUs(t *testing.T, args []string) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), commandEnv+"=yes")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if errors.Is(err, os.ErrNotExist) || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(end) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the command still runs")
		}
	}
}
