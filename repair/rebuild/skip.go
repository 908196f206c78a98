package rebuild

import (
	"context"
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// shadow is the history with the skipped entries, in step with the history that is built.
type shadow struct{ m *replay.Machine }

// newShadow starts from the same base. The values that compares need come from the database being built, as far as it
// has them.
func (b *builder) newShadow(ctx context.Context, values func(string, dumpdb.Rev) ([]byte, bool)) (*shadow, error) {
	m, err := b.machine(ctx, values)
	b.res.Consequences = &Consequences{Entries: []Difference{}, Keys: []KeyDifference{}, EmptyRevisions: []int64{}}
	return &shadow{m}, err
}

// skipping executes a step in both histories, or only in the shadow if it is to be skipped, and records where they
// differ. Revisions keep the numbers that clients saw: otherwise compares on a revision would fail permanently. So the
// revision of a skipped entry has no records.
func (e *engine) skipping(ctx context.Context, st *replay.Step, skip bool) error {
	b, c := e.b, e.b.res.Consequences
	e.m.SkipTo(e.shadow.m.Revision())
	full := e.shadow.m.Prepare(st.Entry)
	if err := e.decide(ctx, e.shadow.m, &full); err != nil {
		return err
	}
	fo, fc := e.shadow.m.Apply(full)
	if skip {
		l := line(&st.Entry)
		l.Why = fmt.Sprintf("would have been %s with %d records", outcome(fo.State, fo.Reason), len(fc))
		b.res.Skipped = append(b.res.Skipped, l)
		e.leaveEmpty(fo.Rev)
		return nil
	}
	// The step was prepared before the revision increased. Its writes do not depend on that, but a refusal for a future
	// revision may.
	now := e.m.Prepare(st.Entry)
	if err := e.decide(ctx, e.m, &now); err != nil {
		return err
	}
	writes := now.Effects()
	o, err := e.apply(&now)
	if err != nil {
		return err
	}
	if o.Rev == 0 {
		e.leaveEmpty(fo.Rev)
	}
	if o.State == fo.State && o.Reason == fo.Reason && writes == full.Effects() {
		return nil
	}
	c.EntryCount++
	if len(c.Entries) < maxListed {
		c.Entries = append(c.Entries, Difference{EntryLine: line(&st.Entry), Without: ended(fo, full.Writes()),
			With: ended(o, now.Writes())})
	}
	return nil
}

// leaveEmpty keeps the revision of an entry that does not write now; 0 means none.
func (e *engine) leaveEmpty(rev int64) {
	if rev > e.m.Revision() {
		c := e.b.res.Consequences
		c.EmptyRevisions = append(c.EmptyRevisions, rev)
		e.m.SkipTo(rev)
	}
}

// passEmpty marks the history up to the last empty revision as compacted. A gap above the compact revision looks like
// lost data, and clients that saw the skipped entry must read again. An empty revision at the very end gets the record
// with which a restore raises the revision, since servers would otherwise use its number again.
func (e *engine) passEmpty() error {
	c := e.b.res.Consequences
	if c == nil || len(c.EmptyRevisions) == 0 {
		return nil
	}
	last := c.EmptyRevisions[len(c.EmptyRevisions)-1]
	if last == e.at.Revision {
		if err := e.key.Put(dumpdb.Rev{Main: last}.Bytes(), []byte{}); err != nil {
			return err
		}
	}
	if last > e.at.CompactRevision {
		e.at.CompactRevision = last
		e.b.res.note("the history up to revision %d is compacted in the result: clients that saw the skipped entries "+
			"must read again, and empty revisions would look like lost data", last)
	}
	return nil
}

func ended(o replay.Outcome, writes int) string {
	return fmt.Sprintf("%s, %d records", outcome(o.State, o.Reason), writes)
}

// keys lists the keys that differ between the two histories.
func (s *shadow) keys(m *replay.Machine, res *Result) {
	c := res.Consequences
	note := func(key, without, with string) {
		c.KeyCount++
		if len(c.Keys) < maxListed {
			c.Keys = append(c.Keys, KeyDifference{Key: check.Bytes(key), Without: without, With: with})
		}
	}
	s.m.Live(func(key string, at dumpdb.Rev, sum uint64, lease int64) bool {
		have, l, ok := m.Key(key)
		switch {
		case !ok:
			note(key, "value of revision "+at.String(), "absent")
		case have != sum:
			note(key, "value of revision "+at.String(), "another value")
		case l != lease:
			note(key, fmt.Sprintf("lease %x", lease), fmt.Sprintf("lease %x", l))
		}
		return true
	})
	m.Live(func(key string, at dumpdb.Rev, _ uint64, _ int64) bool {
		if _, _, ok := s.m.Key(key); !ok {
			note(key, "absent", "value of revision "+at.String())
		}
		return true
	})
}
