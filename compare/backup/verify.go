// Package backup verifies backups: files of snapshot save, databases copied from a data dir, and snapshots streamed
// from a running member.
//
// It verifies a backup layer by layer, from the file itself (sha256 trailer, size) through its pages, buckets and MVCC
// history to the result of a restore (auth, members, leases, alarms, versions, revision). Each layer has one of three
// verdicts; a layer that could not be checked is never reported as healthy. etcd's own tools check less: snapshot
// status ignores the trailer, and restore checks only the trailer.
package backup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
	"github.com/etcd-medic/etcd-medic/compare/backup/locate"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/verdict"
	"github.com/etcd-medic/etcd-medic/internal/objects"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Options tune Verify.
type Options struct {
	compare.Options
	// Against are sources to compare the backup with; see Against.
	Against []evidence.Spec
	// Drill, if set, tests the backup by a restore. It gets the open backup and adds its result to the report.
	Drill func(ctx context.Context, m *evidence.Member, r *compare.Report) (*Drill, error)
	// Chain are the delta snapshots that belong to the backup.
	Chain *chain.Chain
	// Fresh bounds how old the backup may be and how far it may lag behind Against.
	Fresh Freshness
	// Packing is what is wrong with the compression or archive of the backup.
	Packing error
}

// Verify reads one backup and returns the report of diagnose with its layers. It returns an error only if the file
// cannot be read at all; damage is in the report.
func Verify(ctx context.Context, spec evidence.Spec, o Options) (*compare.Report, error) {
	o.Backup = true
	o.Look = func(ctx context.Context, m *evidence.Member, r *compare.Report) error {
		if r.Backup == nil {
			return nil
		}
		if o.Packing != nil {
			judgePacking(r, m, o.Packing)
		}
		if err := judgeChain(ctx, r, m, o.Chain); err != nil {
			return err
		}
		r.Backup.Layers = Layers(r)
		if len(o.Against) > 0 {
			if err := against(ctx, m, r, o); err != nil {
				return err
			}
		}
		o.Fresh.judge(r, m)
		if o.Drill != nil {
			d, err := o.Drill(ctx, m, r)
			if err != nil {
				return err
			}
			r.Backup.Drill = d
		}
		next(r)
		return nil
	}
	r, err := compare.Inspect(ctx, spec, o.Options)
	if err == nil && r.Backup == nil && len(r.Sources) > 1 {
		return nil, &evidence.SourceError{Where: spec.Where, Found: fmt.Sprintf("%d sources in one", len(r.Sources)),
			Expected: "one backup; unpack it and name the folder"}
	}
	return r, err
}

// Item verifies one located backup, and unpacks it into scratch if it is packed. It returns an error only if ctx ends;
// an unreadable backup is in the report too.
func Item(ctx context.Context, it *locate.Item, scratch string, o Options) (*compare.Report, error) {
	spec := evidence.Spec{Name: it.Label, Where: it.Shown, Backup: true}
	file, err := it.Open(ctx, scratch)
	if err != nil {
		return unusable(it, spec, err, o), ctx.Err()
	}
	defer func() { _ = file.Close() }() // scratch; a leftover does no harm
	spec.Where, o.Packing, o.Chain = file.Path, file.Packing, it.Chain
	o.Fresh.Modified = it.Modified
	r, err := Verify(ctx, spec, o)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return unusable(it, spec, err, o), nil
	}
	for i := range r.Sources[:min(1, len(r.Sources))] {
		// A file from an archive or compression cannot be named on a command line.
		switch r.Sources[i].Where = ""; {
		case it.Given == "-": // it must be piped in again
			r.Sources[i].Where = "-"
		case !it.Packed():
			r.Sources[i].Where = it.Shown
		}
	}
	if err := it.Changed(); err != nil && r.InputsUnchanged {
		r.InputsUnchanged = false
		LeaveOpen(r, check.B01, err.Error())
	}
	return r, nil
}

// unusable is Unusable for a located backup. The evidence is unchanged if its file is, even if that could not be read.
func unusable(it *locate.Item, spec evidence.Spec, err error, o Options) *compare.Report {
	r := Unusable(spec, err, o)
	r.InputsUnchanged = it.Changed() == nil
	return r
}

// next adds what to do with the backup, if the verdict of diagnose does not say it.
func next(r *compare.Report) {
	d, _ := r.Backup.Drill.(*Drill)
	switch r.Verdict.Class {
	case check.ClassBackupGood, check.ClassBackupUnverifiable:
		if d == nil {
			r.Next = append([]compare.Next{{Text: "prove by a restore that it serves",
				Command: shell.Format("etcd-medic verify --drill {}", shell.Source(Name(r)))}}, remedies(r)...)
		} else {
			r.Next = append(remedies(r), compare.Next{Text: "nothing to do; keep it"})
		}
	case check.ClassBackupStale:
		r.Next = []compare.Next{{Text: "find out why there is no newer backup: whether the job that makes them ran, " +
			"and where it writes"}}
	case check.ClassInconclusive:
		if d != nil && d.Inconclusive != "" {
			r.Next = []compare.Next{{Text: "the drill proves nothing about the backup: remove what kept it from " +
				"running, and run again"}}
		}
	case check.ClassBackupDamaged:
		if d != nil {
			r.Next = verdict.BackupNext()
		}
	}
}

func remedies(r *compare.Report) []compare.Next {
	var out []compare.Next
	for _, f := range r.Findings {
		for _, m := range f.Remedy {
			out = append(out, compare.Next{Text: m.Text, Command: m.Command})
		}
	}
	return out
}

// Unusable returns the report of an unreadable backup. o says which other checks were requested and remain open.
func Unusable(spec evidence.Spec, err error, o Options) *compare.Report {
	name := spec.Name
	if name == "" {
		name = filepath.Base(spec.Where)
	}
	r := &compare.Report{SchemaVersion: compare.SchemaVersion,
		Tool:    compare.Tool{Name: "etcd-medic", Version: o.Version},
		Sources: []compare.Source{{Name: name, Kind: evidence.KindBackup, Error: err.Error()}},
		Verdict: compare.Verdict{Class: check.ClassInconclusive, Summary: "the backup cannot be read: " + err.Error()},
		Causes:  []compare.Cause{}, Members: []evidence.Facts{}, Findings: []check.Finding{},
		Checks: []compare.CheckOutcome{},
		Next:   []compare.Next{{Text: "make the file readable and run again"}}}
	if objects.IsURL(spec.Where) {
		r.Next[0].Text = "see whether bucket and region are right, and whether the credentials of this environment " +
			"may list and read there; then run again"
	}
	if evidence.IsEndpoint(spec.Where) {
		r.Next[0].Text = "see whether the member serves, and what it wants of clients: --user of a user with role " +
			"root, --cacert, --cert and --key; then run again"
	}
	var none *locate.NoBackupError
	var broken *locate.BrokenError
	switch {
	case errors.As(err, &none):
		r.Verdict.Summary = err.Error()
		r.Next = []compare.Next{{Text: "find out why there is no backup: check the job that makes them, and the " +
			"given path; a file with an unusual name is verified when it is named itself"}}
	case errors.As(err, &broken):
		f := check.Finding{Kind: check.KindBackupUnreadable, Check: check.B02, ID: "B02-1", Severity: check.Critical,
			Class:   check.ClassBackupDamaged,
			Members: []string{name},
			Title:   name + ": the archive is damaged",
			Explanation: "what follows the damage in the archive is lost: " +
				err.Error(),
			Evidence: []check.Evidence{{Member: name, Field: "archive", Observed: err.Error(),
				Expected: "an archive that unpacks to its end"}}}
		r.Findings = append(r.Findings, f)
		r.Verdict = compare.Verdict{Health: check.Unhealthy, Class: check.ClassBackupDamaged, Summary: f.Title,
			FirstBreak: &compare.FirstBreak{Check: check.B02, Member: f.Members}}
		r.Next = verdict.BackupNext()
	}
	return r
}

// Unsaid returns the sources of a report without the error that its verdict states already, that of a backup which was
// never read.
func Unsaid(r *compare.Report) []compare.Source {
	out := slices.Clone(r.Sources)
	if len(r.Members) == 0 && len(out) == 1 && strings.HasSuffix(r.Verdict.Summary, out[0].Error) {
		out[0].Error = ""
	}
	return out
}

// judgePacking adds damage of the compression or archive to the report. The unpacked content is judged by its own
// layers.
func judgePacking(r *compare.Report, m *evidence.Member, err error) {
	f := check.Finding{Kind: check.KindBackupPacking, Severity: check.Error, Class: check.ClassBackupDamaged,
		Members: []string{m.Label()},
		Title:   m.Label() + ": the packed file is damaged", Explanation: "it does not unpack to its end, so what is " +
			"verified here is only what came out",
		Evidence: []check.Evidence{{Member: m.Label(), File: m.DB.File, Field: "packing", Observed: err.Error(),
			Expected: "a file that unpacks to its end"}}}
	Judge(r, check.B02, check.Violated, "", f)
}

// Name returns the label of the backup in a report.
func Name(r *compare.Report) string {
	if len(r.Sources) == 0 {
		return ""
	}
	return r.Sources[0].Name
}

// Line is a report on one line, for the log of a timer: the name and class of the backup, and its content or what is
// wrong.
type Line struct{ Name, Class, Content string }

// String joins the parts.
func (l Line) String() string { return l.Name + ": " + l.Class + ": " + l.Content }

// LineOf returns the report on one line.
func LineOf(r *compare.Report) Line {
	l := Line{Name: Name(r), Class: strings.TrimPrefix(string(r.Verdict.Class), "backup-")}
	if r.Verdict.Cause != nil {
		l.Class += " (" + string(*r.Verdict.Cause) + ")"
	}
	if l.Content = summary(r); len(r.Members) > 0 && r.Members[0].DB != nil && r.Backup != nil {
		l.Content = content(r)
	}
	return l
}

// summary returns the verdict's text without the name of the backup, which a line begins with.
func summary(r *compare.Report) string { return strings.TrimPrefix(r.Verdict.Summary, Name(r)+": ") }

// WarningOf returns the first warning that the class does not state already, without the backup's name; "" if there is
// none.
func WarningOf(r *compare.Report) string {
	i := slices.IndexFunc(r.Findings, func(f check.Finding) bool {
		return f.Severity == check.Warning && f.Kind != check.KindTrailerAbsent
	})
	if i < 0 {
		return ""
	}
	title := r.Findings[i].Title
	return strings.TrimPrefix(title, Name(r)+": ")
}

// content is size, digest and release of a backup that was read, what is in it, and what it was compared with.
func content(r *compare.Report) string {
	m := &r.Members[0]
	parts := []string{plural.Size(r.Backup.Size), "sha256 " + r.Backup.Trailer}
	if m.WroteBy.Etcd != nil {
		parts = append(parts, "etcd "+*m.WroteBy.Etcd)
	}
	if d := m.DB; d.CurrentRevision != nil && d.Keys != nil {
		parts = append(parts, "revision "+d.RevisionText(), d.KeysText()+" "+plural.Form(*d.Keys, "key", "keys"))
	}
	if c, ok := r.Backup.Chain.(*chain.Report); ok {
		parts = append(parts, fmt.Sprintf("%s up to revision %d",
			plural.Of(len(c.Deltas), "delta", "deltas"), c.Revision))
	}
	if a, ok := r.Backup.Against.(*Against); ok {
		for i := range a.Compared {
			parts = append(parts, a.Compared[i].Text())
		}
	}
	if d, ok := r.Backup.Drill.(*Drill); ok {
		parts = append(parts, d.Text())
	}
	if r.Verdict.Health != check.Healthy {
		parts = append(parts, summary(r))
	} else if w := WarningOf(r); w != "" {
		parts = append(parts, "warning: "+w)
	}
	return strings.Join(parts, ", ")
}
