package dumpdb

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// BucketHash is a content hash of a bucket. It ignores the page layout and normal differences between members (bcrypt
// salts, lease TTLs, superseded revisions at or below the compact revision). Equal hashes mean equal content, across
// members and etcd versions. Bucket key is comparable only at equal compact and current revisions; see ContentHash.
// Bucket meta has the hash "", since its content is not comparable. With damage there is no hash.
func (db *DB) BucketHash(ctx context.Context, bucket string) (string, error) {
	switch bucket {
	case "meta":
		return "", nil
	case "key":
		return db.ContentHash(ctx, -1, 0)
	}
	lines, err := db.canonical(bucket)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, l := range lines {
		// JSON has no raw line feed, so each row stays one line.
		b, err := json.Marshal(l)
		if err != nil {
			return "", err
		}
		h.Write(append(b, '\n'))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ContentHash is the content hash of bucket key as if compacted at comp and cut after rev. comp must be at least the
// compact revision, or -1 for it; rev 0 means the current revision. Compare two members between the higher of their
// compact revisions and the lower of their current revisions. It returns ErrCompacted or ErrFutureRev if the revisions
// are not available.
func (db *DB) ContentHash(ctx context.Context, comp, rev int64) (string, error) {
	m, err := db.MetaBucket()
	if err != nil {
		return "", err
	}
	cur, err := db.CurrentRev()
	if err != nil {
		return "", err
	}
	done := m.CompactRev()
	if comp < 0 {
		comp = done
	}
	if rev == 0 {
		rev = cur
	}
	if comp < done || rev < comp {
		return "", fmt.Errorf("revisions %d to %d, compacted at %d: %w", comp, rev, done, ErrCompacted)
	}
	if rev > cur {
		return "", fmt.Errorf("revision %d, current %d: %w", rev, cur, ErrFutureRev)
	}
	h := newWindowHash(db, comp, rev)
	h.set = true
	if err := h.run(ctx); err != nil {
		return "", err
	}
	return h.contentHash(), nil
}

func (h *windowHash) contentHash() string { return sumOf(&h.low, &h.high) }

// recordsHash is contentHash over all records.
func (h *windowHash) recordsHash() string { return sumOf(&h.low, &h.high, &h.rest) }

func sumOf(parts ...*sums) string {
	var all sum128
	var count uint64
	for _, p := range parts {
		all.add(p.set)
		count += p.count
	}
	var b []byte
	for _, n := range append(all[:], count) {
		b = le.AppendUint64(b, n)
	}
	d := sha256.Sum256(b)
	return hex.EncodeToString(d[:])
}

// Content is the data from which the content hash of bucket key is computed. The hash is additive, so the hash at a
// lower revision follows without reading the records below it.
type Content struct {
	comp, rev int64
	low, high sums
}

// Equal reports whether both have the same hashes at the same revisions, according to their records.
func (c *Content) Equal(o *Content) bool { return c == o || c != nil && o != nil && *c == *o }

// HashUntil is ContentHash from the compact revision to rev, which must not be below it. It reads only the records
// above rev.
func (c *Content) HashUntil(ctx context.Context, db *DB, rev int64) (string, error) {
	if rev < c.comp {
		return "", fmt.Errorf("revision %d, compacted at %d: %w", rev, c.comp, ErrCompacted)
	}
	if rev > c.rev {
		return "", fmt.Errorf("revision %d, current %d: %w", rev, c.rev, ErrFutureRev)
	}
	var above sums
	var row []byte
	for r, err := range db.RevisionsFrom(Rev{Main: rev + 1}) {
		if err = cmp.Or(err, r.Err, ctx.Err()); err != nil {
			return "", err
		}
		row = append(append(row[:0], r.RawKey...), r.Raw...)
		above.set.record(row, r.Tombstone)
		above.count++
	}
	left := c.high
	left.set.sub(above.set)
	left.count -= above.count
	return sumOf(&c.low, &left), nil
}

// canonical returns the content of a bucket in a canonical form and order.
func (db *DB) canonical(bucket string) ([]any, error) {
	switch bucket {
	case "lease":
		leases, err := db.Leases()
		return each(leases, func(l Lease) any { return l.ID }), err
	case "alarm":
		alarms, err := db.Alarms()
		return each(alarms, func(a Alarm) any { return []any{a.MemberID, a.Type} }), err
	case "auth", "authUsers", "authRoles":
		a, err := db.Auth()
		return a.canonical(bucket), err
	case "members":
		members, err := db.Members()
		return each(members, func(m Member) any {
			return []any{m.ID, m.Name, sorted(m.PeerURLs), sorted(m.ClientURLs), m.IsLearner}
		}), err
	case "members_removed":
		removed, err := db.RemovedMembers()
		return each(removed, func(id ID) any { return id }), err
	case "cluster":
		c, err := db.Cluster()
		return []any{[]any{c.Version, c.DowngradeTarget, c.DowngradeEnabled}}, err
	}
	var out []any
	err := db.eachRow(bucket, func(r Row) error {
		out = append(out, [][]byte{append([]byte(nil), r.Key...), append([]byte(nil), r.Value...)})
		return nil
	})
	return out, err
}

// canonical leaves out passwords: up to 3.4 each member adds its own salt.
func (a Auth) canonical(bucket string) []any {
	switch bucket {
	case "authUsers":
		return each(a.Users, func(u User) any { return []any{[]byte(u.Name), sorted(u.Roles), u.NoPassword} })
	case "authRoles":
		return each(a.Roles, func(r Role) any {
			return []any{[]byte(r.Name), each(r.Perms,
				func(p Permission) any { return []any{p.Type, p.Key, p.RangeEnd} })}
		})
	}
	return []any{[]any{a.Enabled, a.Revision}}
}

func each[T any](in []T, fn func(T) any) []any {
	out := make([]any, 0, len(in))
	for _, v := range in {
		out = append(out, fn(v))
	}
	return out
}

func sorted(in []string) []string {
	out := slices.Clone(in)
	slices.SortFunc(out, strings.Compare)
	return out
}
