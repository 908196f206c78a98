package render

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
	"github.com/etcd-medic/etcd-medic/compare/backup/locate"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// Backups is the document of verify for several backups. One backup is written as its report alone.
type Backups struct {
	SchemaVersion int               `json:"schemaVersion"`
	Tool          compare.Tool      `json:"tool"`
	Backups       []*compare.Report `json:"backups"`
	// Skipped are files that are not backups. Older counts the backups that --newest left out.
	Skipped []locate.Skipped `json:"skipped,omitempty"`
	Older   int              `json:"older,omitempty"`
}

// Verification is the result of verify.
type Verification struct {
	Reports []*compare.Report
	Skipped []locate.Skipped
	Older   int
	// Brief shows only one line per backup.
	Brief bool
}

// Verified writes the reports of verify.
func Verified(w io.Writer, f Format, v *Verification, o Options) error {
	reports := v.Reports
	switch {
	case f == Table:
		p := newPage(w, o)
		if !o.Full && !v.Brief {
			p.onScreen(func(s screen) { writeBackupScreen(s, v) })
			return p.flush()
		}
		for i, r := range reports {
			if i > 0 && !v.Brief {
				p.line("")
			}
			p.setSources(r)
			writeBackupLine(p, r)
			if !v.Brief {
				writeBackup(p, r)
			}
		}
		writeSkipped(p, v)
		return p.flush()
	case f == JSONL:
		for _, r := range reports {
			if err := document(w, f, r, o, nil); err != nil {
				return err
			}
		}
		return nil
	case len(reports) == 1 && len(v.Skipped) == 0 && v.Older == 0:
		return document(w, f, reports[0], o, nil)
	case len(reports) == 0:
		return nil
	}
	return document(w, f, &Backups{SchemaVersion: compare.SchemaVersion, Tool: reports[0].Tool, Backups: reports,
		Skipped: v.Skipped, Older: v.Older}, o, nil)
}

// writeSkipped lists the skipped files, so that they are not mistaken for verified ones.
func writeSkipped(p *page, v *Verification) {
	if len(v.Skipped) == 0 && v.Older == 0 {
		return
	}
	p.section("skipped")
	for _, s := range v.Skipped {
		p.text("  "+clean(s.Path)+": ", s.Reason)
	}
	if v.Older > 0 {
		p.line("  %d older backups (--newest)", v.Older)
	}
}

// writeBackupLine writes the whole answer on one line.
func writeBackupLine(p *page, r *compare.Report) {
	color := text.FgYellow
	switch {
	case r.Verdict.Class == check.ClassBackupGood:
		color = text.FgGreen
	case r.Verdict.Health != check.HealthUnknown:
		color = text.FgRed
	}
	l := backup.LineOf(r)
	class := clean(l.Class)
	if p.o.Color {
		class = p.paint(class, color, text.Bold)
	}
	p.line("%s: %s: %s", clean(l.Name), class, clean(l.Content))
}

// writeBackup writes all that is known of one backup.
func writeBackup(p *page, r *compare.Report) {
	p.unused(backup.Unsaid(r))
	if r.Backup != nil {
		backupSection{p}.write(r.Backup)
	}
	causesSection{p, namedCause(r)}.write(r.Causes)
	findingsSection{p, r.Next}.write(r.Findings)
	p.unchanged(r)
	nextSection{p}.write(r.Next)
}

// backupSection writes what was found out about the backup alone, next to other sources, and by restoring it.
type backupSection struct{ *page }

func (p backupSection) write(b *compare.Backup) {
	p.layers(b.Layers)
	if c, ok := b.Chain.(*chain.Report); ok {
		p.deltas(c)
	}
	if a, ok := b.Against.(*backup.Against); ok {
		p.against(a)
	}
	if d, ok := b.Drill.(*backup.Drill); ok {
		p.drill(d)
	}
}

// layers writes one line per layer, from the file to the result of a restore.
func (p backupSection) layers(layers []compare.Layer) {
	if len(layers) == 0 {
		return
	}
	p.section("layers")
	wide := 0
	for _, l := range layers {
		wide = max(wide, len(l.Name))
	}
	for _, l := range layers {
		outcome := string(l.Outcome)
		mark := pad(outcome, 11)
		switch l.Outcome {
		case check.Violated:
			mark = p.paint(mark, text.FgRed, text.Bold)
		case check.Holds:
		default:
			mark = p.paint(mark, text.FgYellow)
		}
		says := l.Says
		if len(l.Checks) > 0 && l.Outcome != check.Holds {
			says += " " + fmt.Sprint(l.Checks)
		}
		p.text(fmt.Sprintf("  %-*s  %s  ", wide, clean(l.Name), mark), says)
	}
}

// deltas lists the delta snapshots.
func (p backupSection) deltas(c *chain.Report) {
	p.section("deltas")
	var rows [][]string
	for i := range c.Deltas {
		d := &c.Deltas[i]
		state := "sound"
		if !d.Sound {
			state = "DAMAGED"
		}
		rows = append(rows, []string{d.File, fmt.Sprint(d.First), fmt.Sprint(d.Last), fmt.Sprint(d.Events), state})
	}
	p.table("  ", []string{"file", "first revision", "last", "events", ""}, rows)
	p.line("  serves up to revision %d", c.Revision)
}

// against writes, for every source, what a restore of the backup would lose.
func (p backupSection) against(a *backup.Against) {
	for i := range a.Compared {
		c := &a.Compared[i]
		p.section("against " + clean(c.Source))
		p.text("  ", "the backup is "+c.Text())
		p.pairs("  ",
			[2]string{"revision", fmt.Sprintf("%d, compacted at %s", c.Revision, compactText(&c.CompactRevision))},
			[2]string{"same history", fmt.Sprintf("%s, %s in both", c.SameHistory,
				plural.Of(c.Records, "record is", "records are"))},
			[2]string{"reason", c.Reason})
		p.stateRows(c)
		p.groups("prefix", c.Prefixes)
		p.groups("kind", c.Kinds)
		for _, r := range c.Rows {
			p.line("  %s  %s%s", pad(r.Change, 8), quoted(r.Key), because(r.Kind))
		}
		if c.More > 0 {
			p.line("  … and %d more, see --limit", c.More)
		}
	}
}

// stateRows writes the differences in auth, leases and members.
func (p backupSection) stateRows(c *backup.Compared) {
	if len(c.State) == 0 {
		return
	}
	var rows [][]string
	for _, s := range c.State {
		rows = append(rows, []string{s.Bucket, quoted(s.Key), s.InBackup, s.InSource})
	}
	p.line("")
	p.table("  ", []string{"bucket", "row", "in the backup", "in " + c.Source}, rows)
	if c.MoreState > 0 {
		p.line("  … and %d more", c.MoreState)
	}
}

// maxGroups bounds the lines of a table of groups; -w json has all.
const maxGroups = 20

func (p backupSection) groups(what string, groups []backup.Group) {
	var rows [][]string
	for i, g := range groups {
		if i == maxGroups {
			rows = append(rows, []string{fmt.Sprintf("… and %d more", len(groups)-i)})
			break
		}
		rows = append(rows, []string{g.Name, fmt.Sprint(g.Missing), fmt.Sprint(g.Differ), fmt.Sprint(g.Extra)})
	}
	if len(rows) > 0 {
		p.line("")
		p.table("  ", []string{what, "missing", "differ", "gone since"}, rows)
	}
}

// drill writes the steps with their times, and the answers of the server that differ.
func (p backupSection) drill(d *backup.Drill) {
	p.section("drill")
	p.text("  ", d.Text())
	var rows [][]string
	for _, s := range d.Steps {
		state := "done"
		if !s.OK {
			state = "FAILED"
		}
		rows = append(rows, []string{s.Step, state, fmt.Sprintf("%.2f s", s.Seconds)})
	}
	if len(rows) > 0 {
		p.table("  ", []string{"step", "", "took"}, rows)
	}
	for _, s := range d.Steps {
		p.text("  "+clean(s.Step)+": ", s.Says)
	}
	for _, f := range d.Fatal {
		p.text("  etcd: ", f)
	}
	for _, x := range d.Differences {
		at := x.What
		if len(x.Key) > 0 {
			at += " " + quoted(x.Key)
		}
		p.text("  "+clean(at)+": ", fmt.Sprintf("the backup says %s, the server %s", x.InBackup, x.Answered))
	}
	if d.More > 0 {
		p.line("  … and %d more", d.More)
	}
	for _, l := range d.Sandbox {
		p.text("  sandbox: ", l)
	}
}
