// Package dossier collects the content of a report for a bug: the report of a diagnosis, its timeline, the rows that
// differ, and the use of the files. It is data; other packages make pages and archives from it.
//
// It never contains values and secrets: a value is its length and a digest.
package dossier

import (
	"context"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/boot"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/timeline"
)

// Dossier is the whole document.
type Dossier struct {
	SchemaVersion int             `json:"schemaVersion"`
	Report        *compare.Report `json:"report"`
	// Timeline is nil if there is no log to draw, or the sources are of different clusters.
	Timeline *timeline.Timeline `json:"timeline"`
	// Differences are the buckets that differ or could not be compared; the others are in Equal.
	Differences []Difference `json:"differences"`
	Equal       []string     `json:"equalBuckets"`
	// ComparedAt is the highest entry that all compared members have applied, 0 if unknown.
	ComparedAt uint64 `json:"comparedAt,omitempty"`
	// NotCompared says which members were not compared, in all buckets or in keys, and why.
	NotCompared []string  `json:"notCompared"`
	Storage     []Storage `json:"storage"`
	// Redaction describes what is not shown.
	Redaction string `json:"redaction"`
}

// Options tune Collect.
type Options struct {
	Compare compare.Options
	// MaxRows bounds the listed rows of each bucket that differs; 0 means 100,000.
	MaxRows  int
	Timeline timeline.Options
	// Then, if set, is called with the whole dossier before the sources are closed.
	Then func(ctx context.Context, members []*evidence.Member, d *Dossier) error
}

// inClear is the Redaction of a dossier with keys in plain text.
const inClear = "Keys, user names, role names and addresses are shown. Values are shown as length and a keyed digest" +
	"; passwords, password hashes and tokens are left out."

// Collect diagnoses the sources and returns what the pages show.
func Collect(ctx context.Context, specs []evidence.Spec, o Options) (*Dossier, error) {
	if o.MaxRows == 0 {
		o.MaxRows = 100_000
	}
	d := &Dossier{SchemaVersion: compare.SchemaVersion, Differences: []Difference{}, Equal: []string{},
		NotCompared: []string{}, Storage: []Storage{}, Redaction: inClear}
	o.Compare.Values, o.Compare.Places = false, o.MaxRows
	study := o.Compare.Study
	o.Compare.Study = func(ctx context.Context, in *check.Input, r *compare.Report) error {
		if study != nil {
			if err := study(ctx, in, r); err != nil {
				return err
			}
		}
		return d.study(ctx, in, r, &o)
	}
	var err error
	if d.Report, err = compare.Diagnose(ctx, specs, o.Compare); err != nil {
		return nil, err
	}
	return d, nil
}

// study reads the sources while they are open.
func (d *Dossier) study(ctx context.Context, in *check.Input, r *compare.Report, o *Options) error {
	progress := o.Compare.Progress
	if progress == nil {
		progress = func(string) {}
	}
	progress("drawing the timeline")
	var err error
	if d.Timeline, err = timeline.Build(ctx, TimelineInput(in, r), o.Timeline); err != nil {
		return err
	}
	if in.Diff != nil {
		progress("listing differences")
		if err := d.differences(ctx, in, o.MaxRows); err != nil {
			return err
		}
	}
	progress("reading files and prefixes")
	if err := d.storage(ctx, in.Members, kept(r)); err != nil || o.Then == nil {
		return err
	}
	d.Report = r
	return o.Then(ctx, in.Members, d)
}

// TimelineInput returns the data of a diagnosis for a timeline.
func TimelineInput(in *check.Input, r *compare.Report) timeline.Input {
	marks := slices.DeleteFunc(slices.Clone(r.Timeline),
		func(m timeline.Moment) bool { return m.Kind == timeline.KindLog }) // they are notes, with their texts
	ti := timeline.Input{Members: in.Members, Replay: in.Replay, Marks: marks}
	if b := r.Verdict.FirstBreak; b != nil {
		ti.Break = b.Index
	}
	for i := range r.Members {
		var lost timeline.Span
		if f := boot.Of(&r.Members[i]).Forgot; f != nil {
			lost = timeline.Span{From: f.From, To: f.To}
		}
		ti.Forgot = append(ti.Forgot, lost)
	}
	for _, m := range in.Members {
		if j := in.ServerLogs[m.Label()]; j != nil {
			for _, e := range j.Events {
				n := timeline.Note{Member: m.Label(), Index: e.Index, ID: e.ID, Line: timeline.Clip(e.Text, 300)}
				if !e.Time.IsZero() {
					n.Unix = e.Time.UnixMilli()
				}
				ti.Notes = append(ti.Notes, n)
			}
		}
	}
	return ti
}

// kept returns the member that the report recommends, "" if it recommends none.
func kept(r *compare.Report) string {
	if r.Best == nil || len(r.Best.Members) == 0 {
		return ""
	}
	return r.Best.Members[0]
}

// differences lists the buckets. Rows beyond those of the diagnosis are read now; if a small bucket has more, it
// compares again with a higher bound.
func (d *Dossier) differences(ctx context.Context, in *check.Input, maxRows int) error {
	df := in.Diff
	lacks := func(b diff.Bucket) bool { return b.Name != "key" && len(b.Rows) < min(b.Differ, maxRows) }
	if slices.ContainsFunc(df.Buckets, lacks) {
		more, err := diff.Run(ctx, in.Members, in.Replay, diff.Options{MaxRows: maxRows})
		if err != nil {
			return err
		}
		df = more
	}
	d.ComparedAt = df.Common
	for i, m := range in.Members {
		if why := df.NotCompared[i]; why != "" {
			d.NotCompared = append(d.NotCompared, m.Label()+": "+why)
		} else if why := df.KeysNotCompared[i]; why != "" {
			d.NotCompared = append(d.NotCompared, "keys of "+m.Label()+": "+why)
		}
	}
	for _, b := range df.Buckets {
		if b.Equal.Certain() && len(b.Rows) == 0 {
			d.Equal = append(d.Equal, b.Name)
			continue
		}
		if b.Name == "key" && len(b.Rows) < min(b.Differ, maxRows) {
			var err error
			if b.Rows, err = df.KeyRows(ctx, maxRows); err != nil {
				return err
			}
		}
		d.Differences = append(d.Differences, difference(&b, in.Members))
	}
	return nil
}
