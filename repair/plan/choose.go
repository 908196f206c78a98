package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/shell"
)

// choose picks the member whose content is kept.
func (pl *planner) choose() error {
	if pl.o.Best != "" {
		return pl.onlyBackups(pl.chooseByOperator())
	}
	return pl.onlyBackups(pl.chooseByContent())
}

// onlyBackups changes the hint of a refusal that asks for another member: if no data dir can be kept, whoever is named
// with --best is refused too.
func (pl *planner) onlyBackups(err error) error {
	var refused *refusal.Error
	if !errors.As(err, &refused) {
		return err
	}
	var whys []string
	for _, label := range pl.dataDirs() {
		why := pl.notKeepable(label)
		if why == "" {
			return err
		}
		if label != pl.o.Best { // refused says it
			whys = append(whys, label+" "+why)
		}
	}
	reason := refused.Reason
	if len(whys) > 0 {
		reason += "; no data dir can be kept: " + strings.Join(whys, ", ")
	}
	return refusal.New("make new data dirs from a backup with etcd-medic restore"+
		", or add a source whose database and log can be read", "%s", reason)
}

// chooseByContent picks the member that the diagnosis ranks first.
func (pl *planner) chooseByContent() error {
	if pl.r.Best == nil {
		return refusal.New("name the member whose cluster is kept with --best; the others will join it",
			"the sources belong to different clusters, and which one is kept is not a question of content: %s",
			pl.standings(labels(pl.r)))
	}
	var top []string
	for _, m := range pl.r.Best.Members {
		if pl.kinds[m] == evidence.KindDataDir {
			top = append(top, m)
		}
	}
	if len(top) == 0 && len(pl.r.Best.Members) == 0 &&
		slices.ContainsFunc(pl.r.Best.Ranking,
			func(r compare.Rank) bool { return r.Usable && pl.kinds[r.Member] == evidence.KindDataDir }) {
		return refusal.New("name the member whose history is kept with --best; the others are reseeded from it",
			"which member to keep is undecided: %s", pl.r.Best.Why)
	}
	if len(top) == 0 {
		pl.p.Mode, pl.p.Why = Restore, "no data dir is usable as it is"
		return nil
	}
	pl.votersFirst(top)
	if pl.p.Verdict.Cause == cause.RestoreFromDifferentSnapshots {
		all := pl.dataDirs() // a lag of some entries does not matter here
		return refusal.New("name the member whose backup is kept with --best, usually that of the highest revision; "+
			"see "+
			shell.Format("etcd-medic compare").Sources(all...).String(),
			"the members were restored from different backups, and only you know which one counts: %s",
			pl.standings(all))
	}
	if len(top) > 1 && !pl.r.Best.Interchangeable(top, pl.facts) {
		hint := "name the member to keep with --best; see " +
			shell.Format("etcd-medic compare").Sources(top...).String()
		return refusal.New(hint, "%s are equally good, but their contents differ: %s", strings.Join(top, ", "),
			pl.standings(top))
	}
	pl.setBest(top[0], "content", pl.r.Best.Why)
	if pl.r.Best.For != pl.r.Best.Why {
		pl.p.Best.For = pl.r.Best.For
	}
	pl.p.Best.Equals = top[1:]
	return nil
}

func (pl *planner) chooseByOperator() error {
	label := pl.o.Best
	if why := pl.notKeepable(label); why != "" {
		hint := "choose another one, or restore from a backup"
		if pl.kinds[label] != evidence.KindDataDir {
			hint = "choose one of the data dirs"
		}
		return refusal.New(hint, "--best %s %s", label, why)
	}
	pl.setBest(label, "operator", "chosen with --best")
	if r := pl.ranks[label]; r != nil {
		pl.p.Best.Why = strings.Join(append([]string{"chosen with --best"}, r.Reasons...), ", ")
	}
	return nil
}

// notKeepable says why the content of a source cannot be kept, "" if it can.
func (pl *planner) notKeepable(label string) string {
	if pl.kinds[label] != evidence.KindDataDir {
		return fmt.Sprintf("is not a data dir (%s)", pl.kinds[label])
	}
	if f := pl.facts(label); f.DB == nil || f.DB.CurrentRevision == nil || f.WAL == nil {
		return "has no database and log that can be read"
	}
	// A database that is sound can be kept although no server starts on the data dir.
	if why := pl.damage(label); why != "" && (pl.ranks[label] == nil || !pl.ranks[label].Usable ||
		dbDamaged(pl.facts(label))) {
		return "cannot serve: " + why
	}
	return ""
}

func (ro *roster) setBest(label, by, why string) {
	ro.setBestFacts(label, by, why, ro.facts(label))
}

// setBestFacts sets the facts of the member whose content is kept.
func (ro *roster) setBestFacts(label, by, why string, f *evidence.Facts) {
	ro.best = f
	c := Choice{Name: label, ID: f.MemberID, By: by, Why: why, AppliedIndex: f.AppliedIndex}
	if f.DB != nil && f.DB.CurrentRevision != nil {
		c.Revision = *f.DB.CurrentRevision
	}
	if f.DB != nil && f.DB.CompactRevision != nil {
		c.Compact = *f.DB.CompactRevision
	}
	if f.DB != nil && f.DB.HashKV != nil {
		c.HashKV = f.DB.HashKV.Hash
	}
	if f.Auth != nil {
		c.AuthRevision = f.Auth.Revision
	}
	for i := range ro.r.Findings {
		if fd := &ro.r.Findings[i]; Breaks(fd) && fd.Alone(label) &&
			fd.Class != check.ClassMembership && !slices.Contains(c.Known, fd.Check) {
			c.Known = append(c.Known, fd.Check)
		}
	}
	ro.p.Best = c
}

// Breaks reports whether a finding alone makes a diagnosis unhealthy.
func Breaks(f *check.Finding) bool { return f.Class != "" && f.Severity.Rank() >= check.Error.Rank() }

// differs reports whether two databases are known to hold different content.
func differs(a, b *evidence.Facts) bool { return evidence.SameContent(a, b).Excluded() }
