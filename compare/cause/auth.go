package cause

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/release"
)

var authRevisionReplay = Cause{
	ID:    "auth-revision-replay",
	Title: "auth operations were applied twice after a restart",
	Doc: `Up to 3.3.20 and 3.4.7 meta/consistent_index reached the disk only together with key writes and snapshots. A member that was
restarted after auth entries without a key write behind them executed those entries again. Granting a permission or changing a password
always succeeds and raises the auth revision, so it ended above the other members'. From then on the member drops every write whose header
carries a lower auth revision, without an error anywhere: keys diverge while raft indexes agree.
Proven when, for each member that differs, a restart is in the log, the auth entries behind its saved index account for the whole rise, and
with these rises in the model every entry of the log is found in the database as predicted.`,
	Affected: []string{"3.1.0 - 3.1.20", "3.2.0 - 3.2.32", "3.3.0 - 3.3.20", "3.4.0 - 3.4.7"},
	FixedIn:  []string{"3.3.21", "3.4.8", "3.5.0"},
	Refs:     []string{"https://github.com/etcd-io/etcd/issues/11651", "https://github.com/etcd-io/etcd/pull/11652"},
	LookAlikes: "a lagging member (lower number, fewer auth entries applied); different salts of password hashes; a " +
		"member restored from " +
		"another backup; an auth entry that others have not applied yet",
	Recovery: "stop writes; choose the member by content, not by the number; export what it lacks; move the leader " +
		"to it; remove, wipe and re-add the others one at a time; upgrade",
	Loss:  "writes that the chosen member dropped, and writes that only another member applied",
	Match: matchAuthReplay,
}

func matchAuthReplay(in *Input) *Match {
	if in.Replay == nil || len(in.Findings["A02"]) == 0 {
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
		if len(r.Jumps) > 0 {
			if in.Members[i].Version.Follows(release.IndexWithAuth) {
				return nil // what repeats auth entries on 3.5 repeats all others as well
			}
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
	m.Because = ids(in, "A01", "A02", "A04")
	m.RefutedBy = "an auth entry in the log that raises the revision on one member only; a rise at a time when the " +
		"member did not restart; " +
		"an entry with a header auth revision at or above the member's that the member did not apply"
	return m
}

// repeated35 lists the members of 3.5 whose higher auth revision a restart explains that executed entries of all kinds
// again.
func repeated35(in *Input) []string {
	var out []string
	if in.Replay == nil {
		return nil
	}
	for i, r := range in.Replay.Members {
		if r.Checked && r.Unexplained == 0 && len(r.Jumps) > 0 &&
			in.Members[i].Version.MayFollow(release.DefragLosesIndex) {
			out = append(out, in.Members[i].Label())
		}
	}
	return out
}

// repeatsOn35 tells whether a member of 3.5 whose auth revision differs executed entries again, or does so at every
// start: that explains the rise also where the log does not tell what it began with.
func repeatsOn35(in *Input) bool {
	for _, x := range in.Members {
		if x.Version.MayFollow(release.DefragLosesIndex) && holdsMember(in, x.Label(), "A01") &&
			holdsMember(in, x.Label(), "C01", "C03", "C04") {
			return true
		}
	}
	return false
}

func hasStaleRefusal(in *Input, pos int) bool {
	for _, e := range in.Replay.Events {
		if o := e.Outcomes[pos]; o.State == replay.Refused && o.Reason == replay.ReasonOldAuth {
			return true
		}
	}
	return false
}

var authRevisionUnequal = Cause{
	ID:    "auth-revision-unequal",
	Title: "the auth revision differs and no restart explains it",
	Doc: `Members hold different auth revisions at the same applied index, but the log does not show restarts and repeated auth entries that add
up to the difference: the log is purged too far, a restart left no mark, or the database was changed by other means. The effect is the same:
a member with the higher number drops writes stamped with a lower one. A single member is held against its own log.`,
	LookAlikes: "auth-revision-replay with the restart's publish entry purged; a member restored from another backup",
	Recovery:   "as for auth-revision-replay; upgrade past 3.3.21 / 3.4.8 first if older",
	Loss:       "writes that the chosen member dropped",
	Match: func(in *Input) *Match {
		switch {
		case matchAuthReplay(in) != nil, len(repeated35(in)) > 0, repeatsOn35(in), len(in.Findings["C02"]) > 0:
			return nil // without a consistent index nothing can be held against the log
		case len(in.Findings["A01"])+len(in.Findings["A02"]) == 0:
			return nil
		case len(in.Findings["A01"]) == 0: // a single member, or all alike, against the log
			return &Match{Certainty: Strong, Members: membersOf(in, "A02"), Because: ids(in, "A02"),
				RefutedBy: "auth entries in a part of the log that was purged"}
		}
		return &Match{Certainty: Strong, Members: in.Findings["A01"][0].Members, Because: ids(in, "A01", "A02", "A04"),
			RefutedBy: "members at different applied indexes with auth entries between them"}
	},
}

// ids lists the IDs of all findings of the checks.
func ids(in *Input, checks ...string) []string {
	out := []string{}
	for _, c := range checks {
		for _, f := range in.Findings[c] {
			out = append(out, f.ID)
		}
	}
	return out
}

// membersOf lists the members of the checks' findings, each once.
func membersOf(in *Input, checks ...string) []string {
	out, seen := []string{}, map[string]bool{}
	for _, c := range checks {
		for _, f := range in.Findings[c] {
			for _, m := range f.Members {
				if !seen[m] {
					seen[m] = true
					out = append(out, m)
				}
			}
		}
	}
	return out
}

// byField builds a proof from the findings of a check whose first evidence names one of the fields.
func byField(in *Input, refutedBy, checkID string, fields ...string) *Match {
	return proofOf(in, checkID, refutedBy, func(f check.Finding) bool { return fieldIs(f, fields) })
}

// proofOf builds a proof from the findings of a check that fit.
func proofOf(in *Input, checkID, refutedBy string, fits func(check.Finding) bool) *Match {
	m := &Match{Certainty: Proof, RefutedBy: refutedBy, Because: []string{}}
	seen := map[string]bool{}
	for _, f := range in.Findings[checkID] {
		if !fits(f) {
			continue
		}
		m.Because = append(m.Because, f.ID)
		for _, name := range f.Members {
			if !seen[name] {
				seen[name] = true
				m.Members = append(m.Members, name)
			}
		}
	}
	if len(m.Because) == 0 {
		return nil
	}
	return m
}

// serious leaves warnings out.
func serious(f check.Finding) bool { return f.Severity.Rank() > check.Warning.Rank() }

// every is for matches that rest on all findings of a check.
func every(check.Finding) bool { return true }

func fieldIs(f check.Finding, fields []string) bool {
	for _, want := range fields {
		if len(f.Evidence) > 0 && f.Evidence[0].Field == want {
			return true
		}
	}
	return false
}

func refs(repo string, numbers ...int) []string {
	var out []string
	for _, n := range numbers {
		out = append(out, fmt.Sprintf("https://github.com/%s/issues/%d", repo, n))
	}
	return out
}
