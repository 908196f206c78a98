package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// plainDigests are the heads of the plain hashes of all values and password hashes in the databases of members.
func plainDigests(t *testing.T, members []string) (out [][]byte) {
	t.Helper()
	add := func(value []byte) {
		sum := sha256.Sum256(value)
		out = append(out, hex.AppendEncode(nil, sum[:6]))
	}
	for _, m := range members {
		db, err := dumpdb.Open(filepath.Join(m, "member", "snap", "db"))
		if err != nil {
			t.Fatal(err)
		}
		for rec, err := range db.Revisions() {
			if err == nil && !rec.Tombstone {
				add(rec.KV.Value)
				add(rec.Raw)
			}
		}
		auth, err := db.Auth()
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range auth.Users {
			add(u.Password)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestDigestsAreKeyed: no command shows the plain hash of a value, by which whoever has a report could find it, and
// every command shows the same digests again.
func TestDigestsAreKeyed(t *testing.T) {
	for _, incident := range []string{"a-auth-revision-replay", "n-silent-kv-divergence"} {
		t.Run(incident, func(t *testing.T) {
			members, err := filepath.Glob(filepath.Join(evidencetest.Incident(t, incident), "*"))
			if err != nil || len(members) < 3 {
				t.Fatalf("%d members: %v", len(members), err)
			}
			plain := plainDigests(t, members)
			digests := 0
			for _, args := range [][]string{
				append([]string{"diagnose", "-w", "json"}, members...),
				append([]string{"diagnose", "--full", "--timeline"}, members...),
				append([]string{"compare", "-w", "json"}, members...),
				append([]string{"compare"}, members...),
				append([]string{"history", "/app/orders/base/001"}, members...), {"dumplog", members[0]},
				{"dumplog", members[0], "-w", "jsonl"},
				{"dumpdb", members[0], "key"}, {"dumpdb", members[0], "key", "-w", "fields"},
				{"dumpdb", members[1], "--salvage"}, {"dumpdb", members[0], "authUsers"},
				{"inspect", members[0], "-w", "json"},
				append([]string{"report", "-o", "OUT.html"}, members...),
				append([]string{"report", "-o", "OUT.md"}, members...),
				append([]string{"repair", "plan", "-o", "OUT.yaml"}, members...),
			} {
				first, again := printed(t, args), printed(t, args)
				for _, p := range plain {
					if at := bytes.Index(first, p); at >= 0 {
						t.Errorf("%q shows a plain hash: %s", args[:2], first[max(0, at-60):min(len(first), at+30)])
						break
					}
				}
				digests += bytes.Count(first, []byte("digest"))
				if !bytes.Equal(first, again) && args[0] != "report" && args[0] != "repair" { // these name their output
					t.Errorf("%q prints something else the second time", args)
				}
			}
			if digests < 100 {
				t.Errorf("only %d digests were seen", digests)
			}
		})
	}
}

// printed runs a command and returns all that it wrote: on its streams, and in the file that stands for OUT.
func printed(t *testing.T, args []string) []byte {
	t.Helper()
	dir := t.TempDir()
	var out, errs bytes.Buffer
	full := make([]string, len(args))
	for i, a := range args {
		if full[i] = a; len(a) > 3 && a[:3] == "OUT" {
			full[i] = filepath.Join(dir, a)
		}
	}
	if code := Main(t.Context(), full, &Streams{Out: &out, Err: &errs,
		Getenv: func(string) string { return "" }}); code == ExitUsage || code == ExitError {
		t.Fatalf("%q: exit code %d: %s", full, code, errs.String())
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := append(out.Bytes(), errs.Bytes()...)
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}
