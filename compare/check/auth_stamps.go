package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
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
	altered := in.alteredStamp()
	for _, st := range sv.Stamps[m.MemberID] {
		if st.Index <= m.AppliedMin && st.AuthRevision > b.low && (altered == nil || altered.at != st) {
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

// alteredStamp is an auth revision in a header that the proposer cannot have stamped: while it ran it stamped a lower
// one later.
type alteredStamp struct {
	proposer  dumplog.ID
	at, later replay.Stamp
	// log is the position of the only member whose log holds the entry.
	log int
}

// alteredStamp finds the stamp that only one log holds, that is above all others and above the auth revision of every
// database, and that the same process of the proposer contradicts; nil if there is none. Clients with tokens that carry
// a revision (JWT) have older ones stamped, never one that no member had.
func (in authRevisions) alteredStamp() *alteredStamp {
	if in.Replay == nil || in.Replay.Survey == nil {
		return nil
	}
	sv := in.Replay.Survey
	var x *alteredStamp
	highest, several := uint64(0), false
	for _, id := range sortedGroup(sv.Stamps) {
		list := sv.Stamps[id]
		for i, st := range list {
			switch {
			case st.AuthRevision < highest:
				continue
			case st.AuthRevision == highest:
				several = true
				continue
			}
			highest, several, x = st.AuthRevision, false, nil
			if i+1 < len(list) {
				x = &alteredStamp{proposer: id, at: st, later: list[i+1]}
			}
		}
	}
	if several || x == nil || in.restartedBetween(x) || !in.Replay.Covers(x.at.Index, x.later.Index) ||
		!in.belowEverywhere(x.at) {
		return nil
	}
	x.log = in.onlyLogWith(x.at.Index)
	if x.log < 0 {
		return nil
	}
	return x
}

func (in authRevisions) restartedBetween(x *alteredStamp) bool {
	return slices.ContainsFunc(in.Replay.Survey.Starts[x.proposer],
		func(s replay.Start) bool { return s.Index > x.at.Index && s.Index <= x.later.Index })
}

// belowEverywhere reports whether the databases that have applied the entry show lower auth revisions than its stamp.
func (in authRevisions) belowEverywhere(st replay.Stamp) bool {
	shown := false
	for _, m := range in.Members {
		if !m.HasDB() || !m.DB.Auth.HasRevision || m.AppliedMin < st.Index {
			continue
		}
		if m.DB.Auth.Revision >= st.AuthRevision {
			return false
		}
		shown = true
	}
	return shown
}

// onlyLogWith is the position of the only member whose log holds an entry at the index, -1 if several do.
func (in authRevisions) onlyLogWith(index uint64) int {
	only := -1
	for i, m := range in.Members {
		if !m.HasWAL() || !m.WAL.Holds(index) {
			continue
		}
		if only >= 0 {
			return -1
		}
		only = i
	}
	return only
}

// alteredStampOf is the finding about an altered stamp in the log of a member, nil if there is none.
func (in authRevisions) alteredStampOf(m *evidence.Member) *Finding {
	x := in.alteredStamp()
	if x == nil || in.Members[x.log] != m {
		return nil
	}
	f := &Finding{Kind: KindStampAltered, Severity: Error, Class: ClassWALDamage, Members: []string{m.Label()},
		At:    At{Term: m.WAL.TermAt(x.at.Index), Index: x.at.Index},
		Title: fmt.Sprintf("%s: the auth revision stamped on entry %d was altered", m.Label(), x.at.Index),
		Explanation: fmt.Sprintf("member %s stamps requests with its auth revision, which never falls. On entry "+
			"%d, without a restart in between, it stamped %d. No database and no other stamp is as high as %d, "+
			"and no other log holds the entry", x.proposer, x.later.Index, x.later.AuthRevision,
			x.at.AuthRevision)}
	in.add(f, func() Evidence {
		return in.inLog(Evidence{Field: fmt.Sprintf("entry %d", x.at.Index),
			Observed: fmt.Sprintf("auth revision %d in the header", x.at.AuthRevision),
			Expected: fmt.Sprintf("at most %d", x.later.AuthRevision)}, x.log, x.at.Index)
	})
	return f
}
