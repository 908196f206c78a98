package diff

import (
	"context"
	"errors"
	"fmt"
)

// Change is one step that turns the keys of one member into those of another. Its bytes are valid only during the call.
type Change struct {
	Key []byte
	// Delete removes the key; otherwise it is put with Value and Lease.
	Delete bool
	Value  []byte
	Lease  int64
	// New is true if a put creates a key. Was is the value that a delete removes.
	New bool
	Was []byte
	// Mod is the mod revision of the record that is put or deleted, Create the create revision of a record that is put,
	// and WasMod the mod revision of the record that it replaces.
	Mod, Create, WasMod int64
}

// Changes calls fn for every change that turns the content of member number from into that of member number to, at the
// common index. Content is value and lease; revisions cannot be transferred. The order is stable: deletes first, then
// puts by revision, part by part. It returns an error if damage hides keys of either member, since it might then delete
// existing keys.
func (r *Result) Changes(ctx context.Context, from, to int, o Options, fn func(Change) error) error {
	k := keyComparer{r}
	if o.MaxMarks == 0 {
		o.MaxMarks = defaultMaxMarks
	}
	take := []int{from, to}
	for _, i := range take {
		if why := r.NotCompared[i]; why != "" {
			return fmt.Errorf("%s was not compared: %s", r.Members[i].Label(), why)
		}
	}
	if r.KeysNotCompared[from] != "" || r.KeysNotCompared[to] != "" {
		return errors.New(k.keysIncomparable())
	}
	parts := k.parts(take, o.MaxMarks)
	for part := range parts {
		m, err := k.mark(ctx, take, part, parts)
		if err != nil {
			return err
		}
		for _, i := range take {
			if !m.whole[i] {
				return fmt.Errorf("part of bucket key of %s cannot be read", r.Members[i].Label())
			}
		}
		if err := k.changesOf(ctx, m, from, to, fn); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// changesOf reads the records of one part again, since no value is kept between the passes.
func (r keyComparer) changesOf(ctx context.Context, m *marks, from, to int, fn func(Change) error) error {
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
			Mod: rev.Main, Create: rev.KV.CreateRevision, WasMod: old.at}); err != nil {
			return err
		}
	}
	return ctx.Err()
}
