package replay

import (
	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// gap is a span of the log that a received snapshot let the member skip.
type gap struct{ from, to uint64 }

// gaps lists the member's received snapshots with what they skipped.
func (lv *logView) gaps() []gap {
	var out []gap
	if w := &lv.m.WAL; w.Present() {
		for _, j := range w.Summary.Jumps {
			out = append(out, gap{j.From, j.To})
		}
	}
	return out
}

// rememberRights keeps the users and roles from before a received snapshot: releases up to 3.4.21 and 3.5.5 kept using
// their cached permissions. The next change of auth rebuilds them.
func (ri *rights) rememberRights(it *item) {
	idx := it.entry.Index
	for len(ri.skipped) > 0 && idx > ri.skipped[0].to {
		ri.skipped = ri.skipped[1:]
		ri.staleFrom = idx
	}
	switch {
	case len(ri.skipped) > 0 && idx >= ri.skipped[0].from:
		if ri.stale == nil || ri.staleFrom != 0 {
			ri.stale, ri.staleFrom = ri.Auth.Clone(), 0
		}
	case ri.staleFrom != 0 && it.req.Kind.ChangesAuth():
		ri.stale, ri.staleFrom = nil, 0
	}
}

// staleRefuses reports whether the rights from before the snapshot refuse what the database lacks.
func (ri *rights) staleRefuses(r *dumplog.Request) bool {
	if ri.stale == nil || ri.staleFrom == 0 || !ri.Auth.Known {
		return false
	}
	now := ri.Auth
	ri.Auth = ri.stale
	p := ri.Evaluate(r)
	ri.Auth = now
	return p.Result == apply.Refused && p.Reason == ReasonPermission
}
