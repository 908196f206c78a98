package cause_test

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/cause"
)

// TestKnownIsDetectedOrListed: a cause is either in the catalogue or in the list of those that are not detected, once.
func TestKnownIsDetectedOrListed(t *testing.T) {
	seen := map[string]string{}
	for _, c := range cause.All() {
		if seen[string(c.ID)] != "" {
			t.Errorf("%s stands twice in the catalogue", c.ID)
		}
		seen[string(c.ID)] = "the catalogue"
	}
	for _, k := range cause.Undetected() {
		if k.Title == "" || k.Why == "" {
			t.Errorf("%s has no title, or no reason", k.ID)
		}
		if seen[string(k.ID)] != "" {
			t.Errorf("%s is listed as not detected and stands in %s", k.ID, seen[string(k.ID)])
		}
		seen[string(k.ID)] = "the list of those not detected"
	}
}
