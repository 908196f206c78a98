package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// expectedInLog maps kinds of damage to what a sound log has there. At the others it has a record that continues the
// CRC chain.
var expectedInLog = map[dumplog.DamageKind]string{
	dumplog.DamageMissingSegment: "a segment of each number",
	dumplog.DamageUnreadable:     "a file that can be read",
	dumplog.DamageMixed:          "the member and the cluster of the other segments",
	dumplog.DamageChain:          "the CRC with which the segment before ends",
	dumplog.DamageIndexGap:       "the next entry",
	dumplog.DamageLostTail:       "the entries that are committed",
	dumplog.DamagePadding:        "padding of zeros",
	dumplog.DamageTermOrder:      "a term that is not lower than those before it",
	dumplog.DamageName:           "the number and the first entry of the segment",
	dumplog.DamageSnapshotRecord: "the term and the index of an entry that the log holds, or continues from",
	dumplog.DamageRequest:        "a request of etcd",
	dumplog.DamageMarks:          "changes of term, overwritten entries and snapshots that can be listed",
	dumplog.DamageMissingSnapDB:  "the database of that snapshot, or one that is not older",
}

// expectedAt says what a sound log has at a damaged place.
func expectedAt(d *dumplog.DamageError) string {
	switch {
	case d.Kind == dumplog.DamageIndexGap && d.LostFrom > 0:
		return fmt.Sprintf("entry %d", d.LostFrom)
	case d.Kind == dumplog.DamageLostTail && d.LostTo > 0:
		return fmt.Sprintf("entries up to %d, which is committed", d.LostTo)
	}
	if s := expectedInLog[d.Kind]; s != "" {
		return s
	}
	return "a complete record that continues the CRC chain"
}
