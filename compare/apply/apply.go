// Package apply is what etcd does with an entry: the rules of requests, transactions, auth, permissions, leases, alarms
// and membership on plain state, without a database or a log. Model.Evaluate says what a request does to the keys,
// Model.Take and Model.Execute do it; what is not known of the state makes an effect uncertain. Replay predicts with
// it, rebuild executes with it, evidence follows conf changes with it. What differs by release is asked of package
// release.
//
// Sources: server/etcdserver/apply*.go, server/etcdserver/txn, server/auth/store.go, server/lease/lessor.go,
// server/etcdserver/api/membership/cluster.go.
package apply

import "github.com/etcd-medic/etcd-medic/release"

// Reason says why an entry was refused or had no effect.
type Reason string

// The reasons etcd has to refuse an entry, in the order in which it looks.
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

// Verdict is what the permission rules say of a request. Rule is set where only some of the possible releases have the
// rule that refuses it: then the request may have been executed as well.
type Verdict struct {
	Reason Reason
	Rule   *release.Rule
}

// Refused tells whether the request is refused, for certain or not.
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
