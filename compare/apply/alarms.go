package apply

import (
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// The alarms.
const (
	AlarmNone    = 0
	AlarmNoSpace = 1
	AlarmCorrupt = 2
)

const (
	alarmActivate   = 1
	alarmDeactivate = 2
)

// Alarm is one alarm of one member.
type Alarm struct {
	Member dumplog.ID
	Type   int32
}

// Alarms are the active alarms.
type Alarms map[Alarm]struct{}

// On reports whether any member has an active alarm of a type.
func (a Alarms) On(typ int32) bool {
	for x := range a {
		if x.Type == typ {
			return true
		}
	}
	return false
}

// ChangesAlarms reports whether the request raises or clears an alarm: it names one, and does not only ask.
func ChangesAlarms(r *dumplog.AlarmRequest) bool {
	return (r.Action == alarmActivate || r.Action == alarmDeactivate) && r.Alarm != AlarmNone
}

// Apply raises or clears an alarm. Raising an active alarm and clearing an inactive one change nothing
// (server/etcdserver/api/v3alarm).
func (a Alarms) Apply(r *dumplog.AlarmRequest) (changed bool) {
	k := Alarm{r.MemberID, r.Alarm}
	_, on := a[k]
	switch {
	case !ChangesAlarms(r):
	case r.Action == alarmActivate && !on:
		a[k] = struct{}{}
		return true
	case r.Action == alarmDeactivate && on:
		delete(a, k)
		return true
	}
	return false
}

// Check returns whether the alarms refuse a request. CORRUPT refuses all requests that read or write keys and leases,
// NOSPACE those that need space.
func (a Alarms) Check(v release.Version, r *dumplog.Request) Verdict {
	switch {
	case len(a) == 0:
		return Verdict{}
	case a.On(AlarmCorrupt):
		if r.Put != nil || r.Range != nil || r.DeleteRange != nil || r.Txn != nil || r.Compaction != nil ||
			r.LeaseGrant != nil || r.LeaseRevoke != nil {
			return Verdict{Reason: ReasonCorrupt}
		}
	case !a.On(AlarmNoSpace):
	case r.Put != nil, r.LeaseGrant != nil:
		return Verdict{Reason: ReasonNoSpace}
	case r.Txn != nil && cost(r.Txn, false, 0) > 0:
		return Verdict{Reason: ReasonNoSpace}
	case r.Txn != nil && cost(r.Txn, true, 0) > 0:
		return byRule(v, release.NestedPutsCost, func() Verdict { return Verdict{Reason: ReasonNoSpace} })
	}
	return Verdict{}
}

// MaxTxnDepth bounds the nesting of transactions in a hostile log; etcd itself bounds it only by the request size.
const MaxTxnDepth = 64

// cost returns the space that a transaction may need: that of its larger branch (server/etcdserver/quota.go).
func cost(t *dumplog.TxnRequest, nested bool, depth int) int {
	if depth > MaxTxnDepth {
		return 0
	}
	sum := func(ops []dumplog.RequestOp) int {
		n := 0
		for _, op := range ops {
			switch {
			case op.Put != nil:
				n += 256 + len(op.Put.Key) + len(op.Put.Value)
			case op.Txn != nil && nested:
				n += cost(op.Txn, nested, depth+1)
			}
		}
		return n
	}
	return max(sum(t.Success), sum(t.Failure))
}
