package cli

import (
	"bytes"
	"context"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/etcd-medic/etcd-medic/internal/tarzst"
	"github.com/etcd-medic/etcd-medic/shell"
	"github.com/etcd-medic/etcd-medic/shell/shelltest"
)

// pageCommand is a command of a page, fenced are those of Markdown: a fence ends with as many backticks as it begins.
var pageCommand = regexp.MustCompile(`(?s)<div class="cmd"><code>(.*?)</code>`)

// page notes the commands of an HTML page. Nothing else in it is a script or a tag that the template does not have.
func (p *printedBy) page(b []byte) {
	p.t.Helper()
	for _, m := range pageCommand.FindAllSubmatch(b, -1) {
		p.text[html.UnescapeString(string(m[1]))] = true
	}
	if bytes.Contains(b, []byte(`/k/"<script>`)) {
		p.t.Error("a key is markup on the page")
	}
}

// markdown notes the commands of a Markdown file.
func (p *printedBy) markdown(b []byte) {
	fence := ""
	for l := range strings.Lines(string(b)) {
		l = strings.TrimSuffix(l, "\n")
		ticks := l[:len(l)-len(strings.TrimLeft(l, "`"))]
		switch {
		case fence == "" && len(ticks) >= 3 && l == ticks+"sh":
			fence = ticks
		case fence != "" && l == ticks && len(ticks) >= len(fence):
			fence = ""
		case fence != "" && l != "" && !strings.HasPrefix(l, "#"):
			p.text[l] = true
		}
	}
}

// file notes the commands of a file that the program wrote, by the end of its name.
func (p *printedBy) file(name string, b []byte) {
	p.t.Helper()
	for at := range b {
		if !shell.IsSafe(b[at:min(at+4, len(b))]) && utf8.Valid(b[at:min(at+4, len(b))]) {
			p.t.Errorf("%s holds what a terminal obeys: %q", name, b[max(0, at-60):min(at+60, len(b))])
			break
		}
	}
	switch filepath.Ext(name) {
	case ".html":
		p.page(b)
	case ".md":
		p.markdown(b)
	case ".json":
		p.document(b)
	case ".txt":
		p.lines(string(b))
	}
}

// TestPastedCommandsOfFiles: the same for reports, checklists and bundles, whose commands are pasted from a browser, a
// wiki or an issue.
func TestPastedCommandsOfFiles(t *testing.T) {
	dirs := hostileCluster(t)
	sources := []string{"$(: >RAN)=" + dirs[0], dirs[1], dirs[2]}
	made := t.TempDir()
	out := func(name string) string { return filepath.Join(made, "$(: >RAN)';"+name) }
	p := newPrintedBy(t)
	plan := out("plan.yaml")
	p.run(append([]string{"repair", "plan", "-o", plan, "--best", "$(: >RAN)"}, sources...)...)
	for name, args := range map[string][]string{"a.html": sources, "a.md": sources, "a.json": sources,
		"plan.html": {plan}, "plan.md": {plan}} {
		before := len(p.text) + len(p.docs)
		p.run(append([]string{"report", "-o", out(name)}, args...)...)
		b, err := os.ReadFile(out(name))
		if err != nil {
			t.Fatal(err)
		}
		if p.file(name, b); len(p.text)+len(p.docs) == before && name != "a.md" && name != "plan.md" {
			t.Errorf("no new command was seen in %s", name)
		}
	}
	for _, keys := range []string{"clear", "hashed", "prefix"} {
		p.run(append([]string{"bundle", "-o", out(keys + ".tar.zst"), "--keys", keys}, sources...)...)
		f, err := os.Open(out(keys + ".tar.zst"))
		if err != nil {
			t.Fatal(err)
		}
		files := 0
		_, err = tarzst.Read(context.Background(), f, tarzst.Limits{Files: 100, Bytes: 1 << 30},
			func(name string, _ int64, r io.Reader) error {
				b, err := io.ReadAll(r)
				p.file(name, b)
				files++
				return err
			})
		if err != nil || files < 8 || f.Close() != nil {
			t.Fatalf("%d files: %v", files, err)
		}
	}
	p.paste(40, 20)
}

// TestScriptsRunNothingElse: scripts that are made of data run etcdctl and nothing else, with the bytes of the data.
func TestScriptsRunNothingElse(t *testing.T) {
	dirs := hostileCluster(t)
	made := t.TempDir()
	p := newPrintedBy(t)
	_, missing := p.run("compare", dirs[0], dirs[1], "--as-script")
	file := filepath.Join(made, "put.sh")
	p.run("extract", dirs[0], "--format", "put", "-o", file)
	puts, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	into := newPasted(t)
	for name, script := range map[string][]byte{"compare --as-script": missing, "extract --format put": puts} {
		if !shell.IsSafe(script) {
			t.Errorf("%s holds what a terminal obeys", name)
		}
		for _, sh := range shelltest.Shells(t) {
			calls := into.Run(sh, string(script))
			for _, c := range calls {
				if c[0] != "etcdctl" && c[0] != "cut" {
					t.Errorf("%s ran %q", name, c)
				}
			}
			for _, key := range hostileKeys {
				if !slices.ContainsFunc(calls, func(c []string) bool { return slices.Contains(c, key) }) {
					t.Errorf("%s in %s: no call has the key %q", name, sh, key)
				}
			}
		}
	}
}

// hostileRoot is the root of a host on which everything that is found has a name that does something.
func hostileRoot(t *testing.T, dir string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"etc/systemd/system/etcd.service": "[Service]\nExecStart=/usr/bin/etcd --name \"n$(: >RAN)\" \"--data-dir=" +
			dir +
			"\" \"--wal-dir=/w`: >RAN`\" \"--cert-file=/c';: >RAN;'\"\n",
		"var/lib/rancher/k3s/server/db/etcd/config": "name: \"a;: >RAN\"\ndata-dir: \"/d$(: >RAN)\"\n" +
			"listen-client-urls: \"https://127.0.0.1:2379/$(: >RAN)\"\n",
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestPastedCommandsOfCollect: what is set up on a host becomes an argument of the command that collects it.
func TestPastedCommandsOfCollect(t *testing.T) {
	root := hostileRoot(t, "/var/lib/$(: >RAN) etcd")
	var out, errs bytes.Buffer
	code := Main(t.Context(), []string{"collect", "--root", root, "-o", "-x$(: >RAN).tar.zst"},
		&Streams{Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
	if code != ExitUsage && code != ExitRefused || !shell.IsSafe(errs.Bytes()) {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	p := newPasted(t)
	n := 0
	for l := range strings.Lines(errs.String() + out.String()) {
		at := len(l) - len(strings.TrimLeft(l, " "))
		if !strings.HasPrefix(l[at:], "etcd-medic collect ") {
			continue
		}
		n++
		for _, sh := range shelltest.Shells(t) {
			if calls := p.Run(sh, strings.TrimSpace(l[at:])); len(calls) != 1 || calls[0][0] != "etcd-medic" {
				t.Errorf("%s\nran %q", l, calls)
			}
		}
	}
	if n != 2 {
		t.Errorf("%d commands were printed, want 2:\n%s%s", n, &out, &errs)
	}
}
