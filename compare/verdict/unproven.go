package verdict

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

// unproven says why it is not proven that keeping a member loses nothing, although nothing is known to be lost. Empty:
// it is proven, as far as the committed entries that the sources can hold.
func (rk *ranking) unproven(pos int) (why []string) {
	if n := len(rk.Unread); n > 0 {
		why = append(why, fmt.Sprintf("%s could not be read", plural.Of(n, "source", "sources")))
	}
	if s := rk.absentMajority(pos); s != "" {
		why = append(why, s)
	}
	if s := rk.withoutLogs(); s != "" {
		why = append(why, s)
	}
	for i, m := range rk.Members {
		if i != pos && m.Source.Kind == evidence.KindDataDir && !rk.comparedWith(pos, i) {
			why = append(why, fmt.Sprintf("the keys of %s could not be compared with those of %s, nor with its own log",
				m.Label(), rk.Members[pos].Label()))
		}
	}
	if rk.keysDifferUntold() {
		why = append(why, "keys differ between members, and the log does not show which member lacks what")
	}
	return why
}

// withoutLogs says in one line what snapshots of running members do not prove, "" when a source is not such a snapshot
// or has a log.
func (in *Input) withoutLogs() string {
	for _, m := range in.Members {
		if m.HasLog() || m.Source.Kind != evidence.KindEndpoint {
			return ""
		}
	}
	return "no source has a log, so it is unknown which writes were acknowledged, and what members hold that " +
		"their snapshots do not show (etcd-medic collect copies a running member with its log)"
}

// absentMajority: what a majority of voters has committed is in the log of at least one of any majority; fewer logs may
// not have it, and a log that ends too early may not either.
func (rk *ranking) absentMajority(pos int) string {
	ms := &rk.Members[pos].Membership
	if len(ms.Voters) == 0 {
		return ""
	}
	var here, short []dumplog.ID
	for _, m := range rk.Members {
		switch {
		case !m.HasLog() || !slices.Contains(ms.Voters, m.MemberID) || slices.Contains(here, m.MemberID):
		case rk.lostLogEnd(m.Label()):
			short = append(short, m.MemberID)
		default:
			here = append(here, m.MemberID)
		}
	}
	slices.Sort(short)
	short = slices.DeleteFunc(slices.Compact(short), func(id dumplog.ID) bool { return slices.Contains(here, id) })
	need := len(ms.Voters)/2 + 1
	switch {
	case len(here) >= need:
		return ""
	case len(here)+len(short) >= need:
		return fmt.Sprintf("the logs of %d of %d voters end before what is committed, or may have lost their ends; %d "+
			"whole logs are needed: what else was committed is not known", len(short), len(ms.Voters), need)
	}
	return fmt.Sprintf("the logs of %d of %d voters are given, and %d are needed: the others may have "+
		"committed more", len(here)+len(short), len(ms.Voters), need)
}

// lostLogEnd reports whether a finding says that the member's log lost entries which it had acknowledged, or ends below
// what is committed for a reason that is not known.
func (rk *ranking) lostLogEnd(label string) bool {
	return slices.ContainsFunc(rk.Findings, func(f check.Finding) bool {
		return (f.Check == check.R07 || f.Class == check.ClassMemberLostData && f.Kind != check.KindDBRemoved) &&
			slices.Contains(f.Members, label)
	})
}

// comparedWith reports whether what another member holds was compared with a member, directly or by the log that both
// follow.
func (rk *ranking) comparedWith(pos, other int) bool {
	if d := rk.Diff; d != nil && d.TookPart("key", pos) && d.TookPart("key", other) {
		if b := d.Find("key"); b != nil && b.Equal != release.Unknown {
			return true
		}
	}
	rp := rk.Replay
	return !rk.Members[other].HasDB() || rp != nil && rp.Members[other].Checked
}

// keysDifferUntold reports whether the comparison shows differing keys that the replay does not explain.
func (rk *ranking) keysDifferUntold() bool {
	if rk.Diff == nil {
		return false
	}
	b := rk.Diff.Find("key")
	if b == nil || !b.Equal.Excluded() {
		return false
	}
	told := rk.toldByLog()
	return slices.ContainsFunc(b.Rows, func(row diff.Row) bool {
		return !row.SameContent && !told[string(row.Key)] &&
			!rk.replayed(&row)
	})
}
