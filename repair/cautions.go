package repair

import (
	"fmt"
	"strings"
)

// drifted tells causes in which a row of bucket members is stale and a start on a sound release mends it.
func drifted(cause string) bool {
	return cause == "learner-promotion-not-persisted" || cause == "zombie-members-v3-bucket"
}

// membershipCautions are what a person must know of members that are absent, removed, or listed wrongly.
func (pl *planner) membershipCautions() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	var unseen, zombies, removed []string
	for i := range pl.p.Members {
		m := &pl.p.Members[i]
		switch {
		case zombie(m):
			zombies = append(zombies, m.ID.String())
		case m.Source == "" && m.Action != Remove:
			unseen = append(unseen, m.Name)
		case m.Action == Retire && m.NotStartable == notMember:
			removed = append(removed, m.Name)
		}
	}
	c := &pl.p.Cluster
	if len(unseen) > 0 {
		say("the data dirs of %s were not looked at", strings.Join(unseen, ", "))
	}
	if len(unseen) > 0 && c.Startable < c.Quorum {
		say("if %s can still be started, that is the better way: with them a majority may run again. Copy their data dirs, give them to repair plan too, and plan again", strings.Join(unseen, ", "))
	}
	if len(removed) > 0 {
		say("without %s the cluster has %s and survives the loss of %d; repair plan --replace %s brings it back, empty and under a new ID",
			strings.Join(removed, ", "), count(c.Voters, "voter", "voters"), c.Voters-c.Quorum, removed[0])
	}
	if len(zombies) > 0 && c.Minor < 6 {
		say("up to 3.5 nobody counts %s, and 3.5.26 and later drop the rows at their next start; from 3.6 on they are listed: let every member start once on 3.5.26 or later and diagnose fresh copies before an upgrade", strings.Join(zombies, ", "))
	}
	if pl.p.Verdict.Cause == "learner-promotion-not-persisted" {
		say("no step changes bucket members: servers of 3.5.24 and later mend it when they start. Restart every member on one of them, one at a time, and diagnose fresh copies; do not upgrade to 3.7 before")
	}
	for _, src := range pl.foreign() {
		say("what was written to %s while it ran as another cluster is given up; save it first", src)
	}
	return out
}
