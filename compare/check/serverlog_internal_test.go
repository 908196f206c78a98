package check

import (
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/serverlog"
)

// TestEndsBefore: only lines about what the server's own files held count, and of them the highest.
func TestEndsBefore(t *testing.T) {
	type events = []serverlog.Event
	event := func(id string, line int, index uint64) serverlog.Event {
		return serverlog.Event{ID: id, Line: line, Index: index}
	}
	for name, c := range map[string]struct {
		events events
		line   string
	}{
		"none":                {},
		"as far as the files": {events: events{event(serverlog.EventSnapshot, 1, 40)}},
		"a snapshot":          {events{event(serverlog.EventSnapshot, 1, 41)}, "line 1 "},
		"a restart":           {events{event(serverlog.EventRestart, 1, 41)}, "line 1 "},
		"a received snapshot": {events{event(serverlog.EventReceived, 1, 41)}, "line 1 "},
		"another line":        {events: events{event("slow-apply", 1, 50)}},
		"another line is first": {events{event("slow-apply", 1, 50), event(serverlog.EventRestart, 2, 41)},
			"line 2 "},
		"the highest is first": {events{event(serverlog.EventRestart, 1, 43), event(serverlog.EventSnapshot, 2, 42)},
			"line 1 "},
		"twice": {events{event(serverlog.EventRestart, 1, 43), event(serverlog.EventSnapshot, 2, 43)}, "line 1 "},
		"the highest comes later": {events{event(serverlog.EventRestart, 1, 42), event(serverlog.EventSnapshot, 2, 43)},
			"line 2 "},
	} {
		m := withLog(member("n1"), 40)
		f := endsBefore(m, &serverlog.Journal{Events: c.events})
		switch {
		case (f != nil) != (c.line != ""):
			t.Errorf("%s: %+v", name, f)
		case f != nil && !strings.HasPrefix(f.Evidence[0].Field, c.line):
			t.Errorf("%s: %q", name, f.Evidence[0].Field)
		case f != nil && !strings.HasSuffix(f.Evidence[0].Field, ", without a time"):
			t.Errorf("%s: %q", name, f.Evidence[0].Field)
		}
	}
	if got := stamp(time.Unix(1_700_000_000, 0).UTC()); got != "2023-11-14T22:13:20Z" {
		t.Errorf("a time: %q", got)
	}
}
