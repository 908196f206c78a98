package run

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// TestLiveChecksAfterAStart: once members were started because there was no leader, the cluster is compared with the
// plan again. What the best member's answer shows only then is refused before any other step.
func TestLiveChecksAfterAStart(t *testing.T) {
	r := withoutLeader(t)
	r.o.Live.HostActions = func(ctx context.Context, h HostStep) error {
		err := r.s.act(ctx, h)
		r.c.act("lose the last revision of", h.Member, func() { r.c.contents[1].revision = 9 })
		return err
	}
	if _, err := r.apply(t); err == nil || !strings.Contains(err.Error(), "node1 is at revision 9, in the plan at 10") {
		t.Errorf("%v", err)
	}
	if want := []string{"start node3", "lose the last revision of node3"}; !slices.Equal(r.c.acts, want) {
		t.Errorf("acts %q, want %q", r.c.acts, want)
	}
}
