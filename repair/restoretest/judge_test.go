package restoretest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/node"
)

// TestRefutes: only what the server says of the backup refutes it, not what stops a server or a client.
func TestRefutes(t *testing.T) {
	answered := func(err error) drill { return drill{failure: err, res: &backup.Drill{Started: true}} }
	fatal := func(lines ...string) drill {
		return drill{failure: errors.New("x"), res: &backup.Drill{Fatal: lines}}
	}
	for name, c := range map[string]struct {
		d    drill
		want bool
	}{
		"no failure":      {answered(nil), false},
		"fatal":           {fatal("panic: page 5 is not a leaf"), true},
		"disk full":       {fatal("panic: x", "write wal: No space left on device"), false},
		"file size limit": {fatal("panic: write etcd-3.5.35: file too large"), false},
		"file limit":      {fatal("file descriptor limit of etcd process is too low; please set higher"), false},
		"no empty start": {drill{failure: errors.New("x"), noServer: errors.New("y"),
			res: &backup.Drill{Fatal: []string{"p"}}}, false},
		"fatal, refused":     {drill{failure: errors.New("x"), res: &backup.Drill{Refused: "r", Fatal: []string{"p"}}}, false},
		"contradiction":      {answered(fmt.Errorf("write: %w", contradiction("revision %d", 5))), true},
		"not started":        {drill{failure: contradiction("x"), res: &backup.Drill{}}, false},
		"out of time":        {drill{failure: contradiction("x"), timedOut: true, res: &backup.Drill{Started: true}}, false},
		"ended at start":     {answered(fmt.Errorf("start: %w", &node.StartError{})), false},
		"deadline":           {answered(errors.Join(contradiction("x"), context.DeadlineExceeded)), false},
		"client":             {answered(errors.New("no connection")), false},
		"corrupt":            {answered(rpctypes.ErrCorrupt), true},
		"corrupt, raw":       {answered(rpctypes.ErrGRPCCorrupt), true},
		"unavailable":        {answered(rpctypes.ErrNoLeader), false},
		"no space":           {answered(rpctypes.ErrNoSpace), false},
		"compacted":          {answered(rpctypes.ErrCompacted), true},
		"internal":           {answered(status.Error(codes.Internal, "transport")), false},
		"unimplemented":      {answered(status.Error(codes.Unimplemented, "x")), false},
		"canceled":           {answered(status.Error(codes.Canceled, "x")), false},
		"deadline of a call": {answered(status.Error(codes.DeadlineExceeded, "x")), false},
	} {
		if got := c.d.refutes(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := contradiction("revision %d", 5).Error(); got != "revision 5" {
		t.Error(got)
	}
}

// TestReason: the first step that failed is named, with why the drill proves nothing.
func TestReason(t *testing.T) {
	steps := []backup.Step{{Step: "start", OK: true}, {Step: "read"}, {Step: stepStop}}
	for _, c := range []struct {
		d    drill
		step string
		want string
	}{
		{drill{res: &backup.Drill{Refused: "no server", Steps: steps}, timedOut: true}, "read",
			"the drill was refused: no server"},
		{drill{res: &backup.Drill{Steps: steps}, timedOut: true, failure: errors.New("x"), o: Options{Timeout: 5e9}}, "read",
			`the drill ran out of time at step "read": 5s were not enough (--drill-timeout)`},
		{drill{res: &backup.Drill{Steps: steps, Version: "3.5.0"}, failure: errors.New("x"), noServer: errors.New("y")},
			"read", "etcd 3.5.0 does not start here on an empty data dir either: y"},
		{drill{res: &backup.Drill{Steps: steps}, failure: errors.New("x")}, "read",
			`the drill could not run to its end at step "read": x`},
		{drill{res: &backup.Drill{Steps: steps[:1]}, failure: errors.New("x")}, "",
			"the drill could not run to its end: x"},
		{drill{res: &backup.Drill{Steps: steps[2:]}}, "", "the drill did not come to its end"},
		{drill{res: &backup.Drill{Steps: steps[2:], Fatal: []string{"p"}}}, stepStop,
			"the drill did not come to its end"},
	} {
		bad := c.d.failed()
		if got := c.d.reason(bad); got != c.want || (bad == nil) != (c.step == "") || bad != nil && bad.Step != c.step {
			t.Errorf("%s, step %+v; want %s", got, bad, c.want)
		}
	}
}

// TestDifferencesAreBounded: the first 50 are listed, the others counted.
func TestDifferencesAreBounded(t *testing.T) {
	d := &drill{res: &backup.Drill{}}
	for i := range maxDifferences + 2 {
		d.differ(backup.Difference{What: fmt.Sprint(i)})
	}
	if r := d.res; len(r.Differences) != maxDifferences || r.More != 2 || r.Differences[49].What != "49" {
		t.Errorf("%d, %d more", len(r.Differences), r.More)
	}
}

// TestCut: a range begins at every 64th sample, once.
func TestCut(t *testing.T) {
	samples := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("%04d", i))
		}
		slices.Reverse(out)
		return out
	}
	for n, want := range map[int]string{0: "\x00", 64: "\x00", 65: "\x00 0064", 128: "\x00 0064", 129: "\x00 0064 0128"} {
		if got := strings.Join(cut(samples(n)), " "); got != want {
			t.Errorf("%d samples: %q", n, got)
		}
	}
	if got := cut(slices.Repeat([]string{"a"}, 300)); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// TestMarks: the place of a deleted key is used again, and each key has one place.
func TestMarks(t *testing.T) {
	m := &marks{parts: 1, at: map[keyHash]int32{}}
	a, b, c := hashOf([]byte("a")), hashOf([]byte("b")), hashOf([]byte("c"))
	m.put(a, mark{mod: 2})
	m.put(b, mark{mod: 3})
	m.put(a, mark{mod: 4})
	m.remove(c)
	m.remove(a)
	m.put(c, mark{mod: 5})
	if len(m.list) != 2 || len(m.free) != 0 || m.list[m.at[c]].mod != 5 || m.list[m.at[b]].mod != 3 || len(m.at) != 2 {
		t.Errorf("%+v", m)
	}
}

// TestPermissions: the order does not matter, and role root has all whatever is stored.
func TestPermissions(t *testing.T) {
	perms := []dumpdb.Permission{{Type: 1, Key: []byte("b")}, {Key: []byte("a")}}
	if got := permissions("r", perms); got != `[READ key "a", WRITE key "b"]` {
		t.Error(got)
	}
	if got := permissions("root", perms); got != "everything" {
		t.Error(got)
	}
}
