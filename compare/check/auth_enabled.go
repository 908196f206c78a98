package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/diff"
)

var authEnabledEqual = Check{
	ID: "A08", Title: "auth is on for all members or for none",
	Doc: `Whether auth is on (bucket auth, key authEnabled) follows from the entries that turn it on and off. A member for which it is off lets
every client in and refuses nothing, so its keys part from the others' with the first request that they refuse; one for which it is on
alone refuses what the others apply.
The wrong member is named where the log holds the last switch, or where a member proposed requests with an auth revision in their header,
which it does only while auth is on for it, and no entry turned auth off since.
Normal: members between whose applied indexes an entry turns auth on or off.`,
	Needs: NeedDB | NeedTwo,
	Run: func(in *Input) Result {
		return in.stateEqual("latent-divergence", func(row *diff.Row) bool { return string(row.Key) == "authEnabled" },
			"auth")
	},
}

// authWitness tells by the log which of two states of authEnabled is right.
func (in *Input) authWitness(row *diff.Row, at []int) []witness {
	want, why := in.authByLog(at)
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

// authByLog says whether auth is on after what all of them have applied, "" when the log does not tell.
func (in *Input) authByLog(at []int) (enabled, why string) {
	s, applied := in.Replay.Survey, in.appliedByAll(at)
	last := uint64(0)
	for _, sw := range s.AuthSwitches() {
		if sw.Index > applied {
			break
		}
		last = sw.Index
		enabled, why = "", ""
		if !sw.On && sw.ByRoot {
			enabled, why = "false", fmt.Sprintf("root turned auth off in entry %d", sw.Index)
		}
	}
	// A member stamps its auth revision into what it proposes only while auth is on for it.
	by, newest := "", uint64(0)
	voters := 0
	for _, m := range in.Members {
		at := s.LastStamp(m.MemberID)
		if m.MemberID == 0 || at <= last || at > applied {
			continue
		}
		voters++
		if at > newest {
			by, newest = m.Label(), at
		}
	}
	if newest == 0 {
		return enabled, why
	}
	if !in.stampedByOff(at, last, applied) && voters < 2 && last == 0 {
		return "", "" // the one that proposed may be the one that is wrong
	}
	return "true", fmt.Sprintf("auth was on for %s when it proposed entry %d, and no entry turned it off since", by,
		newest)
}

// stampedByOff tells whether a member for which auth is off now proposed with an auth revision after the last switch.
func (in *Input) stampedByOff(at []int, last, applied uint64) bool {
	return slices.ContainsFunc(at, func(pos int) bool {
		m := in.Members[pos]
		stamp := in.Replay.Survey.LastStamp(m.MemberID)
		return m.MemberID != 0 && !m.DB.Auth.Enabled && stamp > last && stamp <= applied
	})
}
