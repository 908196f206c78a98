package evidence

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestDamageHidesChanges: by bucket, release and place of the damage. The member has applied entries 20 to 25.
func TestDamageHidesChanges(t *testing.T) {
	torn := &dumplog.DamageError{Kind: dumplog.DamageTornTail}
	hole := func(from, to uint64) *dumplog.DamageError {
		return &dumplog.DamageError{Kind: dumplog.DamageType, LostFrom: from, LostTo: to}
	}
	for name, c := range map[string]struct {
		bucket string
		minor  int
		damage *dumplog.DamageError
		want   bool
	}{
		"a lease":                         {"lease", 4, torn, true},
		"the end of the last segment":     {"lease", 4, &dumplog.DamageError{Kind: dumplog.DamageTail}, true},
		"an alarm":                        {"alarm", 3, torn, true},
		"a user":                          {"authUsers", 4, torn, true},
		"a lease from 3.5 on":             {"lease", 5, torn, false},
		"a user from 3.5 on":              {"authUsers", 5, torn, false},
		"a bucket that moves the index":   {"members", 4, torn, false},
		"an unknown release":              {"lease", 0, torn, false},
		"no damage":                       {"lease", 4, nil, false},
		"damage that lost no entry":       {"lease", 4, hole(0, 0), false},
		"entries up to the applied one":   {"lease", 4, hole(10, 20), false},
		"entries after the applied one":   {"lease", 4, hole(10, 21), true},
		"entries from the last possible":  {"lease", 4, hole(25, 30), true},
		"entries after the last possible": {"lease", 4, hole(26, 30), false},
		"an open end":                     {"lease", 4, hole(10, 0), true},
	} {
		m := logged(1, 7, 30, 20)
		m.AppliedMin, m.AppliedMax, m.Version = 20, 25, Version{Minor: c.minor}
		if c.damage != nil {
			m.WAL.Summary.Damage = []*dumplog.DamageError{c.damage}
		}
		if got := m.DamageHidesChanges(c.bucket); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if (&Member{Version: Version{Minor: 4}}).DamageHidesChanges("lease") {
		t.Error("without a log")
	}
}
