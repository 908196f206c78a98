package check

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestOtherTimes: a forced start or damage in the log alone explains a database that is ahead of its log.
func TestOtherTimes(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(m *evidence.Member)
		want bool
	}{
		"nothing":        {func(*evidence.Member) {}, false},
		"a forced start": {func(m *evidence.Member) { m.WAL.Summary.ForceNewCluster = make([]dumplog.Pos, 1) }, true},
		"damage":         {func(m *evidence.Member) { m.WAL.Summary.Damage = make([]*dumplog.DamageError, 1) }, true},
	} {
		m := withDB(withLog(member("n1"), 9), 9)
		c.set(m)
		in := &Input{Members: Sources{m}}
		if got := in.provenance().otherTimes(m); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
