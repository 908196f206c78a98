package check_test

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
)

// Servers on other systems than Linux store a freelist; only where the members differ it says more.
func TestStoredFreelist(t *testing.T) {
	dirs := sound().Write(t, t.TempDir())
	casetest.StoreFreelist(t, dirs[0])
	for kind, in := range map[check.Kind]*check.Input{check.KindFreelistStored: dirInput(t, dirs[0]),
		check.KindFreelistStoredAlone: dirInput(t, dirs...)} {
		f := wantFinding(t, in, "D08", []string{"node1"}, "normal for a server on Windows or macOS")
		if f.Severity != check.Info || f.Kind != kind {
			t.Errorf("%s, %s, want %s", f.Severity, f.Kind, kind)
		}
	}
	for _, d := range dirs[1:] {
		casetest.StoreFreelist(t, d)
	}
	for _, f := range runCheck(t, dirInput(t, dirs...), "D08").Findings {
		if f.Kind != check.KindFreelistStored {
			t.Errorf("%v: %s", f.Members, f.Kind)
		}
	}
}
