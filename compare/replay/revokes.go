package replay

import (
	"cmp"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// RevokeBurst is a run of lease revokes by one member in one term.
type RevokeBurst struct {
	Term, First, Last uint64
	Revokes           int
	Proposer          dumplog.ID
	// User is the one in the headers; empty where auth is off.
	User string
}

const (
	// burstGap is the maximum number of other entries between two revokes of a burst, burstMin the minimum number of
	// revokes in one.
	burstGap = 4
	burstMin = 3
	// maxBursts bounds what is kept from a log that revokes all the time.
	maxBursts = 1000
)

// noteRevoke adds a lease revoke to the burst that it continues, or begins one. Bursts that are too short to be
// significant are dropped.
func (s *Survey) noteRevoke(it *item) {
	if it.req.Kind != dumplog.KindLeaseRevoke {
		return
	}
	e, h := &it.entry, it.req.Header
	who := s.Proposer(h.ID)
	if n := len(s.Bursts); n > 0 {
		b := &s.Bursts[n-1]
		if b.Proposer == who && b.Term == e.Term && b.User == h.Username && e.Index-b.Last <= burstGap+1 {
			b.Last = e.Index
			b.Revokes++
			return
		}
		if b.Revokes < burstMin {
			s.Bursts = s.Bursts[:n-1]
		}
	}
	if len(s.Bursts) < maxBursts {
		s.Bursts = append(s.Bursts, RevokeBurst{Term: e.Term, First: e.Index, Last: e.Index, Revokes: 1,
			Proposer: who, User: h.Username})
	}
}

// LeaseTerm counts lease requests in one term: grants to users while auth was on, and revokes.
type LeaseTerm struct {
	Term, First, Last uint64
	Grants, Revokes   int
}

// noteLease counts grants and revokes by term.
func (s *Survey) noteLease(it *item) {
	grant, revoke := it.req.Kind == dumplog.KindLeaseGrant && it.req.Header.AuthRevision > 0,
		it.req.Kind == dumplog.KindLeaseRevoke
	if !grant && !revoke {
		return
	}
	e := &it.entry
	// One altered entry can raise the term: those after it have the lower one again
	n, ok := slices.BinarySearchFunc(s.LeaseTerms, e.Term, func(t LeaseTerm, term uint64) int {
		return cmp.Compare(t.Term, term)
	})
	if !ok {
		if len(s.LeaseTerms) >= maxBursts {
			return
		}
		s.LeaseTerms = slices.Insert(s.LeaseTerms, n, LeaseTerm{Term: e.Term, First: e.Index})
	}
	t := &s.LeaseTerms[n]
	t.Last = e.Index
	if grant {
		t.Grants++
	} else {
		t.Revokes++
	}
}
