// Package backup proves backups: files of snapshot save, databases copied from a data dir, snapshots streamed from a running member.
//
// A backup is verified layer by layer, from the file itself (sha256 trailer, size) over its pages, buckets and MVCC history up to what
// a restore makes of it (auth, members, leases, alarms, versions, revision). Each layer ends in one of three verdicts; what could not be
// looked at never reads as fine. etcd's own tools stop earlier: snapshot status does not look at the trailer, restore looks at nothing else.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Options tune Verify.
type Options struct {
	compare.Options
	// Against are sources that the backup is held against; see Against.
	Against []evidence.Spec
	// Drill, if set, proves by a restore what reading can not. It sees the opened backup and puts its outcome into the report.
	Drill func(ctx context.Context, m *evidence.Member, r *compare.Report) (*Drill, error)
}

// Verify reads one backup and returns the report of diagnose with its layers. The error is non-nil when the file can not be looked at
// at all; damage of any kind is in the report.
func Verify(ctx context.Context, spec evidence.Spec, o Options) (*compare.Report, error) {
	o.Backup = true
	o.Look = func(ctx context.Context, m *evidence.Member, r *compare.Report) error {
		if r.Backup == nil {
			return nil
		}
		r.Backup.Layers = Layers(r)
		if len(o.Against) > 0 {
			if err := against(ctx, m, r, o); err != nil {
				return err
			}
		}
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
		return nil, &evidence.SourceError{Where: spec.Where, Found: fmt.Sprintf("%d sources in one", len(r.Sources)), Expected: "one backup; unpack it and name the folder"}
	}
	return r, err
}

// next says what to do with the backup, as far as the verdict of diagnose does not.
func next(r *compare.Report) {
	d, _ := r.Backup.Drill.(*Drill)
	switch r.Verdict.Class {
	case "backup-good", "backup-unverifiable":
		if d == nil || d.Refused != "" {
			r.Next = append([]compare.Next{{Text: "prove by a restore that it serves", Command: shell.Format("etcd-medic verify --drill {}", shell.Source(Name(r)))}}, remedies(r)...)
		} else {
			r.Next = append(remedies(r), compare.Next{Text: "nothing to do; keep it"})
		}
	case "backup-damaged":
		if d != nil {
			r.Next = compare.BackupNext()
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

// Unusable is the report of a backup that can not be looked at, for a run over several.
func Unusable(spec evidence.Spec, err error, o compare.Options) *compare.Report {
	name := spec.Name
	if name == "" {
		name = filepath.Base(spec.Where)
	}
	return &compare.Report{SchemaVersion: compare.SchemaVersion, Tool: compare.Tool{Name: "etcd-medic", Version: o.Version},
		Sources: []compare.Source{{Name: name, Kind: evidence.KindBackup, Error: err.Error()}},
		Verdict: compare.Verdict{Class: "inconclusive", Summary: "the backup can not be read: " + err.Error()},
		Causes:  []compare.Cause{}, Members: []evidence.Facts{}, Findings: []check.Finding{}, Checks: []compare.CheckOutcome{},
		Next: []compare.Next{{Text: "make the file readable and run again"}}}
}

// Expand replaces folders by the backups in them: every file with a name like *.db, in name order. A data dir is no folder of backups.
func Expand(specs []evidence.Spec) ([]evidence.Spec, error) {
	var out []evidence.Spec
	for _, s := range specs {
		st, err := os.Stat(s.Where)
		if err != nil || !st.IsDir() {
			out = append(out, s)
			continue
		}
		inside, err := filesOf(s)
		if err != nil {
			return nil, err
		}
		out = append(out, inside...)
	}
	return out, nil
}

const expectedBackups = "a backup file, or a folder of *.db files"

func filesOf(s evidence.Spec) ([]evidence.Spec, error) {
	entries, err := os.ReadDir(s.Where)
	if err != nil {
		return nil, &evidence.SourceError{Where: s.Where, Found: "a folder that can not be listed", Expected: expectedBackups, Err: err}
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.IsDir() && (e.Name() == "member" || e.Name() == "snap" || e.Name() == "wal")
	}) {
		return nil, &evidence.SourceError{Where: s.Where, Found: "a data dir", Expected: expectedBackups, Err: errors.New("see etcd-medic inspect")}
	}
	var out []evidence.Spec
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".db") {
			out = append(out, evidence.Spec{Where: filepath.Join(s.Where, e.Name())})
		}
	}
	if len(out) == 0 {
		return nil, &evidence.SourceError{Where: s.Where, Found: fmt.Sprintf("a folder of %d entries, none of them *.db", len(entries)), Expected: expectedBackups}
	}
	return out, nil
}

// Name returns the label of the backup that a report is about.
func Name(r *compare.Report) string {
	if len(r.Sources) == 0 {
		return ""
	}
	return r.Sources[0].Name
}

// Line is the report on one line, for the log of a timer: name, class, and what it holds or what is wrong.
func Line(r *compare.Report) string {
	s := Name(r) + ": " + strings.TrimPrefix(r.Verdict.Class, "backup-")
	if r.Verdict.Cause != nil {
		s += " (" + *r.Verdict.Cause + ")"
	}
	if len(r.Members) == 0 || r.Members[0].DB == nil || r.Backup == nil {
		return s + ": " + r.Verdict.Summary
	}
	m := &r.Members[0]
	parts := []string{fmt.Sprintf("%d bytes", r.Backup.Size), "sha256 " + r.Backup.Trailer}
	if m.WroteBy.Etcd != nil {
		parts = append(parts, "etcd "+*m.WroteBy.Etcd)
	}
	if d := m.DB; d.CurrentRevision != nil && d.Keys != nil {
		parts = append(parts, fmt.Sprintf("revision %d", *d.CurrentRevision), fmt.Sprintf("%d keys", *d.Keys))
	}
	if a, ok := r.Backup.Against.(*Against); ok {
		for i := range a.Compared {
			parts = append(parts, a.Compared[i].Text())
		}
	}
	if d, ok := r.Backup.Drill.(*Drill); ok {
		parts = append(parts, d.Text())
	}
	if r.Verdict.Healthy == nil || !*r.Verdict.Healthy {
		parts = append(parts, r.Verdict.Summary)
	}
	return s + ": " + strings.Join(parts, ", ")
}
