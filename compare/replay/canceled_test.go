package replay

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/internal/ctxtest"
)

// TestEndsAnywhere: wherever the caller gives up, the replay ends with the error of its context. It never returns a
// result that lacks something.
func TestEndsAnywhere(t *testing.T) {
	wanted := []string{"a cluster forced from one member, an applied entry cut off",
		"an older copy of a member next to a newer one", "a superseded value altered on the member that proposed it"}
	var sets []*evidence.Set
	for _, c := range casetest.Read(t, filepath.Join("..", "check", "testdata", "cases", "*.txt")) {
		if slices.Contains(wanted, c.Name) {
			sets = append(sets, casetest.Open(t, casetest.Build(t, c.Lines), evidence.Options{}))
		}
	}
	if len(sets) != len(wanted) {
		t.Fatalf("%d of %d cases", len(sets), len(wanted))
	}
	whole, lacking := from1(20), slices.Delete(from1(20), 8, 9)
	sets = append(sets, open(t, handLogs(t, whole, lacking, whole)...), open(t, handLogs(t, whole, lacking)...),
		open(t, handLogs(t, whole, slices.Insert(from1(20), 8, 8))...))
	once := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	sets = append(sets, open(t, restoredTwice(t, [2]int{10, 10}, [2][]int{once, slices.Concat(once[:8], once)})...))
	text := func(r *Result) string {
		var b strings.Builder
		printer{&b}.value("", reflect.ValueOf(r).Elem(), 0)
		return b.String()
	}
	for i, set := range sets {
		ctx := ctxtest.EndingAfter(1 << 40)
		r, err := Run(ctx, set.Members, Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, asked := text(r), 1<<40-ctx.Left()
		ended := 0
		for n := int64(0); n < asked+2; n += 1 + asked/60 {
			r, err := Run(ctxtest.EndingAfter(n), set.Members, Options{})
			switch {
			case errors.Is(err, context.Canceled):
				ended++
			case err != nil:
				t.Errorf("set %d, after %d: %v", i, n, err)
			case r == nil || text(r) != want:
				t.Errorf("set %d, after %d of %d: a result that is not whole", i, n, asked)
			}
		}
		if ended < 10 {
			t.Errorf("set %d: ended %d times", i, ended)
		}
	}
	members := sets[3].Members
	for _, n := range []int64{0, 3, 20} {
		got := 0
		for e, err := range Log(ctxtest.EndingAfter(n), members) {
			if err == nil {
				if got++; e.Index != uint64(got) {
					t.Errorf("entry %d is number %d", e.Index, got)
				}
				continue
			}
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			got = -1
		}
		if got >= 0 && uint64(got) < members[0].LastIndex() {
			t.Error(fmt.Sprint("after ", n, ": ", got, " entries, and no error"))
		}
	}
}
