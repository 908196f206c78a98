package run

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestLimitIsNoReason: what a call says because the time was up does not hide what was seen before. The calls return at
// the deadline, which the context may notice a moment later.
func TestLimitIsNoReason(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	answers, silent := errors.New("it answers"), errors.New("nothing listens")
	for range 200 {
		calls := 0
		err := c.r.until(t.Context(), 2*time.Millisecond, string(plan.StepStop), func(ctx context.Context) error {
			if calls++; calls == 1 {
				return answers
			}
			end, _ := ctx.Deadline()
			for time.Now().Before(end) { // a timer would fire after that of ctx
			}
			return silent
		})
		if !errors.Is(err, answers) && calls > 1 {
			t.Fatalf("%v after %d calls, want that it answers", err, calls)
		}
	}
}
