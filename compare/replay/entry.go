package replay

import (
	"context"
	"iter"
	"math"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Entry is one index of the merged log of several members.
type Entry struct {
	*dumplog.Entry
	Req *dumplog.Request
	// Err says why the payload does not decode; its effect is then unknown.
	Err error
	// Holders are the positions of the members whose log has this very entry.
	Holders []int
	// Disputed is true when another member holds a different entry at this index.
	Disputed bool
	// of is a member whose log holds the entry.
	of *evidence.Member
}

// Describe is the entry's request in words, with values as length and digest.
func (e *Entry) Describe() string { return e.of.Describe(e.Req) }

// Log yields the union of the members' effective logs in index order, each index once. Of different entries at one
// index it yields the entry that its holder knows to be committed. It omits indexes that no member has, and those lost
// to damage. It includes entries above the commit index. An error ends it.
func Log(ctx context.Context, members []*evidence.Member) iter.Seq2[Entry, error] {
	return LogFrom(ctx, members, 1)
}

// LogFrom is Log from an index on.
func LogFrom(ctx context.Context, members []*evidence.Member, from uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if len(members) == 0 {
			return
		}
		yieldEntries(ctx, mergedBetween(ctx, logSet{members: members}, from, math.MaxUint64, &itemArena{each: true}),
			members[0], yield)
	}
}

// Entries yields the merged log once more, as Log does but without telling who holds an entry. Where the survey found
// all logs to be equal, it reads one of them. What an entry refers to must not be kept.
func (r *Result) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		yieldEntries(ctx, r.log(ctx, 0), r.Members[0].Member, yield)
	}
}

// yieldEntries reads a log in another goroutine and yields its entries.
func yieldEntries(ctx context.Context, items iter.Seq2[*item, error], of *evidence.Member,
	yield func(Entry, error) bool) {
	for it, err := range inParallel(items) {
		if err != nil {
			yield(Entry{}, err)
			return
		}
		e := Entry{Entry: &it.entry, Req: it.req, Err: it.err, Holders: it.holders, Disputed: len(it.others) > 0,
			of: of}
		if !yield(e, nil) {
			return
		}
	}
	if err := ctx.Err(); err != nil {
		yield(Entry{}, err)
	}
}

// describe is a request in words, with values as length and digest.
func (r *Result) describe(req *dumplog.Request) string { return r.anyMember().Describe(req) }

// digest returns the digest of bytes that are not shown.
func (r *Result) digest(b []byte) string { return r.anyMember().Digest(b) }

// anyMember returns the member whose key makes the digests: all members of a run share it. nil if there is none.
func (r *Result) anyMember() *evidence.Member {
	if len(r.Members) == 0 {
		return nil
	}
	return r.Members[0].Member
}
