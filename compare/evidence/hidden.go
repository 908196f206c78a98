package evidence

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// DamageHidesChanges reports whether damage of the log hides entries that the member may have applied and that, in its
// release, change the bucket without moving the consistent index: leases, alarms and auth up to 3.4.
func (m *Member) DamageHidesChanges(bucket string) bool {
	rule := movesIndex[bucket]
	if rule == nil || !m.Version.MayLack(rule) || !m.HasWAL() {
		return false
	}
	return slices.ContainsFunc(m.WAL.Summary.Damage, func(d *dumplog.DamageError) bool {
		return d.Kind == dumplog.DamageTornTail || d.Kind == dumplog.DamageTail ||
			d.LostFrom > 0 && d.LostFrom <= m.AppliedMax && (d.LostTo == 0 || d.LostTo > m.AppliedMin)
	})
}
