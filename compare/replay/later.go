package replay

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// laterMustHave reports whether the next entry ahead that can have written the next records certainly wrote just these,
// whether or not the current one did. If all releases refuse the current one, it is enough that the rules may allow the
// later one: a client that was refused proposes the same again, as another user.
func (ma *matcher) laterMustHave(p apply.Effect, ahead []*item) bool {
	g, refused := ma.cur.peek(0), p.Result == apply.Refused && p.Plain
	for i, a := range ahead {
		own := ma.versionFor(a, g)
		if own.entry.Index > ma.m.AppliedMin {
			break
		}
		if own.err == nil && apply.WritesKeys(own.req.Kind) && ma.couldWriteLater(own.req, g, ahead[:i]) {
			q := ma.Evaluate(own.req)
			if refused && !q.Sure {
				return !q.Plain
			}
			return q.Sure && len(q.Writes) > 0 && matches(q.Writes, g) && (refused || unguarded(own.req))
		}
		// Otherwise keys or rights may no longer be as they are now.
		refused = refused && own.err == nil && !apply.WritesKeys(own.req.Kind) && !own.req.Kind.ChangesAuth()
	}
	return false
}

// unguarded reports whether the effect of a request depends on no key.
func unguarded(r *dumplog.Request) bool {
	if r.Txn != nil {
		return len(r.Txn.Compare) == 0 && !slices.ContainsFunc(r.Txn.Success, func(op dumplog.RequestOp) bool {
			return op.Put == nil || keeps(op.Put)
		})
	}
	return r.Put != nil && !keeps(r.Put)
}
