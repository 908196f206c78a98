package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

var leaseRevokeWithoutToken = described(Cause{
	ID:    LeaseRevokeWithoutTokenMixed3233,
	Match: matchLeaseRevoke,
})

func matchLeaseRevoke(in *Input) *Match {
	first := firstRevokeThatParts(in)
	if first == nil || first.User != "" {
		return nil
	}
	m := &Match{Certainty: Strong, RefutedBy: "a user in the header of that entry; an entry before it that ended " +
		"differently; a member that refused it and runs 3.2"}
	for i, o := range first.Outcomes {
		if o.State != replay.Refused || o.Reason != replay.ReasonUserEmpty {
			continue
		}
		if versionAt(in, i, first.Index).Has(release.RevokeWithoutUser).Excluded() {
			return nil
		}
		m.Members = append(m.Members, in.Members[i].Label())
	}
	if len(m.Members) == 0 {
		return nil
	}
	m.Because = ids(in, check.L03, check.L01, check.K02, check.K01)
	return m
}

// versionAt is the cluster version that the log had set at an index. If the log sets none, it is the version that last
// wrote the member.
func versionAt(in *Input, pos int, index uint64) release.Version {
	version := in.Members[pos].Version.Release()
	if in.Replay.Survey == nil {
		return version
	}
	for _, set := range in.Replay.Survey.VersionsFor(pos) {
		if v := release.Of(set.Version); set.Index < index && v.Known() {
			version = release.AnyOf(v.Minor())
		}
	}
	return version
}

// firstRevokeThatParts returns the lease revoke from which on the members' contents differ. It is nil when another
// entry came first or a database contradicts the log.
func firstRevokeThatParts(in *Input) *replay.Event {
	if in.Replay == nil || !in.found(check.L03) || in.found(check.R01, check.A01) {
		return nil
	}
	for _, r := range in.Replay.Members {
		if r.FirstBad() != nil || len(r.Extra) > 0 {
			return nil
		}
	}
	at := in.Findings[check.L03][0].At.Index
	for _, e := range in.Replay.Events {
		switch {
		case e.Index == at && e.Kind == dumplog.KindLeaseRevoke:
			return e
		case e.Index < at && len(e.Lacking) > 0:
			return nil
		}
	}
	return nil
}
