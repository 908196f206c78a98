package serverlog_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/preflight"
	"github.com/etcd-medic/etcd-medic/compare/serverlog"
)

// lines are what servers of different lines write, as they write it, with the message that must be found first.
var lines = []struct {
	line, id string
	values   map[string]string
}{
	{`2020-02-20 11:50:35.133446 C | raft: tocommit(1043) is out of range [lastIndex(0)]. Was the raft log corrupted, truncated, or lost?`, "tocommit-out-of-range", map[string]string{"commit": "1043", "last": "0"}},
	{`{"level":"panic","ts":"2026-01-02T03:04:05.678Z","logger":"raft","caller":"etcdserver/zap_raft.go:101","msg":"tocommit(9) is out of range [lastIndex(4)]. Was the raft log corrupted, truncated, or lost?"}`, "tocommit-out-of-range", map[string]string{"commit": "9", "last": "4"}},
	{`panic: 8e9e05c52164694d state.commit 203 is out of range [100, 180]`, "commit-out-of-range",
		map[string]string{"commit": "203", "snapshot": "100", "last": "180"}},
	{`{"level":"fatal","msg":"failed to read WAL, cannot be repaired","error":"walpb: crc mismatch: in file '0000.wal' at position: 1234"}`, "wal-crc", nil},
	{`2019-01-01 00:00:00.0 C | etcdserver: read wal error (walpb: crc mismatch) and cannot be repaired`, "wal-crc",
		nil},
	{`{"level":"fatal","msg":"failed to open WAL","error":"wal: file not found which matches the snapshot index '4005'"}`, "wal-file-not-found", map[string]string{"snapshot": "4005"}},
	{`{"level":"fatal","msg":"discovery failed","error":"wal: file sequence numbers (starting from 3) do not increase continuously"}`, "wal-sequence", map[string]string{"from": "3"}},
	{`panic: runtime error: slice bounds out of range [recovered]`, "wal-slice-bounds", nil},
	{`{"level":"panic","msg":"failed to recover v3 backend from snapshot","error":"failed to find database snapshot file (snap: snapshot file doesn't exist)"}`, "no-database-snapshot", nil},
	{`{"level":"fatal","msg":"discovery failed","error":"database file (/var/lib/etcd/member/snap/db index 10) does not match with snapshot (index 1000)"}`, "database-does-not-match-snapshot", map[string]string{"file": "/var/lib/etcd/member/snap/db", "index": "10", "snapshot": "1000"}},
	{`panic: assertion failed: Page expected to be: 7, but self identifies as 11936128518282651045`, "bolt-pages",
		map[string]string{"want": "7", "have": "11936128518282651045"}},
	{`panic: freepages: failed to get all reachable pages (page 1219: multiple references)`, "bolt-pages", nil},
	{`{"level":"panic","msg":"failed to open database","path":"/d/member/snap/db","error":"invalid database"}`,
		"bolt-open", nil},
	{`{"level":"fatal","msg":"invalid downgrade; server version is lower than determined cluster version","current-server-version":"3.4.3","determined-cluster-version":"3.5"}`, "invalid-downgrade", nil},
	{`etcdserver/membership: cluster cannot be downgraded (current version: 3.3.18 is lower than determined cluster version: 3.4).`, "invalid-downgrade", map[string]string{"server": "3.3.18", "cluster": "3.4"}},
	{`{"level":"fatal","msg":"discovery failed","error":"version \"3.7.0\" is not supported"}`,
		"storage-version-unsupported", map[string]string{"version": "3.7.0"}},
	{`panic: unmarshal should never fail (proto: cannot parse invalid wire-format data)`, "unmarshal-should-never-fail",
		nil},
	{`{"level":"panic","msg":"detected disallowed v2 WAL for stage --v2-deprecation=write-only"}`, "v2-entry-refused",
		nil},
	{`{"level":"fatal","msg":"discovery failed","error":"member a1b2c3 has already been bootstrapped"}`,
		"already-bootstrapped", map[string]string{"member": "a1b2c3"}},
	{`{"level":"info","msg":"the member has been permanently removed from the cluster"}`, "permanently-removed", nil},
	{`{"level":"error","msg":"found data inconsistency with peers"}`, "data-inconsistency", nil},
	{`{"level":"warn","msg":"slow fdatasync","took":"2.1s"}`, "slow-disk", nil},
	{`panic: 'put' with an unexpected smaller revision`, "put-smaller-revision", nil},
	{`{"level":"fatal","msg":"range failed to find revision pair","revision-main":1234}`, "revision-pair-not-found",
		nil},
}

func TestLinesOfServers(t *testing.T) {
	for _, l := range lines {
		found := serverlog.Scan(l.line)
		if len(found) == 0 || found[0].ID != l.id {
			t.Errorf("%s: found %v, want %s", l.line, ids(found), l.id)
			continue
		}
		if l.values == nil {
			continue
		}
		if d := cmp.Diff(l.values, found[0].Values); d != "" {
			t.Errorf("%s: %s", l.line, d)
		}
	}
}

func ids(found []serverlog.Match) []string {
	var out []string
	for _, m := range found {
		out = append(out, m.ID)
	}
	return out
}

// TestEveryDayLinesAreNone: what a healthy server writes is not taken for trouble.
func TestEveryDayLinesAreNone(t *testing.T) {
	for _, l := range []string{
		`{"level":"info","msg":"established TCP streaming connection with remote peer"}`,
		`{"level":"info","msg":"opened backend db","path":"/d/db","took":"1ms"}`,
		`{"level":"info","msg":"published local member to cluster through raft"}`,
		`{"level":"info","msg":"saved snapshot","snapshot-index":51}`,
		`{"level":"info","msg":"No snapshot found. Recovering WAL from scratch!"}`,
		`{"level":"info","msg":"finished scheduled compaction","compact-revision":43}`,
		`{"level":"info","msg":"restarting local member","commit-index":12}`, "", "ready to serve client requests",
	} {
		if found := serverlog.Scan(l); len(found) > 0 {
			t.Errorf("%s: %v", l, ids(found))
		}
	}
}

// TestScannerCounts: a log is looked through line by line; each message is told once, with how often it was said.
func TestScannerCounts(t *testing.T) {
	log := strings.Repeat("nothing\n", 5) + strings.Repeat(lines[0].line+"\n", 3) + lines[3].line + "\n" +
		strings.Repeat("x", 1<<17)
	var s serverlog.Scanner
	for l := range strings.Lines(log) {
		s.Line(l)
	}
	found := s.Matches()
	if s.Lines() != 10 || len(found) < 2 || found[0].Count != 3 || found[0].ID != "tocommit-out-of-range" {
		t.Errorf("%d lines, %v", s.Lines(), found)
	}
}

// TestLongLine: a line that comes in parts is one line, and a message in it is found once, wherever it is and however
// the line is cut.
func TestLongLine(t *testing.T) {
	message := lines[0].line
	long := strings.Repeat("x", 300_000) + message + strings.Repeat("y", 300_000) + message
	for _, part := range []int{1 << 16, 300_010, 1 << 20} {
		var s serverlog.Scanner
		s.Line(long[:min(part, len(long))])
		for at := part; at < len(long); at += part {
			s.More(long[at:min(at+part, len(long))])
		}
		s.Line("nothing")
		s.More(message[:20])
		found := s.Matches()
		if s.Lines() != 2 || len(found) == 0 || found[0].ID != lines[0].id || found[0].Count != 1 {
			t.Errorf("parts of %d bytes: %d lines, %v", part, s.Lines(), found)
		}
	}
}

// TestEveryMessageIsWhole: every message is documented, says what to type, its patterns compile and its references
// exist.
func TestEveryMessageIsWhole(t *testing.T) {
	causes, checks, rules := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, k := range cause.All() {
		causes[string(k.ID)] = true
	}
	for _, k := range cause.Undetected() {
		causes[string(k.ID)] = true
	}
	for _, c := range check.All() {
		checks[string(c.ID)] = true
	}
	for _, r := range preflight.Rules() {
		rules[r.ID] = true
	}
	seen := map[string]bool{}
	for _, m := range serverlog.All() {
		if seen[m.ID] || causes[m.ID] || m.ID == "" || m.Means == "" || m.OnDisk == "" || m.Versions == "" {
			t.Errorf("%q is incomplete, or its name is taken", m.ID)
		}
		if len(m.Do) == 0 || len(m.Type) == 0 || len(m.Examples) == 0 || len(m.Patterns) == 0 {
			t.Errorf("%s: %d steps, %d commands, %d examples, %d patterns", m.ID, len(m.Do), len(m.Type),
				len(m.Examples), len(m.Patterns))
		}
		seen[m.ID] = true
		for _, p := range m.Patterns {
			if _, err := regexp.Compile("(?i)" + p); err != nil {
				t.Errorf("%s: %v", m.ID, err)
			}
		}
		refers(t, m.ID, causes, m.Causes)
		refers(t, m.ID, checks, m.Checks)
		refers(t, m.ID, rules, m.Rules)
	}
	if len(seen) < 80 {
		t.Errorf("%d messages", len(seen))
	}
	for _, r := range preflight.Rules() {
		if r.Level == preflight.Stops && !slices.ContainsFunc(serverlog.All(),
			func(m serverlog.Message) bool { return slices.Contains(m.Rules, r.ID) }) {
			t.Errorf("no message leads to rule %s", r.ID)
		}
	}
}

func refers(t *testing.T, message string, known map[string]bool, ids []string) {
	t.Helper()
	for _, id := range ids {
		if !known[id] {
			t.Errorf("%s names %s, which does not exist", message, id)
		}
	}
}

// TestEveryExampleIsFound: each line that a message gives as an example leads to it, whatever the line came in, to a
// person who pastes it (Scan) and to a journal (Read); and every pattern has an example that needs it.
func TestEveryExampleIsFound(t *testing.T) {
	for _, m := range serverlog.All() {
		for _, line := range m.Examples {
			for name, text := range carriersOf(line) {
				if found := serverlog.Scan(text); !slices.Contains(ids(found), m.ID) {
					t.Errorf("%s, %s: found %v in %s", m.ID, name, ids(found), text)
				}
				j, err := serverlog.Read(t.Context(), strings.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				if m.OfFiles() && !slices.ContainsFunc(j.Events, func(e serverlog.Event) bool { return e.ID == m.ID }) {
					t.Errorf("%s, %s: the journal has %v", m.ID, name, j.Events)
				}
			}
		}
	}
}

// carriersOf are the ways in which a line reaches us.
func carriersOf(line string) map[string]string {
	quoted, _ := json.Marshal(line)
	ended, _ := json.Marshal(line + "\n")
	return map[string]string{
		"bare":                    line + "\n",
		"journalctl":              "Jan 02 03:04:05 node1 etcd[1717]: " + line + "\n",
		"journalctl -o short-iso": "2026-01-02T03:04:05+0000 node1 etcd[1717]: " + line + "\n",
		"journalctl -o json": `{"__REALTIME_TIMESTAMP":"1767323045000000","MESSAGE":` + string(quoted) +
			`,"_PID":"17"}` + "\n",
		"journalctl -o json, bytes": `{"__REALTIME_TIMESTAMP":"1767323045000000","MESSAGE":` + byteList(line+"\t") + `}`,
		"journalctl -o export":      "__REALTIME_TIMESTAMP=1767323045000000\nMESSAGE=" + line + "\n_PID=17\n\n",
		"kubectl logs":              line + "\n",
		"kubectl logs --prefix":     "[pod/etcd-cp1/etcd] " + line + "\n",
		"kubectl logs --timestamps": "2026-01-02T03:04:05.123456789Z " + line + "\n",
		"container runtime":         "2026-01-02T03:04:05.123456789+02:00 stderr F " + line + "\n",
		"docker JSON": `{"log":` + string(ended) +
			`,"stream":"stderr","time":"2026-01-02T03:04:05.123456789Z"}` + "\n",
		"docker compose": "etcd1-1  | " + line + "\n",
	}
}

// TestBothLoggersAreKnown: most messages that stop a server have the text of 3.3 and the text of later releases.
func TestBothLoggersAreKnown(t *testing.T) {
	plainLine, jsonLine := regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} [CEWNI] \| [a-z/]+: `),
		regexp.MustCompile(`^\{"level":"`)
	both := 0
	for _, m := range serverlog.All() {
		if slices.ContainsFunc(m.Examples, plainLine.MatchString) &&
			slices.ContainsFunc(m.Examples, jsonLine.MatchString) {
			both++
		}
		for _, line := range m.Examples {
			if strings.HasPrefix(line, "{") && !json.Valid([]byte(line)) {
				t.Errorf("%s: not JSON: %s", m.ID, line)
			}
		}
	}
	if both < 60 {
		t.Errorf("only %d messages have an example of both loggers", both)
	}
}

// byteList is a text as journald writes it into JSON where it has a tab.
func byteList(s string) string {
	out := []string{}
	for i := range len(s) {
		out = append(out, strconv.Itoa(int(s[i])))
	}
	return "[" + strings.Join(out, ",") + "]"
}
