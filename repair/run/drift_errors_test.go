package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

var errNoClient = errors.New("no client")

// drifted is a fake repair of which node1 and node2 have each accepted a write since their copies.
func drifted(t *testing.T) (*fakeCluster, *plan.Member) {
	t.Helper()
	c := newFake(t, fakePlan(t, 3, "node2"))
	c.r.limits.step = 20 * time.Millisecond
	c.wrote(1, 11, "l", "v")
	c.wrote(2, 11, "k", "v")
	return c, c.r.plan.Member("node2")
}

// TestDriftIsNotRead: changes of either member that cannot be read, and keys that cannot be compared, are an error: a
// member that is not compared may hold what is lost with it.
func TestDriftIsNotRead(t *testing.T) {
	for n := 2; n <= 3; n++ { // the status of both comes first, then the changes of each
		c, m := drifted(t)
		left := n
		c.fail = func(call string) error {
			if !strings.HasPrefix(call, "client ") {
				return nil
			}
			if left--; left < 0 {
				return errNoClient
			}
			return nil
		}
		if d, err := c.r.drifts.drift(t.Context(), m); d != nil || !errors.Is(err, errNoClient) || left != -1 {
			t.Errorf("after %d clients: %+v, %v", n, d, err)
		}
	}
	c, m := drifted(t)
	c.read = func(id uint64) { c.set(id, false) }
	_, err := c.r.drifts.drift(t.Context(), m)
	wantError(t, "a member ends", err, "read from node1: ")
}

// TestDriftTakesTooLong: changes that are not read in time are unknown, and are no error.
func TestDriftTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, m := drifted(t)
		c.of(1).revision = 20 // its watch shows no change up to there
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		d, err := c.r.drifts.drift(ctx, m)
		if err != nil || d == nil || d.Unknown != "its changes could not be read within 2m0s" || d.Unlisted > 0 {
			t.Errorf("%+v, %v", d, err)
		}
		time.AfterFunc(time.Minute, cancel)
		if d, err := c.r.drifts.drift(ctx, m); !errors.Is(err, context.Canceled) || d != nil {
			t.Errorf("interrupted: %+v, %v", d, err)
		}
	})
}

// TestMovedIsNotKnown: before the first step both the kept member and those that leave must show what they accepted.
func TestMovedIsNotKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(c *fakeCluster)
		want string
	}{
		"the kept one is down": {func(c *fakeCluster) { c.set(1, false) }, "status of node1: "},
		"the kept one is late": {func(c *fakeCluster) { c.wrote(2, 12, "m", "v") }, "node1 catches up: "},
	} {
		c, _ := drifted(t)
		servers := serve(t, c)
		f := servers.live()
		f.where.endpoints["node2"] = servers.urls["node2"]
		c.r.host = c // which answers at once
		tc.set(c)
		notes, err := (&liveCheck{liveHost: f}).moved(t.Context())
		wantError(t, name, err, tc.want)
		if notes != nil {
			t.Errorf("%s: %q", name, notes)
		}
	}
}

// TestGivenUp: what is lost with the content that is kept is said, and nothing else.
func TestGivenUp(t *testing.T) {
	p := fakePlan(t, 3)
	if notes := givenUp(p); len(notes) > 0 {
		t.Errorf("%q", notes)
	}
	p.Lost.Records = compare.LostRecords{Count: 3, OfEntries: 1}
	want := "the right content of 2 records that are proven wrong on node1 is lost, as the plan lists it"
	if notes := givenUp(p); len(notes) != 1 || notes[0] != want {
		t.Errorf("%q", notes)
	}
}

// TestEndpointIsNotNoted: an endpoint that cannot be noted is an error, because a later process may not find it.
func TestEndpointIsNotNoted(t *testing.T) {
	f := whereOf(t, 3, []string{"http://a:1"}, nil)
	f.r.j = closedJournal(t)
	f.where.endpoints["node1"] = "http://b:1"
	if err := f.where.assign(); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// TestSameHost: an endpoint is taken for that of the only member on its host.
func TestSameHost(t *testing.T) {
	f := whereOf(t, 3, []string{"http://node2:1", "http://node3:1"}, nil)
	m := f.r.plan.Member("node2")
	for name, tc := range map[string]struct {
		endpoint, other string // the peer URL of node3
		want            bool
	}{
		"its own host":     {"http://node2:1", "http://node3:2380", true},
		"another host":     {"http://node3:1", "http://node3:2380", false},
		"two on this host": {"http://node2:1", "http://node2:2381", false},
		"no URL":           {"http://[", "http://node3:2380", false},
	} {
		f.r.plan.Member("node3").PeerURLs = []string{tc.other}
		if got := f.where.sameHost(m, tc.endpoint); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if host := hostOf("http://["); host != "" {
		t.Errorf("the host is %q", host)
	}
}

// TestHookWithoutLog: a hook whose output has no place is not run.
func TestHookWithoutLog(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	f := serve(t, c).live()
	ran := filepath.Join(t.TempDir(), "ran")
	for name, make := range map[string]func(log string) error{
		"a folder":       func(log string) error { return os.Mkdir(log, 0o700) },
		"it is too full": func(log string) error { return os.Symlink("/dev/full", log) },
	} {
		f.plan = filepath.Join(t.TempDir(), "plan.yaml")
		if err := make(HooksLogPath(f.plan)); err != nil {
			t.Fatal(err)
		}
		err := f.runHook(t.Context(), c.r.plan.Member("node2"), "stop", fmt.Sprintf("echo ran >%q", ran), "")
		if err == nil || strings.HasPrefix(err.Error(), "hook ") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(ran); err == nil {
			t.Errorf("%s: the hook ran", name)
		}
	}
}
