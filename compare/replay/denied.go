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

// rights follows what users may do, where servers and rules can disagree.
type rights struct {
	*subject
	// skipped are the gaps that received snapshots bridge, still ahead; stale are the users and roles from before the
	// last one, in use by the member's cache since index staleFrom (0: not yet).
	skipped   []gap
	stale     *apply.Auth
	staleFrom uint64
	// shut is the stretch since the last change of auth; shutOpen is true once it is filed in the result.
	shut     ShutSpan
	shutOpen bool
}

// beyondRights records a transaction that was applied although the rules refuse an inner operation. While an alarm is
// active, servers up to 3.5 check no permissions, so such a transaction is then no violation.
func (ri *rights) beyondRights(it *item, p apply.Effect) {
	if p.Sure || p.Reason != ReasonPermission || it.req.Kind != dumplog.KindTxn || !ri.Auth.Known ||
		len(ri.Alarms) > 0 ||
		len(ri.res.Beyond) >= maxBeyond {
		return
	}
	for _, ops := range [][]dumplog.RequestOp{it.req.Txn.Success, it.req.Txn.Failure} {
		for _, op := range ops {
			if key, how := ri.innerDenied(it.req.Header, op, 0); how != "" {
				ri.res.Beyond = append(ri.res.Beyond,
					Beyond{Term: it.entry.Term, Index: it.entry.Index, User: it.req.Header.Username,
						Key: key, How: how,
						What: ri.m.Describe(it.req)})
				return
			}
		}
	}
}

// innerDenied finds an operation that releases with the defect did not check: any operation of a nested transaction, a
// put that reads the previous value, and a put that attaches a lease whose keys the user must not write.
func (ri *rights) innerDenied(h dumplog.Header, op dumplog.RequestOp, depth int) (key, how string) {
	denied := func(k, end []byte, write bool) bool { return ri.Auth.Check(h, k, end, write) == ReasonPermission }
	switch {
	case depth > apply.MaxTxnDepth:
	case op.Txn != nil:
		for _, ops := range [][]dumplog.RequestOp{op.Txn.Success, op.Txn.Failure} {
			for _, inner := range ops {
				if key, how = ri.innerDenied(h, inner, depth+1); how != "" {
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
		for _, k := range ri.Keys.OfLease(op.Put.Lease) {
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
func (ri *rights) watchUsers(it *item, o Outcome) {
	r := it.req
	if r.Kind.ChangesAuth() {
		ri.shut = ShutSpan{Begin: it.entry.Index}
		ri.shutOpen = false
		return
	}
	if !ri.Auth.Enabled || !ri.Auth.Known || !apply.WritesKeys(r.Kind) || r.Header.AuthRevision == 0 ||
		ri.Auth.IsRoot(r.Header.Username) {
		return
	}
	if o.State == Missing && ri.staleRefuses(r) {
		ri.res.Stale++
	}
	switch {
	case o.State == Missing && !ri.shutOpen:
		ri.shutOpen = true
		ri.shut.First, ri.shut.Last, ri.shut.Missing = it.entry.Index, it.entry.Index, 1
		ri.res.Shut = append(ri.res.Shut, ri.shut)
	case o.State == Missing:
		span := &ri.res.Shut[len(ri.res.Shut)-1]
		span.Last = it.entry.Index
		span.Missing++
	case o.State == Applied && ri.shutOpen:
		ri.res.Shut[len(ri.res.Shut)-1].After++
	case o.State == Applied:
		ri.shut.LastApplied = it.entry.Index
	}
}
