package diff

import (
	"context"
	"errors"
	"fmt"
)

// Change is one step that turns the keys of one member into those of another. Bytes are valid during the call only.
type Change struct {
	Key []byte
	// Delete removes the key; otherwise it is put with Value and Lease.
	Delete bool
	Value  []byte
	Lease  int64
	// New is true when a put makes a key that was not there. Was is the value that a delete removes.
	New bool
	Was []byte
	// Mod is the revision of the record that a put brings or a delete removes.
	Mod int64
}

// Changes calls fn for every key whose content (value or lease; revisions cannot be brought over) differs at the
// common index, with what makes member number from hold what member number to holds. Order is stable: deletes first,
// then puts in the order of their revisions, part by part. It refuses when damage hides keys of either, since it would
// then delete what may exist.
func (r *Result) Changes(ctx context.Context, from, to int, o Options, fn func(Change) error) error {
	if o.MaxMarks == 0 {
		o.MaxMarks = defaultMaxMarks
	}
	take := []int{from, to}
	for _, i := range take {
		if why := r.LeftOut[i]; why != "" {
			return fmt.Errorf("%s took no part in the comparison: %s", r.Members[i].Label(), why)
		}
	}
	if r.Apart[from] != "" || r.Apart[to] != "" {
		return errors.New(r.keysIncomparable())
	}
	parts := r.parts(take, o.MaxMarks)
	for part := range parts {
		m, err := r.mark(ctx, take, part, parts)
		if err != nil {
			return err
		}
		for _, i := range take {
			if !m.whole[i] {
				return fmt.Errorf("part of bucket key of %s can not be read", r.Members[i].Label())
			}
		}
		if err := r.changesOf(ctx, m, from, to, fn); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// changesOf reads the records of one part again: no value is kept between the passes.
func (r *Result) changesOf(ctx context.Context, m *marks, from, to int, fn func(Change) error) error {
	for rev := range r.records(ctx, from) {
		mk, live := m.live[from].get(string(rev.KV.Key))
		if _, kept := m.live[to].get(string(rev.KV.Key)); !live || kept || mk.at != rev.Main {
			continue
		}
		if err := fn(Change{Key: rev.KV.Key, Delete: true, Was: rev.KV.Value, Mod: rev.Main}); err != nil {
			return err
		}
	}
	for rev := range r.records(ctx, to) {
		mk, live := m.live[to].get(string(rev.KV.Key))
		if !live || mk.at != rev.Main {
			continue
		}
		old, there := m.live[from].get(string(rev.KV.Key))
		if there && old.content == mk.content {
			continue
		}
		if err := fn(Change{Key: rev.KV.Key, Value: rev.KV.Value, Lease: rev.KV.Lease, New: !there,
			Mod: rev.Main}); err != nil {
			return err
		}
	}
	return ctx.Err()
}
