package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/release"
)

// authBounds are the lowest and the highest auth revision that a member can have according to the headers of requests.
// A member puts its auth revision, which never falls, into the header of the requests that it proposes. It refuses
// requests with a lower one, so a request that took effect is an upper bound. Each auth entry after it raises the auth
// revision by one at most.
type authBounds struct {
	low, high uint64
	// lowAt and highAt are the entries that show it, 0 where none does.
	lowAt, highAt uint64
}

// bounds reads the bounds of the member at a position.
func (in authRevisions) bounds(pos int) (b authBounds) {
	m, sv, atMost := in.Members[pos], in.Replay.Survey, in.Replay.Members[pos].AuthAtMost
	if sv == nil {
		return b
	}
	for _, st := range sv.Stamps[m.MemberID] {
		if st.Index <= m.AppliedMin && st.AuthRevision > b.low {
			b.low, b.lowAt = st.AuthRevision, st.Index
		}
	}
	if atMost.Index == 0 || !m.Version.Follows(release.IndexWithAuth) ||
		m.Version.MayFollow(release.DefragLosesIndex) ||
		slices.ContainsFunc(sv.AuthSwitches(), func(s replay.AuthSwitch) bool { return !s.On }) ||
		!in.Replay.Covers(atMost.Index, m.AppliedMax) {
		return b // a restart may have raised it, auth was off for a time, or no log holds the entries that raise it
	}
	b.high, b.highAt = atMost.AuthRevision, atMost.Index
	for _, e := range sv.Auth {
		if e.Index > atMost.Index && e.Index <= m.AppliedMax {
			b.high++
		}
	}
	return b
}

// stampFinding is the finding of a member whose auth revision contradicts the headers of requests, nil when none
// does.
func (in authRevisions) stampFinding(pos int) *Finding {
	m := in.Members[pos]
	b, have := in.bounds(pos), m.DB.Auth.Revision
	f := &Finding{Kind: KindAuthRevisionBelowStamp, Severity: Critical, Members: []string{m.Label()},
		Class: ClassLatentDivergence, Refs: refsAuthReplay}
	show := func(at, stamped uint64, expected string) {
		f.At = At{Index: at, Term: in.Members.logs().termAt(at)}
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: m.DB.File, Bucket: "auth",
			Key: Bytes("authRevision"), Field: "authRevision",
			Observed: fmt.Sprint(have), Expected: expected, Show: showDB(m, "auth")},
			Evidence{Member: m.Label(), Field: fmt.Sprintf("entry %d", at),
				Observed: fmt.Sprintf("auth revision %d in the header", stamped), Show: showLog(m, at)})
	}
	switch {
	case b.lowAt != 0 && have < b.low:
		f.Title = fmt.Sprintf("%s holds auth revision %d, but stamped %d on its own request", m.Label(), have,
			b.low)
		f.Explanation = "a member stamps requests with its auth revision, which never falls"
		show(b.lowAt, b.low, fmt.Sprintf("at least %d", b.low))
	case b.highAt != 0 && have > b.high:
		f.Kind = KindAuthRevisionTooHigh
		f.Title = fmt.Sprintf("%s holds auth revision %d; the log allows %d at most", m.Label(), have, b.high)
		f.Explanation = "a member refuses requests stamped with an auth revision below its own, and each auth entry " +
			"after one that took effect raises it by one at most"
		show(b.highAt, in.Replay.Members[pos].AuthAtMost.AuthRevision, fmt.Sprintf("at most %d", b.high))
	default:
		return nil
	}
	return f
}
