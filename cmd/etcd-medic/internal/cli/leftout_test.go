package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// manyRows puts a role into a member's database whose permissions would take more memory than is allowed.
func manyRows(t *testing.T, dir string) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, "member", "snap", "db"), 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	role := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte("big"))
	role = append(role, bytes.Repeat([]byte{2<<3 | 2, 0}, 10<<20)...) // empty permissions, of two bytes each
	err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("authRoles")).Put([]byte("big"), role) })
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDatabaseLeftOut: a database whose small buckets would take too much memory is left out, which every command that
// needs it says, and none calls the member sound.
func TestDatabaseLeftOut(t *testing.T) {
	root := evidencetest.Incident(t, "m-healthy-3.6")
	big := evidencetest.Copy(t, filepath.Join(root, "node1"))
	manyRows(t, big)
	before, err := os.ReadFile(filepath.Join(big, "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	const reason = "bucket authRoles has more rows than are kept in memory"
	for _, tc := range []struct {
		command string
		code    int
		says    string
	}{
		{"diagnose node1=BIG", ExitInconclusive, "db cannot be read"},
		{"diagnose node1=BIG --full", ExitInconclusive, reason},
		{"diagnose node1=BIG OTHERS -w json", ExitInconclusive, reason},
		{"inspect BIG --full", ExitInconclusive, reason},
		{"compare BIG OTHERS", ExitInconclusive, "left out: node1: no database that can be opened"},
		{"history k BIG", ExitInconclusive, reason},
		{"verify DB", ExitInconclusive, reason},
		{"dumpdb BIG authRoles -w jsonl", ExitError, reason},
		{"extract BIG -o OUT", ExitDone, "186 keys"}, // which are not in the bucket
	} {
		t.Run(tc.command, func(t *testing.T) {
			s, out, errs := streams(nil)
			args := strings.Fields(strings.NewReplacer("BIG", big, "OTHERS", filepath.Join(root, "node2")+" "+
				filepath.Join(root, "node4"), "DB", filepath.Join(big, "member", "snap", "db"), "OUT",
				filepath.Join(t.TempDir(), "out")).Replace(tc.command))
			code := Main(t.Context(), args, s)
			said := strings.Join(strings.Fields(out.String()+errs.String()), " ")
			if code != tc.code || !strings.Contains(said, tc.says) {
				t.Errorf("code %d, want %d with %q:\n%.3000s\n%s", code, tc.code, tc.says, out, errs)
			}
			if strings.Contains(said, "HEALTHY") || strings.Contains(said, `"healthy": true`) {
				t.Errorf("called healthy:\n%.3000s", out)
			}
		})
	}
	after, err := os.ReadFile(filepath.Join(big, "member", "snap", "db"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the input changed: %v", err)
	}
}
