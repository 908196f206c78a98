package surgery

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// Options say what to change and which consequences to accept.
type Options struct {
	Source evidence.Spec
	// With are other members of the cluster: the result is compared with them, and lost entries come from their logs.
	With []evidence.Spec
	// Out is the new path.
	Out string
	// Accept are the accepted consequences, by the names of their flags.
	Accept  []string
	Compare compare.Options
}

// The consequences that can be accepted.
const (
	// AcceptLostCommits: the member's log loses entries that the cluster may have committed with its help.
	AcceptLostCommits = "accept-lost-commits"
	// AcceptLostRevisions: the database loses records of keys, or they cannot be proven complete.
	AcceptLostRevisions = "accept-lost-revisions"
	// AcceptUnproven: entries with a wrong checksum stay in the log.
	AcceptUnproven = "accept-unproven-entries"
	// AcceptDivergence: the member's content or behavior will differ from that of the others.
	AcceptDivergence = "accept-divergence"
)

// Change is one kind of surgery.
type Change interface {
	// Name is wal, db or meta.
	Name() string
	// apply makes the change on w and describes it in w.report.
	apply(ctx context.Context, w *work) error
}

// Run makes the change. If it returns a *refusal.Error, nothing is written; nor if a source changes meanwhile: the
// sources stay open during both diagnoses, and are compared with their state at the start.
func Run(ctx context.Context, o Options, c Change) (*Report, error) {
	w, err := newWork(ctx, &o)
	if err != nil {
		return nil, err
	}
	defer w.abandon()
	before, err := w.diagnose(ctx, o.Source)
	if err != nil {
		return nil, err
	}
	r := w.report
	w.before = before
	r.Tool, r.Repair, r.Before = before.Tool, c.Name(), stateOf(before)
	if err := c.apply(ctx, w); err != nil {
		return nil, err
	}
	if err := w.finish(ctx); err != nil {
		return nil, err
	}
	// The result takes the place and the name of the source.
	spec := evidence.Spec{Name: w.source().Source.Name, Where: w.result(),
		Backup: w.source().Source.Kind == evidence.KindBackup}
	after, err := w.diagnose(ctx, spec)
	if err != nil {
		return nil, err
	}
	r.After = stateOf(after)
	if b := after.Best; b != nil && b.Lost.Records.Count > 0 {
		w.note("the result still has %s proven wrong", plural.Of(b.Lost.Records.Count, "record that is",
			"records that are"))
	}
	if err := w.judge(before, after); err != nil {
		return nil, err
	}
	if w.sickAsBefore(after) {
		if err := w.offer(ctx, c, filepath.Join(w.out.Path, ".offer")); err != nil {
			return nil, err
		}
	}
	if err := w.set.Unchanged(ctx); err != nil {
		return nil, err
	}
	r.InputsUnchanged = true // else nothing is written
	return r, w.commit()
}

// diagnose diagnoses the source, or the result in its place, with the other members. A diagnosis of what changed
// meanwhile proves nothing.
func (w *work) diagnose(ctx context.Context, source evidence.Spec) (*compare.Report, error) {
	o := w.o.Compare
	o.Keep = w.source().Label() // whatever its rank, what it holds is what is changed
	o.WrongRecords = maxFill
	r, err := compare.Diagnose(ctx, append([]evidence.Spec{source}, w.o.With...), o)
	if err == nil && !r.InputsUnchanged {
		if err = w.set.Unchanged(ctx); err == nil { // an archive, whose unpacked files belong to the diagnosis
			err = &evidence.ChangedError{Source: w.report.Source, File: source.Where, How: "changed while it was read"}
		}
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// accepts records a consequence and reports whether it was accepted.
func (w *work) accepts(flag string) bool {
	if !slices.Contains(w.o.Accept, flag) {
		return false
	}
	if !slices.Contains(w.report.Accepted, flag) {
		w.report.Accepted = append(w.report.Accepted, flag)
	}
	return true
}

// need refuses unless the consequence was accepted.
func (w *work) need(flag, hint, reason string) error {
	if w.accepts(flag) {
		return nil
	}
	return &refusal.Error{Reason: reason, Flag: flag, Hint: hint}
}

// judge refuses a result in which a check finds an error that it did not find in the source. An error that names other
// members only shows that they are wrong now that the source is right.
func (w *work) judge(before, after *compare.Report) error {
	was, is := w.violated(before), w.violated(after)
	var first *check.Finding
	for id, f := range is {
		if (was[id] == nil || !w.concerns(was[id])) && w.concerns(f) {
			w.report.New = append(w.report.New, id)
			if first == nil || id < first.Check {
				first = f
			}
		}
	}
	for id := range was {
		if is[id] == nil && !w.remains(id) {
			w.report.Cured = append(w.report.Cured, id)
		}
	}
	slices.Sort(w.report.New)
	slices.Sort(w.report.Cured)
	if first == nil {
		return nil
	}
	return w.need(AcceptDivergence, "", "the result breaks what held before ("+string(first.Check)+"): "+first.Title)
}

// concerns reports whether a finding names the source, or no member.
func (w *work) concerns(f *check.Finding) bool {
	return len(f.Members) == 0 || slices.Contains(f.Members, w.source().Label())
}

// violated returns the checks with a finding at or above error: their first finding that concerns the source, else
// their first one.
func (w *work) violated(r *compare.Report) map[check.ID]*check.Finding {
	out := map[check.ID]*check.Finding{}
	for i := range r.Findings {
		f := &r.Findings[i]
		if was := out[f.Check]; f.Severity.Rank() >= check.Error.Rank() &&
			(was == nil || !w.concerns(was) && w.concerns(f)) {
			out[f.Check] = f
		}
	}
	return out
}
