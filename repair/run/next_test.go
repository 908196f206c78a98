package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// TestNext: wherever a plan stands, status has the command that leads on, with real paths and endpoints, quoted for a
// shell.
func TestNext(t *testing.T) {
	p, err := planIncident(t, "a-auth-revision-replay", plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "my plan.yaml")
	if err := p.Save(file); err != nil {
		t.Fatal(err)
	}
	quoted := "'" + file + "'"
	rehearse := "etcd-medic repair rehearse " + quoted
	live := "etcd-medic repair apply " + quoted + " --mode live --endpoints " +
		"http://127.81.0.1:2379,http://127.81.0.2:2379,http://127.81.0.3:2379 --user root"
	apply := []string{live, "etcd-medic repair apply " + quoted + " --mode clone -o OUT", "etcd-medic repair apply " +
		quoted + " --mode reseed -o OUT --etcd-binary ETCD_BINARY"}
	run := func(n, mode, state, rest string) string {
		return `{"time":"2026-01-01T00:00:0` + n + `Z","run":` + n + `,"mode":"` + mode + `","state":"` + state + `"` +
			rest + "}\n"
	}
	rehearsed := run("1", "rehearse", "run", "") + run("1", "rehearse", "done", `,"step":"00-copy"`) + run("1",
		"rehearse", "end", "")
	for _, tc := range []struct {
		journal string
		want    []string
	}{
		{"", []string{rehearse}},
		{run("1", "rehearse", "run", "") + run("1", "rehearse", "begin", `,"step":"00-copy"`), []string{rehearse}},
		{rehearsed, apply},
		{rehearsed + run("2", "clone", "run", "") + run("2", "clone", "note",
			`,"step":"01-clone-node3","values":{"out":"/new dirs"}`),
			[]string{"etcd-medic repair apply " + quoted + " --mode clone -o '/new dirs'"}},
		{rehearsed + run("2", "live", "run", "") + run("2", "live", "note",
			`,"values":{"endpoint:node1":"https://[::1]:1","endpoint:node3":"https://b:2"}`) +
			run("2", "live", "failed", `,"step":"05-stop-node1"`),
			[]string{"etcd-medic repair apply " + quoted + " --mode live --endpoints 'https://[::1]:1,https://b:2' " +
				"--cacert CA.crt --cert CLIENT.crt --key CLIENT.key --user root"}},
		{run("2", "live", "run", "") + run("2", "live", "note", `,"values":{"endpoint:node1":"http://b:2","flags":`+
			`"[\"--endpoints\",\"http://b:2,http://c:3\",\"--hook-stop\",\"ssh -- \\\"$N\\\" halt\"]"}`) +
			run("2", "live", "failed", `,"step":"05-stop-node1"`),
			[]string{"etcd-medic repair apply " + quoted + " --mode live --endpoints http://b:2,http://c:3 " +
				`--hook-stop 'ssh -- "$N" halt'`}},
		{run("3", "rehearse", "run", "") + run("3", "rehearse", "end", "") + // the clock was set back after it
			run("2", "clone", "run", "") + run("2", "clone", "begin", `,"step":"01-clone-node3"`),
			[]string{"etcd-medic repair apply " + quoted + " --mode clone -o OUT"}},
		{rehearsed + run("2", "live", "run", "") + run("2", "live", "abandon", ""),
			append([]string{rehearse}, apply...)},
		{rehearsed + run("2", "live", "run", "") + run("2", "live", "end", ""),
			[]string{"etcd-medic diagnose FRESH_COPIES"}},
		// the same command once more is refused; the copies are from before the repair
		{rehearsed + run("2", "live", "run", "") + run("2", "live", "done", `,"step":"05-stop-node1"`) +
			run("2", "live", "end", "") + run("3", "live", "run", "") + run("3", "live", "abandon", ""),
			[]string{"etcd-medic diagnose FRESH_COPIES"}},
		{run("1", "reseed", "run", "") + run("1", "reseed", "note", `,"values":{"out":"/new","binary":"/bin/etcd"}`) +
			run("1", "reseed", "failed", `,"step":"00-copy"`),
			[]string{"etcd-medic repair apply " + quoted + " --mode reseed -o /new --etcd-binary /bin/etcd"}},
	} {
		if err := os.WriteFile(JournalPath(file), []byte(tc.journal), 0o600); err != nil {
			t.Fatal(err)
		}
		st, err := Status(file)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(st.Next, tc.want) {
			t.Errorf("%s\nnext %q\nwant %q", tc.journal, st.Next, tc.want)
		}
		if !slices.Equal(shell.Texts(st.NextArgs), st.Next) {
			t.Errorf("the lists of arguments are of other commands: %q", shell.Texts(st.NextArgs))
		}
		if complete := strings.Contains(tc.journal, "--hook-stop"); complete != st.NextComplete {
			t.Errorf("%s: complete is %v", tc.journal, st.NextComplete)
		}
		for _, r := range st.Runs {
			for _, s := range r.Steps {
				if s.Title == "" {
					t.Errorf("step %s of run %d has no title", s.ID, r.Run)
				}
			}
		}
	}
}
