package check

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestExpectedAt: what is expected at a damaged place follows from its kind, with the entries where they are known.
func TestExpectedAt(t *testing.T) {
	for want, d := range map[string]dumplog.DamageError{
		"entry 7":                                        {Kind: dumplog.DamageIndexGap, LostFrom: 7, LostTo: 9},
		"the next entry":                                 {Kind: dumplog.DamageIndexGap},
		"entries up to 9, which is committed":            {Kind: dumplog.DamageLostTail, LostFrom: 7, LostTo: 9},
		"the entries that are committed":                 {Kind: dumplog.DamageLostTail, LostFrom: 7},
		"a segment of each number":                       {Kind: dumplog.DamageMissingSegment, LostFrom: 7},
		"a complete record that continues the CRC chain": {Kind: dumplog.DamageCRC, LostFrom: 7},
	} {
		if got := expectedAt(&d); got != want {
			t.Errorf("%s: %q, want %q", d.Kind, got, want)
		}
	}
}
