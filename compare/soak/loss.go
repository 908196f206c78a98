package soak

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// contents are the buckets, next to key, whose rows are what a cluster keeps for its users: of auth whether it is on.
var contents = []string{"lease", "auth", "authUsers", "authRoles"}

// Loss is the part of an answer or of a plan that says what keeping the best source gives up.
type Loss struct {
	CommittedEntries int `json:"committedEntries"`
	Keys             int `json:"keys"`
	Records          struct {
		Count int `json:"count"`
	} `json:"records"`
	Unproven []string `json:"unproven"`
	Others   []string `json:"others"`
}

// none reports whether it says that nothing is lost.
func (l *Loss) none() bool {
	return l.CommittedEntries == 0 && l.Keys == 0 && l.Records.Count == 0 && len(l.Unproven) == 0 && len(l.Others) == 0
}

// gone names a row of the original that the damaged copy no longer has. It returns "" if the copy has all of them, or
// if its database is as of an earlier index, so that its log brings them back. Compacted records do not count.
func gone(original, damaged string) string {
	if number(damaged, "consistent_index") < number(original, "consistent_index") {
		return ""
	}
	ks, err := readKeyspace(original)
	if err != nil {
		return ""
	}
	was := []row{}
	for i := range ks.records {
		if r := &ks.records[i]; r.live || r.main > ks.compact {
			was = append(was, r.row)
		}
	}
	for _, bucket := range contents {
		all, err := rows(original, bucket)
		if err != nil {
			return ""
		}
		for _, r := range all {
			if bucket != "auth" || r.key == "authEnabled" {
				was = append(was, r)
			}
		}
	}
	is := map[row]bool{}
	for _, bucket := range append([]string{"key"}, contents...) {
		all, err := rows(damaged, bucket)
		if err != nil {
			return ""
		}
		for _, r := range all {
			is[r] = true
		}
	}
	for _, r := range was {
		if !is[r] {
			return fmt.Sprintf("row %x of bucket %s", r.key, r.bucket)
		}
	}
	return ""
}

// wrongLoss says how an answer, or the plan that follows from it, says that nothing is lost by keeping a source that
// lacks rows, where the sources show that. It returns "" where it does not.
func wrongLoss(c *Case, kept string, l *Loss) string {
	if l == nil || !l.none() || c.Truth.Unprovable {
		return ""
	}
	if row := c.Truth.Gone[kept]; row != "" {
		return fmt.Sprintf("nothing is said to be lost with %s, which lacks %s", kept, row)
	}
	i := slices.IndexFunc(c.Sources, func(s Source) bool { return s.Name == kept })
	if i < 0 || !c.Sources[i].Behind {
		return ""
	}
	for _, s := range c.Sources {
		if !s.Behind && !s.Aged && !c.Truth.isDamaged(s.Name) {
			return fmt.Sprintf("nothing is said to be lost with %s, which lacks writes of %s", kept, s.Name)
		}
	}
	return ""
}

// lossOf judges what the answer says is lost, and what its plan says.
func lossOf(c *Case, a *Answer) []string {
	var out []string
	if a.Best != nil && len(a.Best.Members) > 0 {
		if s := wrongLoss(c, a.Best.Members[0], a.Best.Lost); s != "" {
			out = append(out, s)
		}
	}
	if a.Plan != nil {
		if s := wrongLoss(c, a.Plan.kept(), &a.Plan.Lost); s != "" {
			out = append(out, "plan: "+s)
		}
	}
	return out
}

// Plan is the part of a plan that is judged.
type Plan struct {
	Mode plan.Mode `json:"mode"`
	Best struct {
		Name string `json:"name"`
	} `json:"best"`
	Lost Loss `json:"lost"`
}

// kept is the source whose content stays, "" where a backup is restored, or the plan is only rehearsed.
func (p *Plan) kept() string {
	if p.Mode == plan.Restore || p.Mode == plan.RehearseOnly {
		return ""
	}
	return p.Best.Name
}
