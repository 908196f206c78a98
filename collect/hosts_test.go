package collect

import (
	"strings"
	"testing"
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

func TestYield(t *testing.T) {
	if err := Yield(19); err != nil { // the test process ends soon
		t.Error(err)
	}
}
