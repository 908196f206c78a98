package compare

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// Backup holds the facts of a backup file.
type Backup struct {
	// Trailer is match, mismatch or absent; "" when it could not be read.
	Trailer        string `json:"trailer"`
	Size           int64  `json:"size"`
	ExpectedSHA256 string `json:"expectedSha256,omitempty"`
	ComputedSHA256 string `json:"computedSha256,omitempty"`
	// Origin is snapshot-save for a file written as one transaction by a server, raw-copy for a database copied as it
	// was, "" when the file does not open or its meta pages do not show which.
	Origin string `json:"origin,omitempty"`
	// Layers are the parts of the backup with their verdicts, from the file itself up to what a restore makes of it;
	// verify fills them.
	Layers []Layer `json:"layers,omitempty"`
	// Chain is what the delta snapshots of the backup show, nil when there are none.
	Chain any `json:"chain,omitempty"`
	// Age is how old the backup was when it was verified, in seconds; nil unless a limit was set.
	Age *float64 `json:"ageSeconds,omitempty"`
	// Drill and Against are nil unless they were asked for.
	Drill   any `json:"drill"`
	Against any `json:"against"`
}

// Layer is one part of a backup with its verdict.
type Layer struct {
	// Name is trailer, size, metas, pages, bucket NAME, mvcc, auth, members, leases, alarms, storage-version, taken-by,
	// revision.
	Name    string        `json:"layer"`
	Outcome check.Outcome `json:"outcome"`
	// Says what was found in a few words, or why it could not be checked.
	Says string `json:"says"`
	// Checks are those that the verdict rests on.
	Checks []check.ID `json:"checks,omitempty"`
}

// Origins of a backup file.
const (
	OriginSnapshot = "snapshot-save"
	OriginRaw      = "raw-copy"
)

var origins = map[dumpdb.Written]string{dumpdb.WrittenAsCopy: OriginSnapshot, dumpdb.WrittenByCommit: OriginRaw}

// backup adds the facts of a backup.
func (c *collected) backup(r *Report) {
	if !c.isBackup() {
		return
	}
	m := c.in.Members[0]
	t := m.DB.Trailer
	r.Backup = &Backup{Trailer: t.State, Size: m.DB.Size, ExpectedSHA256: t.Expected, ComputedSHA256: t.Computed}
	if m.HasDB() {
		r.Backup.Size, r.Backup.Origin = m.DB.Handle.Size(), origins[m.DB.Handle.Written()]
	}
}

// isBackup reports whether the one source is a backup.
func (c *collected) isBackup() bool {
	return len(c.in.Members) == 1 && c.in.Members[0].DB != nil &&
		(c.o.Backup || c.in.Members[0].Source.Kind == evidence.KindBackup)
}
