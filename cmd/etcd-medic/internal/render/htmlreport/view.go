package htmlreport

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/shell"
)

// maxWrongRecords bounds the wrong records that the page lists.
const maxWrongRecords = 100

// view is the data of the page's template. All text in it is cleaned; the template escapes it.
type view struct {
	PageTitle, Tone, Health, Class, Cause, Certainty, Summary, RefutedBy string
	Keep, KeepWhy, Loses                                                 string
	LosesWhy                                                             []string
	Break, BreakWhere                                                    string
	BreakIndex                                                           uint64
	Problems                                                             []string
	Next, ByHand                                                         []nextStep
	Members                                                              []card
	Names                                                                []string

	Timeline                 bool
	TimelineFrom, TimelineTo uint64
	Moments                  []moment
	MomentsMore              int
	Terms                    []termRow
	Ends                     []ends

	DiffNote    string
	NotCompared []string
	Buckets     []bucketRow
	HasRows     bool
	Rows        []diffRow
	RowsMore    int
	Lost        []lostRow
	LostCommand string

	Membership []membershipRow
	Auth       *authView
	PrefixesOf string
	Prefixes   []dossier.Prefix
	Segments   []segmentRow
	Pages      []pagesRow
	PagesMore  int
	Groups     []group

	Holds, Violated, NotChecked int
	Checks                      []checkList
	InputsNote                  string
	Sources                     []sourceRow
	Redaction                   string
	Tool, Version, Licence      string
	Schema                      int

	args     []string
	runnable func(shell.Command) string
	d        *dossier.Dossier
}

// nextStep is something to do now.
type nextStep struct{ Text, Command string }

func newView(d *dossier.Dossier) *view {
	r := d.Report
	v := &view{d: d, runnable: render.Runnable(r.Sources), Redaction: d.Redaction, Tool: r.Tool.Name,
		Version: r.Tool.Version, Schema: r.SchemaVersion}
	for _, s := range r.Sources {
		if s.Error == "" {
			v.Names = append(v.Names, text(s.Name))
			v.args = append(v.args, sourceArgument(&s))
		} else {
			v.Problems = append(v.Problems, text(s.Name+": "+s.Error))
		}
	}
	v.verdict(r)
	v.best(r)
	for _, n := range r.Next {
		step := nextStep{Text: text(upper(n.Text)), Command: v.runnable(n.Command)}
		if n.ByHand {
			v.ByHand = append(v.ByHand, step)
		} else {
			v.Next = append(v.Next, step)
		}
	}
	v.cards(r)
	v.timeline()
	v.differences()
	v.auth(r)
	v.files()
	v.findings(r)
	v.checks(r)
	v.inputs(r)
	return v
}

func sourceArgument(s *compare.Source) string {
	if s.Where != "" {
		return shell.Quote(s.Where)
	}
	return shell.Quote(s.Name)
}

// maxText bounds one text of the page.
const maxText = 2000

// text makes a text safe to show: no control characters, no characters that change its direction, bounded length.
func text(s string) string { return render.Clean(clip(s, maxText)) }

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	whole := len(s)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s… (%s)", s[:n], plural.Size(whole))
}

func (v *view) verdict(r *compare.Report) {
	x := &r.Verdict
	v.Tone, v.Health = "open", "inconclusive"
	switch x.Health {
	case check.Healthy:
		v.Tone, v.Health = "good", "healthy"
	case check.Unhealthy:
		v.Tone, v.Health = "bad", "not healthy"
	}
	v.Class, v.Summary = text(string(x.Class)), text(upper(x.Summary))
	v.PageTitle = "etcd-medic: " + v.Class
	if x.Cause != nil {
		v.Cause = text(string(*x.Cause))
	}
	if x.Certainty != nil {
		v.Certainty = text(string(*x.Certainty))
	}
	for i := range r.Causes {
		if c := &r.Causes[i]; x.Cause != nil && c.ID == *x.Cause {
			v.RefutedBy = text(upper(c.RefutedBy))
		}
	}
	v.Break = "none"
	b := x.FirstBreak
	if b == nil {
		return
	}
	v.Break, v.BreakIndex = "check "+string(b.Check), b.Index
	if b.Index > 0 {
		v.Break = "entry " + termIndex(b.Term, b.Index)
	}
	where := []string{"check " + string(b.Check)}
	if len(b.Member) > 0 {
		where = append(where, "on "+strings.Join(b.Member, ", "))
	}
	if b.Bucket != "" {
		where = append(where, "bucket "+b.Bucket)
	}
	if len(b.Key) > 0 {
		where = append(where, "key "+key(b.Key))
	}
	v.BreakWhere = text(upper(strings.Join(where, ", ")) + ". Expected " + b.Expected + ". Observed " + b.Observed +
		".")
}

func (v *view) best(r *compare.Report) {
	v.Keep, v.Loses = "no member", "not known"
	b := r.Best
	if b == nil {
		v.KeepWhy = "there is nothing to choose between"
		return
	}
	if len(b.Ranking) < 2 {
		v.Keep, v.KeepWhy = "nothing to choose", "There is one source."
		v.LosesWhy = append(v.LosesWhy, "Only other members can show what this one lacks.")
		return
	}
	if len(b.Members) > 0 {
		v.Keep = text(strings.Join(b.Members, " or "))
	}
	v.KeepWhy = text(keepWhy(b))
	if len(b.Members) == 0 {
		return
	}
	switch n := b.Lost.CommittedEntries; {
	case n > 0:
		v.Loses = plural.Of(n, "committed entry", "committed entries")
		if b.Lost.AfterEnd == 0 {
			v.LosesWhy = append(v.LosesWhy, fmt.Sprintf("They touch %s.", plural.Of(b.Lost.Keys, "key", "keys")))
		}
		if wrong := b.Lost.Records.Loses("it"); wrong != "" {
			v.LosesWhy = append(v.LosesWhy, "Also "+wrong+".")
		}
	case b.Lost.Records.Count > 0:
		v.Loses = b.Lost.String()
	case len(b.Lost.Unproven) > 0:
		v.Loses = "nothing that is known" + b.Lost.Condition()
	default:
		v.Loses = "nothing" + b.Lost.Condition()
	}
	for _, u := range b.Lost.Unproven {
		v.LosesWhy = append(v.LosesWhy, text("Not proven: "+u))
	}
	for _, e := range b.Lost.Entries {
		v.Lost = append(v.Lost, lostRow{At: termIndex(e.Term, e.Index), What: text(e.What),
			HeldBy: text(strings.Join(e.HeldBy, ", ")), By: text(e.ProposedBy)})
	}
	shown := b.Lost.Records.First(maxWrongRecords).Rows
	for i := range shown {
		x := &shown[i]
		v.LosesWhy = append(v.LosesWhy, text(fmt.Sprintf("Wrong at revision %d.%d, key %s: %s; right is %s (%s).",
			x.Revision.Main, x.Revision.Sub, x.Key, x.Kept, x.Expected, x.Why)))
	}
	if n := b.Lost.Records.Count - len(shown); n > 0 {
		v.LosesWhy = append(v.LosesWhy, fmt.Sprintf("%s more, see diagnose -w json.",
			plural.Of(n, "wrong record", "wrong records")))
	}
	v.LostCommand = v.runnable(b.Lost.Command)
}

// keepWhy returns the reason for the best member; the cards have the reasons of the others.
func keepWhy(b *compare.Best) string {
	if b.Undecided != "" {
		return "Content cannot decide between them: " + b.Undecided + "."
	}
	for _, r := range b.Ranking {
		if len(b.Members) > 0 && r.Member == b.Members[0] && len(r.Reasons) > 0 {
			return upper(strings.Join(r.Reasons, "; ")) + "."
		}
	}
	return upper(b.Why)
}

type lostRow struct{ At, What, HeldBy, By string }

func termIndex(term, index uint64) string {
	if term == 0 {
		return strconv.FormatUint(index, 10)
	}
	return fmt.Sprintf("%d/%d", term, index)
}

// key writes a key of a finding, quoted and bounded.
func key(b check.Bytes) string { return strconv.Quote(clip(string(b), 200)) }

// upper starts a sentence with a capital letter, if its first word is a plain word.
func upper(s string) string {
	word, _, _ := strings.Cut(s, " ")
	if s == "" || strings.ContainsAny(word, "0123456789./-=\"':") || strings.ToLower(word) != word {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func tone(s check.Outcome) string {
	switch s {
	case check.Holds:
		return "good"
	case check.Violated:
		return "bad"
	}
	return "open"
}
