package evidence_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestFoldersOfFolders: data dirs are found two levels down and below var/lib, and each out of an archive can be named
// alone.
func TestFoldersOfFolders(t *testing.T) {
	dirs := clustertest.Synth{Members: 2, Entries: 20, Keys: 4, Value: 10}.Write(t, t.TempDir())
	place := func(root string, at ...string) {
		for i, p := range at {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, p)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(filepath.Join(root, p), os.DirFS(dirs[i])); err != nil {
				t.Fatal(err)
			}
		}
	}
	labels := func(where string) (out []string) {
		t.Helper()
		set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: where}}, evidence.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := set.Close(); err != nil {
				t.Error(err)
			}
		}()
		for _, m := range set.Members {
			out = append(out, m.Label()+" "+set.Argument(m.Source))
		}
		return out
	}
	two := t.TempDir()
	place(two, "hostA/etcd", "hostB/etcd")
	if got, want := labels(two), []string{"hostA hostA=" + two + "/hostA/etcd", "hostB hostB=" + two +
		"/hostB/etcd"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	deep := t.TempDir()
	place(deep, "var/lib/etcd")
	archive := filepath.Join(t.TempDir(), "a.tar.gz")
	if out, err := exec.Command("tar", "czf", archive, "-C", deep, "var").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	all := labels(archive)
	if len(all) != 1 {
		t.Fatalf("%q", all)
	}
	if got := labels(archive + "#var/lib/etcd"); len(got) != 1 {
		t.Errorf("%q", got)
	}
	for _, inside := range []string{"var/lib/etcd", "etcd", "."} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, inside)), 0o755); err != nil {
			t.Fatal(err)
		}
		member := filepath.Join(evidencetest.Incident(t, "a-auth-revision-replay"), "node2")
		if err := os.CopyFS(filepath.Join(root, inside), os.DirFS(member)); err != nil {
			t.Fatal(err)
		}
		named := filepath.Join(t.TempDir(), "copy.tar.gz")
		if out, err := exec.Command("tar", "czf", named, "-C", root, ".").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, where := range []string{named, filepath.Join(root, inside), root} {
			if got := labels(where); len(got) != 1 || !strings.HasPrefix(got[0], "node2 ") {
				t.Errorf("a copy of %s as %s is called %q, not as the member list calls it", inside, where, got)
			}
		}
	}
	for _, outside := range []string{"#../etc", "#/etc", "#nothing"} {
		if set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: archive + outside}},
			evidence.Options{}); err == nil {
			_ = set.Close()
			t.Errorf("%s was opened", outside)
		}
	}
}

// TestArguments: what names a source in a command that is printed is read as the same source again.
func TestArguments(t *testing.T) {
	dirs := clustertest.Synth{Members: 1, Entries: 5, Keys: 2, Value: 10}.Write(t, t.TempDir())
	db, err := os.ReadFile(filepath.Join(dirs[0], "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for where, want := range map[string]string{"plain": "plain", "a=b": "./a=b", "-x": "./-x"} {
		if err := os.WriteFile(where, db, 0o600); err != nil {
			t.Fatal(err)
		}
		set := open(t, evidence.Spec{Where: where})
		got := set.Argument(set.Members[0].Source)
		again, err := evidence.ParseSpec(got)
		if got != want || err != nil || filepath.Clean(again.Where) != where {
			t.Errorf("%s: %q is read as %+v, %v; want %q", where, got, again, err, want)
		}
	}
}
