package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/shell"
)

// renamed is a member of any name that is reached at any endpoint.
type renamed struct {
	*fake
	endpoint string
}

var hostileNames = []string{"-oProxyCommand=$(: >RAN)", "a'b\"} 1\netcd_medic_x 2\n# \\; : >RAN; #|<b>&{x}",
	"`: >RAN`\x1b]0;t\x07\u202e\xff\x00\n: >RAN\n"}

func (o *renamed) Endpoint() string { return o.endpoint }
func (o *renamed) Names(context.Context) (map[uint64]string, error) {
	return map[uint64]string{1: hostileNames[0], 2: hostileNames[1], 3: hostileNames[2]}, nil
}

// renamedCluster has members that do something where a line takes their names or endpoints for more than data. One of
// them differs.
func renamedCluster(differs int) (members []Member) {
	for i := range hostileNames {
		f := member(uint64(i + 1))
		f.applied = 9
		if i == differs {
			f.alters[3] = true
		}
		members = append(members, &renamed{f,
			[]string{"http://-oProxyCommand=$(: >RAN):2379", "http://b';: >RAN;':2379",
				"http://c\u202e`: >RAN`:2379"}[i]})
	}
	return members
}

// sample is a line of Prometheus's text format.
var sample = regexp.MustCompile(`^(# (HELP|TYPE) [a-z_]+ .*|[a-z_]+(\{[a-z_]+="([^"\\]|\\[\\"n])*"` +
	`(,[a-z_]+="([^"\\]|\\[\\"n])*")*\})? [-+0-9.eNaIf]+)$`)

// TestHostileNames: whatever members call themselves, metrics stay metrics, files and log hold nothing that a terminal
// obeys, the hook gets data, and the commands of next.txt run the programs that they name and nothing else.
func TestHostileNames(t *testing.T) {
	dir := t.TempDir()
	hook := filepath.Join(dir, "hook")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\nprintf '%s\\n' \"$ETCD_MEDIC_MEMBERS\" >"+dir+"/said\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	w := watcher(renamedCluster(1), Options{Keep: filepath.Join(dir, "kept"), Hook: hook,
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	if events := rounds(w, 3, func(int) {}); len(events) != 1 || events[0].Kind != KindHash {
		t.Fatalf("%+v", events)
	}
	if said, err := os.ReadFile(filepath.Join(dir, "said")); err != nil || !strings.HasPrefix(string(said), "a'b\"") {
		t.Errorf("the hook was told %q, %v", said, err)
	}
	_, metrics := get(t, w, "/metrics")
	samples := 0
	for l := range strings.Lines(metrics) {
		if l = strings.TrimSuffix(l, "\n"); !sample.MatchString(l) {
			t.Errorf("not a line of Prometheus's format: %q", l)
		}
		if strings.Contains(l, "RAN") {
			samples++
		}
	}
	_, open := get(t, w, "/divergence")
	if samples < 10 || !json.Valid([]byte(open)) {
		t.Errorf("%d samples name the members; /divergence: %s", samples, open)
	}
	kept, _ := filepath.Glob(filepath.Join(dir, "kept", "*", "*"))
	texts := map[string]string{"metrics": metrics, "/divergence": open, "log": log.String()}
	for _, file := range kept {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(file) != ".db" {
			texts[filepath.Base(file)] = string(b)
		}
		if !shell.IsSafe([]byte(file)) {
			t.Errorf("the file name %q is not plain", file)
		}
	}
	if len(texts) < 7 {
		t.Errorf("%d texts", len(texts))
	}
	for name, text := range texts {
		if !shell.IsSafe([]byte(text)) {
			t.Errorf("%s holds what a terminal obeys: %q", name, text)
		}
		if strings.HasSuffix(name, ".json") && !json.Valid([]byte(text)) {
			t.Errorf("%s is not JSON: %s", name, text)
		}
	}
	pasteNext(t, texts["next.txt"])
}

// TestHookOfAnyName: the hook runs whatever the member calls itself that differs, also with a zero byte, which no
// environment takes.
func TestHookOfAnyName(t *testing.T) {
	for n, want := range []string{"-oProxyCommand=$(: >RAN)", `a'b"} 1\netcd_medic_x 2\n# \; : >RAN; #|<b>&{x}`,
		"`: >RAN`" + `\u001b]0;t\u0007\u202e\xff\u0000\n: >RAN\n`} {
		dir := t.TempDir()
		hook := filepath.Join(dir, "hook")
		if err := os.WriteFile(hook, []byte("#!/bin/sh\nprintf '%s' \"$ETCD_MEDIC_MEMBERS\" >"+dir+"/said\n"),
			0o700); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		w := watcher(renamedCluster(n), Options{Hook: hook, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if events := rounds(w, 3, func(int) {}); len(events) != 1 {
			t.Fatalf("%+v", events)
		}
		if said, err := os.ReadFile(filepath.Join(dir, "said")); err != nil || string(said) != want {
			t.Errorf("the hook was told %q, want %q, %v\n%s", said, want, err, log.String())
		}
	}
}

// pasteNext runs the commands of next.txt in shells whose only programs write down that they ran.
func pasteNext(t *testing.T, text string) {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"etcd-medic", "ssh"} {
		script := fmt.Sprintf("#!/bin/sh\necho %s >>%s/record\n", name, bin)
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, sh := range []string{"sh", "bash"} {
		path, err := exec.LookPath(sh)
		if err != nil {
			t.Fatal(err)
		}
		work := t.TempDir()
		cmd := exec.Command(path, "-c", text)
		cmd.Dir, cmd.Env = work, []string{"PATH=" + bin}
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v %s\n%s", sh, err, out, text)
		}
		made, err := os.ReadDir(work)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range made {
			if !strings.HasSuffix(m.Name(), ".tar.zst") {
				t.Errorf("%s made %q: data was executed\n%s", sh, m.Name(), text)
			}
		}
		ran, err := os.ReadFile(filepath.Join(bin, "record"))
		if want := strings.Repeat("ssh\n", 3) + "etcd-medic\n"; err != nil || string(ran) != want {
			t.Errorf("%s ran %q, %v\n%s", sh, ran, err, text)
		}
		if err := os.Remove(filepath.Join(bin, "record")); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.ContainsFunc(strings.Split(text, "\n"), func(l string) bool { return strings.HasPrefix(l, "ssh -- ") }) {
		t.Errorf("no command goes to a host:\n%s", text)
	}
}
