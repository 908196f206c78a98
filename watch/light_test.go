package watch

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// TestAlarmsWithoutAnEntry: members since 3.4 name all alarms in their status; only 3.3 is asked, which is an entry in
// the log, and only one member.
func TestAlarmsWithoutAnEntry(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		errors  [][]string
		asked   int
		want    [][]string
	}{
		"none":       {"3.6.16", nil, 0, [][]string{nil, nil, nil}},
		"no leader":  {"3.5.35", [][]string{{"etcdserver: no leader"}, nil, nil}, 0, [][]string{nil, nil, nil}},
		"one":        {"3.4.0", [][]string{{`memberID:2 alarm:NOSPACE `}, nil, nil}, 0, [][]string{nil, {"NOSPACE"}, nil}},
		"two blanks": {"3.7.3", [][]string{nil, {`memberID:3  alarm:CORRUPT`}, nil}, 0, [][]string{nil, nil, {"CORRUPT"}}},
		"not a text": {"3.7.3", [][]string{nil, {`a memberID:3 alarm:CORRUPT x`}, nil}, 0, [][]string{nil, nil, nil}},
		"seen by all": {"3.6.16", [][]string{{"memberID:1 alarm:NOSPACE "}, {"memberID:1 alarm:NOSPACE "}, {"memberID:1 alarm:CORRUPT "}},
			0, [][]string{{"CORRUPT", "NOSPACE"}, nil, nil}},
		"3.3":       {"3.3.18", nil, 1, [][]string{{"NOSPACE"}, nil, nil}},
		"not known": {"", nil, 0, [][]string{nil, nil, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			fs, ms := cluster()
			for i, f := range fs {
				f.version, f.applied = c.version, 9
				if c.errors != nil {
					f.errors = c.errors[i]
				}
			}
			r, _ := watcher(ms, Options{}).Round(t.Context())
			asked := 0
			for i, f := range fs {
				if asked += f.alarmed; !slices.Equal(r.Members[i].Alarms, c.want[i]) {
					t.Errorf("member %d: %q, want %q", i+1, r.Members[i].Alarms, c.want[i])
				}
			}
			if asked != c.asked {
				t.Errorf("asked %d times, want %d", asked, c.asked)
			}
		})
	}
}

// TestNoLeader: members that know no leader are not asked for what the leader has to agree to.
func TestNoLeader(t *testing.T) {
	for _, version := range []string{"3.3.18", "3.4.3", "3.5.35", "3.7.3"} {
		fs, ms := cluster()
		for _, f := range fs {
			f.version, f.applied, f.alone = version, 9, true
		}
		r, _ := watcher(ms, Options{}).Round(t.Context())
		for i, f := range fs {
			if f.authAsked-f.streamed+f.alarmed > 0 {
				t.Errorf("%s: asked member %d for auth or alarms", version, i+1)
			}
			if s := r.Members[i]; s.Err != nil || s.Hash == nil {
				t.Errorf("%s: member %d is not compared: %v", version, i+1, s.Err)
			}
		}
	}
}

// TestStreamsAfterAStart: a new connection to a member before 3.5 brings the snapshot streams for auth forward, once,
// and no sooner than some time after the last ones.
func TestStreamsAfterAStart(t *testing.T) {
	fs, ms := cluster()
	for _, f := range fs {
		f.version, f.applied, f.connected = "3.4.3", 9, 1
	}
	w := watcher(ms, Options{BucketInterval: time.Hour})
	ago := func(d time.Duration) { w.bucket = time.Now().Add(-d) }
	round := func(want int, what string) {
		t.Helper()
		w.Round(t.Context())
		if fs[0].streamed != want {
			t.Errorf("%s: %d streams, want %d", what, fs[0].streamed, want)
		}
	}
	round(1, "at first")
	round(1, "nothing changed")
	ago(time.Minute)
	round(1, "the connections are as they were")
	fs[1].connected++
	ago(afterStart / 2)
	round(1, "too soon")
	ago(afterStart)
	round(2, "a new connection")
	ago(time.Minute)
	round(2, "which is known now")
	fs[2].connected++
	w.ask.took = 10 * time.Second
	ago(time.Minute)
	round(2, "streams that take long")
	ago(2 * time.Minute)
	round(3, "streams that took long")
	ago(time.Hour)
	round(4, "an hour later")
	fs[0].auth, fs[0].connected = 3, fs[0].connected+1
	ago(afterStart)
	if _, events := w.Round(t.Context()); len(events) > 0 || !w.judge.suspected() {
		t.Errorf("%v, suspected: %t", events, w.judge.suspected())
	}
	if _, events := w.Round(t.Context()); len(events) != 1 || events[0].Kind != KindAuth {
		t.Errorf("%v", events)
	}

	w = watcher(ms, Options{})
	before := fs[0].streamed
	fs[0].connected++
	round(before, "without streams")
}

// TestWhyAMemberDoesNotAnswer: an endpoint that lets a request run out of time is asked why, with time of its own.
func TestWhyAMemberDoesNotAnswer(t *testing.T) {
	ms := Connect([]string{"http://127.0.0.1:1"}, evidence.Access{})
	w := watcher(ms, Options{Timeout: 50 * time.Millisecond})
	r, _ := w.Round(t.Context())
	if err := r.Members[0].Err; err == nil || !isRefused(err) {
		t.Errorf("%v", err)
	}
	if err := ms[0].Close(); err != nil {
		t.Error(err)
	}
}

func isRefused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || strings.Contains(err.Error(), "refused")
}

// TestHashesAsAsked: content is compared every HashInterval, and once more soon after it differed. Another difference
// brings no hash forward.
func TestHashesAsAsked(t *testing.T) {
	fs, ms := cluster()
	for _, f := range fs {
		f.applied = 9
	}
	w := watcher(ms, Options{HashInterval: time.Hour})
	for _, c := range []struct {
		what string
		do   func()
		asks bool
	}{
		{"at first", func() {}, true},
		{"so soon", func() {}, false},
		{"auth differs", func() { fs[1].auth++ }, false},
		{"auth was confirmed", func() {}, false},
		{"an hour later a value differs", func() {
			fs[1].alters[4], w.hashed = true, time.Now().Add(-time.Hour)
		}, true},
		{"to see it again", func() {}, true},
		{"it is raised", func() {}, false},
	} {
		c.do()
		before := fs[1].hashed
		if _, _ = w.Round(t.Context()); (fs[1].hashed > before) != c.asks {
			t.Errorf("%s: a hash was asked for: %v", c.what, !c.asks)
		}
	}
	if open := w.Open(); len(open) != 2 {
		t.Errorf("raised: %+v", open)
	}
}
