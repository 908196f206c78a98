package confirm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/redact"
)

// maxListed bounds the listed differences of one source. maxOpen bounds the records at or below the compact revision in
// memory.
const (
	maxListed = 20
	maxOpen   = 2_000_000
)

// contents is the comparison of one source's database with the server's.
type contents struct {
	records int64
	list    []compare.ConfirmDifference
	// first is the lowest differing revision of bucket key, 0 if the bucket is equal; compact is the compact revision.
	first, compact int64
	total          int
	// small counts the differences in each bucket other than key.
	small map[string]int
	// leftOut are buckets that prove nothing, with the reason.
	leftOut []string
	values  bool
	// key computes the digests of values and hashes.
	key *redact.Key
}

// rows lists the differences in revision order.
func (c *contents) differ(d compare.ConfirmDifference) {
	c.total++
	c.list = append(c.list, d)
	if len(c.list) < 2*maxListed {
		return
	}
	c.trim()
}

func (c *contents) trim() {
	slices.SortStableFunc(c.list, func(a, b compare.ConfirmDifference) int {
		switch {
		case (a.Revision == nil) != (b.Revision == nil):
			if a.Revision == nil {
				return -1
			}
			return 1
		case a.Revision == nil:
			return 0
		case a.Revision.Main != b.Revision.Main:
			return int(min(max(a.Revision.Main-b.Revision.Main, -1), 1))
		}
		return int(min(max(a.Revision.Sub-b.Revision.Sub, -1), 1))
	})
	c.list = c.list[:min(len(c.list), maxListed)]
}

// openRecord is a record at or below the compact revision that only one side has. It is a difference only if it is
// still needed there.
type openRecord struct {
	rev  dumpdb.Rev
	says string
}

// keys compares bucket key record by record. Above the compact revision every record must exist. At or below it only
// the newest of each key must, unless it is a tombstone. Records that both have must be equal everywhere.
func (c *contents) keys(ctx context.Context, own, server *dumpdb.DB) error {
	a, stopA := iter.Pull2(own.Revisions())
	defer stopA()
	b, stopB := iter.Pull2(server.Revisions())
	defer stopB()
	left := [2]map[string][]openRecord{{}, {}}
	open := 0
	x, okX, err1 := pull(a)
	y, okY, err2 := pull(b)
	for okX || okY {
		if err := errors.Join(err1, err2, ctx.Err()); err != nil {
			return err
		}
		c.records++
		if open > maxOpen {
			return fmt.Errorf("more than %d records below the compact revision are on one side only", maxOpen)
		}
		switch {
		case okX && okY && x.Rev == y.Rev:
			c.pair(&x, &y)
			x, okX, err1 = pull(a)
			y, okY, err2 = pull(b)
		case okX && (!okY || x.Rev.Less(y.Rev)):
			open += c.lone(&x, left[0], true)
			x, okX, err1 = pull(a)
		default:
			open += c.lone(&y, left[1], false)
			y, okY, err2 = pull(b)
		}
	}
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return errors.Join(c.needed(ctx, own, left[0], true), c.needed(ctx, server, left[1], false))
}

func pull(next func() (dumpdb.Revision, error, bool)) (dumpdb.Revision, bool, error) {
	r, err, ok := next()
	return r, ok, err
}

// pair compares two records of one revision.
func (c *contents) pair(x, y *dumpdb.Revision) {
	if x.Tombstone == y.Tombstone && bytes.Equal(x.Raw, y.Raw) {
		return
	}
	c.record(y.KV.Key, x.Rev, c.describe(x), c.describe(y))
}

// lone judges a record that only one side has: at once above the compact revision, otherwise later.
func (c *contents) lone(r *dumpdb.Revision, left map[string][]openRecord, own bool) int {
	says := c.describe(r)
	if r.Main <= c.compact {
		if r.Tombstone {
			return 0 // 3.4.34+, 3.5.16+ and 3.6+ keep the tombstone at the compact revision, others drop it
		}
		left[string(r.KV.Key)] = append(left[string(r.KV.Key)], openRecord{r.Rev, says})
		return 1
	}
	if own {
		c.record(r.KV.Key, r.Rev, says, "no record")
	} else {
		c.record(r.KV.Key, r.Rev, "no record", says)
	}
	return 0
}

func (c *contents) record(key []byte, rev dumpdb.Rev, observed, expected string) {
	if c.first == 0 || rev.Main < c.first {
		c.first = rev.Main
	}
	c.differ(compare.ConfirmDifference{Bucket: "key", Key: check.Bytes(bytes.Clone(key)),
		Revision: &check.Rev{Main: rev.Main, Sub: rev.Sub},
		Observed: observed, Expected: expected})
}

// needed keeps, of the records at or below the compact revision that only one side has, those that no later record
// replaces.
func (c *contents) needed(ctx context.Context, db *dumpdb.DB, left map[string][]openRecord, own bool) error {
	if len(left) == 0 {
		return nil
	}
	newest := map[string]dumpdb.Rev{}
	for r, err := range db.RevisionsBetween(dumpdb.Rev{}, dumpdb.Rev{Main: c.compact + 1}) {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if _, ok := left[string(r.KV.Key)]; ok {
			newest[string(r.KV.Key)] = r.Rev
		}
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		for _, r := range left[key] {
			if r.rev != newest[key] {
				continue
			}
			if own {
				c.record([]byte(key), r.rev, r.says, "no record")
			} else {
				c.record([]byte(key), r.rev, "no record", r.says)
			}
		}
	}
	return nil
}

// describe describes a record. Values are shown as length and digest unless requested.
func (c *contents) describe(r *dumpdb.Revision) string {
	switch {
	case r.Err != nil:
		return "a record that cannot be decoded"
	case r.Tombstone:
		return "deleted"
	case len(r.Raw) == 0:
		return "the mark of a raised revision"
	}
	kv := &r.KV
	s := fmt.Sprintf("create revision %d, mod revision %d, version %d", kv.CreateRevision, kv.ModRevision, kv.Version)
	if kv.Lease != 0 {
		s += fmt.Sprintf(", lease %x", uint64(kv.Lease))
	}
	if c.values {
		return fmt.Sprintf("%s, value %q", s, kv.Value)
	}
	return fmt.Sprintf("%s, value of %d bytes, digest %s", s, len(kv.Value), c.key.Digest(kv.Value))
}
