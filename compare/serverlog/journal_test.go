package serverlog_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/serverlog"
)

// carriers are the ways in which the same four lines of a server reach us.
var carriers = map[string]string{
	"plain 3.3": `2026-01-02 03:04:05.000000 I | etcdserver: restarting member 8e9e05c52164694d in cluster cdf818194e3a8c32 at commit index 120
2026-01-02 03:04:06.000000 I | raft: 8e9e05c52164694d became leader at term 7
2026-01-02 03:04:07.000000 I | etcdserver: saved snapshot at index 10001
2026-01-02 03:04:08.000000 C | raft: tocommit(1043) is out of range [lastIndex(0)]. Was the raft log corrupted, truncated, or lost?
`,
	"JSON":                      jsonLines,
	"kubectl logs --timestamps": prefixed(jsonLines, "2026-09-09T09:09:09.123456789Z "),
	"container runtime":         prefixed(jsonLines, "2026-09-09T09:09:09.123456789+02:00 stderr F "),
	"journald export":           exported(jsonLines),
	"journald JSON":             journalJSON(jsonLines),
}

const jsonLines = `{"level":"info","ts":"2026-01-02T03:04:05.000Z","caller":"etcdserver/raft.go:530","msg":"restarting local member","cluster-id":"cdf818194e3a8c32","local-member-id":"8e9e05c52164694d","commit-index":120}
{"level":"info","ts":"2026-01-02T03:04:06.000+0000","logger":"raft","msg":"8e9e05c52164694d became leader at term 7"}
{"level":"info","ts":"2026-01-02T03:04:07Z","msg":"saved snapshot","snapshot-index":10001}
{"level":"panic","ts":1767323048.0,"msg":"tocommit(1043) is out of range [lastIndex(0)]. Was the raft log corrupted, truncated, or lost?"}
`

func prefixed(lines, with string) string {
	return with + strings.ReplaceAll(strings.TrimSuffix(lines, "\n"), "\n", "\n"+with) + "\n"
}

func exported(lines string) string {
	var b strings.Builder
	for l := range strings.Lines(lines) {
		fmt.Fprintf(&b, "__CURSOR=s=abc\n__REALTIME_TIMESTAMP=1789000000000000\n_HOSTNAME=node1\nMESSAGE=%s_PID=17\n\n",
			l)
	}
	return b.String()
}

func journalJSON(lines string) string {
	var b strings.Builder
	for l := range strings.Lines(lines) {
		fmt.Fprintf(&b, `{"__REALTIME_TIMESTAMP":"1789000000000000","MESSAGE":%q,"_PID":"17"}`+"\n",
			strings.TrimSuffix(l, "\n"))
	}
	return b.String()
}

// TestReadCarriers: the same lines say the same, whatever they came in; the time that the server wrote wins.
func TestReadCarriers(t *testing.T) {
	type event struct {
		ID      string
		Time    string
		Index   uint64
		Term    uint64
		Problem bool
	}
	want := []event{{"server-restarts", "03:04:05", 120, 0, false}, {"becomes-leader", "03:04:06", 0, 7, false},
		{"saves-snapshot", "03:04:07", 10001, 0, false}, {"tocommit-out-of-range", "03:04:08", 1043, 0, true}}
	for name, text := range carriers {
		j, err := serverlog.Read(t.Context(), strings.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []event
		for _, e := range j.Events {
			got = append(got, event{e.ID, e.Time.Format(time.TimeOnly), e.Index, e.Term, e.Problem})
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (- want, + got)\n%s", name, d)
		}
		if d := cmp.Diff([]string{"8e9e05c52164694d"}, j.Members); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if j.First.Format(time.TimeOnly) != "03:04:05" || j.Last.Format(time.TimeOnly) != "03:04:08" {
			t.Errorf("%s: from %v to %v", name, j.First, j.Last)
		}
	}
}

// TestReadIsBounded: neither long lines nor many of them take memory, and what is no log is no error.
func TestReadIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20) + " became leader at term 9\n"
	j, err := serverlog.Read(t.Context(), strings.NewReader(long+jsonLines))
	if err != nil || len(j.Events) != 4 || j.Lines != 5 {
		t.Errorf("%d events of %d lines, %v", len(j.Events), j.Lines, err)
	}
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "raft: 8e9e05c52164694d became leader at term %d\n", i)
	}
	if j, err = serverlog.Read(t.Context(), strings.NewReader(b.String())); err != nil || len(j.Events) != 2000 ||
		j.LeftOut != 3000 {
		t.Errorf("%d events, %d left out, %v", len(j.Events), j.LeftOut, err)
	}
	if j, err = serverlog.Read(t.Context(), strings.NewReader("\x00\xff\n\n{\"MESSAGE\":[1,2]}\n{")); err != nil ||
		len(j.Events) != 0 {
		t.Errorf("%v, %v", j, err)
	}
}
