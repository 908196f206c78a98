package replay

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// WritesKeys tells the requests whose effect is a revision in bucket key.
func WritesKeys(k dumplog.Kind) bool { return writesKeys(k) }

// TouchedBuckets lists the buckets other than key that a request can change.
func TouchedBuckets(r *dumplog.Request) []string { return touches(r) }

// Step is what the rules say of an entry before it is executed.
type Step struct {
	Entry  Entry
	State  State
	Reason Reason
	// Sure is false where the outcome depends on what neither log nor database tell: the patch release, or whether a client was
	// waiting on the member.
	Sure   bool
	writes []write
}

// Writes tells how many records of bucket key the step writes.
func (s *Step) Writes() int { return len(s.writes) }

// Touches tells whether the step writes or deletes the key.
func (s *Step) Touches(key string) bool {
	return slices.ContainsFunc(s.writes, func(w write) bool { return w.key == key })
}

// Effects is a hash of what the step writes, independent of revisions; 0 when it writes nothing.
func (s *Step) Effects() uint64 {
	if len(s.writes) == 0 {
		return 0
	}
	g := &group{}
	for _, w := range s.writes {
		g.records = append(g.records, record{key: w.key, del: w.del, vhash: w.vhash, lease: w.lease})
	}
	return g.sig()
}

// Prepare says what an entry that writes keys will do. Other entries are judged by Apply alone; for them the step says no effect.
func (m *Machine) Prepare(e Entry) Step {
	st := Step{Entry: e, State: NoEffect, Sure: true}
	if !writesKeys(e.Req.Kind) {
		return st
	}
	p := m.s.predict(e.Req)
	st.State, st.Reason, st.writes = p.state, p.reason, p.writes
	st.Sure = (p.sure || m.plainRefusal(e.Req, p.reason)) && !m.deniedRange(e.Req)
	return st
}

// plainRefusal: what permissions say of puts and deletes without a lease has never changed, and users and roles are known here.
// Nested transactions were not checked before 3.4.42, 3.5.28 and 3.6.11.
func (m *Machine) plainRefusal(r *dumplog.Request, reason Reason) bool {
	if reason != ReasonPermission && reason != ReasonUserEmpty || len(m.s.alarms) > 0 && m.s.minor < 6 || r.LeaseRevoke != nil {
		return false
	}
	plain := true
	if r.Txn != nil {
		for _, ops := range [][]dumplog.RequestOp{r.Txn.Success, r.Txn.Failure} {
			plain = plain && !slices.ContainsFunc(ops, func(op dumplog.RequestOp) bool { return op.Txn != nil })
		}
	}
	r.EachOp(func(op dumplog.RequestOp) { plain = plain && (op.Put == nil || op.Put.Lease == 0) })
	return plain
}

// deniedRange tells whether the member with the waiting client refuses a transaction for a range that all others drop unseen.
func (m *Machine) deniedRange(r *dumplog.Request) bool {
	if !m.s.strips || r.Txn == nil || r.Kind != dumplog.KindTxn {
		return false
	}
	for _, ops := range [][]dumplog.RequestOp{r.Txn.Success, r.Txn.Failure} {
		for _, op := range ops {
			if op.Range != nil && m.s.auth.check(r.Header, op.Range.Key, op.Range.RangeEnd, false) != ReasonNone {
				return true
			}
		}
	}
	return false
}
