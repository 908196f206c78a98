package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/lab"
	"github.com/etcd-medic/etcd-medic/shell"
)

// TestDidYouMean: for sub-commands, topics, flags and buckets.
func TestDidYouMean(t *testing.T) {
	for _, c := range []struct {
		word string
		want []string
	}{
		{"dignose", []string{"diagnose"}}, {"dumplg", []string{"dumplog"}}, {"membres", []string{"members"}},
		{"DUMPDB", []string{"dumpdb"}}, {"insp", []string{"inspect"}},
		{"xyz", nil}, {"", nil}, {strings.Repeat("a", 1<<20), nil},
	} {
		if got := near(c.word, []string{"diagnose", "inspect", "dumplog", "dumpdb", "members"}); !slices.Equal(got,
			c.want) {
			t.Errorf("%.20q: %q, want %q", c.word, got, c.want)
		}
	}
	for _, c := range []struct {
		args []string
		hint string
	}{
		{[]string{"dignose"}, "did you mean diagnose?"}, {[]string{"repair", "pln"}, "did you mean plan?"},
		{[]string{"help", "sorces"}, "did you mean sources?"},
		{[]string{"diagnose", "--evidnce", "3", "x"}, "did you mean --evidence?"},
		{[]string{"help", "repair", "nonsense"}, "see etcd-medic --help"},
	} {
		if _, errs, code := medicOn(t, 0, c.args); code != ExitUsage || !strings.Contains(errs, "hint: "+c.hint) {
			t.Errorf("%v: exit code %d: %s", c.args, code, errs)
		}
	}
}

// TestHelpFitsTheTerminal: no line of any help is wider than the terminal, but for examples, which are copied; and no
// word is lost.
func TestHelpFitsTheTerminal(t *testing.T) {
	words := strings.Fields
	for _, args := range [][]string{{"verify", "--help"}, {"repair", "apply", "--help"}, {"help", "sources"},
		{"--help"}} {
		narrow, _, _ := medicOn(t, 72, args)
		wide, _, _ := medicOn(t, 0, args)
		if !slices.Equal(words(narrow), words(wide)) {
			t.Errorf("%v: words were lost", args)
		}
		for l := range strings.Lines(narrow) {
			if l = strings.TrimRight(l, "\n"); len([]rune(l)) > 72 && !strings.Contains(l, "etcd-medic ") &&
				!strings.Contains(l, "--hook-stop '") {
				t.Errorf("%v: %d columns: %s", args, len([]rune(l)), l)
			}
		}
	}
}

type fakePager struct {
	bytes.Buffer
	left bool
}

func (f *fakePager) Write(b []byte) (int, error) {
	if f.left {
		return 0, io.ErrClosedPipe
	}
	return f.Buffer.Write(b)
}
func (f *fakePager) Close() error { return nil }

// TestPager: short results go to the terminal, long ones to the pager, whole; who leaves it ends a listing, not a
// verdict.
func TestPager(t *testing.T) {
	var out bytes.Buffer
	in := &fakePager{}
	made := func(stream bool) *pager {
		out.Reset()
		in = &fakePager{}
		return &pager{out: &out, rows: 3, stream: stream, start: func() (io.WriteCloser, func() error) {
			return in,
				func() error { return nil }
		}}
	}
	p := made(true)
	if _, err := io.WriteString(p, "1\n2\n"); err != nil || p.close() != nil || out.String() != "1\n2\n" ||
		in.Len() > 0 {
		t.Errorf("short: %v %q %q", err, out.String(), in.String())
	}
	p = made(true)
	for range 9 {
		if _, err := io.WriteString(p, "line\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.close(); err != nil || out.Len() > 0 || in.String() != strings.Repeat("line\n", 9) {
		t.Errorf("long: %v %q %q", err, out.String(), in.String())
	}
	for _, stream := range []bool{true, false} {
		p = made(stream)
		in.left = true
		_, err := io.WriteString(p, strings.Repeat("line\n", 9))
		if (err != nil) != stream || p.close() != nil {
			t.Errorf("left, listing %v: %v", stream, err)
		}
	}
	p = made(false)
	p.start = func() (io.WriteCloser, func() error) { return nil, nil }
	if _, err := io.WriteString(p, strings.Repeat("line\n", 9)); err != nil || p.close() != nil || out.Len() != 45 {
		t.Errorf("no pager: %v %q", err, out.String())
	}
}

// TestColorConventions: nothing but a terminal is coloured, unless CLICOLOR_FORCE asks for it; --no-color and NO_COLOR
// win.
func TestColorConventions(t *testing.T) {
	for _, c := range []struct {
		tty, no bool
		env     map[string]string
		want    bool
	}{
		{true, false, nil, true}, {false, false, nil, false},
		{false, false, map[string]string{"CLICOLOR_FORCE": "1"}, true},
		{false, false, map[string]string{"CLICOLOR_FORCE": "0"}, false},
		{true, true, map[string]string{"CLICOLOR_FORCE": "1"}, false},
		{true, false, map[string]string{"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, false},
		{true, false, map[string]string{"TERM": "dumb"}, false},
	} {
		s := &Streams{OutTTY: c.tty, noColor: c.no, Getenv: func(n string) string { return c.env[n] }}
		if s.Color() != c.want {
			t.Errorf("%+v: %v", c, s.Color())
		}
	}
}

// TestEtcdctlVariables are taken where a command reaches a running member, and never as a filter.
func TestEtcdctlVariables(t *testing.T) {
	env := map[string]string{"ETCDCTL_CACERT": "/ca", "ETCDCTL_CERT": "/crt", "ETCDCTL_KEY": "/key",
		"ETCDCTL_USER": "root:x", "ETCDCTL_ENDPOINTS": "http://127.0.0.1:1", "ETCD_MEDIC_CERT": "/mine"}
	s := &Streams{Out: io.Discard, Err: io.Discard, Getenv: func(n string) string { return env[n] }}
	root := newRoot(s)
	value := func(flag string, path ...string) string {
		t.Helper()
		cmd, _, err := root.Find(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := setFromEnv(cmd, s); err != nil {
			t.Fatal(err)
		}
		return cmd.Flags().Lookup(flag).Value.String()
	}
	for _, c := range []struct{ flag, want, path string }{
		{"cacert", "/ca", "verify"}, {"cert", "/mine", "verify"}, {"key", "/key", "verify"},
		{"user", "root:x", "verify"}, {"key", "", "dumpdb"}, {"tls-key", "/key", "dumpdb"},
		{"endpoints", "[http://127.0.0.1:1]", "repair apply"}, {"endpoints", "[http://127.0.0.1:1]", "watch"},
		{"endpoints", "[]", "collect"}, {"endpoints", "[]", "diagnose"},
	} {
		if got := value(c.flag, strings.Fields(c.path)...); got != c.want {
			t.Errorf("%s --%s is %q, want %q", c.path, c.flag, got, c.want)
		}
	}
}

// TestVariablesStayOutOfPrintedCommands: certificates from the environment are no part of what is printed for files.
// The same name is a filter of some commands, and unknown to others.
func TestVariablesStayOutOfPrintedCommands(t *testing.T) {
	env := map[string]string{"ETCDCTL_CACERT": "/ca", "ETCDCTL_CERT": "/crt", "ETCDCTL_KEY": "/key"}
	dir := evidencetest.Incident(t, "a-auth-revision-replay")
	for _, args := range [][]string{{"inspect", filepath.Join(dir, "node1")}, {"diagnose", dir},
		{"verify", filepath.Join(dir, "node1", "member", "snap", "db")}} {
		plain, errs, _ := medicOn(t, 0, args)
		out, _, code := medicWith(t, 0, func(n string) string { return env[n] }, args)
		if out != plain || !strings.Contains(out, "etcd-medic ") {
			t.Errorf("%v: code %d, %s\n%s\nwithout variables:\n%s", args, code, errs, out, plain)
		}
	}
	s := sources{args: []string{"https://h:2379"}, access: evidence.Access{CACert: "/ca", Key: "/key"}}
	if err := s.parse(s.args); err != nil {
		t.Fatal(err)
	}
	r := compare.Report{Given: s.given()}
	if got, want := r.GivenTo(shell.Format("etcd-medic dumpdb {}", "x")), []string{"https://h:2379", "--cacert", "/ca",
		"--tls-key", "/key"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := r.GivenTo(shell.Format("etcd-medic diagnose {}", "x")); !slices.Contains(got, "--key") {
		t.Errorf("%q", got)
	}
}

// TestVersionAndManPages: --version of every command is one line; every command and topic has a man page, the same at
// every run.
func TestVersionAndManPages(t *testing.T) {
	root := newRoot(&Streams{Out: io.Discard, Err: io.Discard, Getenv: func(string) string { return "" }})
	for _, c := range append(allCommands(root), root) {
		args := slices.Concat(strings.Fields(c.CommandPath())[1:], []string{"--version"})
		if out, errs, code := medicOn(t, 0, args); code != ExitDone || out != "etcd-medic "+Version()+"\n" {
			t.Errorf("%v: exit code %d: %q %s", args, code, out, errs)
		}
	}
	dir := t.TempDir()
	for _, sub := range []string{"a", "b"} {
		if _, errs, code := medicOn(t, 0, []string{"docs", "--man", filepath.Join(dir, sub)}); code != ExitDone {
			t.Fatal(errs)
		}
	}
	for _, page := range []string{"etcd-medic.1", "etcd-medic-diagnose.1", "etcd-medic-repair-plan.1",
		"etcd-medic-exit-codes.1"} {
		a, errA := os.ReadFile(filepath.Join(dir, "a", page))
		b, errB := os.ReadFile(filepath.Join(dir, "b", page))
		if errA != nil || errB != nil || !bytes.Equal(a, b) || !bytes.Contains(a, []byte(".SH ")) {
			t.Errorf("%s: %v %v", page, errA, errB)
		}
	}
	if _, _, code := medicOn(t, 0, []string{"docs"}); code != ExitUsage {
		t.Errorf("docs without a folder ends in %d", code)
	}
}

// TestVersionSaysWhatIsMissing: a build without the servers of a full one names their lines.
func TestVersionSaysWhatIsMissing(t *testing.T) {
	if got := lacksText(nil); got != "" {
		t.Errorf("a full build lacks %q", got)
	}
	if got := lacksText([]string{"3.5", "3.7"}); !strings.Contains(got, "not inside: etcd 3.5, 3.7. ") {
		t.Errorf("%q", got)
	}
	out, errs, code := medicOn(t, 0, []string{"version"})
	if code != ExitDone || !strings.Contains(out, "\n"+lacksText(node.NotBuiltIn())+"reads files of etcd ") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	out, _, _ = medicOn(t, 0, []string{"version", "-w", "json"})
	var about aboutProgram
	if err := json.Unmarshal([]byte(out), &about); err != nil || len(about.Servers)+len(about.Lacks) != 3 {
		t.Errorf("%v: %s", err, out)
	}
}

// TestSimpleIsTheText: -w simple, etcdctl's name for it, is the text that is shown without -w.
func TestSimpleIsTheText(t *testing.T) {
	node := filepath.Join(evidencetest.Incident(t, "a-auth-revision-replay"), "node1")
	for _, args := range [][]string{{"diagnose", node}, {"dumpdb", node, "members"}, {"explain", "A01"}} {
		want, _, code := medicOn(t, 80, args)
		out, errs, again := medicOn(t, 80, append(args, "-w", "simple"))
		if out != want || out == "" || code != again {
			t.Errorf("%v: exit codes %d and %d: %s%s", args, code, again, out, errs)
		}
	}
}

// TestDynamicCompletion: buckets, keys, members, kinds of entries, checks and causes come out of the sources and
// catalogues.
func TestDynamicCompletion(t *testing.T) {
	dir := evidencetest.Incident(t, "a-auth-revision-replay")
	evidencetest.Unchanged(t, dir)
	node := filepath.Join(dir, "node1")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"dumpdb", node, "auth"}, "authRoles"}, {[]string{"dumpdb", node, "--key", "/app/orders/base/00"},
			"/app/orders/base/001"},
		{[]string{"dumplog", node, "--entry-type", "p"}, "put"},
		{[]string{"repair", "plan", node, "--best", ""}, "node2"}, {[]string{"explain", "A0"}, "A01"},
		{[]string{"explain", "auth-rev"}, "auth-revision-replay"}, {[]string{"help", "sou"}, "sources"},
		{[]string{"diagnose", node, "--fail-on", "w"}, "warning"},
		{[]string{"lab", "--story", ""}, lab.Stories()[0].Name},
		{[]string{"repair", "apply", "plan.yaml", "--mode", ""}, "reseed"},
		{[]string{"dumplog", node, "-w", ""}, "lines"}, {[]string{"diagnose", node, "-w", "j"}, "json"},
	} {
		out, errs, _ := medicOn(t, 0, append([]string{"__complete"}, c.args...))
		if !slices.Contains(strings.Split(strings.ReplaceAll(out, "\t", "\n"), "\n"), c.want) {
			t.Errorf("%v offers %q (%s), want %s", c.args, out, errs, c.want)
		}
	}
	for _, bad := range []string{filepath.Join(dir, "nothing"), "http://127.0.0.1:1",
		filepath.Join(dir, "node1", "member", "wal")} {
		if _, errs, code := medicOn(t, 0, []string{"__complete", "dumpdb", bad, ""}); code != ExitDone {
			t.Errorf("%s: exit code %d: %s", bad, code, errs)
		}
	}
}
