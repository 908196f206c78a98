package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/lease/leasepb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/shell"
	"github.com/etcd-medic/etcd-medic/shell/shelltest"
)

// hostileNames are names of members, hostileKeys of keys: each does something where a line takes them for more than
// data. What they do is to make a file called RAN, with nothing but the shell.
var (
	hostileNames = []string{"-oProxyCommand=$(: >RAN)", "a'b\"; : >RAN; #|<b>&{x}",
		"`: >RAN`\x1b]0;t\x07\u202e\n: >RAN\n"}
	hostileKeys = []string{"/k/$(: >RAN)", "/k/`: >RAN`", "-k'; : >RAN; '", "/k\n: >RAN\n", "\xff\x1b[2J", "OUT",
		"=cmd|' /C calc'!A0", "/k/\"<script>&amp;", "k: [a, &b *c]\n- x\t{}", "/k/```$(: >RAN)```", "!!python",
		"etcd-medic node1"}
)

// hostileCluster writes the data dirs of three members; the second lacks what the log gives for every hostile key, the
// third lags.
func hostileCluster(t *testing.T) []string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "co'pies $(: >RAN)")
	ids := []uint64{0xa1, 0xa2, 0xa3}
	var dirs []string
	for i, id := range ids {
		h := clustertest.NewHand(t, root, fmt.Sprintf("-n%d=`: >RAN`", i), id, 0xc1)
		h.Found(false, ids...)
		index := uint64(len(ids) + 1)
		for n, key := range append(slices.Clone(hostileKeys), "plain") {
			h.Put(2, index, clustertest.RequestID(ids[0], 1763000000000, uint64(n)+1), key, "value $(: >RAN)", i != 1 ||
				key == "plain")
			index++
		}
		index = hostileRights(t, h, ids[0], index, i != 1)
		h.State(2, ids[0], index-1)
		for j, name := range hostileNames {
			row, err := json.Marshal(map[string]any{"id": ids[j], "name": name,
				"peerURLs":   []string{fmt.Sprintf("http://127.0.0.1:%d/$(: >RAN)", 2380+j)},
				"clientURLs": []string{fmt.Sprintf("https://127.0.0.1:%d/';: >RAN;'", 2379+j)}})
			if err != nil {
				t.Fatal(err)
			}
			h.Row("members", fmt.Sprintf("%x", ids[j]), string(row))
		}
		dirs = append(dirs, h.Close(index-1, 2))
	}
	return dirs
}

// hostileRights gives users, roles and a lease names and keys that do something, by the log; applied is false for a
// member that lacks them.
func hostileRights(t *testing.T, h *clustertest.Hand, proposer, index uint64, applied bool) uint64 {
	t.Helper()
	put := func(bucket, key string, m interface{ Marshal() ([]byte, error) }) {
		b, err := m.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if applied {
			h.Row(bucket, key, string(b))
		}
	}
	request := func(r *etcdserverpb.InternalRaftRequest) {
		r.Header = &etcdserverpb.RequestHeader{ID: clustertest.RequestID(proposer, 1763000000000, index)}
		h.Request(2, index, r)
		index++
	}
	for n, name := range append(slices.Clone(hostileKeys[:5]), hostileNames...) {
		role := &authpb.Role{Name: []byte(name),
			KeyPermission: []*authpb.Permission{{PermType: authpb.READWRITE, Key: []byte(name),
				RangeEnd: []byte(name + "z")}}}
		request(&etcdserverpb.InternalRaftRequest{AuthRoleAdd: &etcdserverpb.AuthRoleAddRequest{Name: name}})
		request(&etcdserverpb.InternalRaftRequest{AuthRoleGrantPermission: &etcdserverpb.AuthRoleGrantPermissionRequest{
			Name: name, Perm: role.KeyPermission[0]}})
		put("authRoles", name, role)
		request(&etcdserverpb.InternalRaftRequest{AuthUserAdd: &etcdserverpb.AuthUserAddRequest{Name: name,
			HashedPassword: "$(: >RAN)", Options: &authpb.UserAddOptions{}}})
		request(&etcdserverpb.InternalRaftRequest{AuthUserGrantRole: &etcdserverpb.AuthUserGrantRoleRequest{User: name,
			Role: name}})
		put("authUsers", name, &authpb.User{Name: []byte(name), Password: []byte("$(: >RAN)"), Roles: []string{name},
			Options: &authpb.UserAddOptions{}})
		if n > 2 {
			continue // the rows that a finding lists are bounded
		}
		id := int64(0x7000 + n)
		request(&etcdserverpb.InternalRaftRequest{LeaseGrant: &etcdserverpb.LeaseGrantRequest{ID: id, TTL: 3600}})
		put("lease", string(binary.BigEndian.AppendUint64(nil, uint64(id))), &leasepb.Lease{ID: id, TTL: 3600})
		r := &etcdserverpb.InternalRaftRequest{Put: &etcdserverpb.PutRequest{Key: []byte("lock/" + name),
			Value: []byte(name), Lease: id}}
		request(r)
		if applied {
			h.LeasedRevision("lock/"+name, name, id)
		}
	}
	return index
}

// newPasted is a shell's world in which plans redirect to a file.
func newPasted(t *testing.T) *shelltest.World {
	t.Helper()
	w := shelltest.New(t)
	w.Redirected = []string{"lost-entries.jsonl"}
	return w
}

// words are the arguments of a list as JSON has it; ok is false when it holds operators.
func words(t *testing.T, list any) (out []string, ok bool) {
	t.Helper()
	var one func(any) string
	ok = true
	one = func(v any) string {
		if s, is := v.(string); is {
			return s
		}
		m, _ := v.(map[string]any)
		s := ""
		switch {
		case m["op"] != nil:
			ok = false
		case m["fill"] != nil:
			s, _ = m["fill"].(string)
		case m["base64"] != nil:
			text, _ := m["base64"].(string)
			b, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				t.Error(err)
			}
			s = string(b)
		default:
			pieces, _ := m["join"].([]any)
			if len(pieces) == 0 {
				t.Errorf("%v is no piece of a command", v)
			}
			for _, x := range pieces {
				s += one(x)
			}
		}
		return s
	}
	all, _ := list.([]any)
	for _, v := range all {
		out = append(out, one(v))
	}
	return out, ok
}

// commandsIn walks a document and returns every command in it with its list. A text that is a command has its list next
// to it.
func commandsIn(t *testing.T, v any, into map[string]any) {
	t.Helper()
	switch x := v.(type) {
	case map[string]any:
		for name, list := range map[string]string{"show": "showArgs", "command": "commandArgs", "run": "args",
			"start": "startArgs", "etcdctl": "etcdctlArgs"} {
			// a log has a start too
			if text, ok := x[name].(string); ok && text != "" && (name != "start" || x[list] != nil) {
				into[text] = x[list]
			}
		}
		for name, list := range map[string]string{"save": "saveArgs", "next": "nextArgs"} {
			texts, _ := x[name].([]any)
			lists, _ := x[list].([]any)
			for i, text := range texts {
				if s, ok := text.(string); ok && i < len(lists) {
					into[s] = lists[i]
				}
			}
		}
		for name, y := range x {
			if s, ok := y.(string); ok && isProgramLine(s) && into[s] == nil && name != "doneWhen" {
				t.Errorf("%q is a command without its list of arguments: %s", name, s)
			}
			if texts, ok := y.([]any); ok {
				for _, text := range texts {
					if s, ok := text.(string); ok && isProgramLine(s) && into[s] == nil {
						t.Errorf("%q holds a command without its list of arguments: %s", name, s)
					}
				}
			}
			commandsIn(t, y, into)
		}
	case []any:
		for _, y := range x {
			commandsIn(t, y, into)
		}
	}
}

// isProgramLine tells whether a text is a command line: it begins with a program that is printed for people to run, and
// what follows.
func isProgramLine(s string) bool {
	if slices.Contains(hostileKeys, s) {
		return false
	}
	for _, program := range []string{"etcd-medic ", "etcdctl ", "etcdutl ", "etcd --", "systemctl ", "mv ", "cp ",
		"chown ", "kubectl ", "env ", "ssh "} {
		if strings.HasPrefix(s, program) {
			return true
		}
	}
	return false
}

// printedBy are the commands that runs of the program print: those in documents with their lists of arguments, and
// those of text.
type printedBy struct {
	t    *testing.T
	docs map[string]any
	text map[string]bool
}

func newPrintedBy(t *testing.T) *printedBy { return &printedBy{t, map[string]any{}, map[string]bool{}} }

// run runs the program and returns its exit code and what it wrote, of which nothing is what a terminal obeys.
func (p *printedBy) run(args ...string) (code int, out []byte) {
	p.t.Helper()
	var printed, errs bytes.Buffer
	code = Main(p.t.Context(), args, &Streams{Out: &printed, Err: &errs, Getenv: func(string) string { return "" }})
	if code == ExitUsage || code == ExitError {
		p.t.Fatalf("%q: exit code %d: %s", args, code, errs.String())
	}
	if !shell.IsSafe(printed.Bytes()) || !shell.IsSafe(errs.Bytes()) {
		p.t.Errorf("%q prints what a terminal obeys", args)
	}
	return code, printed.Bytes()
}

// both runs a command for programs and for people.
func (p *printedBy) both(args ...string) {
	p.t.Helper()
	code, out := p.run(append(slices.Clone(args), "-w", "json")...)
	if code != ExitRefused || len(out) > 0 {
		p.document(out)
	}
	if at := slices.Index(args, "-o"); at >= 0 { // the first run made the other
		args = slices.Clone(args)
		args[at+1] = filepath.Join(filepath.Dir(args[at+1]), "2"+filepath.Base(args[at+1]))
	}
	_, out = p.run(append(args, "-w", "table")...)
	p.lines(string(out))
}

// document notes the commands of a JSON document.
func (p *printedBy) document(b []byte) {
	p.t.Helper()
	var doc any
	if err := json.Unmarshal(b, &doc); err != nil {
		p.t.Fatalf("%v: %.300s", err, b)
	}
	commandsIn(p.t, doc, p.docs)
}

// byHandOf returns the command of a line of by-hand steps. What is in front of it, where it is typed, is quoted too: it
// becomes the arguments of a command of its own.
func byHandOf(line string) (string, bool) {
	text := strings.TrimLeft(strings.TrimRight(line, "\n"), " ")
	for _, with := range []string{"systemd", "static-pod", "etcdctl", "etcdutl", "etcd-medic"} {
		cmd, ok := strings.CutPrefix(text, fmt.Sprintf("%-10s  ", with))
		if on, in := strings.CutPrefix(cmd, "["); ok && in {
			return "etcd-medic " + strings.Replace(on, "] ", " ; ", 1), true
		} else if ok {
			return cmd, true
		}
	}
	return "", false
}

// lines notes the commands of text.
func (p *printedBy) lines(text string) {
	for l := range strings.Lines(text) {
		if _, cmd, ok := strings.Cut(strings.TrimRight(l, "\n"), "$ "); ok && strings.TrimSpace(l)[0] == '$' {
			p.text[cmd] = true
		}
		if cmd, ok := strings.CutPrefix(strings.TrimRight(l, "\n"), "    etcd-medic "); ok { // of a screen
			p.text["etcd-medic "+cmd] = true
		}
		if cmd, ok := byHandOf(l); ok {
			p.text[cmd] = true
		}
	}
}

// paste runs all of them in shells: each runs its program with the bytes that its list says, and nothing else.
func (p *printedBy) paste(docs, text int) {
	p.t.Helper()
	if len(p.docs) < docs || len(p.text) < text {
		p.t.Errorf("%d commands in documents and %d in text were seen", len(p.docs), len(p.text))
	}
	into := newPasted(p.t)
	for _, path := range shelltest.Shells(p.t) {
		for line, list := range p.docs {
			calls := into.Run(path, line)
			if want, plain := words(p.t, list); plain && (len(calls) != 1 || !slices.Equal(calls[0], want)) {
				p.t.Errorf("%s: %s\n%q arrived, want\n%q", path, line, calls, want)
			}
		}
		for line := range p.text {
			into.Run(path, line)
		}
	}
}

// TestPastedCommandsRunNothingElse: whatever members and keys are called, a printed command runs the program that it
// names, with the bytes that are meant, and nothing else. Nothing that is printed holds what a terminal obeys.
func TestPastedCommandsRunNothingElse(t *testing.T) {
	dirs := hostileCluster(t)
	sources := []string{"$(: >RAN)=" + dirs[0], dirs[1], dirs[2]}
	plan := filepath.Join(t.TempDir(), "-pl'an $(: >RAN).yaml")
	p := newPrintedBy(t)
	made := t.TempDir()
	out := func(name string) string { return filepath.Join(made, "$(: >RAN)';"+name) }
	for _, args := range [][]string{
		append([]string{"diagnose"}, sources...), append([]string{"diagnose", "--full"}, sources...),
		{"diagnose", "--full", dirs[1]}, {"inspect", dirs[1]}, {"inspect", "--full", dirs[1]},
		append([]string{"compare"}, sources...),
		append([]string{"history", hostileKeys[0]}, sources...), {"preflight", dirs[0], "--to", "3.6"},
		{"verify", filepath.Join(dirs[0], "member/snap/db")},
		append([]string{"repair", "plan", "-o", plan, "--best", "$(: >RAN)"}, sources...), {"repair", "status", plan},
		{"extract", dirs[0], "-o", out("x.db"), "--format", "backup"},
		{"extract", dirs[0], "-o", out("x.sh"), "--format", "put"},
		{"dumpdb", dirs[0], "key"}, {"dumplog", dirs[0]},
		{"dumpdb", dirs[0], "authUsers", "--unsafe-show-secrets"}, {"dumpdb", dirs[0], "authRoles"},
		{"dumpdb", dirs[0], "lease"}, {"diagnose", "--full", "--timeline", dirs[0], dirs[2]},
		{"dumpdb", dirs[0], "key", "--values"},
		{"dumplog", dirs[0], "--values", "--unsafe-show-secrets"}, append([]string{"compare", "--values"}, sources...),
		append([]string{"explain", "K01"}, sources...),
		{"repair", "wal", dirs[0], "-o", out("wal")}, {"repair", "db", dirs[1], "--rebuild", "-o", out("db")},
		{"repair", "meta", dirs[0], "--set-consistent-index", "5", "-o", out("meta")},
		{"rebuild", "--log", dirs[0], "--to", "index=9", "-o", out("rebuilt.db")},
		{"rebuild", "--base", dirs[1], "--log", dirs[0], "--to", "index=9", "-o", out("based.db")},
		{"restore", filepath.Join(dirs[0], "member/snap/db"), "--initial-cluster", "n`: >RAN`=http://127.0.0.1:2380",
			"-o", out("restored")},
	} {
		p.both(args...)
	}
	saved, err := os.ReadFile(plan)
	if err != nil || !shell.IsSafe(saved) {
		t.Errorf("the plan holds what a terminal obeys, or is not there: %v", err)
	}
	p.paste(40, 10)
	for _, key := range hostileKeys {
		if !slices.ContainsFunc(slices.Collect(maps.Values(p.docs)),
			func(list any) bool { w, _ := words(t, list); return slices.Contains(w, key) }) {
			t.Errorf("no command names the key %q", key)
		}
	}
}

// promLine is a line of Prometheus's text format: a comment, or a name, labels whose values hold no raw quote,
// backslash or line feed, and a number.
var promLine = regexp.MustCompile(`^(# (HELP|TYPE) [a-z0-9_]+ .*|[a-z0-9_]+(\{[a-z0-9_]+="([^"\\]|\\[\\"n])*"(,[a-z0-9_]+="([^"\\]|\\[\\"n])*")*\})? [-+0-9.eNaIf]+)$`)

// TestHostileLabels: a backup with a hostile name, compared with sources of hostile names, gives metrics that are read
// as what they are.
func TestHostileLabels(t *testing.T) {
	dirs := hostileCluster(t)
	b, err := os.ReadFile(filepath.Join(dirs[0], "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	args := []string{"verify", "-w", "json", "--metrics-file", filepath.Join(root, "out.prom"), "--against",
		"x\"} 9\n: >RAN=" + dirs[0]}
	for i, name := range []string{"a\"} 1\netcd_medic_x 2\n#.db", "back\\slash\x1b[31m.db", "$(: >RAN)\u202e.db"} {
		dir := filepath.Join(root, fmt.Sprint(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	var out, errs bytes.Buffer
	if code := Main(t.Context(), args, &Streams{Out: &out, Err: &errs,
		Getenv: func(string) string { return "" }}); code == ExitUsage || code == ExitError {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	text, err := os.ReadFile(filepath.Join(root, "out.prom"))
	if err != nil {
		t.Fatal(err)
	}
	if !shell.IsSafe(text) || !shell.IsSafe(out.Bytes()) {
		t.Error("the metrics or the report hold what a terminal obeys")
	}
	samples := 0
	for l := range strings.Lines(string(text)) {
		if l = strings.TrimSuffix(l, "\n"); !promLine.MatchString(l) {
			t.Errorf("no line of Prometheus's format: %q", l)
		}
		if strings.Contains(l, "RAN") || strings.Contains(l, "slash") {
			samples++
		}
	}
	if samples < 5 {
		t.Errorf("%d samples name the backups:\n%s", samples, text)
	}
}
