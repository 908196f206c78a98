package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// Backup holds the facts of a backup file.
type Backup struct {
	// Trailer is match, mismatch or absent; "" when it could not be read.
	Trailer        string `json:"trailer"`
	Size           int64  `json:"size"`
	ExpectedSHA256 string `json:"expectedSha256,omitempty"`
	ComputedSHA256 string `json:"computedSha256,omitempty"`
	// Origin is snapshot-save for a file written as one transaction by a server, raw-copy for a database copied as it
	// was, "" when the file does not open.
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
	Checks []string `json:"checks,omitempty"`
}

// Origins of a backup file.
const (
	OriginSnapshot = "snapshot-save"
	OriginRaw      = "raw-copy"
)

// backup adds the facts of a backup and turns the class into that of one.
func (c *collected) backup(r *Report) {
	if !c.isBackup() {
		return
	}
	m := c.in.Members[0]
	t := m.DB.Trailer
	r.Backup = &Backup{Trailer: t.State, Size: m.DB.Size, ExpectedSHA256: t.Expected, ComputedSHA256: t.Computed}
	if m.HasDB() {
		r.Backup.Size, r.Backup.Origin = m.DB.Handle.Size(), OriginRaw
		if m.DB.Handle.SavedBySnapshot() {
			r.Backup.Origin = OriginSnapshot
		}
	}
	v := &r.Verdict
	switch {
	case v.Healthy == nil:
	case !*v.Healthy:
		v.Class = "backup-damaged"
	case t.State == "match":
		v.Class, v.Summary = "backup-good", "every layer of the backup holds"+content(m)+warnings(r)
	case t.State == "absent":
		v.Class, v.Summary = "backup-unverifiable",
			"every check of the content holds"+content(m)+"; no sha256 trailer proves the bytes"+
				warnings(r)
		if len(r.Causes) > 0 {
			v.Cause, v.Certainty = &r.Causes[0].ID, &r.Causes[0].Certainty
		}
	}
}

// backupCauseFirst: of several causes that fit a damaged backup the one about the file as a whole explains the others.
func (c *collected) backupCauseFirst(r *Report) {
	if !c.isBackup() {
		return
	}
	bad := slices.ContainsFunc(r.Findings, func(f check.Finding) bool { return f.Severity.Rank() >= check.Error.Rank() })
	whole := func(k Cause) int {
		switch {
		case k.ID == "backup-without-hash" && bad: // it explains no damage
			return 2
		case strings.HasPrefix(k.ID, "backup-"):
			return 0
		}
		return 1
	}
	slices.SortStableFunc(r.Causes, func(a, b Cause) int { return cmp.Compare(whole(a), whole(b)) })
}

// isBackup tells whether the one source is a backup.
func (c *collected) isBackup() bool {
	return len(c.in.Members) == 1 && c.in.Members[0].DB != nil &&
		(c.o.Backup || c.in.Members[0].Source.Kind == evidence.KindBackup)
}

// warnings are the titles of what does not make the backup bad.
func warnings(r *Report) string {
	s := ""
	for _, f := range r.Findings {
		if f.Severity == check.Warning && f.Class == "" {
			s += "; " + f.Title
		}
	}
	return s
}

// content says in short what the backup holds.
func content(m *evidence.Member) string {
	if m.DB.KV == nil {
		return ""
	}
	return fmt.Sprintf("; revision %d, %d keys", m.CurrentRevision(), m.DB.KV.LiveKeys)
}
