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
	foreign := of("S02", "foreign-cluster", "node2")
	foreign.Kind = check.KindGapForeign
	copied := of("X03", "torn-copy", "node2")
	copied.Kind = check.KindBackupUsedAsDB
	for name, c := range map[string]struct {
		first, damage *check.Finding
		explained     bool
	}{
		"keys and a database":                      {of("K01", "data-divergence", "node1", "node2"), damagedDB, true},
		"keys and a backup":                        {of("K03", "data-divergence", "backup1"), damagedBackup, true},
		"keys of others and a backup":              {of("K03", "data-divergence", "node2"), damagedBackup, false},
		"the log and a backup":                     {of("R01", "data-divergence", "node2"), damagedBackup, false},
		"the versions of a backup":                 {of("X04", "membership", "backup1"), damagedBackup, true},
		"the versions of a member":                 {of("X04", "membership", "node2"), damagedBackup, false},
		"the versions of a member and its pages":   {of("X04", "membership", "node2"), damagedDB, false},
		"a backup of another cluster":              {of("M01", "foreign-cluster", "backup1"), damagedBackup, false},
		"what a backup says":                       {of("C04", "data-divergence", "backup1"), damagedBackup, true},
		"the history of a backup":                  {of("K04", "db-damage", "backup1"), damagedBackup, true},
		"the history of a member and a backup":     {of("K04", "db-damage", "node2", "backup1"), damagedBackup, false},
		"what a member says and its pages":         {of("C04", "data-divergence", "node2"), damagedDB, true},
		"keys and content of another cluster":      {of("K01", "data-divergence", "node1", "node2"), foreign, true},
		"the log and content of another cluster":   {of("R01", "data-divergence", "node1", "node2"), foreign, true},
		"the member list and a backup in place":    {of("M07", "membership", "node2"), copied, true},
		"keys and a backup in place":               {of("K03", "data-divergence", "node2"), copied, true},
		"keys of two and a backup in place":        {of("K01", "data-divergence", "node1", "node2"), copied, false},
		"the log and a backup in place":            {of("W03", "wal-damage", "node2"), copied, false},
		"keys of others and content of a stranger": {of("K01", "data-divergence", "node1", "node3"), foreign, false},
	} {
		if got := explainedByDamage(c.first, []*check.Finding{c.first, c.damage}); (got == c.damage) != c.explained {
			t.Errorf("%s: explained by %+v, want %v", name, got, c.explained)
		}
	}
	other := of("X03", "torn-copy", "node3")
	other.Kind = check.KindBackupUsedAsDB
	list := of("M16", "membership", "node3", "node2")
	if got := explainedByDamage(list, []*check.Finding{list, copied, other}); got != other {
		t.Errorf("explained by %+v, want the backup in the place of the first one's database", got)
	}
	keys, records := of("K01", "data-divergence", "node1", "backup1"), of("K04", "db-damage", "backup1")
	if got := explainedByDamage(keys, []*check.Finding{keys, records, damagedBackup}); got != damagedBackup {
		t.Errorf("explained by %+v, want the sum of the whole backup", got)
	}
}

// TestMixedClusters: that sources are of several clusters comes before an altered cluster ID, in any order.
func TestMixedClusters(t *testing.T) {
	several := &check.Finding{Check: check.M01, Class: check.ClassForeignCluster}
	altered := &check.Finding{Check: check.M01, Class: check.ClassWALDamage}
	other := &check.Finding{Check: check.M08, Class: check.ClassMembership}
	for name, c := range map[string]struct {
		breaks []*check.Finding
		want   *check.Finding
	}{
		"both":                    {[]*check.Finding{several, altered}, several},
		"both in the other order": {[]*check.Finding{other, altered, several}, several},
		"an altered ID alone":     {[]*check.Finding{other, altered}, altered},
		"neither":                 {[]*check.Finding{other}, nil},
	} {
		if got := mixedClusters(c.breaks); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
