package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// writing are commands that write, results or scratch, with the exit code that a write that fails gives them. ARCHIVE
// is a set in one file, PACKED a compressed backup, TORN a member whose log is damaged.
var writing = map[string]int{
	"diagnose ARCHIVE -w json": 1, "inspect ARCHIVE": 1, "verify PACKED -w json": 4,
	"repair plan ALL -o OUT.yaml": 1, "repair plan ARCHIVE -o OUT.yaml": 1, "report ALL -o OUT.html": 1,
	"report ALL -o OUT.md": 1, "report ALL -o OUT.json": 1, "bundle ALL -o OUT.tar.zst": 1, "extract ONE -o OUT": 1,
	"extract ONE -o OUT --format backup": 1, "extract ONE -o OUT --format put": 1,
	"rebuild --log ONE --to last -o OUT.db": 1, "rebuild --base ONE --log ONE --to last -o OUT.db": 1,
	"restore ONE --initial-cluster a=http://127.0.0.1:2380 --accept-unproven-content -o OUT": 1,
	"collect --no-client --data-dir ONE -o OUT.tar.zst":                                      1,
	"repair wal TORN -o OUT --accept-lost-commits --accept-divergence":                       1,
	"repair db ONE --rebuild -o OUT":                                                         1,
	"repair db ONE --previous-meta -o OUT":                                                   1,
	"repair meta ONE --set-consistent-index 160 --accept-divergence -o OUT":                  1,
}

// TestFullDisk: where no file may grow beyond 2 KiB, which fails writes as a full disk does, every command that writes
// says so and ends with an error. No part of a result stays, no scratch, and no input changes.
func TestFullDisk(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &set{dir: evidencetest.Copy(t, evidencetest.Incident(t, "a-auth-revision-replay"))}
	if s.members, err = filepath.Glob(filepath.Join(s.dir, "*")); err != nil || len(s.members) < 3 {
		t.Fatalf("%v: %v", s.members, err)
	}
	if err := asArchive(nil, s); err != nil {
		t.Fatal(err)
	}
	archive, packed := s.archive, filepath.Join(t.TempDir(), "backup.db.gz")
	s.archive = ""
	if err := gzipTo(packed, filepath.Join(s.members[0], "member", "snap", "db")); err != nil {
		t.Fatal(err)
	}
	torn := evidencetest.Copy(t, s.members[1])
	if err := flipInRecord(rand.New(rand.NewPCG(1, 1)), &set{dir: torn, members: []string{torn}}); err != nil {
		t.Fatal(err)
	}
	evidencetest.Unchanged(t, s.dir, torn, filepath.Dir(archive), filepath.Dir(packed))
	t.Setenv(asProgram, "1")
	for command, code := range writing {
		t.Run(command, func(t *testing.T) {
			tmp, to := t.TempDir(), t.TempDir()
			args := []string{"-c", `ulimit -f 4 && exec "$0" "$@"`, self}
			for a := range strings.FieldsSeq(command) {
				switch a {
				case "ALL":
					args = append(args, s.members...)
				case "ONE":
					args = append(args, s.members[0])
				case "ARCHIVE":
					args = append(args, archive)
				case "TORN":
					args = append(args, torn)
				case "PACKED":
					args = append(args, packed)
				default:
					args = append(args, strings.Replace(a, "OUT", filepath.Join(to, "out"), 1))
				}
			}
			o, err := run(t.Context(), sh, tmp, args, busy)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range o.judge() {
				t.Error(w)
			}
			if o.code != code || !bytes.Contains(append(o.stderr, o.stdout...), []byte(syscall.EFBIG.Error())) {
				t.Errorf("exit code %d\n%.600s%.600s", o.code, o.stdout, o.stderr)
			}
			for _, dir := range []string{tmp, to} {
				if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
					t.Errorf("%v is left, %v", left, err)
				}
			}
		})
	}
}

// gzipTo writes a compressed copy of a file.
func gzipTo(to, from string) error {
	out, err := exec.Command("gzip", "-c", from).Output()
	if err != nil {
		return fmt.Errorf("gzip: %w", err)
	}
	return os.WriteFile(to, out, 0o600)
}
