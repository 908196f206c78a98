package replay

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// WritesKeys reports whether the effect of requests of a kind is a revision in bucket key.
func WritesKeys(k dumplog.Kind) bool { return apply.WritesKeys(k) }

// TouchedBuckets lists the buckets other than key that a request can change.
func TouchedBuckets(r *dumplog.Request) []string { return touches(r) }

// Step is the predicted outcome of an entry before it is executed.
type Step struct {
	Entry  Entry
	State  State
	Reason Reason
	// Sure is false where the outcome depends on something that neither log nor database shows: the patch release, or
	// whether a client was waiting on the member.
	Sure bool
	// Rule is the rule on which the possible releases of the servers disagree; nil when they agree.
	Rule   *release.Rule
	writes []apply.Write
}

// Writes returns the number of records that the step writes to bucket key.
func (s *Step) Writes() int { return len(s.writes) }

// Touches reports whether the step writes or deletes the key.
func (s *Step) Touches(key string) bool {
	return slices.ContainsFunc(s.writes, func(w apply.Write) bool { return w.Key == key })
}

// SameRecords reports whether two steps write records of the same keys, in the same order, and the same of each.
func (s *Step) SameRecords(o *Step) bool {
	return len(s.writes) > 0 && slices.EqualFunc(s.writes, o.writes, func(a, b apply.Write) bool {
		return a.Key == b.Key && a.Delete == b.Delete && a.Sum == b.Sum && a.Lease == b.Lease
	})
}

// Effects is a hash of what the step writes, independent of revisions; 0 when it writes nothing.
func (s *Step) Effects() uint64 {
	if len(s.writes) == 0 {
		return 0
	}
	g := &group{}
	for _, w := range s.writes {
		g.records = append(g.records, record{key: w.Key, del: w.Delete, vhash: w.Sum, lease: w.Lease})
	}
	return g.sig()
}

// Prepare says what an entry that writes keys will do. Other entries are judged by Apply alone: for them the step says
// no effect, and whether releases disagree.
func (m *Machine) Prepare(e Entry) Step {
	st := Step{Entry: e, State: NoEffect, Sure: true}
	if !apply.WritesKeys(e.Req.Kind) {
		if st.Rule = m.s.Auth.Undecided(e.Req); st.Rule != nil {
			st.State, st.Sure = Applied, false
		}
		return st
	}
	p := m.s.Evaluate(e.Req)
	st.State, st.Reason, st.Rule, st.writes = stateOf(p.Result), p.Reason, p.Rule, p.Writes
	st.Sure = (p.Sure || m.plainRefusal(&p)) && !m.deniedRange(e.Req)
	return st
}

// PrepareAs is Prepare by the rules of another version.
func (m *Machine) PrepareAs(e Entry, v release.Version) Step {
	own := m.s.Version
	m.s.Version, m.s.Auth.Version = v, v
	defer func() { m.s.Version, m.s.Auth.Version = own, own }()
	return m.Prepare(e)
}

// Version is that of the servers whose rules apply.
func (m *Machine) Version() release.Version { return m.s.Version }

// plainRefusal: users and roles are known here, so a refusal by permission is certain where releases agree on it,
// unless an alarm took the checks away.
func (m *Machine) plainRefusal(p *apply.Effect) bool {
	return p.Plain && m.s.ChecksPermissions() && (p.Reason == ReasonPermission || p.Reason == ReasonUserEmpty)
}

// deniedRange reports whether the member with the waiting client refuses a transaction for a range that all others drop
// unseen.
func (m *Machine) deniedRange(r *dumplog.Request) bool {
	if !m.s.KeepsRanges().Excluded() || r.Txn == nil || r.Kind != dumplog.KindTxn {
		return false
	}
	for _, ops := range [][]dumplog.RequestOp{r.Txn.Success, r.Txn.Failure} {
		for _, op := range ops {
			if op.Range != nil && m.s.Auth.Check(r.Header, op.Range.Key, op.Range.RangeEnd, false) != ReasonNone {
				return true
			}
		}
	}
	return false
}
