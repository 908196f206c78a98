package release

// Rule is one thing that etcd does differently from release to release.
type Rule struct {
	// ID names the rule in reports and in the recorded facts of testdata/upstream.txt.
	ID string
	// What describes what servers do that follow the rule.
	What string
	// In are the releases that follow it.
	In Spans
	// Source is the upstream file with the code, as of 3.5 unless a release is named. Paths of 3.3 and 3.4 lack the
	// folder server.
	Source string
}

// Last returns the last minor version without any release that follows the rule; unknown if every release follows it.
func (r *Rule) Last() Version {
	if len(r.In) == 0 || r.In[0].From == (Release{}) {
		return Version{}
	}
	return AnyOf(previous(Release{r.In[0].From.Minor, 0}).Minor)
}

// First returns the first minor version with a release that follows the rule; unknown if every release follows it.
func (r *Rule) First() Version { return r.Last().Next() }

// Rules lists the whole table.
func Rules() []*Rule {
	var out []*Rule
	for _, t := range [][]*Rule{requestRules, indexRules, storeRules, memberRules, fileRules, flagRules, defects} {
		out = append(out, t...)
	}
	return out
}

// ByID returns the rule with an ID, nil if there is none.
func ByID(id string) *Rule {
	for _, r := range Rules() {
		if r.ID == id {
			return r
		}
	}
	return nil
}
