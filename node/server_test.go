package node_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/refusal"
)

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]string{
		"": "0.0.0", "3.6": "3.6.0", "3.5.35": "3.5.35", "v3.7.3": "3.7.3", "3.6.0-rc.1": "3.6.0", "3.5.1+git": "3.5.1",
		"3": "", "x": "", "3.5.": "", "3.-1": "", "99999999999999999999.1": "",
	} {
		v, err := node.ParseVersion(text)
		if got := v.String(); err == nil && got != want || err != nil && want != "" {
			t.Errorf("%q: %s %v, want %q", text, got, err, want)
		}
	}
	order := []node.Version{{}, {3, 3, 18}, {3, 4, 0}, {3, 4, 3}, {3, 5, 0}, {3, 10, 0}, {4, 0, 0}}
	for i, a := range order {
		for j, b := range order {
			if a.AtLeast(b) != (i >= j) {
				t.Errorf("%s at least %s: %v", a, b, a.AtLeast(b))
			}
		}
	}
}

func TestBundledIsWhatRuns(t *testing.T) {
	s, err := node.External(t.Context(), asProgram(t))
	if err != nil {
		t.Fatal(err)
	}
	if b := node.Bundled(); s.Version != b.Version || b.Version.Line() != "3.6" || b.Origin != node.FromProgram {
		t.Errorf("says %s, is %s", b, s)
	}
}

// asProgram is a program that becomes the bundled server.
func asProgram(t *testing.T) string {
	t.Helper()
	b := node.Bundled()
	return script(t, fmt.Sprintf("exec %q %s \"$@\"", b.Path, strings.Join(b.Args, " ")))
}

func script(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "etcd")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestExternal: a program is asked for its version, and one that is no etcd server is refused.
func TestExternal(t *testing.T) {
	s, err := node.External(t.Context(), script(t,
		`echo "etcd Version: 3.4.3"; echo "Git SHA: x"; test -z "$ETCD_NAME"`))
	if err != nil || s.Version != (node.Version{Major: 3, Minor: 4, Patch: 3}) || s.Origin != node.FromOperator ||
		!filepath.IsAbs(s.Path) {
		t.Errorf("%+v, %v", s, err)
	}
	for what, text := range map[string]string{
		"etcdctl":      `echo "etcdctl version: 3.5.0"`,
		"fails":        `exit 3`,
		"no version":   `echo "etcd Version: unknown"`,
		"version 2":    `echo "etcd Version: 2.3.8"`,
		"much text":    `head -c 100000 /dev/zero | tr '\0' x`,
		"not a number": `echo "etcd Version: 3.x.1"`,
	} {
		_, err := node.External(t.Context(), script(t, text))
		var r *refusal.Error
		if !errors.As(err, &r) || len(err.Error()) > 500 {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := node.External(t.Context(), "/nowhere/etcd"); err == nil {
		t.Error("a program that is not there")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := node.External(ctx, script(t, "sleep 60")); err == nil || time.Since(begin) > 10*time.Second {
		t.Errorf("a program that does not answer: %v after %v", err, time.Since(begin))
	}
}

// TestChoose is the table of which server opens which dirs, as it was measured: dirs of one line by row, servers by
// column.
func TestChoose(t *testing.T) {
	servers := []int{3, 4, 5, 6, 7, 8}
	for _, row := range []struct {
		dirs  int
		v2    bool
		opens string // by column
	}{
		{3, true, "yyyy--"}, {4, true, "-yyy--"}, {4, false, "-yyy--"},
		{5, true, "--yy--"}, {5, false, "--yyyy"},
		{6, false, "---yyy"}, {6, true, "---y--"}, {7, false, "----yy"}, {7, true, "----y-"}, {8, false, "-----y"},
	} {
		for i, minor := range servers {
			n := node.Need{Cluster: node.Version{Major: 3, Minor: row.dirs}, V2EntriesAfterSnapshot: row.v2}
			reason, ok := n.Opens(node.Version{Major: 3, Minor: minor, Patch: 1})
			if want := row.opens[i] == 'y'; ok != want || ok != (reason == "") {
				t.Errorf("dirs of 3.%d (v2 %v), server 3.%d: %v %q", row.dirs, row.v2, minor, ok, reason)
			}
			raises := n.Raises(node.Version{Major: 3, Minor: minor})
			if (raises != "") != (minor > row.dirs) {
				t.Errorf("dirs of 3.%d, server 3.%d: %q", row.dirs, minor, raises)
			}
		}
	}
	// v2 requests that write stop 3.6 as well, whatever the versions say.
	writes := node.Need{V2EntriesAfterSnapshot: true, V2WritesAfterSnapshot: true}
	for minor, want := range map[int]bool{3: true, 5: true, 6: false, 7: false} {
		if _, ok := writes.Opens(node.Version{Major: 3, Minor: minor}); ok != want {
			t.Errorf("v2 writes behind the snapshot, server 3.%d: %v", minor, ok)
		}
	}
	// Rows of members that raft does not know come back to life on lines that read them, and only there.
	for _, row := range []struct {
		dirs  int
		opens string
	}{{4, "-yy---"}, {5, "--y---"}, {6, "---y--"}, {7, "----y-"}} {
		for i, minor := range servers {
			n := node.Need{Cluster: node.Version{Major: 3, Minor: row.dirs}, BucketOnlyMembers: true}
			if _, ok := n.Opens(node.Version{Major: 3, Minor: minor, Patch: 9}); ok != (row.opens[i] == 'y') {
				t.Errorf("dirs of 3.%d with members that raft does not know, server 3.%d: %v", row.dirs, minor, ok)
			}
		}
	}
	// The storage version counts when it is higher, and 3.4 is refused what it would open silently.
	old := script(t, `echo "etcd Version: 3.4.3"`)
	_, err := node.Choose(t.Context(), node.Need{Cluster: node.Version{Major: 3, Minor: 4},
		Storage: node.Version{Major: 3, Minor: 6}}, old)
	refused(t, err, "an older server must not open them")
	s, err := node.Choose(t.Context(), node.Need{Cluster: node.Version{Major: 3, Minor: 4}}, old)
	if err != nil || s.Version.Minor != 4 {
		t.Error(s, err)
	}
	// What the dirs do not tell leaves the bundled server; what nobody at hand opens is refused.
	if s, err := node.Choose(t.Context(), node.Need{}, ""); err != nil || s.Origin != node.FromProgram {
		t.Error(s, err)
	}
	_, err = node.Choose(t.Context(), node.Need{Cluster: node.Version{Major: 3, Minor: 9}}, "")
	refused(t, err, "at hand")
}

// TestFlags holds the flag table against the servers' sources: which version knows which flag.
func TestFlags(t *testing.T) {
	const all = "3.3.18 3.4.0 3.4.3 3.5.0 3.5.13 3.5.14 3.5.35 3.6.0 3.6.16 3.7.3"
	for flag, versions := range map[string]string{
		"data-dir":                              all,
		"logger":                                "3.4.0 3.4.3 3.5.0 3.5.13 3.5.14 3.5.35 3.6.0 3.6.16 3.7.3",
		"enable-grpc-gateway":                   "3.4.0 3.4.3 3.5.0 3.5.13 3.5.14 3.5.35 3.6.0 3.6.16 3.7.3",
		"unsafe-no-fsync":                       "3.5.0 3.5.13 3.5.14 3.5.35 3.6.0 3.6.16 3.7.3",
		"experimental-snapshot-catchup-entries": "3.5.14 3.5.35 3.6.0 3.6.16",
		"snapshot-catchup-entries":              "3.6.0 3.6.16 3.7.3",
	} {
		for _, text := range strings.Fields(all) {
			v, err := node.ParseVersion(text)
			if err != nil {
				t.Fatal(err)
			}
			if want := slices.Contains(strings.Fields(versions), text); v.Knows(flag) != want {
				t.Errorf("%s knows --%s: %v", text, flag, v.Knows(flag))
			}
		}
	}
	for text, want := range map[string]bool{"3.3.18": false, "3.4.3": false, "3.5.13": false, "3.5.14": true,
		"3.6.16": true, "3.7.3": true} {
		v, _ := node.ParseVersion(text)
		if v.CanSetCatchup() != want {
			t.Errorf("%s: CanSetCatchup is %v", text, v.CanSetCatchup())
		}
	}
}

// TestForeignServerMustNotAskNames: a server of the operator resolves the names of a cluster that it joins or founds.
// Without a namespace that is refused; a restart resolves nothing and is allowed, and so are addresses.
func TestForeignServerMustNotAskNames(t *testing.T) {
	server, err := node.External(t.Context(), asProgram(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := newSandbox(t, node.Options{Isolation: node.Proxy, Server: server})
	for _, existing := range []bool{false, true} {
		c := trio(dir, "https://etcd-%d.example.invalid:2380")[0]
		c.Existing = existing
		_, err = s.Start(t.Context(), c)
		refused(t, err, "real name server")
	}
	c := trio(dir, "http://10.1.2.%d:2380")[0]
	c.InitialCluster = c.Name + "=" + c.PeerURLs[0]
	startAll(t, s, []node.MemberConfig{c})
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.InitialCluster = c.Name + "=http://etcd-1:2380"
	startAll(t, s, []node.MemberConfig{c})
}

// TestBeside: a program etcd-3.5 next to this one is found, if it is what its name says.
func TestBeside(t *testing.T) {
	if _, ok := node.Embedded(4); ok {
		t.Error("nobody brings 3.4")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"etcd-3.8": true, "etcd-3.9": false} {
		path := filepath.Join(filepath.Dir(exe), name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho 'etcd Version: 3.8.1'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Remove(path) })
		minor := int(name[len(name)-1] - '0')
		s, ok := node.Embedded(minor)
		if ok != want || ok && (s.Version.Patch != 1 || s.Origin != node.FromEmbedded) {
			t.Errorf("%s: %+v %v", name, s, ok)
		}
	}
}
