package replay

import (
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestRoomOfReplay: with too little memory nothing is replayed, and each member says why; a replay for which it
// suffices is not another one than without a bound. Memory runs short at the start of a model, within the log or not at
// all.
func TestRoomOfReplay(t *testing.T) {
	for name, write := range map[string]func(*testing.T, string) []string{
		"grown by the log":          synth(nil),
		"from a compacted database": scripted("3.5.9", nil),
	} {
		t.Run(name, func(t *testing.T) {
			dirs := write(t, t.TempDir())
			evidencetest.Unchanged(t, dirs...)
			set := open(t, dirs...)
			whole, stopped, finished := run(t, set, Options{Each: true}), 0, 0
			for _, bytes := range []int64{1, 10_000, 30_000, 60_000, 100_000, 300_000, 1 << 30} {
				r := run(t, set, Options{Each: true, MaxBytes: bytes})
				if !r.TooLarge {
					finished++
					equalResults(t, r, whole)
					continue
				}
				stopped++
				for _, m := range r.Members {
					if m.Checked || !strings.Contains(m.Why, "--max-memory") || m.Counts != [NotApplied + 1]int{} {
						t.Errorf("%d bytes: checked %v, why %q, %v", bytes, m.Checked, m.Why, m.Counts)
					}
				}
				if len(r.Events) > 0 {
					t.Errorf("%d bytes: %d events", bytes, len(r.Events))
				}
			}
			if stopped == 0 || finished == 0 {
				t.Errorf("stopped %d times, finished %d times", stopped, finished)
			}
		})
	}
}
