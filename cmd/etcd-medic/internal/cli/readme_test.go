package cli

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

var rewriteReadme = flag.Bool("rewrite-readme", false, "write the real output into README.md")

const (
	readmeBegin = "<!-- diagnose testdata/incidents/a-auth-revision-replay -->\n```\n"
	readmeEnd   = "```\n<!-- end -->"
)

// TestReadmeShowsTheRealOutput: the block in README.md is what diagnose prints of the shipped incident on a terminal of
// 80 columns.
func TestReadmeShowsTheRealOutput(t *testing.T) {
	dir := evidencetest.Incident(t, "a-auth-revision-replay")
	evidencetest.Unchanged(t, dir)
	var out, errs bytes.Buffer
	args := []string{"diagnose"}
	for _, n := range []string{"node1", "node2", "node3"} {
		args = append(args, n+"="+n)
	}
	path := filepath.Join(evidencetest.Root(t), "README.md")
	t.Chdir(dir)
	if code := Main(context.Background(), args,
		&Streams{Out: &out, Err: &errs, Width: 80, Getenv: func(string) string { return "" }}); code != ExitFindings {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	want := "$ etcd-medic diagnose node1=node1 node2=node2 node3=node3\n" + out.String()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), readmeBegin)
	have, after, ok2 := strings.Cut(rest, readmeEnd)
	if !ok || !ok2 {
		t.Fatal("README.md has no block for the output")
	}
	if have == want {
		return
	}
	if !*rewriteReadme {
		t.Fatalf("README.md does not show the real output; run this test with -rewrite-readme. Want:\n%s", want)
	}
	if err := os.WriteFile(path, []byte(before+readmeBegin+want+readmeEnd+after),
		0o644); err != nil { //nolint:gosec // a public document
		t.Fatal(err)
	}
}
