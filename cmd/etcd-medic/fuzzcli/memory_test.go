//go:build memory

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// smallShape is the size of inputs for which 300 MB are allowed.
const smallShape = int64(3 << 20)

// TestMemoryOfShapes: whatever 3 MB consist of, no command needs 300 MB for them. With ETCD_MEDIC_LARGE_INPUT set to a
// number of megabytes, inputs are that large and 1 GB is allowed.
func TestMemoryOfShapes(t *testing.T) {
	size, limit := smallShape, int64(300<<20)
	if mb := os.Getenv("ETCD_MEDIC_LARGE_INPUT"); mb != "" {
		n, err := strconv.ParseInt(mb, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		size, limit = n<<20, 1<<30
	}
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			dir := t.TempDir()
			s.write(t, dir, size)
			commands := s.commands
			if commands == nil {
				commands = []string{"diagnose DIR -w json"}
			}
			if size == smallShape && !strings.HasPrefix(s.name, "archive") {
				commands = slices.Concat(commands, forAll)
			}
			for _, c := range commands {
				out := filepath.Join(t.TempDir(), "out")
				o := program(t, strings.Fields(strings.NewReplacer("DIR", dir, "OUT", out).Replace(c))...)
				if o.memory > limit {
					t.Errorf("%s: %d MB of memory", c, o.memory>>20)
				}
				if most := mostOutput(c, size); o.printed > most {
					t.Errorf("%s: %d MB of output, more than %d", c, o.printed>>20, most>>20)
				}
			}
		})
	}
}

// TestTimeOfLargeInputs: 300,000 membership changes, and 100,000 files in a snap folder, take time in proportion.
func TestTimeOfLargeInputs(t *testing.T) {
	t.Run("conf changes", func(t *testing.T) { manyConfChanges(t, 30_000, 300_000) })
	t.Run("snapshot files", func(t *testing.T) {
		few, many := withSnapFiles(t, 10_000), withSnapFiles(t, 100_000)
		for _, args := range [][]string{{"diagnose"}, {"inspect", "-w", "json"}, {"dumplog", "--snaps"}} {
			small, large := program(t, append(args, few)...), program(t, append(args, many)...)
			if !linear(small, large, 10) {
				t.Errorf("%s: 10,000 files take %s of work, 100,000 %s", args[0], small.worked, large.worked)
			}
		}
	})
}

// TestMaxMemory: a data dir with more live keys than fit in memory is judged within what is allowed, with a file for
// the rest. Where there is no room for that file, what could not be checked is said; with more memory none is needed.
func TestMaxMemory(t *testing.T) {
	const keys = 1_000_000
	dir := clustertest.Synth{Members: 1, Entries: keys, Keys: keys, Value: 8}.Write(t, t.TempDir())[0]
	st, err := os.Stat(filepath.Join(dir, "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	// The pages of the database, of the program and of the file count as well.
	most := 160<<20 + st.Size() + 120<<20
	o := programIn(t, filepath.Join(t.TempDir(), "absent"), "diagnose", dir, "--max-memory", "160MiB")
	if o.code != 4 || !bytes.Contains(o.stdout, []byte("--max-memory")) || o.memory > most {
		t.Errorf("without a file: exit code %d, %d MB of memory: %s", o.code, o.memory>>20, o.stdout)
	}
	if o := program(t, "diagnose", dir, "--max-memory", "2GiB"); o.code != 0 {
		t.Errorf("with 2 GiB: exit code %d: %s", o.code, o.stdout)
	}
	disk := evidencetest.DiskDir(t)
	if o := programIn(t, disk, "diagnose", dir, "--max-memory", "160MiB"); o.code != 0 || o.memory > most+keys*200 {
		t.Errorf("with a file: exit code %d, %d MB of memory: %s", o.code, o.memory>>20, o.stdout)
	}
	// 3: the auth revision and the members of such a data dir are not those of its log.
	for tmp, want := range map[string]int{disk: 3, filepath.Join(t.TempDir(), "absent"): 1} {
		o := programIn(t, tmp, "rebuild", "--log", dir, "--to", "last", "-o", filepath.Join(t.TempDir(), "out.db"),
			"--max-memory", "128MiB")
		if o.code != want || want == 1 && !bytes.Contains(o.stderr, []byte("--max-memory")) {
			t.Errorf("rebuild: exit code %d, want %d: %s", o.code, want, o.stderr)
		}
	}
}

// mostOutput is how much a command may print, in bytes, for an input of this size: a report's length is bounded, a
// listing has a line for each record, which takes 40 bytes of a page or a segment at least.
func mostOutput(command string, size int64) int64 {
	if strings.HasPrefix(command, "dump") {
		return max(maxOutput, 32*size)
	}
	return maxOutput
}
