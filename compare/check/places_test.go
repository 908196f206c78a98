package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

func TestPlaceFindings(t *testing.T) {
	damage := func(n int, kind dumplog.DamageKind) (ds []*dumplog.DamageError) {
		for i := range n {
			ds = append(ds, &dumplog.DamageError{Pos: dumplog.Pos{Segment: "s", Offset: int64(i)}, Kind: kind,
				LostFrom: uint64(2*i + 1)})
		}
		return ds
	}
	kind := func(d *dumplog.DamageError) string { return string(d.Kind) }
	one := func(d *dumplog.DamageError) Finding {
		return Finding{Title: fmt.Sprintf("%s at %d", d.Kind, d.Offset),
			Evidence: []Evidence{{Offset: Int64(d.Offset)}}}
	}
	few := placeFindings(damage(maxPlaces, dumplog.DamageCRC), kind, one, logRanges)
	if len(few) != maxPlaces {
		t.Errorf("%d findings of %d places", len(few), maxPlaces)
	}
	many := placeFindings(append(damage(100_000, dumplog.DamageCRC), damage(1, dumplog.DamageRecord)...), kind, one,
		logRanges)
	if len(many) != 2 || len(many[0].Evidence) != maxPlaces || *many[0].Evidence[19].Offset != 19 {
		t.Fatalf("%d findings, %d places in the first", len(many), len(many[0].Evidence))
	}
	for _, want := range []string{"the first of 100000 places", "lost entries 1, 3, 5,", "and 99980 more ranges",
		"offset 99999"} {
		if s := many[0].Title + many[0].Explanation; !strings.Contains(s, want) {
			t.Errorf("%q is not in %q", want, s)
		}
	}
	if got := rangesText([][2]uint64{{7, 9}, {1, 2}, {3, 3}, {8, 12}}); got != "1..3, 7..12" {
		t.Errorf("ranges %q", got)
	}
}
