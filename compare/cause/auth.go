package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

var authRevisionReplay = described(Cause{
	ID:    AuthRevisionReplay,
	Match: matchAuthReplay,
})

func matchAuthReplay(in *Input) *Match {
	if in.Replay == nil || !in.found(check.A02) {
		return nil
	}
	m := &Match{Certainty: Proof}
	dropped := false
	for i, r := range in.Replay.Members {
		if !r.Checked {
			continue
		}
		if r.Unexplained != 0 {
			return nil
		}
		for _, j := range r.Jumps {
			if j.Extra > j.Possible || j.Restart == 0 && j.Snapshot == 0 {
				return nil
			}
		}
		if slices.ContainsFunc(r.Jumps, repeatsAll) {
			return nil // what repeats auth entries on 3.5 repeats all others as well
		}
		if len(r.Jumps) > 0 {
			m.Members = append(m.Members, in.Members[i].Label())
		}
		dropped = dropped || r.FirstBad() == nil && hasStaleRefusal(in, i)
		if r.FirstBad() != nil || len(r.Extra) > 0 {
			// Something beyond this cause is wrong: the rises are explained, the content is not entirely.
			m.Certainty = Strong
		}
	}
	if len(m.Members) == 0 {
		return nil
	}
	if !dropped {
		m.Certainty = Strong
	}
	m.Because = ids(in, check.A01, check.A02, check.A04)
	m.RefutedBy = "an auth entry in the log that raises the revision on one member only; a rise at a time when the " +
		"member did not restart; " +
		"an entry with a header auth revision at or above the member's that the member did not apply"
	return m
}

// repeatsAll reports whether a rise is that of a restart which executed entries of all kinds again.
func repeatsAll(j replay.Jump) bool { return j.AllKinds }

// repeated35 lists the members of 3.5 whose higher auth revision is explained by a restart that executed entries of all
// kinds again.
func repeated35(in *Input) []string {
	var out []string
	if in.Replay == nil {
		return nil
	}
	for i, r := range in.Replay.Members {
		if r.Checked && r.Unexplained == 0 && slices.ContainsFunc(r.Jumps, repeatsAll) &&
			in.Members[i].Version.MayFollow(release.DefragLosesIndex) {
			out = append(out, in.Members[i].Label())
		}
	}
	return out
}

// repeatsOn35 reports whether a member of 3.5 whose auth revision differs executed entries again, or does so at every
// start: that explains the rise also where the log does not tell what it began with.
func repeatsOn35(in *Input) bool {
	for _, x := range in.Members {
		if x.Version.MayFollow(release.DefragLosesIndex) && holdsMember(in, x.Label(), check.A01) &&
			holdsMember(in, x.Label(), check.C01, check.C03, check.C04) {
			return true
		}
	}
	return false
}

func hasStaleRefusal(in *Input, pos int) bool {
	for _, e := range in.Replay.Events {
		if e.RefusedWrongly(pos) {
			return true
		}
	}
	return false
}

var authRevisionUnequal = described(Cause{
	ID: AuthRevisionUnequal,
	Match: func(in *Input) *Match {
		switch {
		case matchAuthReplay(in) != nil, len(repeated35(in)) > 0, repeatsOn35(in), in.found(check.C02):
			return nil // without a consistent index nothing can be compared with the log
		case !in.found(check.A01, check.A02):
			return nil
		case !in.found(check.A01): // a single member, or all alike, against the log
			return &Match{Certainty: Strong, Members: membersOf(in, check.A02), Because: ids(in, check.A02),
				RefutedBy: "auth entries in a part of the log that was purged"}
		}
		return &Match{Certainty: Strong, Members: in.Findings[check.A01][0].Members,
			Because:   ids(in, check.A01, check.A02, check.A04),
			RefutedBy: "members at different applied indexes with auth entries between them"}
	},
})

// found reports whether one of the checks has a finding.
func (in *Input) found(checks ...check.ID) bool {
	return slices.ContainsFunc(checks, func(id check.ID) bool { return len(in.Findings[id]) > 0 })
}

// ids lists the IDs of all findings of the checks.
func ids(in *Input, checks ...check.ID) []string {
	out := []string{}
	for _, c := range checks {
		for _, f := range in.Findings[c] {
			out = append(out, f.ID)
		}
	}
	return out
}

// membersOf lists the members of the checks' findings, perhaps one twice: a cause names each once (described).
func membersOf(in *Input, checks ...check.ID) []string {
	out := []string{}
	for _, c := range checks {
		for _, f := range in.Findings[c] {
			out = append(out, f.Members...)
		}
	}
	return out
}

// byKind builds a proof from the findings that state one of the kinds, which belong to one check.
func byKind(in *Input, refutedBy string, kinds ...check.Kind) *Match {
	return proofOf(in, kinds[0].Check(), refutedBy, func(f check.Finding) bool { return f.Is(kinds...) })
}

// byLogDamage builds a proof from the findings of a check about such damage to a log.
func byLogDamage(in *Input, refutedBy string, id check.ID, damage ...dumplog.DamageKind) *Match {
	return proofOf(in, id, refutedBy,
		func(f check.Finding) bool { return slices.Contains(damage, f.Facts.LogDamage) })
}

// byDBDamage builds a proof from the findings of D02 about such damage to a database.
func byDBDamage(in *Input, refutedBy string, damage ...dumpdb.DamageKind) *Match {
	return proofOf(in, check.D02, refutedBy,
		func(f check.Finding) bool { return slices.Contains(damage, f.Facts.DBDamage) })
}

// proofOf builds a proof from the findings of a check that fit.
func proofOf(in *Input, id check.ID, refutedBy string, fits func(check.Finding) bool) *Match {
	m := &Match{Certainty: Proof, RefutedBy: refutedBy, Because: []string{}}
	for _, f := range in.Findings[id] {
		if fits(f) {
			m.Because, m.Members = append(m.Because, f.ID), append(m.Members, f.Members...)
		}
	}
	if len(m.Because) == 0 {
		return nil
	}
	return m
}

// serious reports whether the finding is more than a warning.
func serious(f check.Finding) bool { return f.Severity.Rank() > check.Warning.Rank() }

// every accepts all findings of a check.
func every(check.Finding) bool { return true }
