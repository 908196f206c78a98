package cause_test

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/release"
)

// TestAffectedAndFixed: a release with the fix is not among the affected ones, and the patch release before it is. A
// note on a fix means only the part of the defect with that note.
func TestAffectedAndFixed(t *testing.T) {
	fixes := 0
	for _, c := range cause.All() {
		for _, f := range c.FixedIn {
			for _, s := range f.In {
				fix := release.Exact(s.From.Minor, s.From.Patch)
				if f.Note == "" && affected(c.Affected, fix).Certain() {
					t.Errorf("%s: %s has the fix and is affected: %s", c.ID, fix, release.Text(c.Affected))
				}
				if s.From.Patch == 0 || fixedLater[c.ID] {
					continue
				}
				fixes++
				if before := release.Exact(s.From.Minor, s.From.Patch-1); affected(c.Affected, before).Excluded() &&
					len(c.Affected) > 0 {
					t.Errorf("%s: %s is before the fix in %s and not affected: %s", c.ID, before, fix,
						release.Text(c.Affected))
				}
			}
		}
	}
	if fixes < 80 {
		t.Errorf("only %d fixes in patch releases were compared", fixes)
	}
}

// fixedLater are causes whose first fix brought another defect, which ended in the release that FixedIn names.
var fixedLater = map[cause.ID]bool{cause.AuthCacheStaleAfterSnapshot: true}

// affected includes the releases whatever the notes say.
func affected(ranges []release.Range, v release.Version) release.Answer {
	var all release.Spans
	for _, r := range ranges {
		all = append(all, r.In...)
	}
	return all.Include(v)
}
