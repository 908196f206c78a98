package plan

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/boot"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/release"
)

// mender tries repairs of the data dirs on which no server may be started.
type mender struct {
	*sources
	o      *Options
	trials Trials
	// specs name the sources one by one, including those from archives and folders.
	specs map[string]evidence.Spec
}

// tryMends tries, for every data dir that a server refuses or that must not vote, its own files first and then other
// members.
func tryMends(ctx context.Context, r *compare.Report, specs []evidence.Spec, scratch Scratch,
	o *Options) (out []Mend, err error) {
	pl := newPlanner(r, specs, *o)
	var sick []*evidence.Facts
	for i := range r.Members {
		f := &r.Members[i]
		if !pl.isDataDir(f) || f.WAL == nil || f.MemberID == 0 {
			continue
		}
		if a := boot.Of(f); pl.mendable(f, &a) && (!a.Trusted() || pl.staleRows(f)) {
			sick = append(sick, f)
		}
	}
	if len(sick) == 0 || !r.InputsUnchanged || scratch == nil {
		return nil, nil
	}
	trials, err := scratch()
	if err != nil {
		return nil, err
	}
	defer trials.Close()
	set, err := openForTrials(ctx, specs, o)
	if err != nil {
		return nil, err
	}
	defer func() { _ = set.Close() }() // only read
	m := &mender{sources: pl.sources, o: o, trials: trials, specs: SpecsOf(set)}
	for _, f := range sick {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out = append(out, m.member(ctx, f))
	}
	return out, errors.Join(ctx.Err(), set.Unchanged(ctx))
}

// openForTrials opens the sources that trials copy. Their digests are those of the report.
func openForTrials(ctx context.Context, specs []evidence.Spec, o *Options) (*evidence.Set, error) {
	return evidence.Open(ctx, specs, evidence.Options{NoHashes: true, Access: o.Compare.Access,
		Progress: o.Compare.Progress})
}

// mendable leaves out members that were wiped or rolled back: their files are sound, so nothing in them can be mended.
// A member that lost only its database still has everything it acknowledged in its log.
func (ss *sources) mendable(f *evidence.Facts, a *boot.Answer) bool {
	return !ss.lostData(f.Name) || f.DB == nil && a.Forgot == nil
}

// checkRows finds rows of bucket members that raft's configuration contradicts.
const checkRows = check.M07

// staleRows reports whether bucket members of a database is wrong, in a release that builds its member list from it.
func (ss *sources) staleRows(f *evidence.Facts) bool {
	if f.WroteBy.Etcd == nil || !release.Of(*f.WroteBy.Etcd).Has(release.MembersFromDB).Certain() {
		return false
	}
	return slices.ContainsFunc(ss.r.Findings, func(x check.Finding) bool {
		return x.Check == checkRows && x.Severity.Rank() >= check.Error.Rank() && slices.Contains(x.Members, f.Name)
	})
}

// lostData reports whether a finding says that the member was wiped, rolled back or assembled from files of different
// times.
func (ss *sources) lostData(label string) bool {
	return slices.ContainsFunc(ss.r.Findings, func(f check.Finding) bool { return breaksPromise(&f, label) })
}

// SpecsOf names each source of a set by itself.
func SpecsOf(set *evidence.Set) map[string]evidence.Spec {
	out := map[string]evidence.Spec{}
	for _, m := range set.Members {
		p := m.Source.Parts()
		spec := evidence.Spec{Name: m.Label(), Where: p.DB}
		switch {
		case m.Source.Kind != evidence.KindDataDir:
		case p.Snap != "" && p.WAL != "" && filepath.Dir(p.WAL) != filepath.Dir(p.Snap):
			spec.Where, spec.WALDir = filepath.Dir(p.Snap), p.WAL
		case p.WAL != "":
			spec.Where = filepath.Dir(p.WAL)
		default:
			spec.Where = filepath.Dir(p.Snap)
		}
		out[spec.Name] = spec
	}
	return out
}

// repairsOf is the surgery that the damage of a member requires, in order: the log shows what the database has to hold,
// so it comes first.
func repairsOf(f *evidence.Facts, a *boot.Answer) (out []string) {
	if len(f.WAL.Damage) > 0 || a.Forgot != nil {
		out = append(out, MendLog)
	}
	if dbDamaged(f) || len(out) == 0 {
		out = append(out, MendDB)
	}
	return out
}

func dbDamaged(f *evidence.Facts) bool {
	db := f.DB
	return db == nil || len(db.Metas) == 0 || len(db.Damage) > 0 || db.DamageOmitted > 0 || db.Undecodable > 0 ||
		db.ConsistentIndex == nil
}

// member tries the member's own files, then those of others and the backups among the sources.
func (m *mender) member(ctx context.Context, f *evidence.Facts) Mend {
	a := boot.Of(f)
	res := Mend{Member: f.Name}
	if !a.Trusted() {
		res.Repairs = repairsOf(f, &a)
	}
	if m.staleRows(f) {
		res.Repairs = append(res.Repairs, MendMeta)
	}
	bytes := int64(0)
	for _, s := range m.r.Sources {
		if s.Name == f.Name {
			bytes = s.Bytes
		}
	}
	if err := m.trials.Room(int64(1+len(res.Repairs)) * bytes); err != nil {
		res.Why = "not tried: " + err.Error()
		return res
	}
	peers, bases := m.peers(f), []evidence.Spec{}
	if slices.Contains(res.Repairs, MendDB) {
		bases = m.bases()
	}
	m.try(ctx, f, &res, nil, evidence.Spec{})
	for _, base := range bases {
		if !res.Works {
			m.tryMore(ctx, f, &res, nil, base)
		}
	}
	if len(peers) == 0 || slices.Contains(res.Repairs, MendLog) {
		peers = append(peers, m.logPeers(f)...)
	}
	if len(peers) == 0 {
		return res
	}
	for _, base := range append([]evidence.Spec{{}}, bases...) {
		if !res.Works {
			m.tryMore(ctx, f, &res, peers, base)
		}
	}
	return res
}

// tryMore tries with more than the member's own files. If that does not work either, the earlier reason is kept.
func (m *mender) tryMore(ctx context.Context, f *evidence.Facts, res *Mend, peers []evidence.Spec, base evidence.Spec) {
	more := Mend{Member: res.Member, Repairs: res.Repairs, Base: base.Name}
	for _, p := range peers {
		more.With = append(more.With, p.Name)
	}
	if m.try(ctx, f, &more, peers, base); more.Works {
		*res = more
	}
}

// peers are the other data dirs of the cluster on which a server may be started.
func (m *mender) peers(f *evidence.Facts) []evidence.Spec {
	var out []evidence.Spec
	for i := range m.r.Members {
		o := &m.r.Members[i]
		if why := m.damage(o.Name); why != "" {
			continue
		}
		if s, ok := m.specs[o.Name]; ok && o.Name != f.Name && o.ClusterID == f.ClusterID && o.MemberID != f.MemberID &&
			m.isDataDir(o) {
			out = append(out, s)
		}
	}
	return out
}

// logPeers are the data dirs of the cluster with a complete log, even if no server may be started on them.
func (m *mender) logPeers(f *evidence.Facts) []evidence.Spec {
	var out []evidence.Spec
	for i := range m.r.Members {
		o := &m.r.Members[i]
		s, ok := m.specs[o.Name]
		if !ok || o.Name == f.Name || o.ClusterID != f.ClusterID || o.MemberID == f.MemberID || !m.isDataDir(o) ||
			m.damage(o.Name) == "" {
			continue
		}
		if a := boot.Of(o); o.WAL != nil && len(o.WAL.Damage) == 0 && a.Forgot == nil && m.mendable(o, &a) {
			out = append(out, s)
		}
	}
	return out
}

// bases are the backups among the sources.
func (m *mender) bases() []evidence.Spec {
	var out []evidence.Spec
	for _, src := range m.r.Sources {
		if s, ok := m.specs[src.Name]; ok && (src.Kind == evidence.KindBackup || src.Kind == evidence.KindDB) {
			out = append(out, s)
		}
	}
	return out
}

// try makes the repairs on a copy. They work when nothing is lost and no error in the diagnosis of the result names the
// member.
func (m *mender) try(ctx context.Context, f *evidence.Facts, res *Mend, peers []evidence.Spec, base evidence.Spec) {
	var made *evidence.Facts
	var why string
	did, err := m.trials.Mend(ctx, MendJob{Source: m.specs[f.Name], Peers: peers, Base: base, Repairs: res.Repairs,
		Compare: m.o.Compare}, func(dir string) { made, why = m.judge(ctx, f, dir, res.rows()) })
	if err != nil {
		res.Works, res.Why = false, refusal.Reason(err)
		return
	}
	if why != "" {
		res.Works, res.Why = false, why
		return
	}
	res.Works, res.Why, res.made, res.Promise = true, strings.Join(did, "; "), made, promiseOf(made)
}

// judge diagnoses the result in the member's place, alone and together with the sound members. why is "" when it agrees
// with all of them, a server starts on it, and it is still that member: two servers must not run under one ID.
// rows is true when bucket members was mended too.
func (m *mender) judge(ctx context.Context, f *evidence.Facts, out string,
	rows bool) (made *evidence.Facts, why string) {
	for _, others := range [][]evidence.Spec{nil, m.peers(f)} {
		if made != nil && len(others) == 0 {
			break
		}
		r, err := compare.Diagnose(ctx, append([]evidence.Spec{{Name: f.Name, Where: out}}, others...), m.o.Compare)
		if err != nil {
			return nil, err.Error()
		}
		for i := range r.Findings {
			x := &r.Findings[i]
			switch {
			case !slices.Contains(x.Members, f.Name):
			case rows && x.Check == checkRows:
				return nil, "the result is still wrong: " + x.Title
			case x.Class == check.ClassMembership:
			case len(others) == 0 && x.Severity.Rank() >= check.Error.Rank():
				return nil, "the result is still damaged: " + x.Title
			case Breaks(x):
				return nil, "compared with the other members the result is not sound: " + x.Title
			}
		}
		made = &r.Members[0]
		if made.MemberID != 0 && made.MemberID != f.MemberID {
			return nil, fmt.Sprintf("the result is data of member %s, not of %s", made.MemberID, f.MemberID)
		}
	}
	if a := boot.Of(made); !a.Trusted() {
		return nil, "a server does not start on the result, or must not: " + a.Why
	}
	return made, ""
}

// promiseOf is what a mended data dir holds.
func promiseOf(f *evidence.Facts) *Promise {
	p := &Promise{AppliedIndex: f.AppliedIndex, Compact: -1}
	if f.WAL != nil {
		p.LastIndex = f.WAL.LastIndex
	}
	if db := f.DB; db != nil {
		if db.CurrentRevision != nil {
			p.Revision = *db.CurrentRevision
		}
		if db.CompactRevision != nil {
			p.Compact = *db.CompactRevision
		}
		if db.HashKV != nil {
			p.HashKV = db.HashKV.Hash
		}
	}
	return p
}

// fromMended plans with mended data dirs if none is usable as it is. The furthest one is kept, if a majority can be
// started with the mended ones, or there is no other member. It returns false without a plan.
func (pl *planner) fromMended() bool {
	var best *Mend
	for _, m := range pl.p.mended() {
		if m.made != nil && m.made.DB != nil && (best == nil || m.Promise.AppliedIndex > best.Promise.AppliedIndex) {
			best = m
		}
	}
	if best == nil {
		return false
	}
	kept := *pl.p
	pl.restoring = true
	pl.p.Mode, pl.p.Why = "", ""
	pl.setBestFacts(best.Member, "content", "no data dir is usable as it is; mended, it has come furthest", best.made)
	pl.cluster()
	if err := pl.members(); err != nil || !pl.mendFirst() {
		*pl.p, pl.restoring, pl.best, pl.ref = kept, false, nil, nil
		clear(pl.used)
		return false
	}
	return true
}
