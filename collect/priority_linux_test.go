package collect

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// yieldsTo is the variable with the niceness that TestYield gives its process, when it is run again by itself. idles is
// set if its disk priority is the lowest before.
const (
	yieldsTo = "TEST_YIELD"
	idles    = "TEST_YIELD_IDLE"
)

// yieldAndShow prints the priorities of each thread after Yield.
func yieldAndShow() error {
	nice, err := strconv.Atoi(os.Getenv(yieldsTo))
	if err != nil {
		return err
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	threads := make([]int, len(tasks))
	for i, task := range tasks {
		if threads[i], err = strconv.Atoi(task.Name()); err != nil {
			return err
		}
		if os.Getenv(idles) == "" {
			continue
		}
		if _, _, no := unix.Syscall(unix.SYS_IOPRIO_SET, ioWhoThread, uintptr(threads[i]), ioIdle<<ioClass); no != 0 {
			return no
		}
	}
	if err := Yield(nice); err != nil {
		return err
	}
	for _, id := range threads {
		disk, _, no := unix.Syscall(unix.SYS_IOPRIO_GET, ioWhoThread, uintptr(id), 0)
		if no != 0 {
			return no
		}
		fmt.Printf("nice %d disk %d\n", evidencetest.Niceness(id), disk>>ioClass)
	}
	return nil
}

// TestYield: every thread gets the lower priority, and none a higher one than before. This happens in processes of
// their own: the priority could not be raised again here.
func TestYield(t *testing.T) {
	if os.Getenv(yieldsTo) != "" {
		if err := yieldAndShow(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	again := []string{os.Args[0], "-test.run=^TestYield$"}
	for _, c := range []struct {
		name, env, want string
		args            []string
	}{
		{"lowered", "", "nice 18 disk 2\n", again},
		{"as low before", idles + "=1", "nice 19 disk 3\n", append([]string{"nice", "-n", "19"}, again...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := exec.CommandContext(t.Context(), c.args[0], c.args[1:]...)
			p.Env = append(os.Environ(), yieldsTo+"=18", c.env)
			out, err := p.CombinedOutput()
			threads := strings.Count(string(out), "nice ")
			if err != nil || threads < 2 || threads != strings.Count(string(out), c.want) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
