package replay

import (
	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// gap is a span of the log that a received snapshot let the member skip.
type gap struct{ from, to uint64 }

// gaps lists the member's received snapshots with what they skipped.
func (s *sim) gaps() []gap {
	var out []gap
	if w := &s.m.WAL; w.Present() {
		for _, j := range w.Summary.Jumps {
			out = append(out, gap{j.From, j.To})
		}
	}
	return out
}

// rememberRights keeps the users and roles from before a received snapshot: releases up to 3.4.21 and 3.5.5 kept using
// their cached permissions. The next change of auth rebuilds them.
func (s *sim) rememberRights(it *item) {
	idx := it.entry.Index
	for len(s.skipped) > 0 && idx > s.skipped[0].to {
		s.skipped = s.skipped[1:]
		s.staleFrom = idx
	}
	switch {
	case len(s.skipped) > 0 && idx >= s.skipped[0].from:
		if s.stale == nil || s.staleFrom != 0 {
			s.stale, s.staleFrom = s.Auth.Clone(), 0
		}
	case s.staleFrom != 0 && it.req.Kind.ChangesAuth():
		s.stale, s.staleFrom = nil, 0
	}
}

// staleRefuses reports whether the rights from before the snapshot refuse what the database lacks.
func (s *sim) staleRefuses(r *dumplog.Request) bool {
	if s.stale == nil || s.staleFrom == 0 || !s.Auth.Known {
		return false
	}
	now := s.Auth
	s.Auth = s.stale
	p := s.Evaluate(r)
	s.Auth = now
	return p.Result == apply.Refused && p.Reason == ReasonPermission
}
