package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Undecodable is an entry of a member's log whose data is not a request of etcd although its CRC matches.
type Undecodable struct {
	Pos         dumplog.Pos
	Term, Index uint64
	// Panics is true if a server of any release panics at the entry. Otherwise servers up to 3.5 may take it for a
	// request of etcd 2.
	Panics bool
	Err    error
}

// damage is the entry as a damaged place of the log.
func (u *Undecodable) damage() *dumplog.DamageError {
	d := &dumplog.DamageError{Pos: u.Pos, Kind: dumplog.DamageRequest, LostFrom: u.Index, LostTo: u.Index,
		After: u.Index - 1,
		Server: "from 3.6 on panics when it applies the entry, unless a raft snapshot covers it; older servers may " +
			"ignore it",
		Err: fmt.Errorf("the CRC of entry %d/%d matches, but its data is not a request: %w", u.Term, u.Index, u.Err)}
	if u.Panics {
		d.OnStart, d.Server = dumplog.StartRefused, "panics when it applies the entry, unless a raft snapshot covers it"
	}
	return d
}

// UndecodableDamage are the entries of the member's log that do not decode, as damaged places.
func (r *Result) UndecodableDamage(member int) []*dumplog.DamageError {
	list := r.Undecodable[member]
	out := make([]*dumplog.DamageError, len(list))
	for i := range list {
		out[i] = list[i].damage()
	}
	return out
}

// maxUndecodable bounds the list of each member.
const maxUndecodable = 100_000

// noteUndecodable records the entry for each member whose log has it in a form that does not decode.
func (r *Result) noteUndecodable(ctx context.Context, it *item) error {
	if it.err == nil && len(it.others) == 0 {
		return nil
	}
	for _, v := range it.versions() {
		if v.err == nil || errors.As(v.err, new(*dumplog.TooLargeError)) || errors.Is(v.err, errDoubted) {
			continue
		}
		u := Undecodable{Pos: v.entry.Pos, Term: v.entry.Term, Index: v.entry.Index, Err: v.err,
			Panics: v.entry.NoMessage()}
		for n, h := range v.holders {
			if n > 0 {
				u.Pos = v.places[n-1]
			}
			r.undecodable(h, u)
		}
		if !v.agreed {
			continue
		}
		for i, m := range r.Members {
			if i == v.holders[0] || !m.Member.HasWAL() || m.Member.WAL.TermAt(u.Index) != u.Term {
				continue
			}
			if u.Pos = (dumplog.Pos{}); len(r.Undecodable[i]) < maxPositions {
				var err error
				if u.Pos, err = position(ctx, m.Member, u.Index); err != nil {
					return err
				}
			}
			r.undecodable(i, u)
		}
	}
	return nil
}

func (r *Result) undecodable(member int, u Undecodable) {
	if r.Undecodable == nil {
		r.Undecodable = map[int][]Undecodable{}
	}
	if list := r.Undecodable[member]; len(list) < maxUndecodable {
		r.Undecodable[member] = append(list, u)
	}
}
