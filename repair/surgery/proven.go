package surgery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// provenPeer returns the member whose rows replace the source's. The diagnosis must rank it best, but not the source,
// and its database must be at the source's index.
func (w *work) provenPeer(ctx context.Context) (*evidence.Member, map[string]bool, error) {
	why := "the diagnosis of source and peers calls none of them best"
	best := w.before.Best
	if best == nil || slices.Contains(best.Members, w.source().Label()) {
		return nil, nil, refusef("", "the diagnosis does not call another member better than %s", w.source().Label())
	}
	for _, p := range w.peers() {
		name := p.Label()
		if !p.HasDB() || p.DB.KVDamaged || !slices.Contains(best.Members, name) {
			continue
		}
		between, keys, err := w.changedBetween(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		if !keys {
			return p, between, nil
		}
		why = fmt.Sprintf("%s is at entry %d, the source at %d, and entries between them may write keys", name,
			p.ConsistentIndex(), w.source().ConsistentIndex())
	}
	return nil, nil, refusef("name a sound member with --with, copied at the same index",
		"no member was named whose values are proven right: %s", why)
}

// changedBetween lists the small buckets that entries between the two databases may change, and reports whether one
// may write keys.
func (w *work) changedBetween(ctx context.Context, p *evidence.Member) (buckets map[string]bool, keys bool, err error) {
	a, b := w.source().ConsistentIndex(), p.ConsistentIndex()
	lo, hi := min(a, b), max(a, b)
	buckets = map[string]bool{}
	seen := lo
	var logs []*evidence.Member
	for _, m := range w.set.Members {
		if m.HasLog() && m.ClusterID == p.ClusterID {
			logs = append(logs, m)
		}
	}
	if lo == hi {
		return buckets, false, nil
	}
	if len(logs) == 0 { // any of these entries may write keys
		return buckets, true, nil
	}
	for e, err := range replay.Log(ctx, logs) {
		if err != nil {
			return nil, false, err
		}
		if e.Index <= lo || e.Index > hi {
			continue
		}
		if e.Index != seen+1 || e.Err != nil || replay.WritesKeys(e.Req.Kind) {
			return buckets, true, nil
		}
		seen = e.Index
		for _, b := range replay.TouchedBuckets(e.Req) {
			buckets[b] = true
		}
	}
	return buckets, seen != hi, nil
}

// errorsOn are the checks with an error about a member, with the number of places where the member has it, 1 at least.
// A difference between members is not an error of the member that the diagnosis calls best.
func errorsOn(r *compare.Report, name string) map[check.ID]int {
	out := map[check.ID]int{}
	best := r.Best != nil && slices.Contains(r.Best.Members, name)
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Severity.Rank() >= check.Error.Rank() && (f.Alone(name) || !best && (len(f.Members) == 0 ||
			slices.Contains(f.Members, name))) {
			out[f.Check] += max(placesOf(f, name), 1)
		}
	}
	return out
}

// placesOf counts the evidence of a finding about a member, and all that was left out.
func placesOf(f *check.Finding, name string) int {
	n := f.More
	for _, e := range f.Evidence {
		if e.Member == name {
			n++
		}
	}
	return n
}

// takeProven replaces rows of the new database that differ from those of a member that is proven better. Where no
// member is, as when the source itself is the best one, it replaces only the records that are proven wrong one by one.
func (b *rebuilder) takeProven() error {
	p, between, err := b.w.provenPeer(b.ctx)
	var refused *refusal.Error
	if err == nil || !errors.As(err, &refused) || b.w.before.Best == nil || b.w.before.Best.Lost.Records.Count == 0 {
		if err == nil {
			err = b.takeAll(p, between)
		}
		return err
	}
	return b.takeRecords(&b.w.before.Best.Lost.Records)
}

// takeRecords replaces the records that are proven wrong by those of members that hold the right ones.
func (b *rebuilder) takeRecords(r *compare.LostRecords) error {
	w := b.w
	if more := r.Count - len(r.Rows); more > 0 {
		return refusef(cloneInstead, "%d records are proven wrong, more than the %d that are replaced one by one",
			r.Count, len(r.Rows))
	}
	from, remain := map[string]int{}, []string{}
	var batch takenRecords
	for i := range r.Rows {
		x := &r.Rows[i]
		rev := dumpdb.Rev{Main: x.Revision.Main, Sub: x.Revision.Sub}
		at := slices.IndexFunc(w.peers(), func(m *evidence.Member) bool { return slices.Contains(x.HeldBy, m.Label()) })
		if at < 0 {
			remain = append(remain, rev.String())
			continue
		}
		from[w.peers()[at].Label()]++
		if err := b.take(&batch, w.peers()[at], rev); err != nil {
			return err
		}
	}
	if err := b.replace(&batch); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		w.did("%s of bucket key that %s proven wrong %s of %s", plural.Of(from[name], "record", "records"),
			plural.Form(from[name], "is", "are"), plural.Form(from[name], "is now that", "are now those"), name)
	}
	switch {
	case len(from) == 0:
		return refusef("", "%s proven wrong, and no member named by --with is known to hold the right one: revision %s",
			plural.Of(len(remain), "record is", "records are"), firstOf(remain))
	case len(remain) > 0:
		w.givesUp("the right content of %s proven wrong, at revision %s: no member named by --with is known to hold it",
			plural.Of(len(remain), "record that is", "records that are"), firstOf(remain))
	}
	return nil
}

// firstOf names some of many revisions.
func firstOf(revs []string) string {
	const named = 20
	if len(revs) <= named {
		return strings.Join(revs, ", ")
	}
	return strings.Join(revs[:named], ", ") + fmt.Sprintf(" and %d more", len(revs)-named)
}

// takenRecords are records of the source that are replaced in one transaction.
type takenRecords struct {
	drop []dumpdb.Rev
	put  []pair
	size int
}

// maxTaken bounds the bytes of records that are replaced in one transaction.
const maxTaken = 16 << 20

// take adds the record of a member in place of that of the source. The member can have none at that revision.
func (b *rebuilder) take(x *takenRecords, from *evidence.Member, rev dumpdb.Rev) error {
	x.drop = append(x.drop, rev)
	for rec, err := range from.DB.Handle.Query(b.ctx, dumpdb.Query{FromRev: rev.Main, ToRev: rev.Main}) {
		if err != nil {
			return err
		}
		if rec.Rev == rev {
			x.put = append(x.put, pair{bytes.Clone(rec.RawKey), bytes.Clone(rec.Raw)})
			x.size += len(rec.Raw)
		}
	}
	if len(x.drop) < batchRecords && x.size < maxTaken {
		return nil
	}
	return b.replace(x)
}

// replace writes the records and empties the batch.
func (b *rebuilder) replace(x *takenRecords) error {
	err := b.dst.Update(func(tx *bolt.Tx) error {
		bucket := tx.Bucket([]byte("key"))
		for _, rev := range x.drop {
			key := rev.Bytes()
			if err := errors.Join(bucket.Delete(key), bucket.Delete(append(key, 't'))); err != nil {
				return err
			}
		}
		return nil
	})
	err = errors.Join(err, b.store("key", x.put))
	*x = takenRecords{}
	return err
}

// takeAll replaces rows that differ from those of a member that is proven better.
func (b *rebuilder) takeAll(p *evidence.Member, between map[string]bool) error {
	w := b.w
	taken := 0
	for _, name := range smallBuckets {
		if name == "meta" || between[name] {
			continue
		}
		n, err := b.takeRows(name, p.DB.Handle.Rows(name))
		if err != nil {
			return err
		}
		if taken += n; n > 0 {
			w.did("%s of bucket %s %s of %s", plural.Of(n, "row", "rows"), name, plural.Form(n, "is that", "are those"),
				p.Label())
		}
	}
	if p.CompactRevision() == b.compact {
		n, err := b.takeRows("key", p.DB.Handle.Rows("key"))
		if err != nil {
			return err
		}
		if taken += n; n > 0 {
			w.did("%s of bucket key %s of %s", plural.Of(n, "record", "records"),
				plural.Form(n, "is that", "are those"), p.Label())
		}
	} else {
		w.note("%s is compacted at %d, the source at %d: records of keys were not taken from it", p.Label(),
			p.CompactRevision(), b.compact)
	}
	if taken == 0 {
		return refusef("", "nothing differs from what %s holds", p.Label())
	}
	return nil
}

// takeRows replaces the rows of a bucket of the new database by the given ones, which come in order, and counts the
// rows that differed.
func (b *rebuilder) takeRows(name string, rows iter.Seq2[dumpdb.Row, error]) (n int, err error) {
	next, stop := iter.Pull2(rows)
	defer stop()
	var put []pair
	var drop [][]byte
	err = b.dst.View(func(tx *bolt.Tx) error {
		c := tx.Bucket([]byte(name)).Cursor()
		k, v := c.First()
		row, err, ok := next()
		for k != nil || ok {
			if ok && err != nil {
				return err
			}
			switch order := bytes.Compare(k, row.Key); {
			case !ok || k != nil && order < 0:
				drop = append(drop, bytes.Clone(k))
				k, v = c.Next()
				continue
			case k == nil || order > 0 || !bytes.Equal(v, row.Value):
				put = append(put, pair{bytes.Clone(row.Key), append([]byte{}, row.Value...)})
			}
			if k != nil && bytes.Equal(k, row.Key) {
				k, v = c.Next()
			}
			if len(put)+len(drop) > maxFill {
				return errors.New("more than a million rows differ: clone the member instead")
			}
			row, err, ok = next()
		}
		return nil
	})
	if err != nil || len(put)+len(drop) == 0 {
		return 0, err
	}
	err = b.dst.Update(func(tx *bolt.Tx) error {
		x := tx.Bucket([]byte(name))
		for _, k := range drop {
			if err := x.Delete(k); err != nil {
				return err
			}
		}
		return nil
	})
	return len(put) + len(drop), errors.Join(err, b.store(name, put))
}

// sickAsBefore reports whether there were errors about the source before, none of them is cured, and none is in fewer
// places without another one in more.
func (w *work) sickAsBefore(after *compare.Report) bool {
	name := w.source().Label()
	was, is := errorsOn(w.before, name), errorsOn(after, name)
	fewer, more := false, false
	for id, n := range was {
		if is[id] == 0 && !w.remains(id) {
			return false
		}
		fewer, more = fewer || is[id] < n && !w.remains(id), more || is[id] > n
	}
	return len(was) > 0 && (more || !fewer)
}

// offer searches for a change that would cure a result with the same errors as the source, and tries it in scratch
// before it suggests it.
func (w *work) offer(ctx context.Context, c Change, scratch string) error {
	w.report.Unchanged = true
	db, is := c.(DB)
	if !is || db.Previous || db.Proven || len(w.peers()) == 0 {
		return nil
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	o := *w.o
	o.Out = scratch
	db.Proven = true
	r, err := Run(ctx, o, db)
	var refused interface{ Refused() bool }
	switch {
	case errors.As(err, &refused):
		return nil
	case err != nil:
		return err
	case r.Unchanged:
		return nil
	}
	w.report.Offers = append(w.report.Offers,
		fmt.Sprintf("take the proven values of the members named: add --take-proven (tried: %s; then %s)",
			strings.Join(r.Did[:len(r.Did)-1], "; "), r.After.Class))
	return nil
}
