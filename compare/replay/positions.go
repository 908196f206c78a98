package replay

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// maxPositions bounds how often the place of an entry is looked for on its own: each time a part of the log is read.
const maxPositions = 100

// farApart is the distance in entries from which on the log between two entries is left out.
const farApart = 10_000

// locateEvents finds where the log of each member holds the entries of events, those beyond the rights of a user and
// those that differ between logs.
// An entry is at another place in each log.
func locateEvents(ctx context.Context, r *Result) error {
	var want []uint64
	for _, e := range r.Events {
		want = append(want, e.Index)
	}
	for _, m := range r.Members {
		for i := range m.Beyond {
			want = append(want, m.Beyond[i].Index)
		}
	}
	for _, list := range [][]LogDiff{r.LogDiffs, r.SameTerm} {
		for _, d := range list[:min(len(list), maxPositions)] {
			want = append(want, d.Index)
		}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	found := make([]map[uint64]dumplog.Pos, len(r.Members))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, m := range r.Members {
		if len(want) == 0 || !m.Member.HasWAL() {
			continue
		}
		g.Go(func() (err error) {
			found[i], err = positionsIn(ctx, m.Member, want)
			return err
		})
	}
	err := g.Wait()
	r.positions = map[int]map[uint64]dumplog.Pos{}
	for i, at := range found {
		r.positions[i] = at
	}
	return err
}

// Position is where the log of the member at a position holds its entry at an index. It is the zero Pos if the log does
// not hold one, and after too many questions about entries that are in no event.
func (r *Result) Position(ctx context.Context, member int, index uint64) dumplog.Pos {
	if at, ok := r.positions[member][index]; ok {
		return at
	}
	if member >= len(r.Members) {
		return dumplog.Pos{}
	}
	m := r.Members[member].Member
	if !m.HasWAL() || r.eventAt(index) || r.looked.Add(1) > maxPositions {
		return dumplog.Pos{}
	}
	at, _ := position(ctx, m, index) // what cannot be read has no place
	return at
}

// eventAt reports whether there is an event at an index.
func (r *Result) eventAt(index uint64) bool {
	_, found := slices.BinarySearchFunc(r.Events, index, func(e *Event, index uint64) int {
		return cmp.Compare(e.Index, index)
	})
	return found
}

// position returns the place of an entry in a member's own log, the zero Pos if the log does not hold it.
func position(ctx context.Context, m *evidence.Member, index uint64) (dumplog.Pos, error) {
	found, err := positionsIn(ctx, m, []uint64{index})
	return found[index], err
}

// positionsIn returns the places of entries, in ascending order, that are in a member's own log. It reads each part of
// the log once; where appends replaced entries, the whole log.
func positionsIn(ctx context.Context, m *evidence.Member, want []uint64) (map[uint64]dumplog.Pos, error) {
	found := make(map[uint64]dumplog.Pos, len(want))
	for len(want) > 0 {
		n := 1
		for n < len(want) && (len(m.WAL.Summary.Overwrites) > 0 || want[n]-want[n-1] < farApart) {
			n++
		}
		if err := addPositions(ctx, m, want[:n], found); err != nil {
			return nil, err
		}
		want = want[n:]
	}
	return found, nil
}

func addPositions(ctx context.Context, m *evidence.Member, want []uint64, found map[uint64]dumplog.Pos) error {
	w := &m.WAL
	for e, err := range w.Log.EntriesFrom(ctx, &w.Summary, want[0]) {
		switch {
		case err != nil && !errors.As(err, new(*dumplog.DamageError)):
			return err
		case err != nil || e.Overwritten:
		case e.Index > want[len(want)-1] && len(w.Summary.Overwrites) == 0:
			return nil
		default:
			if _, ok := slices.BinarySearch(want, e.Index); ok {
				found[e.Index] = e.Pos
			}
		}
	}
	return nil
}
