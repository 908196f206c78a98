package repair

import (
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/shell"
)

// choose picks the member whose content is kept.
func (pl *planner) choose() error {
	if pl.o.Best != "" {
		return pl.chooseByOperator()
	}
	if pl.r.Best == nil {
		return refusedf("name the member whose cluster is kept with --best; the others will join it", "the sources belong to different clusters, and which one is kept is not a question of content: %s", pl.standings(labels(pl.r)))
	}
	var top []string
	for _, m := range pl.r.Best.Members {
		if pl.kinds[m] == evidence.KindDataDir {
			top = append(top, m)
		}
	}
	if len(top) == 0 && len(pl.r.Best.Members) == 0 && slices.ContainsFunc(pl.r.Best.Ranking, func(r compare.Rank) bool { return r.Usable && pl.kinds[r.Member] == evidence.KindDataDir }) {
		return refusedf("name the member whose history is kept with --best; the others are reseeded from it", "which one is kept is %s", pl.r.Best.Why)
	}
	if len(top) == 0 {
		pl.p.Mode, pl.p.Why = Restore, "no data dir is usable as it is"
		return nil
	}
	pl.votersFirst(top)
	if pl.p.Verdict.Cause == causeDifferentBackups {
		all := pl.dataDirs() // who lags by an entry decides nothing here
		return refusedf("name the member whose backup is kept with --best, usually that of the highest revision; see "+shell.Format("etcd-medic compare").Sources(all...).String(),
			"the members were restored from different backups, and only you know which one counts: %s", pl.standings(all))
	}
	if len(top) > 1 && !pl.harmless(top) {
		hint := "name the member to keep with --best; see " + shell.Format("etcd-medic compare").Sources(top...).String()
		return refusedf(hint, "%s stand equally well, but their contents differ: %s", strings.Join(top, ", "), pl.standings(top))
	}
	pl.setBest(top[0], "content", pl.r.Best.Why)
	pl.p.Best.Equals = top[1:]
	return nil
}

func (pl *planner) chooseByOperator() error {
	label := pl.o.Best
	if pl.kinds[label] != evidence.KindDataDir {
		return refusedf("choose one of the data dirs", "--best %s is no data dir (%s)", label, pl.kinds[label])
	}
	if f := pl.facts(label); f.DB == nil || f.DB.CurrentRevision == nil || f.WAL == nil {
		return refusedf("choose another one, or restore from a backup", "--best %s has no database and log that can be read", label)
	}
	if why := pl.damage(label); why != "" {
		return refusedf("choose another one, or restore from a backup", "--best %s can not serve: %s", label, why)
	}
	pl.setBest(label, "operator", "chosen with --best")
	if r := pl.ranks[label]; r != nil {
		pl.p.Best.Why = "chosen with --best: " + strings.Join(r.Reasons, ", ")
	}
	return nil
}

func (pl *planner) setBest(label, by, why string) {
	f := pl.facts(label)
	pl.best = f
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
	for i := range pl.r.Findings {
		if fd := &pl.r.Findings[i]; breaks(fd) && len(fd.Members) == 1 && fd.Members[0] == label && fd.Class != "membership" && !slices.Contains(c.Known, fd.Check) {
			c.Known = append(c.Known, fd.Check)
		}
	}
	pl.p.Best = c
}

// breaks tells whether a finding alone makes a diagnosis unhealthy.
func breaks(f *check.Finding) bool { return f.Class != "" && f.Severity.Rank() >= check.Error.Rank() }

// harmless tells whether it makes no difference which of these is kept: none of them lacks or alone holds anything, and their
// databases hold the same.
func (pl *planner) harmless(top []string) bool {
	for _, m := range top {
		r := pl.ranks[m]
		if r == nil || r.Lacks.CommittedEntries > 0 || r.Unique.CommittedEntries > 0 {
			return false
		}
		if pl.differs(pl.facts(top[0]), pl.facts(m)) {
			return false
		}
	}
	return true
}

// differs tells whether two databases at one applied index hold different content by their bucket hashes. Different applied indexes
// prove nothing, so they do not count.
func (pl *planner) differs(a, b *evidence.Facts) bool {
	if a == b || a.DB == nil || b.DB == nil || a.AppliedIndex != b.AppliedIndex {
		return false
	}
	if a.DB.CompactRevision == nil || b.DB.CompactRevision == nil || *a.DB.CompactRevision != *b.DB.CompactRevision {
		return false
	}
	for _, name := range []string{"key", "auth", "authUsers", "authRoles"} {
		x, y := a.DB.Hashes[name], b.DB.Hashes[name]
		if x != "" && y != "" && x != y {
			return true
		}
	}
	return false
}
