package check_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// Written logs are short: segments of 64 MB would only cost time, and a purged script needs small ones.
func TestMain(m *testing.M) {
	wal.SegmentSizeBytes = 512 << 10
	evidencetest.Main(m)
}

// inputOf is what checks look at, of data dirs or backups; without a log there is no replay.
func inputOf(t *testing.T, sources ...string) *check.Input {
	t.Helper()
	var specs []evidence.Spec
	for _, s := range sources {
		specs = append(specs, evidence.Spec{Name: filepath.Base(s), Where: s})
	}
	set, err := evidence.Open(context.Background(), specs, evidence.Options{Deep: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	in := &check.Input{Members: set.Members, MaxRows: 20, Single: len(sources) == 1}
	if in.Replay, err = replay.Run(context.Background(), set.Members, replay.Options{}); err != nil {
		t.Fatal(err)
	}
	if in.Diff, err = diff.Run(context.Background(), set.Members, in.Replay, diff.Options{}); err != nil {
		t.Fatal(err)
	}
	return in
}

// wantKinds wants each finding to state a kind of its check.
func wantKinds(t *testing.T, id check.ID, r check.Result) {
	t.Helper()
	for i := range r.Findings {
		f := &r.Findings[i]
		if !f.Kind.StatedBy(id) {
			t.Errorf("%s states %q: %s", id, f.Kind, f.Title)
		}
	}
}

// run runs one check.
func run(t *testing.T, in *check.Input, id string) check.Result {
	t.Helper()
	for _, c := range check.All() {
		if string(c.ID) != id {
			continue
		}
		if why, ok := c.Applies(in); !ok {
			return check.Result{Outcome: check.NotChecked, Reason: why}
		}
		r := c.Run(in)
		wantKinds(t, c.ID, r)
		if r.Outcome == "" {
			r.Outcome = check.NotChecked
		}
		return r
	}
	t.Fatal("no check ", id)
	return check.Result{}
}

// accused are the members that findings of error or worse name.
func accused(r check.Result) []string {
	var out []string
	for _, f := range r.Findings {
		if f.Severity.Rank() < check.Error.Rank() {
			continue
		}
		for _, m := range f.Members {
			if !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	slices.Sort(out)
	return out
}
