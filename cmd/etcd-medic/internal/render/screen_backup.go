package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// writeBackupScreen writes the answer of verify on one screen: the content of one backup, or a row for each of several.
func writeBackupScreen(s screen, v *Verification) {
	if len(v.Reports) == 1 {
		backupScreen{reportScreen{s, v.Reports[0]}}.write(v)
		return
	}
	answerScreen{s, backupsAnswer(v)}.write()
}

// backupScreen is the screen of verify for one backup.
type backupScreen struct{ reportScreen }

func (p backupScreen) write(v *Verification) {
	r := p.r
	if p.room.texts == 0 { // what to do with a damaged backup is in the text, not in the command
		p.room.texts, p.room.cell = 1, 1
	}
	p.setSources(r)
	a := &Answer{Word: backupWord(r), Mood: moodOf(&r.Verdict), Says: verdictSentence(r), Last: backupLast(r)}
	p.sentence(a.painted(p.page)+": ", backup.Name(r)+": "+backupSays(r), p.room.wrong)
	p.unused(backup.Unsaid(r))
	p.headed(backupPairs(r))
	p.openLayers()
	p.worst(slices.DeleteFunc(slices.Clone(r.Findings), func(f check.Finding) bool { return inLayer(r, &f) }))
	p.doNow()
	p.clauses("MORE   ", fmt.Sprintf("--full: %s, %s%s; %s", plural.Of(layerCount(r), "layer", "layers"),
		plural.Of(len(r.Findings), "finding", "findings"), skippedText(v), inputsText(r)), 1)
	a.writeLast(p.page)
}

func moodOf(v *compare.Verdict) Mood {
	switch {
	case v.Class == check.ClassBackupGood:
		return Good
	case v.Health == check.Unhealthy:
		return Bad
	}
	return Doubtful
}

// backupWord returns the verdict on a backup in one word.
func backupWord(r *compare.Report) string {
	return strings.ToUpper(strings.TrimPrefix(string(r.Verdict.Class), "backup-"))
}

// backupSays returns the cause with its certainty, and the verdict's text. The class is the word before it, then the
// name, which is not repeated.
func backupSays(r *compare.Report) string {
	if leadingCause(r) != nil || wordIsClass(&r.Verdict) {
		says, name := verdictSentence(r), backup.Name(r)+": "
		if before, after, ok := strings.Cut(says, ". "+name); ok {
			return before + ". " + firstUpper(r, after)
		}
		return strings.TrimPrefix(says, name)
	}
	return firstUpper(r, strings.TrimPrefix(r.Verdict.Says(), backup.Name(r)+": "))
}

func backupLast(r *compare.Report) string {
	s := backup.Name(r)
	if r.Verdict.Cause != nil {
		s += ", " + string(*r.Verdict.Cause)
	}
	return s
}

func layerCount(r *compare.Report) int {
	if r.Backup == nil {
		return 0
	}
	return len(r.Backup.Layers)
}

// membersText returns the members that a backup lists, such as "3 members: a, b, c".
func membersText(m *evidence.Facts) string {
	var names []string
	for _, x := range m.Membership.Members {
		names = append(names, cmp.Or(x.Name, x.ID.String()))
	}
	return plural.Of(len(names), "member", "members") + ": " + strings.Join(names, ", ")
}

// backupPairs returns the facts with which a user recognizes the right backup.
func backupPairs(r *compare.Report) (out [][2]string) {
	add := func(head string, parts ...string) {
		parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
		out = append(out, [2]string{head, strings.Join(parts, ", ")})
	}
	b := r.Backup
	if b == nil {
		return nil
	}
	said := map[string]string{}
	for _, l := range b.Layers {
		if l.Outcome == check.Holds {
			said[l.Name] = l.Says
		}
	}
	add("FILE", plural.Size(b.Size), prefixed("sha256 ", b.Trailer == "match", "matches"))
	add("TAKEN", said["taken-by"])
	if len(r.Members) > 0 && r.Members[0].DB != nil && r.Members[0].DB.CurrentRevision != nil {
		d := r.Members[0].DB
		add("HOLDS", "revision "+d.RevisionText(),
			prefixed("compacted at ", compactText(d.CompactRevision) != "-", compactText(d.CompactRevision)),
			d.KeysText()+" keys",
			prefixed("", said["members"] != "", membersText(&r.Members[0])))
		add("AUTH", said["auth"], said["leases"], prefixed("alarms: ", said["alarms"] != "", said["alarms"]))
	}
	if c, ok := b.Chain.(*chain.Report); ok {
		add("DELTAS", fmt.Sprintf("%s, serve up to revision %d",
			plural.Of(len(c.Deltas), "delta snapshot", "delta snapshots"), c.Revision))
	}
	if a, ok := b.Against.(*backup.Against); ok {
		for i := range a.Compared {
			add("AGAINST", "the backup is "+a.Compared[i].Text())
		}
	}
	if d, ok := b.Drill.(*backup.Drill); ok {
		add("DRILL", d.Text())
	}
	return out
}

// openLayers writes the layers that do not hold, worst first.
func (p backupScreen) openLayers() {
	r := p.r
	if r.Backup == nil {
		return
	}
	var rows [][]string
	holds := 0
	for _, wanted := range []check.Outcome{check.Violated, check.NotChecked} {
		for i := range r.Backup.Layers {
			l := &r.Backup.Layers[i]
			if l.Outcome == check.Holds {
				holds++
			} else if (l.Outcome == check.Violated) == (wanted == check.Violated) {
				rows = withLayer(rows, []string{l.Name, string(l.Outcome), idsOf(r, l) + l.Says})
			}
		}
	}
	if len(rows) == 0 {
		return
	}
	p.line("")
	shown := min(len(rows), 5-p.room.fewer)
	p.rows([]string{"LAYER", "OUTCOME", "WHAT IT SAYS"}, rows[:shown], nil)
	var rest []string
	if n := holds / 2; n > 0 {
		rest = append(rest, plural.Of(n, "other layer holds", "other layers hold"))
	}
	if n := len(rows) - shown; n > 0 {
		rest = append(rest, plural.Of(n, "more does not, see --full", "more do not, see --full"))
	}
	if len(rest) > 0 {
		p.line("%s", strings.Join(rest, ", "))
	}
}

// withLayer adds a row, or its name to a row that says the same.
func withLayer(rows [][]string, row []string) [][]string {
	for _, other := range rows {
		if other[1] == row[1] && other[2] == row[2] && columns(other[0])+columns(row[0]) < layerNames {
			other[0] += ", " + row[0]
			return rows
		}
	}
	return append(rows, row)
}

// layerNames is the width up to which layers that say the same share a row.
const layerNames = 24

// inLayer reports whether a layer that does not hold rests on the finding's check, and so says it.
func inLayer(r *compare.Report, f *check.Finding) bool {
	return r.Backup != nil && slices.ContainsFunc(r.Backup.Layers, func(l compare.Layer) bool {
		return l.Outcome != check.Holds && slices.Contains(l.Checks, f.Check)
	})
}

// idsOf returns the numbers of the findings that a layer rests on, to be looked up.
func idsOf(r *compare.Report, l *compare.Layer) string {
	var findings []*check.Finding
	for i := range r.Findings {
		if f := &r.Findings[i]; slices.Contains(l.Checks, f.Check) && f.Severity.Rank() >= check.Warning.Rank() {
			findings = append(findings, f)
		}
	}
	if len(findings) == 0 {
		return ""
	}
	return firstIDs(findings) + ": "
}

func skippedText(v *Verification) string {
	s := ""
	if n := len(v.Skipped); n > 0 {
		s += ", " + plural.Of(n, "skipped file", "skipped files")
	}
	if v.Older > 0 {
		s += ", " + plural.Of(v.Older, "older backup", "older backups") + " left out by --newest"
	}
	return s
}

// backupsAnswer has a row for each of several backups, the unhealthy ones first.
func backupsAnswer(v *Verification) *Answer {
	reports := slices.Clone(v.Reports)
	warned := func(r *compare.Report) int { return min(1, len(backup.WarningOf(r))) }
	slices.SortStableFunc(reports, func(a, b *compare.Report) int {
		return cmp.Or(cmp.Compare(badness(b), badness(a)), cmp.Compare(warned(b), warned(a)))
	})
	a := severalBackups(reports)
	a.Head = []string{"BACKUP", "STATE", "SIZE", "REVISION", "KEYS", "WHAT IS WRONG"}
	for _, r := range reports {
		row := []string{brief(clean(backup.Name(r)), 32), strings.TrimPrefix(string(r.Verdict.Class), "backup-"), "-",
			"-", "-", "-"}
		if r.Backup != nil {
			row[2] = plural.Size(r.Backup.Size)
		}
		if len(r.Members) > 0 && r.Members[0].DB != nil {
			row[3], row[4] = r.Members[0].DB.RevisionText(), r.Members[0].DB.KeysText()
		}
		row[5] = wrongText(r)
		a.Rows = append(a.Rows, row)
	}
	a.More = "--full has every layer" + skippedText(v) + "; --brief has one line each"
	if len(reports) > 0 && moodOf(&reports[0].Verdict) != Good {
		a.Title = "DO NOW"
		for _, n := range reports[0].Next {
			if !n.Command.IsZero() {
				a.Commands = append(a.Commands, Command{Run: n.Command})
			}
		}
	}
	return a
}

// wrongText says what is wrong with one of several backups, or why it is not proven; for a good one its warning or "-".
func wrongText(r *compare.Report) string {
	switch cause := leadingCause(r); {
	case moodOf(&r.Verdict) == Good:
		return cmp.Or(backup.WarningOf(r), "-")
	case moodOf(&r.Verdict) == Doubtful && cause != nil:
		if w := backup.WarningOf(r); w != "" {
			return cause.Title + "; " + w
		}
		return cause.Title // the summary begins with what holds
	}
	return strings.TrimPrefix(r.Verdict.Summary, backup.Name(r)+": ")
}

// badness orders backups: damaged, then undecided, then healthy.
func badness(r *compare.Report) int {
	return map[Mood]int{Good: 0, Doubtful: 1, Bad: 2}[moodOf(&r.Verdict)]
}

// severalBackups counts the results of several backups.
func severalBackups(reports []*compare.Report) *Answer {
	var n [3]int
	warned := 0
	for _, r := range reports {
		n[badness(r)]++
		if badness(r) == 0 && backup.WarningOf(r) != "" {
			warned++
		}
	}
	a := &Answer{Word: "GOOD", Mood: Good, Last: plural.Of(n[0], "backup is good", "backups are good")}
	if warned > 0 {
		a.Last += fmt.Sprintf(", %d with a warning", warned)
	}
	var parts []string
	if n[0] > 0 {
		parts = append(parts, a.Last)
	}
	if n[1] > 0 {
		a.Word, a.Mood = "INCONCLUSIVE", Doubtful
		parts = append([]string{fmt.Sprintf("%d could not be proven", n[1])}, parts...)
	}
	if n[2] > 0 {
		a.Word, a.Mood = "NOT GOOD", Bad
		parts = append([]string{fmt.Sprintf("%d of %s %s damaged or stale", n[2],
			plural.Of(len(reports), "backup", "backups"), isAre(n[2]))}, parts...)
	}
	a.Says = strings.Join(parts, ", ")
	a.Last = a.Says
	if len(reports) == 0 {
		a.Word, a.Mood, a.Says, a.Last = "INCONCLUSIVE", Doubtful, "there is no backup", "there is no backup"
	}
	return a
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
