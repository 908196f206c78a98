// Package apply models how etcd executes an entry: the rules of requests, transactions, auth, permissions, leases,
// alarms and membership on plain state, without a database or a log. Model.Evaluate returns what a request does to the
// keys; Model.Take and Model.Execute change the state. Unknown state makes an effect uncertain. Replay predicts with
// it, rebuild executes with it, and evidence follows conf changes with it. Package release knows what differs by
// release.
//
// Sources: server/etcdserver/apply*.go, server/etcdserver/txn, server/auth/store.go, server/lease/lessor.go,
// server/etcdserver/api/membership/cluster.go.
package apply

import "github.com/etcd-medic/etcd-medic/release"

// Reason says why an entry was refused or had no effect.
type Reason string

// etcd's reasons to refuse an entry, in the order of its checks.
const (
	ReasonNone        Reason = ""
	ReasonOldAuth     Reason = "old auth revision"
	ReasonPermission  Reason = "permission denied"
	ReasonUserEmpty   Reason = "user name is empty"
	ReasonNoSpace     Reason = "NOSPACE alarm"
	ReasonCorrupt     Reason = "CORRUPT alarm"
	ReasonLease       Reason = "lease not found"
	ReasonLeaseExists Reason = "lease already exists"
	ReasonKey         Reason = "key not found"
	ReasonCompacted   Reason = "revision compacted"
	ReasonFuture      Reason = "future revision"
	ReasonInvalid     Reason = "invalid request"
)

// Verdict is the result of the permission rules for a request. Rule is set if only some of the possible releases have
// the rule that refuses it; the request may then have been executed.
type Verdict struct {
	Reason Reason
	Rule   *release.Rule
}

// Refused reports whether the request is refused, certainly or possibly.
func (v Verdict) Refused() bool { return v.Reason != ReasonNone }

// byRule makes a check that only releases with a rule make.
func byRule(v release.Version, rule *release.Rule, check func() Verdict) Verdict {
	return byAnswer(v.Has(rule), rule, check)
}

func byAnswer(has release.Answer, rule *release.Rule, check func() Verdict) Verdict {
	if has.Excluded() {
		return Verdict{}
	}
	out := check()
	if out.Refused() && !has.Certain() {
		out.Rule = rule
	}
	return out
}
