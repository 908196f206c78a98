package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestPlanDigestIsNoSignature: every text for people that shows the digest of a plan says what it is not. JSON is
// explained in docs/JSON.md.
func TestPlanDigestIsNoSignature(t *testing.T) {
	dir := evidencetest.Incident(t, "a-auth-revision-replay")
	to := t.TempDir()
	file := filepath.Join(to, "plan.yaml")
	texts := map[string][]byte{}
	for _, args := range [][]string{{"repair", "plan", dir, "-o", file}, {"repair", "status", file},
		{"report", file, "-o", filepath.Join(to, "plan.html")}, {"report", file, "-o", filepath.Join(to, "plan.md")}} {
		var out, errs bytes.Buffer
		if code := Main(t.Context(), args, &Streams{Out: &out, Err: &errs,
			Getenv: func(string) string { return "" }}); code != ExitDone {
			t.Fatalf("%q: exit code %d: %s", args, code, errs.String())
		}
		texts[args[0]+" "+args[1]] = append(out.Bytes(), errs.Bytes()...)
	}
	p, err := plan.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(to, "plan.*"))
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		if texts[f], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	says, shown := regexp.MustCompile(`(?i)not a\s+(#\s+)?signature|no signature`), 0
	for name, text := range texts {
		if !bytes.Contains(text, []byte(p.Digest[:12])) {
			continue
		}
		if shown++; !says.Match(text) {
			t.Errorf("%s shows the digest of the plan and does not say that it is no signature", name)
		}
	}
	if shown < 3 {
		t.Errorf("%d texts show the digest", shown)
	}
}
