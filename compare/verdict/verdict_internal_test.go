package verdict

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

// TestExplainedByDamage: a difference of content that involves a damaged file is that damage, be it a database or a
// backup; one that does not, or that is no difference of content, is not.
func TestExplainedByDamage(t *testing.T) {
	of := func(id check.ID, class check.Class, members ...string) *check.Finding {
		return &check.Finding{Check: id, Class: class, Members: members}
	}
	damagedDB, damagedBackup := of("D02", "db-damage", "node2"), of("B01", "backup-damaged", "backup1")
	for name, c := range map[string]struct {
		first, damage *check.Finding
		explained     bool
	}{
		"keys and a database":              {of("K01", "data-divergence", "node1", "node2"), damagedDB, true},
		"keys and a backup":                {of("K03", "data-divergence", "backup1"), damagedBackup, true},
		"keys of others and a backup":      {of("K03", "data-divergence", "node2"), damagedBackup, false},
		"the log and a backup":             {of("R01", "data-divergence", "backup1"), damagedBackup, false},
		"what a member says and a backup":  {of("C04", "data-divergence", "backup1"), damagedBackup, false},
		"what a member says and its pages": {of("C04", "data-divergence", "node2"), damagedDB, true},
	} {
		if got := explainedByDamage(c.first, []*check.Finding{c.first, c.damage}); (got == c.damage) != c.explained {
			t.Errorf("%s: explained by %+v, want %v", name, got, c.explained)
		}
	}
	keys, records := of("K01", "data-divergence", "node1", "backup1"), of("K04", "db-damage", "backup1")
	if got := explainedByDamage(keys, []*check.Finding{keys, records, damagedBackup}); got != damagedBackup {
		t.Errorf("explained by %+v, want the sum of the whole backup", got)
	}
}
