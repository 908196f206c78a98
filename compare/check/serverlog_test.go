package check_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/serverlog"
)

// TestServerLogs: what a server's log says of its own files is compared with them, and only that.
func TestServerLogs(t *testing.T) {
	in := inputOf(t, filepath.Join(evidencetest.Incident(t, "m-healthy-3.5"), "node1"))
	m := in.Members[0]
	restart := func(id string, commit uint64) string {
		return fmt.Sprintf(`{"level":"info","ts":"2026-01-02T03:04:05Z","msg":"restarting local member","cluster-id":"1","local-member-id":"%s","commit-index":%d}`, id, commit)
	}
	saved := func(index uint64) string {
		return fmt.Sprintf(`{"level":"info","msg":"saved snapshot","snapshot-index":%d}`, index)
	}
	own, last := m.MemberID.String(), m.LastIndex()
	start := fmt.Sprintf(`{"level":"info","msg":"starting local member","local-member-id":"%s","cluster-id":"1"}`, own)
	for _, c := range []struct {
		name, severity, title string
		lines                 []string
	}{
		{"nothing known", "", "", []string{"hello", "world"}},
		{"a sound life", "", "", []string{restart(own, 3), saved(4), restart(own, 5), restart(own, last)}},
		{"a restart at the snapshot", "", "", []string{restart(own, 3), saved(9), restart(own, 9)}},
		{"a restart at an unknown entry", "", "", []string{restart(own, 3), saved(9), restart(own, 0)}},
		{"below the highest snapshot", "warning", "back", []string{saved(9), saved(4), restart(own, 5)}},
		{"a restart at a snapshot, then back", "warning", "back",
			[]string{restart(own, 3), saved(4), saved(9), restart(own, 5), restart(own, 4)}},
		{"another member", "warning", "was written by member abc123",
			[]string{restart("abc123", 5), saved(9), restart("abc123", 5)}},
		{"back in time", "warning", "went back in time", []string{restart(own, 3), saved(9), restart(own, 5)}},
		{"wiped and begun again", "", "", []string{restart(own, 3), saved(9), start, restart(own, 5)}},
		{"a new member on the same host", "", "", []string{restart(own, 3), saved(9), restart("abc123", 5)}},
		{"beyond the files", "info", fmt.Sprintf("names entry %d", last+7), []string{restart(own, last+7)}},
		{"an error line", "info", "1 known error lines",
			[]string{restart(own, 3), "panic: tocommit(5) is out of range [lastIndex(4)]"}},
	} {
		j, err := serverlog.Read(t.Context(), strings.NewReader(strings.Join(c.lines, "\n")+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		in.ServerLogs = map[string]*serverlog.Journal{m.Label(): j}
		res := runCheck(t, in, "G01")
		if c.title == "" {
			if len(res.Findings) > 0 || res.Outcome != check.Holds {
				t.Errorf("%s: %s %+v", c.name, res.Outcome, res.Findings)
			}
			continue
		}
		if len(res.Findings) != 1 || string(res.Findings[0].Severity) != c.severity ||
			!strings.Contains(res.Findings[0].Title, c.title) {
			t.Errorf("%s: %+v", c.name, res.Findings)
		}
		if want := map[bool]check.Outcome{true: check.Violated,
			false: check.Holds}[c.severity == "warning"]; res.Outcome != want {
			t.Errorf("%s: %s, want %s", c.name, res.Outcome, want)
		}
	}
	in.ServerLogs = nil
	if res := runCheck(t, in, "G01"); res.Outcome == check.Holds || res.Reason == "" {
		t.Errorf("without a log: %+v", res)
	}
}
