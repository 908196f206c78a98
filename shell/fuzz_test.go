package shell_test

import (
	"encoding/json"
	"testing"

	"github.com/etcd-medic/etcd-medic/shell"
)

// FuzzUnmarshal reads any bytes as the list of a command's arguments: never a panic, and what is taken is written and
// read again as the same command.
func FuzzUnmarshal(f *testing.F) {
	for _, s := range []string{`["etcd-medic","diagnose"]`, `["a",{"op":"|"},{"fill":"HOST"},{"base64":"/w=="}]`,
		`[{"join":["--x=",{"fill":"A-1"},{"base64":"AA=="}]}]`, `[{"op":"$("}]`, `[{}]`, `null`, `[{"fill":"a b"}]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var c, again shell.Command
		if json.Unmarshal(b, &c) != nil {
			return
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &again); err != nil || again.String() != c.String() {
			t.Errorf("%s: %q became %q: %v", b, c, again, err)
		}
		if !shell.IsSafe([]byte(c.String())) {
			t.Errorf("%q holds what a terminal obeys", c.String())
		}
	})
}
