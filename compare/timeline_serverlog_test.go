package compare_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/serverlog"
	"github.com/etcd-medic/etcd-medic/compare/timeline"
)

// TestServerLogOnTheTimeline: problems of the files that a server's log names are moments of its member: at the entry
// that the line names, else at the start before it; lines of one meaning once, lines about peers not.
func TestServerLogOnTheTimeline(t *testing.T) {
	dir := evidencetest.Incident(t, "a-auth-revision-replay")
	specs := specsOf(t, dir)
	start := func() (at timeline.Moment) { // the second start of node2
		for _, m := range diagnose(t, specs).Timeline {
			if m.Kind == "start" && slices.Equal(m.Members, []string{"node2"}) {
				at = m
			}
		}
		return at
	}()
	_, began, ok := strings.Cut(start.What, "process began ")
	if !ok {
		t.Fatalf("no start of node2: %+v", start)
	}
	began = strings.TrimSuffix(strings.TrimSuffix(began, ")"), "Z")
	line := func(ts, text string) string { return `{"level":"warn","ts":"` + ts + `","msg":"` + text + `"}` + "\n" }
	lost := "tocommit(1043) is out of range [lastIndex(0)]. Was the raft log corrupted, truncated, or lost?"
	j, err := serverlog.Read(context.Background(), strings.NewReader(
		line("2001-01-01T00:00:00.000Z", "entry 12 conflict with committed entry [committed(20)]")+
			line(began+".999Z", lost)+line("2099-01-01T00:00:00.000Z", lost)+
			line(began+".999Z", "lost TCP streaming connection with remote peer")))
	if err != nil {
		t.Fatal(err)
	}
	r, err := compare.Diagnose(context.Background(), specs, compare.Options{Version: "test",
		ServerLogs: map[string]*serverlog.Journal{"node2": j}})
	if err != nil {
		t.Fatal(err)
	}
	var got []timeline.Moment
	for _, m := range r.Timeline {
		if m.Kind == timeline.KindLog {
			got = append(got, m)
		}
	}
	want := []string{"12 server log, line 1: ", fmt.Sprintf("%d server log, line 2: tocommit-out-of-range at %sZ",
		start.Index, began)}
	for i, m := range got {
		if s := fmt.Sprint(m.Index, " ", m.What); i >= len(want) || !strings.HasPrefix(s, want[i]) ||
			!slices.Equal(m.Members, []string{"node2"}) {
			t.Errorf("moment %d is %q of %v", i, s, m.Members)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d moments, want %d", len(got), len(want))
	}
}
