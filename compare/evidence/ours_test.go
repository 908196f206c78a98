package evidence_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestRecogniseMistaken: what a user names by mistake is named, with the command that reads it. Anything else stays
// unnamed.
func TestRecogniseMistaken(t *testing.T) {
	const report = `{
  "schemaVersion": 1,
  "tool": {
    "name": "etcd-medic",
    "version": "1"
  }}`
	plan := "schemaVersion: 2\ntool:\n  name: etcd-medic\n  version: (devel)\ndigest: f512\n"
	for head, want := range map[string]struct {
		what, hint string
		ours       bool
	}{
		"# etcd-medic repair plan. Read it.\n" + plan: {"a repair plan", "repair rehearse", true},
		plan:                                  {"a repair plan", "repair apply", true},
		report:                                {"a report of etcd-medic", "data dirs or backups", true},
		strings.ReplaceAll(report, "\n", " "): {"a report of etcd-medic", "listed in it", true},
		strings.ReplaceAll(report, "etcd-medic", "other"): {what: "JSON text"},
		"[1]":                      {what: "JSON text"},
		"\n <!DOCTYPE html><p>404": {what: "an HTML page"},
		"hello":                    {what: "a text file"},
		"gr\xc3":                   {what: "a text file"},
		"\x1f\x8b\x08":             {"gzip", "gzip -dk", false},
		"\x28\xb5\x2f\xfd":         {"zstd", "zstd -d", false},
		"\xfd7zXZ\x00":             {"xz", "xz -dk", false},
		"BZh9":                     {"bzip2", "bzip2 -dk", false},
		"PK\x03\x04":               {"a zip archive", "unzip", false},
		"":                         {}, " \n": {}, "a\x00b": {}, "\xff\xfe\xfd\xfc\xfb": {},
	} {
		got := evidence.RecogniseMistaken([]byte(head))
		if !strings.Contains(got.What, want.what) || (got.What == "") != (want.what == "") ||
			!strings.Contains(got.Hint, want.hint) || (got.Hint == "") != (want.hint == "") || got.Ours != want.ours {
			t.Errorf("%q: %+v, want %+v", head, got, want)
		}
	}
}

// TestHintOfAnEqualsSign: a path with = in it that was taken as NAME=PATH.
func TestHintOfAnEqualsSign(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("a=b/member", 0o700); err != nil {
		t.Fatal(err)
	}
	for arg, want := range map[string]bool{"a=b": true, "a=c": false} {
		spec, err := evidence.ParseSpec(arg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = evidence.Open(t.Context(), []evidence.Spec{spec}, evidence.Options{})
		var se *evidence.SourceError
		if !errors.As(err, &se) || strings.Contains(se.Hint, "write ./ before") != want {
			t.Errorf("%s: %v, %+v", arg, err, se)
		}
	}
}

// TestHintOfASource: the error of a file that is no source carries what to do with it.
func TestHintOfASource(t *testing.T) {
	dir := t.TempDir()
	plan := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(plan, []byte("# etcd-medic repair plan\nschemaVersion: 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	evidencetest.Unchanged(t, dir)
	for where, hint := range map[string]string{plan: "repair rehearse", "-": "etcd-medic verify -",
		filepath.Join(dir, "none"): ""} {
		_, err := evidence.Open(context.Background(), []evidence.Spec{{Where: where}}, evidence.Options{})
		var se *evidence.SourceError
		if !errors.As(err, &se) || !strings.Contains(se.Hint, hint) || (se.Hint == "") != (hint == "") {
			t.Errorf("%s: %v, hint %q, want %q", where, err, se.Hint, hint)
		}
	}
}
