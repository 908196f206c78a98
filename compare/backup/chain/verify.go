package chain

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"iter"
	"maps"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// maxFaults bounds the list of faults of one chain.
const maxFaults = 100

// Report is the result of reading a chain.
type Report struct {
	Full string `json:"full"`
	// FullRevision is the revision of the full snapshot itself; the one in its name may be lower.
	FullRevision int64   `json:"fullRevision"`
	Deltas       []Delta `json:"deltas"`
	// Revision is how far the chain can be applied: every revision up to it exists and fits the earlier ones.
	Revision int64 `json:"revision"`
	// LastNamed is the revision in the name of the last file.
	LastNamed int64   `json:"lastNamed"`
	Events    int64   `json:"events"`
	Faults    []Fault `json:"faults"`
	// More counts faults that are not listed.
	More int `json:"more,omitempty"`
}

// Delta is one delta snapshot.
type Delta struct {
	File   string `json:"file"`
	First  int64  `json:"firstRevision"`
	Last   int64  `json:"lastRevision"`
	Events int64  `json:"events"`
	// Sound is true if the file was read to its end and matches its sha256.
	Sound bool `json:"sound"`
}

// Serves reports whether the whole chain can be applied.
func (r *Report) Serves() bool { return len(r.Faults) == 0 }

// Verify reads every delta and checks its sha256, its order, that no revision is missing, and that each event fits the
// state after the full snapshot and the earlier events. Memory grows with the number of different keys in the deltas,
// about 100 bytes each. It returns an error only if ctx ends.
func (c *Chain) Verify(ctx context.Context, full *dumpdb.DB) (*Report, error) {
	v := &verifier{chain: c, full: full, keys: map[keyID]*life{},
		r: &Report{Full: c.Full.Name(), LastNamed: c.Last(), Deltas: []Delta{}, Faults: []Fault{}}}
	for _, f := range c.Order() {
		v.fault(f)
	}
	if err := v.base(ctx); err != nil {
		return nil, err
	}
	for i := range c.Deltas {
		if err := v.delta(ctx, &c.Deltas[i]); err != nil {
			return nil, err
		}
	}
	if err := v.fitsBase(ctx); err != nil {
		return nil, err
	}
	return v.r, nil
}

// keyID identifies a key.
type keyID [16]byte

func idOf(key []byte) keyID {
	sum := sha256.Sum256(key)
	return keyID(sum[:16])
}

// life is the history of a key in the deltas: the state that its first event requires in the full snapshot, and the
// state after its last event.
type life struct {
	key    []byte
	file   string
	needs  state
	mod    int64 // of the first event
	now    state
	inFull state
}

// state is a key at one revision; it exists if version is not 0.
type state struct{ create, version int64 }

// String returns the text for faults.
func (s state) String() string {
	if s.version == 0 {
		return "no such key"
	}
	return fmt.Sprintf("create revision %d, version %d", s.create, s.version)
}

type verifier struct {
	chain *Chain
	full  *dumpdb.DB
	r     *Report
	keys  map[keyID]*life
	// overlap has a sum of every revision of the full snapshot above the one in its name.
	overlap map[int64][sha256.Size]byte
	// last is the last applied revision. broken is set after a fault that prevents further application.
	last   int64
	broken bool
}

func (v *verifier) fault(f Fault) {
	if len(v.r.Faults) < maxFaults {
		v.r.Faults = append(v.r.Faults, f)
	} else {
		v.r.More++
	}
}

// base reads the revisions of the full snapshot above the one in its name.
func (v *verifier) base(ctx context.Context) error {
	rev, err := v.full.CurrentRev()
	if err != nil {
		v.fault(Fault{File: v.r.Full, Kind: Unreadable, Text: v.r.Full + ": its revision cannot be read: " +
			err.Error()})
		v.broken = true
		return nil
	}
	v.r.FullRevision, v.r.Revision, v.last = rev, rev, rev
	if rev < v.chain.Full.Last {
		v.fault(Fault{File: v.r.Full, Kind: Mismatch, First: rev, Last: v.chain.Full.Last,
			Text: fmt.Sprintf("%s has revision %d, its name says %d", v.r.Full, rev, v.chain.Full.Last)})
	}
	v.overlap = map[int64][sha256.Size]byte{}
	// A compaction removes some of the changes of a revision; above it all exist.
	above := v.chain.Full.Last
	if meta, err := v.full.MetaBucket(); err == nil && meta.ScheduledCompact != nil {
		above = max(above, meta.ScheduledCompact.Main)
	}
	sums := &sums{}
	for r, err := range v.full.RevisionsFrom(dumpdb.Rev{Main: above + 1}) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || r.Err != nil {
			continue // the layers of the full snapshot report it
		}
		if done, sum := sums.add(r.Main, r.Tombstone, r.KV.Key, r.KV.Value, r.KV.Version); done != 0 {
			v.overlap[done] = sum
		}
	}
	if done, sum := sums.end(); done != 0 {
		v.overlap[done] = sum
	}
	return nil
}

// delta reads one delta. It returns an error only if ctx ends.
func (v *verifier) delta(ctx context.Context, s *Snapshot) error {
	d := Delta{File: s.Name()}
	sums := &sums{}
	from := v.last // applied before this file
	var bad error
	for e, err := range s.Events() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			bad = err
			break
		}
		if d.Events++; d.First == 0 {
			d.First = e.ModRevision
		}
		if e.ModRevision < d.Last {
			v.fault(Fault{File: d.File, Kind: Mismatch, First: e.ModRevision, Last: d.Last,
				Text: fmt.Sprintf("%s: revision %d follows %d", d.File, e.ModRevision, d.Last)})
			v.broken = true
		}
		d.Last = e.ModRevision
		if e.ModRevision <= v.r.FullRevision {
			v.same(d.File, sums, &e)
		}
		if !v.broken && e.ModRevision > from {
			v.apply(d.File, &e)
		}
	}
	if done, sum := sums.end(); done != 0 {
		v.compareOverlap(d.File, done, sum)
	}
	v.r.Events += d.Events
	d.Sound = bad == nil
	v.r.Deltas = append(v.r.Deltas, d)
	switch {
	case bad != nil:
		kind, is := Damaged, "is damaged"
		var pe *fs.PathError
		if errors.As(bad, &pe) {
			kind, is = Unreadable, "cannot be read"
		}
		v.fault(Fault{File: d.File, Kind: kind, First: s.Start, Last: s.Last,
			Text: fmt.Sprintf("%s %s: %v", d.File, is, bad)})
		v.broken = true
	case d.Events == 0 || d.First != s.Start || d.Last != s.Last:
		v.fault(Fault{File: d.File, Kind: Mismatch, First: s.Start, Last: s.Last,
			Text: fmt.Sprintf("%s has revisions %d to %d, its name says %d to %d", d.File, d.First, d.Last, s.Start,
				s.Last)})
	}
	if !v.broken {
		v.r.Revision = v.last
	}
	return nil
}

// same compares an event with the full snapshot, which also has its revision.
func (v *verifier) same(file string, s *sums, e *Event) {
	if done, sum := s.add(e.ModRevision, e.Delete, e.Key, e.Value, e.Version); done != 0 {
		v.compareOverlap(file, done, sum)
	}
}

func (v *verifier) compareOverlap(file string, rev int64, sum [sha256.Size]byte) {
	if want, ok := v.overlap[rev]; ok && want != sum {
		v.fault(Fault{File: file, Kind: Mismatch, First: rev, Last: rev,
			Text: fmt.Sprintf("%s and %s have different changes at revision %d", file, v.r.Full, rev)})
		v.broken = true
	}
}

// apply checks an event against the previous state and updates the state.
func (v *verifier) apply(file string, e *Event) {
	if e.ModRevision > v.last+1 {
		v.fault(Fault{File: file, Kind: Gap, First: v.last + 1, Last: e.ModRevision - 1,
			Text: fmt.Sprintf("%s: revisions %d to %d have no event", file, v.last+1, e.ModRevision-1)})
		v.broken = true
		return
	}
	v.last = e.ModRevision
	needs := state{}
	after := state{}
	if !e.Delete {
		after = state{e.CreateRevision, e.Version}
		if e.Version > 1 {
			needs = state{e.CreateRevision, e.Version - 1}
		}
		if e.Version < 1 || e.Version == 1 && e.CreateRevision != e.ModRevision || e.CreateRevision > e.ModRevision {
			v.misfit(file, e, fmt.Sprintf("a put with create revision %d and version %d is impossible",
				e.CreateRevision, e.Version))
			return
		}
	}
	id := idOf(e.Key)
	l := v.keys[id]
	if l == nil {
		if e.Delete {
			needs = state{version: anyVersion}
		}
		v.keys[id] = &life{key: append([]byte(nil), e.Key...), file: file, needs: needs, mod: e.ModRevision, now: after}
		return
	}
	if e.Delete && l.now.version == 0 || !e.Delete && l.now != needs {
		v.misfit(file, e, fmt.Sprintf("the change of %q needs %s before it, the events before it leave %s", e.Key,
			wanted(e.Delete, needs), l.now))
		return
	}
	l.now = after
}

// anyVersion means that a key exists in some version.
const anyVersion = -1

func wanted(del bool, s state) string {
	if del || s.version == anyVersion {
		return "the key"
	}
	return s.String()
}

func (v *verifier) misfit(file string, e *Event, text string) {
	v.fault(Fault{File: file, Kind: Mismatch, First: e.ModRevision, Last: e.ModRevision,
		Key:  append([]byte(nil), e.Key...),
		Text: fmt.Sprintf("%s: revision %d: %s", file, e.ModRevision, text)})
	v.broken = true
}

// fitsBase compares what the first event of each key requires with the full snapshot.
func (v *verifier) fitsBase(ctx context.Context) error {
	if len(v.keys) == 0 {
		return nil
	}
	n := 0
	for r, err := range v.full.Revisions() {
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || r.Err != nil {
			// Part of the full snapshot cannot be read, as its layers report. A missing key then proves nothing.
			return nil
		}
		if l := v.keys[idOf(r.KV.Key)]; l != nil {
			l.inFull = state{}
			if !r.Tombstone {
				l.inFull = state{r.KV.CreateRevision, r.KV.Version}
			}
		}
	}
	lives := slices.SortedFunc(maps.Values(v.keys),
		func(a, b *life) int { return cmp.Or(cmp.Compare(a.mod, b.mod), bytes.Compare(a.key, b.key)) })
	for _, l := range lives {
		if l.needs.version == anyVersion && l.inFull.version > 0 || l.needs == l.inFull {
			continue
		}
		v.fault(Fault{File: l.file, Kind: Mismatch, First: l.mod, Last: l.mod, Key: l.key,
			Text: fmt.Sprintf("%s does not apply to %s: revision %d changes %q and needs %s, but the snapshot has %s",
				l.file, v.r.Full, l.mod, l.key, wanted(false, l.needs), l.inFull)})
		v.r.Revision = min(v.r.Revision, l.mod-1)
	}
	return nil
}

// sums hashes the changes of each revision.
type sums struct {
	rev int64
	h   hash.Hash
}

// add adds one change. If it starts a new revision, add returns the finished one with its sum.
func (s *sums) add(rev int64, tombstone bool, key, value []byte, version int64) (done int64, sum [sha256.Size]byte) {
	if rev != s.rev {
		done, sum = s.end()
		s.rev, s.h = rev, sha256.New()
	}
	if tombstone {
		value, version = nil, 0
	}
	var n [25]byte
	binary.BigEndian.PutUint64(n[0:], uint64(len(key)))
	binary.BigEndian.PutUint64(n[8:], uint64(len(value)))
	binary.BigEndian.PutUint64(n[16:], uint64(version))
	if tombstone {
		n[24] = 1
	}
	s.h.Write(n[:])
	s.h.Write(key)
	s.h.Write(value)
	return done, sum
}

func (s *sums) end() (done int64, sum [sha256.Size]byte) {
	if s.h == nil {
		return 0, sum
	}
	return s.rev, [sha256.Size]byte(s.h.Sum(nil))
}

// Events yields the events of a delta file; see the function Events.
func (s *Snapshot) Events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r, err := s.Open()
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer func() { _ = r.Close() }() // opened for reading
		for e, err := range Events(r) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// Events yields the events of all deltas in order, each revision once, starting after a revision. It ends with an error
// at the first damage or missing revision.
func (c *Chain) Events(ctx context.Context, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		last := after
		for i := range c.Deltas {
			from := last
			for e, err := range c.Deltas[i].Events() {
				switch {
				case ctx.Err() != nil:
					err = ctx.Err()
				case err != nil:
					err = fmt.Errorf("%s: %w", c.Deltas[i].Name(), err)
				case e.ModRevision <= from:
					continue
				case e.ModRevision < last || e.ModRevision > last+1:
					err = fmt.Errorf("%s: revision %d follows %d", c.Deltas[i].Name(), e.ModRevision, last)
				}
				if err != nil {
					yield(Event{}, err)
					return
				}
				last = e.ModRevision
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}
