package collect

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/shell/shelltest"
)

// What the cluster says becomes an argument, whatever it holds.
func TestHostCommands(t *testing.T) {
	h := hostOf("n'1; rm -rf /", []string{"http://127.0.0.1:2379", "https://10.0.0.1:2380"},
		[]string{"--data-dir", "/var/lib/etcd dir"})
	if h.Host != "10.0.0.1" || h.File != "n_1__rm_-rf__.tar.zst" {
		t.Errorf("%+v", h)
	}
	want := []string{"etcd-medic", "collect", "--yes", "--name", "n_1__rm_-rf__", "-o", "-", "--data-dir",
		"/var/lib/etcd dir"}
	if got := h.Remote.Program(); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q", got)
	}
	if c := h.Command.String(); !strings.HasPrefix(c, "ssh -- 10.0.0.1 ") || strings.Contains(c, "; rm") {
		t.Error(c)
	}
	if h := hostOf("-x", []string{"http://-oProxyCommand=x:1"}, nil); strings.HasPrefix(h.File, "-") ||
		!strings.HasPrefix(h.Command.String(), "ssh -- ") {
		t.Errorf("%s", h.Command)
	}
}

// TestPastedHostCommands: on both hosts, the printed command runs the programs that it names and nothing else.
func TestPastedHostCommands(t *testing.T) {
	w := shelltest.New(t)
	for _, name := range []string{"-oProxyCommand=$(: >RAN)", "a'b\"; : >RAN; #|<b>&{x}", "`: >RAN`\x1b[2J\n: >RAN\n"} {
		h := hostOf(name, []string{"http://-oProxyCommand=$(: >RAN):2379", "https://b';: >RAN;':2380"},
			[]string{"--data-dir", "/d $(: >RAN)';: >RAN;'\n: >RAN\n", "--name=" + name})
		w.Redirected = append(w.Redirected, h.File)
		for _, sh := range shelltest.Shells(t) {
			calls := w.Run(sh, h.Command.String())
			if len(calls) != 1 || len(calls[0]) != 4 || calls[0][0] != "ssh" || calls[0][1] != "--" ||
				calls[0][2] != h.Host {
				t.Fatalf("%s\nran %q", h.Command, calls)
			}
			// the shell on the host reads what ssh sends
			if calls = w.Run(sh, calls[0][3]); len(calls) != 1 || !slices.Equal(calls[0], h.Remote.Program()) {
				t.Errorf("%s\nran %q on the host", h.Remote, calls)
			}
		}
	}
}
