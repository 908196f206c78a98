package surgery

import (
	"bytes"
	"context"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// fill finds entries in other members' logs. It uses only entries that such a member knows to be committed, since those
// are equal on all members.
type fill struct {
	ctx   context.Context
	peers []*evidence.Member
	// cache has the entries of the last requested range, by index.
	cache    map[uint64]*datadir.Entry
	from, to uint64
	// used are the labels of the members whose entries were used.
	used map[string]bool
}

// fillStretch bounds how many entries are in memory at a time.
const fillStretch = 10_000

func newFill(ctx context.Context, peers []*evidence.Member, of *evidence.Member) fill {
	f := fill{ctx: ctx, used: map[string]bool{}}
	for _, p := range peers {
		if p.HasWAL() && (of.ClusterID == 0 || p.ClusterID == of.ClusterID) {
			f.peers = append(f.peers, p)
		}
	}
	return f
}

// has reports whether some member has the entry and knows that it is committed.
func (f *fill) has(index uint64) bool { return f.get(index) != nil }

func (f *fill) get(index uint64) *datadir.Entry {
	if len(f.peers) == 0 {
		return nil
	}
	if f.cache == nil || index < f.from || index > f.to {
		f.load(index)
	}
	return f.cache[index]
}

// load reads one range from all members; it omits damaged entries.
func (f *fill) load(from uint64) {
	f.from, f.to, f.cache = from, from+fillStretch-1, map[uint64]*datadir.Entry{}
	for _, p := range f.peers {
		s := &p.WAL.Summary
		if s.LastIndex < from || s.FirstIndex > f.to {
			continue
		}
		for e, err := range p.WAL.Log.Entries(f.ctx, s) {
			if err != nil || e.Overwritten || e.Index < f.from || e.Index > min(f.to, p.Commit) ||
				f.cache[e.Index] != nil {
				continue
			}
			f.cache[e.Index] = &datadir.Entry{Type: e.Type, Term: e.Term, Index: e.Index, Data: bytes.Clone(e.Data)}
			f.used[p.Label()] = true
		}
	}
}
