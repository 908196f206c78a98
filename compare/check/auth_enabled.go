package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/diff"
)

var authEnabledEqual = described(Check{
	ID:    A08,
	Needs: NeedDB | NeedTwo,
	Run: func(in *Input) Result {
		return in.contents().stateEqual(ClassLatentDivergence,
			func(row *diff.Row) bool { return string(row.Key) == "authEnabled" },
			"auth")
	},
})

// authWitness decides by the log which of two states of authEnabled is right.
func (rw *rowWitnesses) authWitness(row *diff.Row, at []int) []witness {
	want, why := rw.authByLog(at)
	if want == "" {
		return nil
	}
	var out []witness
	for _, pos := range at {
		if cellOr(row.Cells[pos], "false") != want {
			out = append(out, witness{pos, why, want, false})
		}
	}
	return out
}

// authByLog says whether auth is on after the entries that all of them have applied, "" when the log does not show it.
func (rw *rowWitnesses) authByLog(at []int) (enabled, why string) {
	s, applied := rw.Replay.Survey, rw.Members.databases().appliedByAll(at)
	last, offAt := uint64(0), uint64(0)
	for _, sw := range s.AuthSwitches() {
		if sw.Index > applied {
			break
		}
		last, offAt = sw.Index, 0
		enabled, why = "", ""
		if !sw.On {
			offAt = sw.AuthRevision
		}
		if !sw.On && sw.ByRoot {
			enabled, why = "false", fmt.Sprintf("root turned auth off in entry %d", sw.Index)
		}
	}
	// A member puts its auth revision into the requests that it proposes only while auth is on for it. After an entry
	// that turns it off, requests still come that were proposed before that was applied: these name no revision above
	// the one in its header, which it raises.
	by, newest := "", uint64(0)
	voters := 0
	for _, m := range rw.Members {
		at := s.LastStamp(m.MemberID)
		if m.MemberID == 0 || at <= last || at > applied || s.StampAt(m.MemberID, at) <= offAt {
			continue
		}
		voters++
		if at > newest {
			by, newest = m.Label(), at
		}
	}
	if !rw.Replay.Covers(max(last, newest), applied) {
		return "", "" // auth may have been switched since
	}
	if newest == 0 {
		return enabled, why
	}
	if !rw.stampedByOff(at, last, applied) && voters < 2 && last == 0 {
		return "", "" // the proposer's own state may be wrong
	}
	return "true", fmt.Sprintf("auth was on for %s when it proposed entry %d, and no entry turned it off since", by,
		newest)
}

// stampedByOff reports whether a member for which auth is off now proposed with an auth revision after the last switch.
func (rw *rowWitnesses) stampedByOff(at []int, last, applied uint64) bool {
	return slices.ContainsFunc(at, func(pos int) bool {
		m := rw.Members[pos]
		stamp := rw.Replay.Survey.LastStamp(m.MemberID)
		return m.MemberID != 0 && !m.DB.Auth.Enabled && stamp > last && stamp <= applied
	})
}
