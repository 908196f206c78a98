package soak

import (
	"fmt"
	"slices"
	"strings"
)

// Answer is the part of a diagnosis that is judged; it is read from the JSON document.
type Answer struct {
	Verdict struct {
		Healthy    *bool   `json:"healthy"`
		Class      string  `json:"class"`
		Cause      *string `json:"cause"`
		Certainty  *string `json:"certainty"`
		Summary    string  `json:"summary"`
		FirstBreak *struct {
			Check  string   `json:"check"`
			Member []string `json:"member"`
		} `json:"firstBreak"`
	} `json:"verdict"`
	Causes []struct {
		ID        string   `json:"id"`
		Certainty string   `json:"certainty"`
		Members   []string `json:"members"`
		Secondary bool     `json:"aside"`
	} `json:"causes"`
	Best *struct {
		Members []string `json:"members"`
		Why     string   `json:"why"`
		Ranking []struct {
			Member string `json:"member"`
			Usable bool   `json:"usable"`
			Lacks  struct {
				CommittedEntries int `json:"committedEntries"`
			} `json:"lacks"`
		} `json:"ranking"`
		Lost *Loss `json:"lost"`
	} `json:"best"`
	Findings []Finding `json:"findings"`
	// Plan is the plan that follows from the diagnosis, nil without one.
	Plan *Plan `json:"-"`
	// Failure is why there is no document.
	Failure string `json:"-"`
}

// Finding is one finding of an answer.
type Finding struct {
	ID       string   `json:"id"`
	Check    string   `json:"check"`
	Severity string   `json:"severity"`
	Members  []string `json:"members"`
	Title    string   `json:"title"`
	Class    string   `json:"class"`
}

// Sort is a way in which an answer is wrong.
type Sort string

// The ways in which an answer is wrong.
const (
	FalseAlarm   Sort = "false alarm"
	Inconclusive Sort = "inconclusive"
	Missed       Sort = "missed"
	WrongClass   Sort = "wrong class"
	WrongMember  Sort = "wrong member"
	WrongBest    Sort = "wrong best"
	WrongLoss    Sort = "wrong loss"
	Order        Sort = "order"
	Failed       Sort = "failed"
)

// Sorts are all of them, in the order of the table.
var Sorts = []Sort{FalseAlarm, Inconclusive, Missed, WrongClass, WrongMember, WrongBest, WrongLoss, Order, Failed}

// Problem is one thing that is wrong with an answer.
type Problem struct {
	Sort Sort
	Says string
}

// Judge compares an answer with the truth.
func Judge(c *Case, a *Answer) []Problem {
	if a.Failure != "" {
		return []Problem{{Failed, a.Failure}}
	}
	var out []Problem
	add := func(s Sort, format string, args ...any) { out = append(out, Problem{s, fmt.Sprintf(format, args...)}) }
	t := &c.Truth
	switch h := a.Verdict.Healthy; {
	case h == nil && (t.MayBeInconclusive || t.Unprovable):
	case h == nil:
		add(Inconclusive, "%s", a.Verdict.Summary)
	case t.Healthy && !*h:
		add(FalseAlarm, "%s", a.describe())
	case t.Healthy || t.Unprovable && *h:
	case *h:
		add(Missed, "%s: %s", a.Verdict.Class, a.Verdict.Summary)
	case len(t.Classes) > 0 && !slices.Contains(t.Classes, a.Verdict.Class):
		add(WrongClass, "%s instead of %s: %s", a.Verdict.Class, strings.Join(t.Classes, ", "), a.describe())
	}
	if len(c.Sources) > 1 && !t.AnyAccused {
		for _, s := range accused(c, a) {
			add(WrongMember, "%s", s)
		}
	}
	if !t.AnyBest {
		if s := wrongBest(c, a); s != "" {
			add(WrongBest, "%s", s)
		}
	}
	for _, s := range lossOf(c, a) {
		add(WrongLoss, "%s", s)
	}
	return out
}

// describe lists the findings that decide the verdict.
func (a *Answer) describe() string {
	var parts []string
	for _, f := range a.Findings {
		if f.grave() {
			parts = append(parts, f.ID+" "+f.Title)
		}
	}
	if len(parts) > 4 {
		parts = append(parts[:4], fmt.Sprintf("and %d more", len(parts)-4))
	}
	return fmt.Sprintf("%s: %s", a.Verdict.Class, strings.Join(parts, " | "))
}

func (f *Finding) grave() bool { return f.Severity == "error" || f.Severity == "critical" }

// accused says where the answer blames a member that is sound: by a grave finding about it alone, by a cause, or as one
// that lacks committed writes.
func accused(c *Case, a *Answer) []string {
	var out []string
	isSound := func(name string) bool {
		return !c.Truth.isDamaged(name) && slices.ContainsFunc(c.Sources, func(s Source) bool { return s.Name == name })
	}
	for _, f := range a.Findings {
		if f.grave() && len(f.Members) == 1 && isSound(f.Members[0]) {
			out = append(out, fmt.Sprintf("%s blames %s: %s", f.ID, f.Members[0], f.Title))
		}
	}
	for _, k := range a.Causes {
		if !k.Secondary && len(k.Members) == 1 && k.Certainty != "hint" && isSound(k.Members[0]) {
			out = append(out, fmt.Sprintf("cause %s (%s) names %s", k.ID, k.Certainty, k.Members[0]))
		}
	}
	if a.Best == nil {
		return out
	}
	for _, r := range a.Best.Ranking {
		if isSound(r.Member) && r.Lacks.CommittedEntries > 0 {
			out = append(out, fmt.Sprintf("%s is said to lack %d entries", r.Member, r.Lacks.CommittedEntries))
		}
		if isSound(r.Member) && !r.Usable {
			out = append(out, fmt.Sprintf("%s is said to be unusable", r.Member))
		}
	}
	return out
}

// wrongBest says how the ranking places a member that is damaged, or lacks writes, at or above a sound one.
func wrongBest(c *Case, a *Answer) string {
	sound := c.sound()
	if a.Best == nil || len(sound) == 0 {
		return ""
	}
	if len(a.Best.Members) == 0 {
		return fmt.Sprintf("no best, although %s is sound: %s", sound[0], a.Best.Why)
	}
	for _, m := range a.Best.Members {
		what := ""
		switch i := slices.IndexFunc(c.Sources, func(s Source) bool { return s.Name == m }); {
		case c.Truth.isDamaged(m) && !c.Truth.MayShareBest:
			what = "is damaged"
		case i >= 0 && c.Sources[i].Behind:
			what = "lacks writes"
		}
		if what != "" {
			return fmt.Sprintf("best: %s, although %s %s: %s", strings.Join(a.Best.Members, ", "), m, what, a.Best.Why)
		}
	}
	first := ""
	for _, r := range a.Best.Ranking {
		switch {
		case c.Truth.isDamaged(r.Member) && !c.Truth.MayShareBest && first == "":
			first = r.Member
		case slices.Contains(sound, r.Member) && first != "" && !slices.Contains(a.Best.Members, r.Member):
			return fmt.Sprintf("%s, damaged, is ranked above %s", first, r.Member)
		}
	}
	return ""
}

// SameAnswer says what differs between the answers for the same sources in another order, "" if nothing does.
func SameAnswer(a, b *Answer) string {
	if a.Failure != "" || b.Failure != "" {
		return ""
	}
	key := func(x *Answer) string {
		cause := "none"
		if x.Verdict.Cause != nil {
			cause = *x.Verdict.Cause
		}
		best := "none"
		if x.Best != nil {
			best = strings.Join(slices.Sorted(slices.Values(x.Best.Members)), ",")
		}
		return fmt.Sprintf("%s, cause %s, best %s", x.Verdict.Class, cause, best)
	}
	if ka, kb := key(a), key(b); ka != kb {
		return ka + "; in another order " + kb
	}
	return ""
}
