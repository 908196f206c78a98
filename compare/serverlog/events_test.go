package serverlog_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/serverlog"
)

// event is what matters of a serverlog.Event.
type event struct {
	Line            int
	ID              string
	Index, Term     uint64
	Revision        int64
	Problem, Checks bool
}

func read(t *testing.T, text string) (*serverlog.Journal, []event) {
	t.Helper()
	j, err := serverlog.Read(t.Context(), strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var out []event
	for _, e := range j.Events {
		out = append(out, event{e.Line, e.ID, e.Index, e.Term, e.Revision, e.Problem, len(e.Checks) > 0})
	}
	return j, out
}

// TestEvents: each line is one event with its numbers, a repeated one is counted, and what is not about files is none.
func TestEvents(t *testing.T) {
	const leader, snapshot = "raft: 8e9e05c52164694d became leader at term 7\n", "etcdserver: saved snapshot at index 9\n"
	const commit = "panic: 8e9e05c52164694d state.commit 203 is out of range [100, 180]\n"
	for _, c := range []struct {
		name, text string
		left       int
		want       []event
	}{
		{"numbers", leader + snapshot + `{"msg":"finished scheduled compaction","compact-revision":43}` + "\n" + commit, 0,
			[]event{{Line: 1, ID: "becomes-leader", Term: 7}, {Line: 2, ID: "saves-snapshot", Index: 9},
				{Line: 3, ID: "finishes-compaction", Revision: 43},
				{Line: 4, ID: "commit-out-of-range", Index: 203, Problem: true, Checks: true}}},
		{"repeated", leader + leader + leader, 2, []event{{Line: 1, ID: "becomes-leader", Term: 7}}},
		{"repeated with another number", leader + strings.ReplaceAll(leader, "7", "8") + leader, 0,
			[]event{{Line: 1, ID: "becomes-leader", Term: 7}, {Line: 2, ID: "becomes-leader", Term: 8},
				{Line: 3, ID: "becomes-leader", Term: 7}}},
		{"repeated with another index", snapshot + strings.ReplaceAll(snapshot, "9", "8"), 0,
			[]event{{Line: 1, ID: "saves-snapshot", Index: 9}, {Line: 2, ID: "saves-snapshot", Index: 8}}},
		{"of the machine", `{"level":"warn","msg":"slow fdatasync","took":"2.1s"}` + "\n", 0, nil},
		{"ordinary line that looks like a problem", "saved snapshot at index 7, state.commit 203 is out of range [100, 180]\n",
			0, []event{{Line: 1, ID: "saves-snapshot", Index: 7}}},
		{"number that is none", "etcdserver: saved snapshot at index 99999999999999999999\n", 0,
			[]event{{Line: 1, ID: "saves-snapshot"}}},
		{"last line without an end", strings.TrimSpace(leader), 0, []event{{Line: 1, ID: "becomes-leader", Term: 7}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j, got := read(t, c.text)
			if d := cmp.Diff(c.want, got); d != "" || j.LeftOut != c.left {
				t.Errorf("%d left out, %s", j.LeftOut, d)
			}
		})
	}
}

// TestMembers: the members under which a server started are listed in order, each once in a row.
func TestMembers(t *testing.T) {
	start := func(id string) string { return "etcdserver: starting member " + id + " in cluster cdf818194e3a8c32\n" }
	j, _ := read(t, start("aa")+start("aa")+start("bb")+start("aa"))
	if d := cmp.Diff([]string{"aa", "bb", "aa"}, j.Members); d != "" {
		t.Error(d)
	}
}

// TestTimesOfLines: the time of a line is the one its server wrote, else that of what carried it; a time that is none
// is no time.
func TestTimesOfLines(t *testing.T) {
	const text = "becomes: 8e9e05c52164694d became leader at term 7"
	for line, want := range map[string]string{
		text: "none",
		"2026-01-02 03:04:05.123456 I | raft: " + text:                                     "03:04:05.123456",
		"2026-01-02T05:04:05.5+02:00 stdout F " + text:                                     "03:04:05.5",
		"2026-01-02T05:04:05.5+0200 " + text:                                               "03:04:05.5",
		"2026-13-02T05:04:05.5+0200 " + text:                                               "none",
		`{"ts":1767323045.25,"msg":"` + text + `"}`:                                        "03:04:05.25",
		`{"ts":"yesterday at noon","msg":"` + text + `"}`:                                  "none",
		`{"__REALTIME_TIMESTAMP":"1767323045000000","MESSAGE":"` + text + `"}`:             "03:04:05",
		`{"__REALTIME_TIMESTAMP":"-1","MESSAGE":"` + text + `"}`:                           "none",
		`{"__REALTIME_TIMESTAMP":"x","MESSAGE":"` + text + `"}`:                            "none",
		`{"log":"` + text + `\n","stream":"stderr","time":"2026-01-02T03:04:05Z"}`:         "03:04:05",
		"__REALTIME_TIMESTAMP=1767323045000000\n_PID=7\nMESSAGE=" + text:                   "03:04:05",
		`{"stream":"stderr","msg":"` + text + `"}`:                                         "none",
		`{"MESSAGE":"not JSON ` + text:                                                     "none",
		"ETCD_NAME=node1 " + text:                                                          "none",
		"__REALTIME_TIMESTAMP=1767323045000000\nMESSAGE=2026-01-02 03:04:06.0 I | " + text: "03:04:06",
	} {
		j, got := read(t, line+"\n")
		if len(got) != 1 {
			t.Errorf("%s: %+v", line, got)
			continue
		}
		at := "none"
		if !j.Events[0].Time.IsZero() {
			at = j.Events[0].Time.UTC().Format("15:04:05.999999")
		}
		if at != want || !j.First.Equal(j.Events[0].Time) || !j.Last.Equal(j.Events[0].Time) {
			t.Errorf("%s: at %s, want %s; from %v to %v", line, at, want, j.First, j.Last)
		}
	}
}

// TestReadFails: a file that cannot be read is an error, and so is a run that ends.
func TestReadFails(t *testing.T) {
	broken := errors.New("broken disk")
	r := io.MultiReader(strings.NewReader("one line\n"), iotest.ErrReader(broken))
	if j, err := serverlog.Read(t.Context(), r); j != nil || !errors.Is(err, broken) {
		t.Errorf("%v, %v", j, err)
	}
	ctx, end := context.WithTimeout(t.Context(), -time.Second)
	defer end()
	if j, err := serverlog.Read(ctx, strings.NewReader(strings.Repeat("x\n", 2000))); j != nil ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, %v", j, err)
	}
}

// TestFind: a message is found by its ID in any case, and no other.
func TestFind(t *testing.T) {
	if m, ok := serverlog.Find("WAL-crc"); !ok || m.ID != "wal-crc" || m.Means == "" {
		t.Errorf("%+v, %v", m, ok)
	}
	if m, ok := serverlog.Find("wal"); ok || m.ID != "" {
		t.Errorf("%+v, %v", m, ok)
	}
}
