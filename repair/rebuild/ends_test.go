package rebuild_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/ctxtest"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// endsAnywhere ends do at many of its questions whether it shall end. It gives the reason then, or everything.
func endsAnywhere(t *testing.T, name string, do func(context.Context) (string, error)) {
	t.Helper()
	whole := ctxtest.EndingAfter(1 << 40)
	want, err := do(whole)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	asked, ended := 1<<40-whole.Left(), 0
	for n := int64(0); n < asked; n += 1 + asked/40 {
		switch got, err := do(ctxtest.EndingAfter(n)); {
		case errors.Is(err, context.Canceled):
			ended++
		case err != nil || got != want:
			t.Errorf("%s, after %d of %d: %v, %s, want %s", name, n, asked, err, got, want)
		}
	}
	if ended < 5 {
		t.Errorf("%s: ended %d of %d times", name, ended, asked)
	}
}

// result is what a rebuild says that depends on all of its parts.
func result(r *rebuild.Result) string {
	return fmt.Sprintf("%+v %+v %d keys, hash %d, %d records, %+v, notes %q, doubtful %+v, skipped %+v, %+v", r.From,
		r.To, r.Keys, r.HashKV, r.Records, r.Verified, r.Notes, r.Doubtful, r.Skipped, r.Consequences)
}

// TestRebuildEndsAnywhere: a rebuild that is ended gives the reason and writes nothing, wherever it is.
func TestRebuildEndsAnywhere(t *testing.T) {
	chain, now, _, _, _ := chainStore(t)
	logs, n := besideKeys(t, "3.5.0")
	base := filepath.Join(t.TempDir(), "base.db")
	if _, err := run(t, rebuild.Options{Logs: logs, To: rebuild.Target{Index: n / 2}, Out: base}); err != nil {
		t.Fatal(err)
	}
	last := rebuild.Target{Last: true}
	other := []evidence.Spec{{Name: "other", Where: now}}
	for name, o := range map[string]rebuild.Options{
		"from a base": {Base: evidence.Spec{Where: base}, Logs: logs, To: last},
		"before a key, without an entry": {Logs: logs, To: rebuild.Target{Before: []byte("a")},
			Skip: []uint64{n - 1}},
		"a chain": {Base: evidence.Spec{Where: chain}, To: last, Against: other},
	} {
		dir := t.TempDir()
		o.Out, o.DBOut = filepath.Join(dir, "out.db"), filepath.Join(dir, "bare.db")
		endsAnywhere(t, name, func(ctx context.Context) (string, error) {
			var r *rebuild.Result
			var err error
			if chains := rebuild.ChainsAt(o.Base); len(chains) > 0 {
				r, err = rebuild.RunChain(ctx, o, chains)
			} else {
				r, err = rebuild.Run(ctx, o)
			}
			left, _ := os.ReadDir(dir)
			if err != nil {
				if len(left) > 0 {
					t.Errorf("%s: %v and left %v", name, err, left)
				}
				return "", err
			}
			if len(left) != 2 {
				t.Errorf("%s: wrote %v", name, left)
			}
			return result(r), errors.Join(os.Remove(o.Out), os.Remove(o.DBOut))
		})
	}
}

// TestCatchUpEndsAnywhere: the same of a database that is brought up to its log.
func TestCatchUpEndsAnywhere(t *testing.T) {
	dirs := lagging(t, 3, "3.5.0")
	o := rebuild.CatchUpOptions{Source: evidence.Spec{Where: dirs[0]}, Logs: []evidence.Spec{{Where: dirs[1]}}}
	endsAnywhere(t, "catch-up", func(ctx context.Context) (string, error) {
		up, err := rebuild.CatchUp(ctx, o)
		if err != nil {
			if up != nil {
				t.Errorf("%v, and %+v", err, up)
			}
			return "", err
		}
		return fmt.Sprintf("%d %d %q %t", up.Executed, up.Missing, up.Why, up.Whole()), up.Close()
	})
}
