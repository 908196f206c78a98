package main_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/cli"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/shell"
	"github.com/etcd-medic/etcd-medic/shell/shelltest"
)

// hostileFolder has a name that does something where a line takes it for more than data.
func hostileFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a'b $(: >RAN);`: >RAN`")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// printed runs a command until its output is whole, then ends it, and returns what it wrote. Without whole it ends by
// itself.
func printed(t *testing.T, whole func(string) bool, args ...string) (stdout string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs text
	code := make(chan int, 1)
	go func() {
		code <- cli.Main(ctx, args, &cli.Streams{Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
	}()
	ended := -1
	for deadline := time.Now().Add(5 * time.Minute); ended < 0 && (whole == nil || !whole(out.String())); {
		select {
		case ended = <-code:
		case <-time.After(20 * time.Millisecond):
			if time.Now().After(deadline) {
				t.Fatalf("%q prints nothing more:\n%s%s", args, out.String(), errs.String())
			}
		}
	}
	if cancel(); ended < 0 {
		ended = <-code
	}
	if ended != cli.ExitDone || whole != nil && !whole(out.String()) {
		t.Fatalf("%q: exit code %d\n%s%s", args, ended, out.String(), errs.String())
	}
	if !shell.IsSafe([]byte(out.String())) || !shell.IsSafe([]byte(errs.String())) {
		t.Errorf("%q prints what a terminal obeys", args)
	}
	return out.String()
}

// prompts are the commands among the lines of a text.
func prompts(text string) (out []string) {
	for l := range strings.Lines(text) {
		if cmd, ok := strings.CutPrefix(strings.TrimSpace(l), "$ "); ok {
			out = append(out, cmd)
		}
	}
	return out
}

// TestPastedCommandsOfSandboxes: what node run prints to reach its members runs etcdctl and nothing else, whatever
// sources and the folder of the copies are called; the list of arguments says the same.
func TestPastedCommandsOfSandboxes(t *testing.T) {
	sets := evidencetest.Incident(t, "m-healthy-3.6")
	in := filepath.Join(hostileFolder(t), "in")
	if err := evidencetest.CopyTo(sets, in); err != nil {
		t.Fatal(err)
	}
	members, err := filepath.Glob(filepath.Join(in, "*"))
	if err != nil || len(members) != 3 {
		t.Fatalf("%v, %v", members, err)
	}
	members[0] = "$(: >RAN)=" + members[0]
	scratch := hostileFolder(t)
	run := append([]string{"node", "run", "--scratch", scratch}, members...)
	var doc struct {
		Etcdctl     string
		EtcdctlArgs []string
	}
	printed(t, func(s string) bool { return json.Unmarshal([]byte(s), &doc) == nil },
		append(slices.Clone(run), "-w", "json")...)
	table := prompts(printed(t, func(s string) bool { return strings.Contains(s, "^C ends it") }, run...))
	if len(table) != 1 || !strings.HasPrefix(table[0], "etcdctl ") {
		t.Fatalf("the text has the commands %q", table)
	}
	w := shelltest.New(t)
	for _, sh := range shelltest.Shells(t) {
		if calls := w.Run(sh, doc.Etcdctl); len(calls) != 1 || !slices.Equal(calls[0], doc.EtcdctlArgs) {
			t.Errorf("%s ran %q, want %q", sh, calls, doc.EtcdctlArgs)
		}
		calls := w.Run(sh, table[0])
		if len(calls) != 1 || calls[0][0] != "etcdctl" || !slices.ContainsFunc(calls[0], func(a string) bool {
			return strings.HasPrefix(a, "--cacert="+scratch)
		}) {
			t.Errorf("%s ran %q", sh, calls)
		}
	}
}
