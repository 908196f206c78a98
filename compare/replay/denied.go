package replay

import (
	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Beyond is an entry that took effect on a member although its user lacks the rights for an inner operation.
type Beyond struct {
	Term, Index uint64
	Pos         dumplog.Pos
	User        string
	// Key is the first key without permission, How the operation that reached it.
	Key, How string
	What     string
}

// maxBeyond bounds what is kept from a hostile log.
const maxBeyond = 1000

// beyondRights records a transaction that was applied although the rules refuse an inner operation. While an alarm is
// active, servers up to 3.5 check no permissions, so such a transaction is then no violation.
func (s *sim) beyondRights(it *item, p apply.Effect) {
	if p.Sure || p.Reason != ReasonPermission || it.req.Kind != dumplog.KindTxn || !s.Auth.Known || len(s.Alarms) > 0 ||
		len(s.res.Beyond) >= maxBeyond {
		return
	}
	for _, ops := range [][]dumplog.RequestOp{it.req.Txn.Success, it.req.Txn.Failure} {
		for _, op := range ops {
			if key, how := s.innerDenied(it.req.Header, op, 0); how != "" {
				s.res.Beyond = append(s.res.Beyond,
					Beyond{Term: it.entry.Term, Index: it.entry.Index, Pos: it.entry.Pos, User: it.req.Header.Username,
						Key: key, How: how,
						What: s.m.Describe(it.req)})
				return
			}
		}
	}
}

// innerDenied finds an operation that releases with the defect did not check: any operation of a nested transaction, a
// put that reads the previous value, and a put that attaches a lease whose keys the user must not write.
func (s *sim) innerDenied(h dumplog.Header, op dumplog.RequestOp, depth int) (key, how string) {
	denied := func(k, end []byte, write bool) bool { return s.Auth.Check(h, k, end, write) == ReasonPermission }
	switch {
	case depth > apply.MaxTxnDepth:
	case op.Txn != nil:
		for _, ops := range [][]dumplog.RequestOp{op.Txn.Success, op.Txn.Failure} {
			for _, inner := range ops {
				if key, how = s.innerDenied(h, inner, depth+1); how != "" {
					return key, how
				}
			}
		}
	case op.Put != nil:
		switch {
		case depth > 0 && denied(op.Put.Key, nil, true):
			return string(op.Put.Key), "put in a nested transaction"
		case op.Put.PrevKV && denied(op.Put.Key, nil, false):
			return string(op.Put.Key), "read of the previous value by a put"
		}
		for _, k := range s.Keys.OfLease(op.Put.Lease) {
			if op.Put.Lease != 0 && denied([]byte(k), nil, true) {
				return k, "put that shares the lease of the key"
			}
		}
	case op.DeleteRange != nil && depth > 0 && denied(op.DeleteRange.Key, op.DeleteRange.RangeEnd, true):
		return string(op.DeleteRange.Key), "delete in a nested transaction"
	case op.Range != nil && depth > 0 && denied(op.Range.Key, op.Range.RangeEnd, false):
		return string(op.Range.Key), "read in a nested transaction"
	}
	return "", ""
}

// ShutSpan is a span between two changes of auth. From some entry in it on, a member wrote nothing for users other than
// root, although they had permission.
type ShutSpan struct {
	// Begin is the auth entry before it, LastApplied the last entry of such a user that did take effect, 0 when none
	// did.
	Begin, LastApplied uint64
	// First and Last are the entries without effect, Missing their number. After counts the entries after First that
	// took effect.
	First, Last    uint64
	Missing, After int
}

// watchUsers follows which writes of users other than root took effect between two changes of auth.
func (s *sim) watchUsers(it *item, o Outcome) {
	r := it.req
	if r.Kind.ChangesAuth() {
		s.shut = ShutSpan{Begin: it.entry.Index}
		s.shutOpen = false
		return
	}
	if !s.Auth.Enabled || !s.Auth.Known || !apply.WritesKeys(r.Kind) || r.Header.AuthRevision == 0 ||
		s.Auth.IsRoot(r.Header.Username) {
		return
	}
	if o.State == Missing && s.staleRefuses(r) {
		s.res.Stale++
	}
	switch {
	case o.State == Missing && !s.shutOpen:
		s.shutOpen = true
		s.shut.First, s.shut.Last, s.shut.Missing = it.entry.Index, it.entry.Index, 1
		s.res.Shut = append(s.res.Shut, s.shut)
	case o.State == Missing:
		span := &s.res.Shut[len(s.res.Shut)-1]
		span.Last = it.entry.Index
		span.Missing++
	case o.State == Applied && s.shutOpen:
		s.res.Shut[len(s.res.Shut)-1].After++
	case o.State == Applied:
		s.shut.LastApplied = it.entry.Index
	}
}
