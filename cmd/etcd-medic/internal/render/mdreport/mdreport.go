// Package mdreport writes the report as Markdown for an issue or a wiki: short, and safe to render anywhere.
package mdreport

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/shell"
)

// MaxSize is the maximum size of a report in bytes; issue trackers cut longer texts.
const MaxSize = 60_000

// Write writes the report. If it becomes too long, it lists fewer rows and findings, but counts all.
func Write(w io.Writer, d *dossier.Dossier) error {
	var out []byte
	for rows := 40; ; rows /= 2 {
		p := &sheet{d: d, runnable: render.Runnable(d.Report.Sources), rows: rows}
		p.all()
		if out = p.b.Bytes(); len(out) <= MaxSize || rows == 0 {
			break
		}
	}
	if len(out) > MaxSize {
		out = shortened(out[:MaxSize-100])
	}
	_, err := w.Write(out)
	return err
}

// shortened ends a report after its last complete line, and closes an open code block.
func shortened(cut []byte) []byte {
	cut = cut[:bytes.LastIndexByte(cut, '\n')+1]
	open := false
	for line := range bytes.Lines(cut) {
		open = open != bytes.HasPrefix(line, []byte("```"))
	}
	end := "\nThe report was cut here; the HTML report has the rest.\n"
	if open {
		end = "```\n" + end
	}
	return slices.Concat(cut, []byte(end))
}

// sheet writes one report; rows bounds its lists.
type sheet struct {
	b        bytes.Buffer
	d        *dossier.Dossier
	runnable func(shell.Command) string
	rows     int
}

func (p *sheet) line(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

func (p *sheet) all() {
	r := p.d.Report
	p.verdict(r)
	p.members(r)
	p.timeline(r)
	p.findings(r)
	p.differences()
	p.next(r)
	p.inputs(r)
}

// maxWords bounds one text.
const maxWords = 600

// words escapes a text for Markdown: no markup, no mentions, no references, one line.
func words(s string) string {
	s = render.Clean(clip(s, maxWords))
	return strings.NewReplacer("\n", " ", "&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "\\|", "`", "\\`", "*", "\\*",
		"_", "\\_", "[", "\\[", "]", "\\]", "#", "\\#", "@", "&#64;", "~", "\\~", "!", "\\!").Replace(s)
}

// code returns a text as inline code, without backticks.
func code(s string) string {
	s = strings.NewReplacer("\n", " ", "`", "'", "|", "¦").Replace(render.Clean(clip(s, maxWords)))
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// block writes lines of code unchanged, since a changed or cut command does something else. Its fence is longer than
// every run of backticks in the lines.
func (p *sheet) block(lang string, lines []string) {
	fence := "```"
	for _, l := range lines {
		for strings.Contains(l, fence) {
			fence += "`"
		}
	}
	p.line("%s%s", fence, lang)
	for _, l := range lines {
		p.line("%s", render.Clean(l))
	}
	p.line("%s\n", fence)
}

func (p *sheet) table(head []string, rows [][]string) {
	p.line("| %s |", strings.Join(head, " | "))
	p.line("|%s", strings.Repeat(" --- |", len(head)))
	for _, r := range rows {
		p.line("| %s |", strings.Join(r, " | "))
	}
	p.line("")
}

func (p *sheet) verdict(r *compare.Report) {
	v := &r.Verdict
	health := "Inconclusive"
	switch v.Health {
	case check.Healthy:
		health = "Healthy"
	case check.Unhealthy:
		health = "NOT HEALTHY"
	}
	p.line("# etcd-medic: %s, %s\n", health, words(string(v.Class)))
	p.line("%s\n", words(v.Summary))
	if v.Cause != nil && v.Certainty != nil {
		p.line("* **Cause:** %s (%s)", code(string(*v.Cause)), words(string(*v.Certainty)))
	}
	if b := r.Best; b != nil && len(b.Members) > 0 && len(b.Ranking) > 1 {
		keep := strings.Join(b.Members, " or ")
		if b.Undecided != "" {
			keep += ", undecided: " + b.Undecided
		}
		p.line("* **Keep:** %s", words(keep))
		switch {
		case b.Lost.CommittedEntries > 0 || b.Lost.Records.Count > 0:
			p.line("* **Loses:** %s", b.Lost)
		case len(b.Lost.Unproven) > 0:
			p.line("* **Loses:** nothing that is known%s; not proven: %s", b.Lost.Condition(),
				words(strings.Join(b.Lost.Unproven, "; ")))
		default:
			p.line("* **Loses:** nothing%s", b.Lost.Condition())
		}
	}
	if b := v.FirstBreak; b != nil {
		at := ""
		if b.Index > 0 {
			at = fmt.Sprintf(" at entry %d of term %d", b.Index, b.Term)
		}
		p.line("* **First break:** %s%s on %s. Expected: %s. Observed: %s.", b.Check, at,
			words(strings.Join(b.Member, ", ")), words(b.Expected), words(b.Observed))
	}
	for i := range r.Causes {
		if c := &r.Causes[i]; v.Cause != nil && c.ID == *v.Cause {
			p.line("* **Refuted by:** %s", words(c.RefutedBy))
		}
	}
	for _, s := range r.Sources {
		if s.Error != "" {
			p.line("* **Not used:** %s: %s", words(s.Name), words(s.Error))
		}
	}
	p.line("")
}

func (p *sheet) members(r *compare.Report) {
	if len(r.Members) == 0 {
		return
	}
	p.line("## Members\n")
	var rows [][]string
	for i := range r.Members {
		m := &r.Members[i]
		row := []string{words(m.Name), code(m.MemberID.String()), "", "", strconv.FormatUint(m.Commit, 10),
			strconv.FormatUint(m.AppliedIndex, 10), "", "", "", ""}
		if m.WroteBy.Etcd != nil {
			row[2] = words(*m.WroteBy.Etcd)
		}
		if m.WAL != nil {
			row[3] = fmt.Sprintf("%d to %d", m.WAL.FirstIndex, m.WAL.LastIndex)
		}
		if m.DB != nil && m.DB.CurrentRevision != nil {
			row[6] = m.DB.RevisionText()
		}
		if m.Auth != nil {
			row[7] = strconv.FormatUint(m.Auth.Revision, 10)
		}
		if m.DB != nil && m.DB.Keys != nil {
			row[8] = m.DB.KeysText()
		}
		if t := p.d.Timeline; t != nil && i < len(t.Lanes) && t.Lanes[i].Why == "" {
			row[9] = strconv.Itoa(t.Lanes[i].Lacks)
		}
		rows = append(rows, row)
	}
	p.table([]string{"member", "ID", "etcd", "log", "commit", "applied", "revision", "auth revision", "keys",
		"lacks entries"}, rows)
}

func (p *sheet) timeline(r *compare.Report) {
	var at uint64
	if b := r.Verdict.FirstBreak; b != nil {
		at = b.Index
	}
	if lanes := render.Lanes(p.d.Timeline, at, 110); lanes != nil {
		p.line("## Timeline\n")
		p.block("text", lanes)
	}
}

func (p *sheet) findings(r *compare.Report) {
	var rows [][]string
	left := 0
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Severity == check.Info {
			continue
		}
		if len(rows) > p.rows {
			left++
			continue
		}
		at := ""
		if f.At.Index > 0 {
			at = strconv.FormatUint(f.At.Index, 10)
		}
		rows = append(rows, []string{f.ID, string(f.Severity), words(strings.Join(f.Members, ", ")), at,
			words(f.Title)})
	}
	var tally [3]int
	for _, c := range r.Checks {
		switch c.Outcome {
		case check.Holds:
			tally[0]++
		case check.Violated:
			tally[1]++
		default:
			tally[2]++
		}
	}
	p.line("## Findings\n")
	p.line("%d checks hold, %d are violated, %d could not be made.\n", tally[0], tally[1], tally[2])
	if len(rows) > 0 {
		p.table([]string{"ID", "severity", "members", "entry", "finding"}, rows)
	}
	if left > 0 {
		p.line("and %d more\n", left)
	}
}

func (p *sheet) differences() {
	if len(p.d.Differences)+len(p.d.NotCompared) == 0 {
		return
	}
	p.line("## Differences\n")
	for _, s := range p.d.NotCompared {
		p.line("* Not compared: %s", words(s))
	}
	if len(p.d.NotCompared) > 0 {
		p.line("")
	}
	if len(p.d.Differences) == 0 {
		return
	}
	var rows [][]string
	for i := range p.d.Differences {
		b := &p.d.Differences[i]
		rows = append(rows, []string{words(b.Bucket), strconv.Itoa(b.Compared), strconv.Itoa(b.Differ),
			strconv.Itoa(b.SameContent), words(b.Reason)})
	}
	p.table([]string{"bucket", "compared", "differ", "in revisions only", ""}, rows)
	for i := range p.d.Differences {
		if b := &p.d.Differences[i]; b.Bucket == "key" && len(b.Rest) > 0 && p.rows > 0 {
			p.keys(b)
		}
	}
}

// keys lists the first keys that differ, with their members.
func (p *sheet) keys(b *dossier.Difference) {
	var rows [][]string
	key := ""
	for n := range b.Rest {
		if len(rows) == p.rows {
			break
		}
		key = key[:b.Shared[n]] + b.Rest[n]
		row := []string{code(clip(key, 120))}
		for i := range b.Cells {
			c := &b.Cells[i]
			if c.Mod[n] == 0 {
				row = append(row, "absent")
				continue
			}
			row = append(row, fmt.Sprintf("mod %d, version %d, %d bytes", c.Mod[n], c.Version[n], c.Len[n]))
		}
		rows = append(rows, row)
	}
	head := []string{"key"}
	for _, m := range b.Members {
		head = append(head, words(m))
	}
	p.table(head, rows)
	if more := b.Differ - len(rows); more > 0 {
		p.line("and %d more keys\n", more)
	}
}

func (p *sheet) next(r *compare.Report) {
	p.line("## Do now\n")
	hands := p.steps(r.Next, false)
	if hands {
		p.line("")
		p.line("## By hand instead, without etcd-medic\n")
		p.line("One member at a time, all steps in this order or none of them.\n")
		p.steps(r.Next, true)
	}
	p.line("")
}

// steps lists the steps of one of the two ways, and reports whether the other has any.
func (p *sheet) steps(next []compare.Next, byHand bool) (others bool) {
	n := 0
	for i := range next {
		if next[i].ByHand != byHand {
			others = true
			continue
		}
		n++
		p.line("%d. %s", n, words(next[i].Text))
		if !next[i].Command.IsZero() {
			p.line("")
			p.block("sh", []string{p.runnable(next[i].Command)})
		}
	}
	return others
}

func (p *sheet) inputs(r *compare.Report) {
	p.line("## Inputs\n")
	var rows [][]string
	for _, s := range r.Sources {
		rows = append(rows, []string{words(s.Name), string(s.Kind), strconv.Itoa(s.Files),
			strconv.FormatInt(s.Bytes, 10), code(clip(s.SHA256, 16))})
	}
	p.table([]string{"source", "kind", "files", "bytes", "sha256"}, rows)
	unchanged := "No file changed while it was read."
	if !r.InputsUnchanged {
		unchanged = "A source changed while it was read: nothing in this report can be trusted."
	}
	p.line("%s %s Written by %s %s.", unchanged, words(p.d.Redaction), r.Tool.Name, words(r.Tool.Version))
}
