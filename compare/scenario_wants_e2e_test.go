//go:build e2e

package compare_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
)

// wants are the expectations; each returns "" when met.
var wants = map[string]func(s *scenario, args []string) string{
	"class": func(s *scenario, args []string) string {
		return mismatch(slices.Contains(args, string(s.report.Verdict.Class)), string(s.report.Verdict.Class))
	},
	"cause": func(s *scenario, args []string) string {
		have := "none"
		if c := s.report.Verdict.Cause; c != nil {
			have = string(*c)
		}
		return mismatch(slices.Contains(args, have), have)
	},
	"certainty": func(s *scenario, args []string) string {
		have := "none"
		if c := s.report.Verdict.Certainty; c != nil {
			have = string(*c)
		}
		return mismatch(slices.Contains(args, have), have)
	},
	// names wants causes among those that fit, whether the verdict's or beside it; silent wants them absent.
	"names": func(s *scenario, args []string) string {
		for _, id := range args {
			if !slices.ContainsFunc(s.report.Causes, func(c compare.Cause) bool { return string(c.ID) == id }) {
				return id + " is not named"
			}
		}
		return ""
	},
	"silent": func(s *scenario, args []string) string {
		for _, c := range s.report.Causes {
			if slices.Contains(args, string(c.ID)) {
				return string(c.ID) + " is named"
			}
		}
		return ""
	},
	// best wants exactly the named members, in any order.
	"best": func(s *scenario, args []string) string {
		have := slices.Sorted(slices.Values(s.report.Best.Members))
		return mismatch(slices.Equal(have, slices.Sorted(slices.Values(args))),
			fmt.Sprint(have, ": ", s.report.Best.Why))
	},
	// break wants the check of the first break, and its members when named.
	"break": func(s *scenario, args []string) string {
		b := s.report.Verdict.FirstBreak
		if b == nil {
			return "no first break"
		}
		ok := string(b.Check) == args[0] && (len(args) == 1 || slices.Equal(slices.Sorted(slices.Values(b.Member)),
			slices.Sorted(slices.Values(args[1:]))))
		return mismatch(ok, fmt.Sprintf("%s %v", b.Check, b.Member))
	},
	// found wants a finding of each check; CHECK@NODE one that names the member.
	"found": func(s *scenario, args []string) string {
		for _, a := range args {
			id, node, _ := strings.Cut(a, "@")
			if len(findings(s.report, node, id)) == 0 {
				return "no finding " + a
			}
		}
		return ""
	},
	// not wants no violation of the checks; CHECK@NODE none that names the member.
	"not": func(s *scenario, args []string) string {
		for _, a := range args {
			id, node, _ := strings.Cut(a, "@")
			for _, f := range findings(s.report, node, id) {
				if f.Severity.Rank() > check.Info.Rank() {
					return f.ID + ": " + f.Title
				}
			}
		}
		return ""
	},
	// quiet wants no finding above info.
	"quiet": func(s *scenario, _ []string) string {
		for _, f := range s.report.Findings {
			if f.Severity.Rank() > check.Info.Rank() {
				return f.ID + ": " + f.Title + ": " + f.Explanation
			}
		}
		return ""
	},
	// extra wants the auth revisions of the members to lie so far above the lowest that the log gives: NODE=N.
	"extra": func(s *scenario, args []string) string {
		for _, a := range args {
			node, n, _ := strings.Cut(a, "=")
			want := s.number([]string{n}, 0, 0)
			if have := s.authExtra(node); have != want {
				return fmt.Sprintf("%s: %d", node, have)
			}
		}
		return ""
	},
}

// authExtra is the member's auth revision above what the finding of A02 says the log gives, 0 without one.
func (s *scenario) authExtra(node string) int {
	for _, f := range findings(s.report, node, "A02") {
		have, err := strconv.Atoi(f.Evidence[0].Observed)
		s.must(err)
		want, err := strconv.Atoi(f.Evidence[0].Expected)
		s.must(err)
		return have - want
	}
	return 0
}

func mismatch(ok bool, have string) string {
	if ok {
		return ""
	}
	return "have " + have
}

func (s *scenario) want(words []string) {
	s.Helper()
	w := wants[words[0]]
	if w == nil {
		s.Fatalf("unknown expectation %q", s.line)
	}
	if s.report == nil {
		s.Fatalf("%s: nothing was diagnosed", s.line)
	}
	if why := w(s, words[1:]); why != "" {
		s.Errorf("%s: %s\n%s", s.line, why, s.story())
	}
}

// story is the report in a few lines, for a failed expectation.
func (s *scenario) story() string {
	r := s.report
	out := fmt.Sprintf("  verdict %s: %s\n", r.Verdict.Class, r.Verdict.Summary)
	if b := r.Verdict.FirstBreak; b != nil {
		out += fmt.Sprintf("  first break %s %v at %d: expected %s, observed %s\n", b.Check, b.Member, b.Index,
			b.Expected, b.Observed)
	}
	for _, f := range r.Findings {
		if f.Severity.Rank() > check.Info.Rank() || f.Class != "" {
			out += fmt.Sprintf("  %s %s %v: %s: %s\n", f.ID, f.Severity, f.Members, f.Title, f.Explanation)
			for i, e := range f.Evidence {
				if i < 4 {
					out += fmt.Sprintf("      %s %s %q: %s (expected %s)\n", e.Member, e.Field, e.Key, e.Observed,
						e.Expected)
				}
			}
		}
	}
	if r.Best != nil {
		out += "  best " + fmt.Sprint(r.Best.Members) + " " + r.Best.Why + "\n"
	}
	for _, k := range r.Checks {
		if k.Outcome == check.NotChecked && k.Reason != "" {
			out += fmt.Sprintf("  not checked %s: %s\n", k.ID, k.Reason)
		}
	}
	return out
}
