package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/collect/find"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestFoundIsShownBeforeUse: for every layout, collect shows the setup, its file, and the command with every path and
// certificate that it would use. Without an answer, and after a no, it uses nothing. After a yes, or with --yes, it
// reads the data dir that was shown.
func TestFoundIsShownBeforeUse(t *testing.T) {
	layouts, err := filepath.Glob(filepath.Join(evidencetest.Root(t), "collect", "find", "testdata", "*", "host"))
	if err != nil || len(layouts) < 9 {
		t.Fatalf("%v, %v", layouts, err)
	}
	for _, root := range layouts {
		t.Run(filepath.Base(filepath.Dir(root)), func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(filepath.Dir(root), "want.json"))
			if err != nil {
				t.Fatal(err)
			}
			var want []find.Member
			if err := json.Unmarshal(b, &want); err != nil || len(want) != 1 {
				t.Fatalf("%v, %v", want, err)
			}
			m := &want[0]
			shown := []string{fmt.Sprintf("%s (%s)", m.Kind, m.File), "etcd-medic collect -o "}
			for flag, path := range map[string]string{"--data-dir": m.DataDir, "--wal-dir": m.WALDir,
				"--cacert": m.CACert, "--cert": m.Cert, "--key": m.Key} {
				if path != "" {
					shown = append(shown, flag+" "+filepath.Join(root, path))
				}
			}
			shown = append(shown, "--endpoints "+m.Endpoint)
			wal := filepath.Join(root, m.DataDir, "member", "wal") // the folders have none that could be copied
			if m.WALDir != "" {
				wal = filepath.Join(root, m.WALDir)
			}
			for _, c := range []struct {
				answer string
				args   []string
				used   bool
			}{{"", nil, false}, {"no\n", nil, false}, {"yes\n", nil, true}, {"", []string{"--yes"}, true}} {
				out := filepath.Join(t.TempDir(), "copy.tar.zst")
				var errs bytes.Buffer
				s := &Streams{Out: io.Discard, Err: &errs, Getenv: func(string) string { return "" }}
				if c.answer != "" {
					s.In = strings.NewReader(c.answer)
				}
				code := Main(t.Context(), append([]string{"collect", "--nice", "0", "--root", root, "-o", out}, c.args...), s)
				text := errs.String()
				for _, w := range shown {
					if !strings.Contains(text, w) {
						t.Errorf("%q, %v: %q is not shown:\n%s", c.answer, c.args, w, text)
					}
				}
				if used := strings.Contains(text, wal+" ") && code != ExitUsage; used != c.used {
					t.Errorf("%q, %v: code %d, used %v, want %v:\n%s", c.answer, c.args, code, used, c.used, text)
				}
				if _, err := os.Lstat(out); err == nil {
					t.Errorf("%s was written", out)
				}
			}
		})
	}
}
