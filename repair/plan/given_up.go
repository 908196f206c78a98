package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/boot"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/shell"
)

// GivenUp says in a few words what the plan gives up.
func (p *Plan) GivenUp() string {
	l, kept := &p.Lost, cmp.Or(p.Best.Name, "the backup")
	wrong := l.Records.Loses(kept)
	switch x := p.Rebuilt; {
	case x != nil && x.Lost != nil:
		return x.Lost.String() + ", which were committed, and no log at hand holds all of them"
	case l.AfterBackup:
		return "everything after the backup that is restored, and no source shows how much that is"
	case l.CommittedEntries > 0:
		return l.committed(wrong)
	case wrong != "":
		return wrong
	case l.Awaited > 0 && len(l.Unproven) == 0:
		return fmt.Sprintf("no committed write: %s first gets the last %s from another member", kept,
			plural.Of(l.Awaited, "committed entry", "committed entries"))
	case len(l.Others) > 0:
		return "nothing from its own history" + l.unproven() + "; the content of " + strings.Join(l.Others, ", ") +
			", with another history, is given up"
	case len(l.Unproven) > 0:
		return "nothing" + l.unproven()
	case l.Open != nil && p.Mode != MendFiles: // no member is lost there
		return "nothing that is known; no source shows whether " + strings.Join(l.Open.Voters, ", ") +
			" had committed more"
	}
	return "no committed write that another member still has"
}

// unproven says why it is not proven that nothing is given up, "" where it is.
func (l *Lost) unproven() string {
	if len(l.Unproven) == 0 {
		return ""
	}
	return " that is known; that nothing is given up is not proven: " + strings.Join(l.Unproven, "; ")
}

// committed says how many committed entries are given up, and which records besides.
func (l *Lost) committed(wrong string) string {
	own := l.CommittedEntries - l.Parted
	says := plural.Of(own, "committed entry", "committed entries")
	if l.AfterEnd == 0 {
		says = "the effect of " + says + " on " + plural.Of(l.Keys, "key", "keys")
	}
	if l.Parted > 0 {
		parted := plural.Of(l.Parted, "committed entry", "committed entries") + " of the other history"
		if own == 0 {
			says = parted
		} else {
			says += ", and " + parted
		}
	}
	if wrong != "" {
		says += ", and " + wrong
	}
	return says
}

// lostByRestore says what a restore from a backup, or from the rebuilt database, gives up.
func (lo *losses) lostByRestore(backup string) {
	switch x := lo.p.Rebuilt; {
	case x != nil:
		lo.lostOfRebuilt(x)
	case lo.r.Best == nil || !slices.Contains(lo.r.Best.Members, backup):
		lo.p.Lost.AfterBackup = true
	default:
		lo.lostOfBest()
	}
}

// made reports whether the kept content was made for the plan, of files that are not usable as they are: the report
// says nothing of it.
func (lo *losses) made() bool {
	if x := lo.p.Rebuilt; x != nil {
		return !x.Continues
	}
	m := lo.p.MendOf(lo.p.Best.Name)
	return m != nil && m.made != nil && m.made == lo.best
}

// lostOfMade says what content gives up that was made for the plan.
func (lo *losses) lostOfMade() {
	if x := lo.p.Rebuilt; x != nil {
		lo.lostOfRebuilt(x)
		return
	}
	end := lo.best.AppliedIndex
	for _, m := range lo.p.ToMend() {
		x := lo.p.MendOf(m.Source)
		end = max(end, x.Promise.AppliedIndex, x.Promise.LastIndex)
	}
	for _, m := range lo.p.BesideMended() {
		if f := lo.facts(m.Source); f.WAL != nil {
			end = max(end, f.WAL.LastIndex)
		}
	}
	var others []string
	for i := range lo.r.Members {
		if f := &lo.r.Members[i]; f.ClusterID == 0 || f.ClusterID == lo.best.ClusterID {
			others = append(others, f.Name)
		}
	}
	lo.lostRange(lostAbove(lo.r, end, others))
}

// lostOfRebuilt says what a rebuilt database gives up.
func (lo *losses) lostOfRebuilt(x *Rebuilt) {
	lo.lostRange(x.Lost)
	lo.undecidedOfRebuilt(x)
}

// undecidedOfRebuilt says that logs hold entries above a rebuilt database that no source shows to be committed. They
// may have been acknowledged: a member writes down what is committed only with the entries after it.
func (lo *losses) undecidedOfRebuilt(x *Rebuilt) {
	from, end := x.Index+1, uint64(0)
	if x.Lost != nil {
		from = x.Lost.To + 1
	}
	for _, l := range x.Logs {
		if f := lo.facts(l); f.WAL != nil {
			end = max(end, f.WAL.LastIndex)
		}
	}
	if end < from {
		return
	}
	open := boot.Range{From: from, To: end}
	lo.p.Lost.Unproven = append(lo.p.Lost.Unproven, open.String()+" in the logs may have been acknowledged, though no "+
		"source shows the commit")
	if x.Lost == nil {
		lo.saveEntries(open)
	}
}

// lostRange counts committed entries that are given up, and saves them from a log or a backup that holds them.
func (lo *losses) lostRange(x *boot.Range) {
	if x == nil {
		return
	}
	l := &lo.p.Lost
	l.CommittedEntries, l.AfterEnd = int(x.To-x.From+1), int(x.To-x.From+1)
	lo.saveEntries(*x)
}

// saveEntries saves entries from a log or a backup that holds them.
func (lo *losses) saveEntries(x boot.Range) {
	l := &lo.p.Lost
	for _, src := range lo.named() {
		f := lo.facts(src.Name)
		switch {
		case f.WAL != nil && f.WAL.LastIndex >= x.To && f.WAL.FirstIndex <= x.From:
			l.save(lo.dumpEntries(src, x.From, x.To).Then(shell.Format("> lost-entries.jsonl")))
			return
		case f.WAL == nil && f.AppliedIndex >= x.To:
			l.save(extract(src, nil, -1))
			return
		}
	}
}
