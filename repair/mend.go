package repair

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/boot"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/repair/narrow"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Mend is a narrow repair of one member's data dir, from its own log and pages or with the help of others. It was tried on a scratch copy
// when the plan was made, and gives nothing up where it works.
type Mend struct {
	Member string `json:"member"`
	// Repair is wal or db, With are the members that it takes from, none when the member's own files suffice.
	Repair string   `json:"repair"`
	With   []string `json:"with,omitempty"`
	Works  bool     `json:"works"`
	// Why says what was done to the copy, or why it does not work.
	Why string `json:"why"`
}

// mender tries repairs of the members that no server may be started on.
type mender struct {
	pl      *planner
	o       *PlanOptions
	scratch string
	n       int
}

// tryMends tries, for every data dir that a server refuses or that must not vote, its own files first and then other members.
func tryMends(ctx context.Context, r *compare.Report, specs []evidence.Spec, o *PlanOptions) ([]Mend, error) {
	pl := newPlanner(r, specs, *o)
	var sick []*evidence.Facts
	for i := range r.Members {
		f := &r.Members[i]
		if _, ok := pl.specOf(f.Name); !ok || !pl.isDataDir(f) || f.WAL == nil || f.MemberID == 0 {
			continue
		}
		// A member that was wiped or rolled back has sound files: nothing in them can be mended.
		if a := boot.Of(f); !a.Trusted() && !pl.lostData(f.Name) {
			sick = append(sick, f)
		}
	}
	if len(sick) == 0 || !r.InputsUnchanged {
		return nil, nil
	}
	scratch, err := os.MkdirTemp(o.Scratch, "etcd-medic-plan-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // copies of this run
	m := &mender{pl: pl, o: o, scratch: scratch}
	var out []Mend
	for _, f := range sick {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out = append(out, m.member(ctx, f))
	}
	return out, ctx.Err()
}

// lostData tells whether a finding says that the member was wiped, rolled back or put together from files of different times.
func (pl *planner) lostData(label string) bool {
	return slices.ContainsFunc(pl.r.Findings, func(f check.Finding) bool { return pl.breaksPromise(&f, label) })
}

// specOf is how a source is named again; ok is false for one that came out of an archive.
func (pl *planner) specOf(label string) (evidence.Spec, bool) {
	for _, s := range pl.r.Sources {
		if s.Name != label || s.Where == "" {
			continue
		}
		spec, err := evidence.ParseSpec(s.Where)
		spec.Name = label
		return spec, err == nil
	}
	return evidence.Spec{}, false
}

func (m *mender) member(ctx context.Context, f *evidence.Facts) Mend {
	res := Mend{Member: f.Name, Repair: "db"}
	var change narrow.Change = narrow.DB{}
	if a := boot.Of(f); len(f.WAL.Damage) > 0 || a.Forgot != nil {
		res.Repair, change = "wal", narrow.WAL{}
	}
	bytes := int64(0)
	for _, s := range m.pl.r.Sources {
		if s.Name == f.Name {
			bytes = s.Bytes
		}
	}
	if err := enough(m.scratch, 2*bytes, Room); err != nil {
		res.Why = "not tried: " + err.Error()
		return res
	}
	if res.Works, res.Why = m.try(ctx, f, change, nil); res.Works {
		return res
	}
	peers := m.peers(f)
	if len(peers) == 0 {
		return res
	}
	works, why := m.try(ctx, f, change, peers)
	if !works {
		return res
	}
	res.Works, res.Why = works, why
	for _, p := range peers {
		res.With = append(res.With, p.Name)
	}
	return res
}

// peers are the other data dirs of the cluster.
func (m *mender) peers(f *evidence.Facts) []evidence.Spec {
	var out []evidence.Spec
	for i := range m.pl.r.Members {
		o := &m.pl.r.Members[i]
		if why := m.pl.damage(o.Name); why != "" {
			continue
		}
		if s, ok := m.pl.specOf(o.Name); ok && o.Name != f.Name && o.ClusterID == f.ClusterID && o.MemberID != f.MemberID && m.pl.isDataDir(o) {
			out = append(out, s)
		}
	}
	return out
}

// try makes the change on a copy. It works when nothing is given up and the diagnosis of the result names the member in no error.
func (m *mender) try(ctx context.Context, f *evidence.Facts, c narrow.Change, peers []evidence.Spec) (works bool, why string) {
	spec, _ := m.pl.specOf(f.Name)
	m.n++
	out := filepath.Join(m.scratch, fmt.Sprint(m.n))
	defer func() { _ = os.RemoveAll(out) }() // judged below
	r, err := narrow.Run(ctx, narrow.Options{Source: spec, With: peers, Out: out, Compare: m.o.Compare}, c)
	if err != nil {
		return false, strings.TrimPrefix(err.Error(), "refused: ")
	}
	if len(r.GivesUp) > 0 {
		return false, "it gives up " + strings.Join(r.GivesUp, "; ")
	}
	for i := range r.After.Findings {
		if x := &r.After.Findings[i]; x.Severity.Rank() >= check.Error.Rank() && slices.Contains(x.Members, f.Name) {
			return false, "the result is still damaged: " + x.Title
		}
	}
	if why := m.against(ctx, f, out); why != "" {
		return false, why
	}
	return true, strings.Join(r.Did, "; ")
}

// against diagnoses the result in the member's place among the sound ones, "" when it differs from none.
func (m *mender) against(ctx context.Context, f *evidence.Facts, out string) string {
	peers := m.peers(f)
	if len(peers) == 0 {
		return ""
	}
	r, err := compare.Diagnose(ctx, append([]evidence.Spec{{Name: f.Name, Where: out}}, peers...), m.o.Compare)
	if err != nil {
		return err.Error()
	}
	for i := range r.Findings {
		if x := &r.Findings[i]; x.Class != "membership" && breaks(x) && slices.Contains(x.Members, f.Name) {
			return "beside the other members the result is not sound: " + x.Title
		}
	}
	return ""
}

// mended are the repairs that work.
func (p *Plan) mended() []*Mend {
	var out []*Mend
	for i := range p.Mends {
		if p.Mends[i].Works {
			out = append(out, &p.Mends[i])
		}
	}
	return out
}

// mendOf is the repair that works for a source, nil when there is none.
func (p *Plan) mendOf(source string) *Mend {
	for _, m := range p.mended() {
		if m.Member == source {
			return m
		}
	}
	return nil
}

// mendFirst tells whether files are mended before anything else: no majority can be started, and with what is mended one can, or the member
// that would be kept cannot be started either.
func (pl *planner) mendFirst() bool {
	c, n := &pl.p.Cluster, 0
	for i := range pl.p.Members {
		if m := &pl.p.Members[i]; !m.Startable && !m.Learner && m.Action != Retire && m.Action != Remove && m.Source != "" && pl.p.mendOf(m.Source) != nil {
			n++
		}
	}
	best := pl.p.Member(pl.p.Best.Name)
	return n > 0 && c.Startable < c.Quorum && (c.Startable+n >= c.Quorum || best == nil || !best.Startable)
}

// mendWay is the way that gives nothing up: each member that can be mended keeps its ID, its votes and its data.
func (pl *planner) mendWay() Way {
	b := &builder{p: pl.p}
	var names []string
	for i := range pl.p.Members {
		m := &pl.p.Members[i]
		if x := pl.p.mendOf(m.Source); x != nil && m.Source != "" && !m.Startable && m.Action != Retire {
			names = append(names, m.Name)
			b.mend(m, x)
		}
	}
	return Way{Mode: MendFiles, Possible: true, Steps: b.steps,
		Why: fmt.Sprintf("the files of %s can be mended without giving anything up, as was tried on a copy: the member keeps its ID, its votes and its data", strings.Join(names, ", "))}
}

// mend is done by people: it runs on the member's own host.
func (b *builder) mend(m *Member, x *Mend) {
	b.add(Step{Kind: StepStop, Member: m.Name, Title: "stop " + m.Name, Precondition: "none: no server may run on its data dir", Effect: "the process of " + m.Name + " has ended",
		Undo: "start it again", Done: m.Name + " does not answer", ByHand: byHandStop(m)})
	what, run := "log", shell.Format("etcd-medic repair wal <DATA_DIR> -o <DATA_DIR>.mended")
	if x.Repair == "db" {
		what, run = "database", shell.Format("etcd-medic repair db --rebuild <DATA_DIR> -o <DATA_DIR>.mended")
	}
	from := "from its own files"
	for _, w := range x.With {
		run = run.Then(shell.Format("--with {}", shell.FillFor("COPY_OF", w)))
		from = "with " + strings.Join(x.With, ", ")
	}
	b.add(Step{Kind: StepMend, Member: m.Name, Title: fmt.Sprintf("mend the %s of %s %s", what, m.Name, from), Precondition: m.Name + " does not run",
		Effect: "a new data dir with the same member ID: " + x.Why + "; the old one is kept under another name", Undo: "put the old data dir back",
		Done: "etcd-medic inspect finds nothing wrong with the new data dir", ByHand: []Command{
			onHost(m, "etcd-medic", run),
			onHost(m, "etcd-medic", shell.Format("etcd-medic inspect <DATA_DIR>.mended")),
			onHost(m, "etcd-medic", setAside.Then(shell.Format("&& mv -T <DATA_DIR>.mended <DATA_DIR> && chown -R --reference=<DATA_DIR>.before-repair <DATA_DIR>"))),
		}})
	b.add(Step{Kind: StepStart, Member: m.Name, Title: "start " + m.Name + " on the mended data dir", Precondition: "the new data dir is in place",
		Effect: m.Name + " votes again and catches up", Undo: "stop it again", Done: m.Name + " serves and knows a leader", ByHand: byHandStart(m)})
}
