package cli

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// TestNodeRunWantsRoom: too little room for the copies is found before the first byte is copied, and no scratch is
// left.
func TestNodeRunWantsRoom(t *testing.T) {
	dir, scratch := evidencetest.Incident(t, "a-auth-revision-replay"), t.TempDir()
	evidencetest.Unchanged(t, dir)
	var stderr bytes.Buffer
	asked := ""
	o := &nodeRunOptions{output: output{io: &Streams{Out: &stderr, Err: &stderr, Getenv: os.Getenv}}, isolate: "auto",
		scratch: scratch,
		room:    func(dir string) (int64, bool) { asked = dir; return 100 << 20, true }}
	o.specs = []evidence.Spec{{Where: dir}}
	err := runNodeRun(t.Context(), o)
	var refused *refusal.Error
	if !errors.As(err, &refused) || !strings.Contains(refused.Reason, "100 MiB are free") ||
		!strings.Contains(hintOf(err), "--scratch") || exitCode(err) != ExitRefused {
		t.Errorf("%v, hint %q, exit code %d", err, hintOf(err), exitCode(err))
	}
	if !strings.HasPrefix(asked, scratch) {
		t.Errorf("room was asked for at %q", asked)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("%v is left behind, %v", left, err)
	}
}
