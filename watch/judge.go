package watch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// judge finds divergence in the rounds. It uses no clients and no clock.
type judge struct {
	// past are the last rounds, the newest last.
	past []Round
	// suspect counts how many rounds in a row show a difference, by kind and members.
	suspect map[string]int
	raised  map[Kind]Event
}

const (
	// kept is how many earlier rounds are compared: a member that lagged then has usually caught up.
	kept = 8
	// needed is how many rounds must show the same difference before it is raised.
	needed = 2
)

func newJudge() *judge { return &judge{suspect: map[string]int{}, raised: map[Kind]Event{}} }

// found is a difference that one round shows. compared is false if the round could not compare.
type found struct {
	compared bool
	members  []string
	detail   string
}

// round judges one more round.
func (j *judge) round(r Round) []Event {
	var out []Event
	for _, k := range Kinds {
		f := j.look(k, r)
		if !f.compared {
			continue // neither raised nor over
		}
		key := string(k) + "\x00" + strings.Join(f.members, "\x00")
		if k == KindAuth && len(f.members) > 0 {
			key += "\x00" + f.detail // two successive changes differ only in their numbers
		}
		for s := range j.suspect {
			if strings.HasPrefix(s, string(k)+"\x00") && s != key {
				delete(j.suspect, s)
			}
		}
		if len(f.members) == 0 {
			delete(j.suspect, key)
			if e, ok := j.raised[k]; ok {
				delete(j.raised, k)
				e.Over, e.At = true, r.At
				out = append(out, e)
			}
			continue
		}
		if j.suspect[key]++; j.suspect[key] < needed {
			continue
		}
		e := Event{Kind: k, At: r.At, Members: f.members, Revision: r.Revision, Detail: f.detail}
		if was, ok := j.raised[k]; !ok || !slices.Equal(was.Members, e.Members) {
			out = append(out, e)
			j.raised[k] = e
		}
	}
	if j.past = append(j.past, r); len(j.past) > kept {
		j.past = slices.Delete(j.past, 0, len(j.past)-kept)
	}
	return out
}

// suspected reports whether the next round should come soon, to see a difference again: one of these kinds, or of any.
func (j *judge) suspected(kinds ...Kind) bool {
	for s, n := range j.suspect {
		kind, _, _ := strings.Cut(s, "\x00")
		if n < needed && (len(kinds) == 0 || slices.Contains(kinds, Kind(kind))) {
			return true
		}
	}
	return false
}

func (j *judge) look(k Kind, r Round) found {
	switch k {
	case KindHash:
		return differing(r, func(s *Seen) (string, string, bool) {
			if s.Hash == nil {
				return "", "", false
			}
			return fmt.Sprintf("%s, compacted to %d", s.First.Version, s.Hash.Compact),
				fmt.Sprintf("%08x", s.Hash.Hash), true
		}, fmt.Sprintf("HashKV at revision %d", r.Revision))
	case KindKeys:
		return differing(r, func(s *Seen) (string, string, bool) {
			if s.Keys == nil {
				return "", "", false
			}
			return "", fmt.Sprint(*s.Keys), true
		}, fmt.Sprintf("number of keys at revision %d", r.Revision))
	case KindAuth:
		return j.auth(r)
	case KindRevision:
		return j.revision(r)
	}
	return found{}
}

// differing compares a value between the members of each group, one cluster at a time, and returns those that differ
// from the majority.
func differing(r Round, value func(*Seen) (group, v string, ok bool), what string) found {
	groups := map[string]map[string][]string{}
	for i := range r.Members {
		s := &r.Members[i]
		if s.Err != nil {
			continue
		}
		if g, v, ok := value(s); ok {
			g = fmt.Sprintf("%x %s", s.First.Cluster, g)
			if groups[g] == nil {
				groups[g] = map[string][]string{}
			}
			groups[g][v] = append(groups[g][v], s.Name)
		}
	}
	var f found
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		values := groups[g]
		n := 0
		for _, names := range values {
			n += len(names)
		}
		if n < 2 {
			continue
		}
		f.compared = true
		if len(values) > 1 {
			f.members = append(f.members, odd(values, n)...)
			f.detail += describe(what, values)
		}
	}
	slices.Sort(f.members)
	return f
}

// odd returns the members outside the majority; all of them if there is none.
func odd(values map[string][]string, n int) (out []string) {
	for _, names := range values {
		if len(names) <= n/2 {
			out = append(out, names...)
		}
	}
	return out
}

func describe(what string, values map[string][]string) string {
	keys := slices.SortedFunc(maps.Keys(values), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(values[b]), len(values[a])), cmp.Compare(a, b))
	})
	var parts []string
	for _, v := range keys {
		slices.Sort(values[v])
		parts = append(parts, fmt.Sprintf("%s on %s", v, strings.Join(values[v], ", ")))
	}
	return what + ": " + strings.Join(parts, "; ")
}

// auth compares auth revisions of members that do not lag: each has applied what all others had applied one round ago.
// A change in progress shows in one round only.
func (j *judge) auth(r Round) found {
	var before *Round
	if n := len(j.past); n > 0 {
		before = &j.past[n-1]
	}
	return differing(r, func(s *Seen) (string, string, bool) {
		if s.Auth == nil || before == nil || lags(before, s) {
			return "", "", false
		}
		v := fmt.Sprintf("revision %d", s.Auth.Revision)
		if s.Auth.Digest != 0 {
			v += fmt.Sprintf(", users and roles %016x", s.Auth.Digest)
		}
		if !s.Auth.Enabled {
			v += ", off"
		}
		return "", v, true
	}, "auth")
}

// lags reports whether a member has not applied what another one had applied in an earlier round.
func lags(before *Round, s *Seen) bool {
	for i := range before.Members {
		if o := &before.Members[i]; o.Err == nil && o.First.Cluster == s.First.Cluster &&
			o.Second.Applied > s.First.Applied {
			return true
		}
	}
	return false
}

// revision compares revisions through raft indexes. A server reads its revision before its index, and an entry's
// revision is visible before its index. Say a member's First has a higher index than another member's Second in an
// earlier round. Then it has applied everything that led to the revision of that member's First, and its Second must
// have at least that revision. Two earlier rounds must agree.
func (j *judge) revision(r Round) found {
	var f found
	for i := range r.Members {
		m := &r.Members[i]
		if m.Err != nil || m.First.Applied == 0 {
			continue
		}
		n := 0
		for p := range j.past {
			o, compared := ahead(&j.past[p], m)
			f.compared = f.compared || compared
			if o == nil {
				continue
			}
			if n++; n == needed {
				f.members = append(f.members, m.Name)
				f.detail = fmt.Sprintf("%s has applied raft index %d and is at revision %d; %s had revision %d at "+
					"index %d already, %s before", m.Name, m.First.Applied,
					m.Second.Revision, o.Name, o.First.Revision, o.Second.Applied,
					r.At.Sub(j.past[p].At).Round(time.Second))
			}
		}
	}
	slices.Sort(f.members)
	return f
}

// ahead finds a member that had a higher revision at an index that m has applied meanwhile. In an idle cluster the
// indexes are equal.
func ahead(past *Round, m *Seen) (found *Seen, compared bool) {
	for i := range past.Members {
		o := &past.Members[i]
		if o.Err != nil || o.First.Applied == 0 || o.First.ID == m.First.ID || o.First.Cluster != m.First.Cluster {
			continue
		}
		rest := m.First.Applied == o.Second.Applied && o.First.Applied == o.Second.Applied &&
			m.First.Applied == m.Second.Applied
		if m.First.Applied <= o.Second.Applied && !rest {
			continue
		}
		compared = true
		if m.Second.Revision < o.First.Revision {
			found = o
		}
	}
	return found, compared
}
