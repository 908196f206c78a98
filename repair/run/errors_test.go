package run

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// TestAsRefusalOnce: what a package below refuses is said once.
func TestAsRefusalOnce(t *testing.T) {
	if got := AsRefusal(&datadir.RefusedError{Reason: "no room"}).Error(); got != "refused: no room" {
		t.Error(got)
	}
}
