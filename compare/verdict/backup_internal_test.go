package verdict

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// TestClassOfABackup: the trailer decides between a good backup and one whose bytes nothing proves. A cause is named
// where there is one.
func TestClassOfABackup(t *testing.T) {
	raw := []Cause{{ID: cause.BackupWithoutHash, Certainty: cause.Proof}, {ID: cause.NospaceAlarm}}
	for name, c := range map[string]struct {
		health  check.Health
		trailer string
		causes  []Cause
		class   check.Class
		cause   cause.ID
	}{
		"a trailer that fits":       {check.Healthy, "match", nil, check.ClassBackupGood, ""},
		"none, without a cause":     {check.Healthy, "absent", nil, check.ClassBackupUnverifiable, ""},
		"none":                      {check.Healthy, "absent", raw, check.ClassBackupUnverifiable, cause.BackupWithoutHash},
		"something is wrong":        {check.Unhealthy, "match", raw, check.ClassBackupDamaged, ""},
		"something was not decided": {check.HealthUnknown, "match", raw, check.ClassInconclusive, ""},
	} {
		m := &evidence.Member{DB: &evidence.DB{Trailer: dumpdb.Trailer{State: c.trailer}}}
		j := &judge{Input: &Input{Input: &check.Input{Members: []*evidence.Member{m}}, Backup: true, Causes: c.causes},
			Verdict: Verdict{Health: c.health, Class: check.ClassInconclusive}}
		j.backupClass()
		v := &j.Verdict
		if v.Class != c.class || (v.Cause == nil) != (c.cause == "") || v.Cause != nil && *v.Cause != c.cause {
			t.Errorf("%s: %s, cause %v", name, v.Class, v.Cause)
		}
	}
}
