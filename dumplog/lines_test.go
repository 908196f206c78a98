package dumplog_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestLines runs the files of testdata/lines: what a log that a real server of one etcd line wrote looks like, whole.
// Rewrite them with -rewrite.
func TestLines(t *testing.T) {
	datadriven.Walk(t, "testdata/lines", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var incident, node string
			d.ScanArgs(t, "incident", &incident)
			d.ScanArgs(t, "node", &node)
			dir := filepath.Join(evidencetest.Incident(t, incident), node, "member")
			evidencetest.Unchanged(t, dir)
			l, err := dumplog.Open(filepath.Join(dir, "wal"))
			must(t, err)
			switch d.Cmd {
			case "dump":
				b := &lab{t: t, dir: l.Dir()}
				return elide(b.dump(), d)
			case "scan":
				b := &lab{t: t, dir: l.Dir()}
				return b.scan()
			case "lives":
				return showLives(t, l)
			case "stats":
				return showStats(t, l)
			case "snap":
				return showSnaps(t, filepath.Join(dir, "snap"))
			}
			t.Fatalf("%s: no command %q", d.Pos, d.Cmd)
			return ""
		})
	})
}

// elide leaves out lines that say the same as many before: puts and states behind the first few.
func elide(s string, d *datadriven.TestData) string {
	if d.HasArg("all") {
		return s
	}
	const keep = 6
	seen := map[string]int{}
	var w strings.Builder
	for line := range strings.Lines(s) {
		f := strings.Fields(line)
		what := f[1]
		if what == "entry" && len(f) > 3 {
			what = f[3]
		}
		if seen[what]++; seen[what] <= keep {
			w.WriteString(line)
		}
	}
	for _, k := range []string{"put", "state", "delete_range", "authenticate"} {
		if n := seen[k] - keep; n > 0 {
			fmt.Fprintf(&w, "… and %d more %s\n", n, k)
		}
	}
	return w.String()
}

func showLives(t *testing.T, l *dumplog.Log) string {
	var lives dumplog.Lives
	times := dumplog.Times{Near: time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)}
	last := uint64(0)
	for e, err := range l.Entries(context.Background(), nil) {
		must(t, err)
		r, err := e.Decode()
		must(t, err)
		lives.Add(&e, r)
		times.Add(&e, r)
		last = e.Index
	}
	var w strings.Builder
	for _, v := range lives.List() {
		fmt.Fprintf(&w, "%04x members=%v name=%q start=%s entries=%d..%d requests=%d publish=%d inferred=%v\n",
			v.Prefix, v.Members, v.Name,
			v.Start(times.Near).Format(time.RFC3339Nano), v.First, v.Last, v.Requests, v.Publish, v.Inferred)
	}
	after, before := times.Bounds(last / 2)
	fmt.Fprintf(&w, "entry %d: after %s, before about %s\n", last/2, stamp(after), stamp(before))
	return w.String()
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.Format(time.RFC3339Nano)
}

func showSnaps(t *testing.T, dir string) string {
	snaps, err := dumplog.ReadSnapDir(dir)
	must(t, err)
	var w strings.Builder
	for _, f := range snaps.Files {
		fmt.Fprintf(&w, "%s %d/%d voters=%v learners=%v version=%s removed=%v user=%v damage=%v\n",
			f.File, f.Term, f.Index, f.ConfState.Voters, f.ConfState.Learners, f.V2.Version, f.V2.Removed,
			f.V2.UserKeys, f.Damage)
		for _, m := range f.V2.Members {
			fmt.Fprintf(&w, "  %s %s peers=%v clients=%v learner=%v\n", m.ID, m.Name, m.PeerURLs, m.ClientURLs,
				m.IsLearner)
		}
	}
	return w.String()
}
