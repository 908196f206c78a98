package run

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// signalled is the cause of a context that a signal ended.
type signalled struct{}

func (signalled) Error() string { return "terminated signal received" }

func (signalled) Is(err error) bool { return err == context.Canceled }

// TestASignalIsNoLimit: a run that a signal ends did not wait until the limit.
func TestASignalIsNoLimit(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	ctx, end := context.WithCancelCause(t.Context())
	err := c.r.until(ctx, time.Hour, "it comes", func(context.Context) error {
		end(signalled{})
		return errors.New("not yet")
	})
	if !errors.Is(err, context.Canceled) || err.Error() != context.Canceled.Error() {
		t.Errorf("%v, want that it was interrupted", err)
	}
}

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
