package surgery_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/repair/surgery"
)

// TestChangedSourceIsNoResult: a source or another member that changes during the first or the second diagnosis ends
// every repair with an error that names it, and no result remains. Without a change the same repairs write their
// result.
func TestChangedSourceIsNoResult(t *testing.T) {
	dirs := clustertest.Synth{Members: 2, Entries: 40, Keys: 5, Value: 16}.Write(t, t.TempDir())
	segments, err := filepath.Glob(filepath.Join(dirs[0], "member", "wal", "*.wal"))
	ok(t, err)
	b, err := os.ReadFile(segments[0])
	ok(t, err)
	ok(t, os.WriteFile(segments[0], zeros(1000, 100)(b), 0o600)) // the other member has these entries
	index := uint64(20)
	changes := []surgery.Change{surgery.WAL{}, surgery.DB{}, surgery.Meta{ConsistentIndex: &index}}
	for _, c := range changes {
		for diagnosis := range 3 { // 0 is without a change
			for i, dir := range dirs {
				t.Run(fmt.Sprintf("%s in diagnosis %d of member %d", c.Name(), diagnosis, i), func(t *testing.T) {
					n, want := 0, diagnosis
					if want == 0 {
						want = 2 // of the source, and of the result
					}
					touch := func(context.Context, *check.Input, *compare.Report) error {
						if n++; n != diagnosis {
							return nil
						}
						at := time.Now().Add(time.Hour)
						db := filepath.Join(dir, "member", "snap", "db")
						return os.Chtimes(db, at, at)
					}
					o := surgery.Options{Source: spec(dirs[0]), With: []evidence.Spec{spec(dirs[1])},
						Out: filepath.Join(t.TempDir(), "new"), Compare: compare.Options{Study: touch},
						Accept: []string{surgery.AcceptDivergence, surgery.AcceptLostCommits,
							surgery.AcceptLostRevisions}}
					_, err := surgery.Run(context.Background(), o, c)
					if n < want {
						t.Fatalf("%d diagnoses: %v", n, err)
					}
					left, globErr := filepath.Glob(o.Out + "*")
					ok(t, globErr)
					var changed *evidence.ChangedError
					switch {
					case diagnosis == 0 && (err != nil || len(left) != 1):
						t.Errorf("without a change: %v, %v", err, left)
					case diagnosis > 0 && (!errors.As(err, &changed) || changed.Source != filepath.Base(dir)):
						t.Errorf("got %v", err)
					case diagnosis > 0 && len(left) > 0:
						t.Errorf("left behind: %v", left)
					}
				})
			}
		}
	}
}
