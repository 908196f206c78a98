// Package explain explains a code of this program or a line of a server's log, and what given sources say about it.
package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/preflight"
	"github.com/etcd-medic/etcd-medic/compare/serverlog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// Topic is one explained item: exactly one of its parts is set.
type Topic struct {
	Check   *check.Check     `json:"-"`
	Cause   *cause.Cause     `json:"-"`
	Known   *cause.Known     `json:"-"`
	Rule    *preflight.Rule  `json:"-"`
	Message *serverlog.Match `json:"-"`
	// Finding is the finding of the check that was named; "" means all of them.
	Finding string `json:"-"`

	// Kind is check, cause, known-cause, rule or message. ID and Title name it; Text explains it.
	Kind  string `json:"kind"`
	ID    string `json:"id"`
	Title string `json:"title"`
	Text  string `json:"text"`
	// Of a message: the line, how often it occurred, the numbers in it, and what follows from it.
	Line     string            `json:"line,omitempty"`
	Count    int               `json:"count,omitempty"`
	Values   map[string]string `json:"values,omitempty"`
	OnDisk   string            `json:"onDisk,omitempty"`
	Versions string            `json:"versions,omitempty"`
	Do       []string          `json:"do,omitempty"`
	// Checks, Causes and Rules are related to it.
	Checks []string `json:"checks,omitempty"`
	Causes []string `json:"causes,omitempty"`
	Rules  []string `json:"rules,omitempty"`
}

// Answer is the document of explain.
type Answer struct {
	SchemaVersion int          `json:"schemaVersion"`
	Tool          compare.Tool `json:"tool"`
	Topics        []Topic      `json:"topics"`
	// On is nil if no sources were given.
	On *On `json:"on"`
}

// On is what the sources say about the topics.
type On struct {
	Sources  []compare.Source       `json:"sources"`
	Verdict  compare.Verdict        `json:"verdict"`
	Checks   []compare.CheckOutcome `json:"checks"`
	Findings []check.Finding        `json:"findings"`
	Causes   []compare.Cause        `json:"causes"`
	// Rules are those of preflight, by source, for the version that wrote it or the requested one.
	Rules []RuleOn `json:"rules"`
	// Shown says whether the sources show any of the topics.
	Shown bool `json:"shown"`
	// InputsUnchanged is true if no source changed while it was read.
	InputsUnchanged bool `json:"inputsUnchanged"`
}

// RuleOn is the result of one rule of preflight for one source.
type RuleOn struct {
	Source string `json:"source"`
	To     string `json:"to"`
	preflight.Outcome
}

// Code finds the check, cause or rule with an ID. The ID of a finding (A01-2) means its check.
func Code(code string) (Topic, bool) {
	family, number, one := strings.Cut(code, "-")
	finding := ""
	if n, err := strconv.ParseUint(number, 10, 32); one && err == nil {
		finding = fmt.Sprintf("%s-%d", strings.ToUpper(family), n)
	}
	for _, c := range check.All() {
		if strings.EqualFold(string(c.ID), code) || finding != "" && strings.EqualFold(string(c.ID), family) {
			return Topic{Check: &c, Kind: "check", ID: string(c.ID), Title: c.Title, Text: c.Doc,
				Checks: []string{string(c.ID)}, Finding: finding}, true
		}
	}
	for _, k := range cause.All() {
		if strings.EqualFold(string(k.ID), code) {
			return Topic{Cause: &k, Kind: "cause", ID: string(k.ID), Title: k.Title, Text: k.Doc,
				Causes: []string{string(k.ID)}}, true
		}
	}
	for _, k := range cause.Undetected() {
		if strings.EqualFold(string(k.ID), code) {
			return Topic{Known: &k, Kind: "known-cause", ID: string(k.ID), Title: k.Title, Text: k.Why}, true
		}
	}
	for _, r := range preflight.Rules() {
		if strings.EqualFold(r.ID, code) {
			return Topic{Rule: &r, Kind: "rule", ID: r.ID, Title: r.Title, Text: r.Doc, Rules: []string{r.ID}}, true
		}
	}
	if m, ok := serverlog.Find(code); ok {
		return message(serverlog.Match{Message: m}), true
	}
	return Topic{}, false
}

// Messages turns matches in a server's log into topics.
func Messages(found []serverlog.Match) []Topic {
	var out []Topic
	for _, m := range found {
		out = append(out, message(m))
	}
	return out
}

func message(m serverlog.Match) Topic {
	return Topic{Message: &m, Kind: "message", ID: m.ID, Title: m.Means, Text: m.Means, Line: m.Line, Count: m.Count,
		Values: m.Values, OnDisk: m.OnDisk,
		Versions: m.Versions, Do: m.Do, Checks: m.Checks, Causes: m.Causes, Rules: m.Rules}
}

// Options tune Look.
type Options struct {
	compare.Options
	// To is the version for rules of preflight; the zero value means each source's own minor version.
	To preflight.Version
}

// Look diagnoses the sources and returns the parts about the topics.
func Look(ctx context.Context, topics []Topic, specs []evidence.Spec, o Options) (*On, error) {
	r, err := compare.Diagnose(ctx, specs, o.Options)
	if err != nil {
		return nil, err
	}
	if err := named(topics, r.Findings); err != nil {
		return nil, err
	}
	w := wanted(topics)
	on := &On{Sources: r.Sources, Verdict: r.Verdict, Checks: []compare.CheckOutcome{}, Findings: []check.Finding{},
		Causes: []compare.Cause{}, Rules: []RuleOn{}, InputsUnchanged: r.InputsUnchanged}
	for _, c := range r.Causes {
		if slices.Contains(w.Causes, string(c.ID)) {
			on.Causes, on.Shown = append(on.Causes, c), true
			// What a cause rests on belongs to its explanation.
			for i := range r.Findings {
				if f := &r.Findings[i]; slices.Contains(c.Because, f.ID) {
					w.Checks = append(w.Checks, string(f.Check))
				}
			}
		}
	}
	for _, c := range r.Checks {
		if slices.Contains(w.Checks, string(c.ID)) {
			on.Checks = append(on.Checks, c)
			on.Shown = on.Shown || c.Outcome == check.Violated
		}
	}
	for _, f := range r.Findings {
		if slices.Contains(w.Checks, string(f.Check)) && (w.Finding == "" || w.Finding == f.ID) {
			on.Findings = append(on.Findings, f)
		}
	}
	return on, on.preflight(ctx, w.Rules, specs, r, o)
}

// NoFindingError is the error of Look for a finding that the sources do not have.
type NoFindingError struct {
	ID string
	// Have are the findings of its check.
	Have []string
}

// Error names the findings that there are.
func (e *NoFindingError) Error() string {
	if len(e.Have) == 0 {
		return fmt.Sprintf("the sources have no finding %s, and no other finding of that check", e.ID)
	}
	return fmt.Sprintf("the sources have no finding %s; of that check they have %s", e.ID, plural.List(e.Have))
}

// named refuses a topic whose finding is not among those of the sources.
func named(topics []Topic, all []check.Finding) error {
	for i := range topics {
		t := &topics[i]
		if t.Finding == "" {
			continue
		}
		var have []string
		for k := range all {
			if string(all[k].Check) == t.ID {
				have = append(have, all[k].ID)
			}
		}
		if !slices.Contains(have, t.Finding) {
			return &NoFindingError{ID: t.Finding, Have: have}
		}
	}
	return nil
}

// wanted joins the codes of all topics.
func wanted(topics []Topic) Topic {
	var w Topic
	for i := range topics {
		w.Finding = cmp.Or(w.Finding, topics[i].Finding)
		w.Checks, w.Causes, w.Rules = append(w.Checks, topics[i].Checks...), append(w.Causes, topics[i].Causes...),
			append(w.Rules, topics[i].Rules...)
	}
	return w
}

// preflight runs the rules for every source that is a data dir.
func (on *On) preflight(ctx context.Context, rules []string, specs []evidence.Spec, r *compare.Report,
	o Options) error {
	if len(rules) == 0 {
		return nil
	}
	for _, spec := range specs {
		to := o.To
		if to.Minor == 0 {
			to = preflight.Version{Minor: lineOf(spec, r), Patch: -1}
		}
		res, err := preflight.Run(ctx, spec, to, preflight.Options{Version: o.Version})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var se *evidence.SourceError
		if errors.As(err, &se) {
			continue // a backup, a log alone, or a source that Diagnose has already reported
		}
		if err != nil {
			return err
		}
		on.InputsUnchanged = on.InputsUnchanged && res.InputsUnchanged
		for _, x := range res.Rules {
			if slices.Contains(rules, x.Rule) {
				on.Rules = append(on.Rules, RuleOn{Source: res.Source.Name, To: res.To, Outcome: x})
				on.Shown = on.Shown || x.Outcome == check.Violated
			}
		}
	}
	return nil
}

// lineOf returns the minor version that wrote a source; 6 if it is unknown.
func lineOf(spec evidence.Spec, r *compare.Report) int {
	for i := range r.Members {
		m := &r.Members[i]
		if (m.Name == spec.Name || len(r.Members) == 1) && m.WroteBy.Etcd != nil {
			if n, ok := evidence.MinorOf(*m.WroteBy.Etcd); ok {
				return min(max(n, preflight.Oldest), preflight.Newest)
			}
		}
	}
	return 6
}
