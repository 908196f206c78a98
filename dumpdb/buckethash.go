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

// BucketHash is a content hash of a bucket, independent of page layout and of what legally differs between members
// (bcrypt salts, lease TTLs, superseded revisions at or below the compact revision). Equal hashes mean equal content by
// meaning; it is comparable across members and etcd versions. Bucket key is comparable at equal compact and current
// revision only, see ContentHash. Bucket meta holds nothing comparable: its hash is "". On damage there is no hash.
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
		// JSON has no raw line feed, so lines cannot run into each other.
		b, err := json.Marshal(l)
		if err != nil {
			return "", err
		}
		h.Write(append(b, '\n'))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ContentHash is a content hash of bucket key as if compacted at comp (at least the compact revision, which -1 stands
// for) and cut after rev (0: the current revision). Members with other compact and current revisions are comparable
// over max(compact revisions) and min(current revisions). ErrCompacted and ErrFutureRev tell that the window is out of
// reach.
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
		return "", fmt.Errorf("window %d to %d, compacted at %d: %w", comp, rev, done, ErrCompacted)
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

// recordsHash is contentHash of all records there are.
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

// Content is what the content hash of bucket key is made of. Being a sum, it gives the hash at a lower revision without
// reading what lies below.
type Content struct {
	comp, rev int64
	low, high sums
}

// Equal tells whether both give the same hashes at the same revisions, as far as their records tell.
func (c *Content) Equal(o *Content) bool { return c == o || c != nil && o != nil && *c == *o }

// HashUntil is ContentHash from the compact revision to rev, which must not be below it. Only the records above rev are
// read.
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

// canonical is a bucket by meaning, in an order of its own.
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

// canonical leaves out passwords: up to 3.4 each member salts its own.
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
