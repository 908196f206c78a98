package verdict

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/shell"
)

// maxLost bounds the entries listed as lost; all are counted.
const maxLost = 100

// lost lists the required effects that the kept member lacks and that another member or only the log shows.
func (rk *ranking) lost(b *Best, label string, pos int) {
	b.Lost.KeyNames = []check.Bytes{}
	rp := rk.Replay
	if rp == nil || len(b.Members) == 0 {
		return
	}
	seen, first, last, others := map[string]bool{}, uint64(0), uint64(0), rk.othersOf(pos)
	for _, e := range rp.Events {
		if !counted(e, pos) {
			continue
		}
		if !inBranch(others, e) {
			b.Lost.CommittedEntries++
			if last = e.Index; first == 0 {
				first = e.Index
			}
		}
		for _, k := range e.Keys {
			if !seen[k] {
				seen[k] = true
				if len(b.Lost.KeyNames) < maxLost {
					b.Lost.KeyNames = append(b.Lost.KeyNames, check.Bytes(k))
				}
			}
		}
		if len(b.Lost.Entries) < maxLost {
			b.Lost.Entries = append(b.Lost.Entries, rk.lostEntry(e))
		}
	}
	if rp.EventCount > len(rp.Events) && len(others) == 0 {
		// The list of events is bounded, the members' counts are not; the entries that are not listed can be anywhere
		// after it.
		b.Lost.CommittedEntries, last = max(b.Lost.CommittedEntries, rp.Members[pos].Lacks),
			max(last, rp.Members[pos].To)
	}
	b.Lost.Keys = len(seen)
	if first > 0 {
		b.Lost.Command = showEntries(label, first, last)
	}
	rk.lostBranches(&b.Lost, others)
}

// lostAbove adds the committed entries above a source: those that another member can supply it with, or else are lost.
func (rk *ranking) lostAbove(b *Best, s standing) {
	if s.behind == 0 || len(b.Members) == 0 {
		return
	}
	if !s.cut {
		b.Lost.Awaited, b.Lost.FromLogs = int(s.behind), s.fromLogs
		return
	}
	b.Lost.AfterEnd = int(s.behind)
	b.Lost.CommittedEntries += b.Lost.AfterEnd
	m := rk.Members[s.pos]
	first := max(m.LastIndex(), m.ConsistentIndex()) + 1
	last := first + s.behind - 1
	if len(b.Lost.Entries) > 0 {
		first = b.Lost.Entries[0].Index // one command for all that is lost
	}
	for _, o := range rk.Members {
		if o.HasLog() && o.WAL.Summary.FirstIndex <= first && o.LastIndex() >= last {
			b.Lost.Command = showEntries(o.Label(), first, last)
			return
		}
	}
}

// showEntries writes out entries of a source's log with all that they hold.
func showEntries(label string, first, last uint64) shell.Command {
	return shell.Format("etcd-medic dumplog {} --index {}..{} --values -w jsonl", shell.Source(label), first, last)
}

func (rk *ranking) lostEntry(e *replay.Event) LostEntry {
	l := LostEntry{Term: e.Term, Index: e.Index, What: e.What, HeldBy: rk.labels(e.Holding)}
	if e.Proposer != 0 {
		l.ProposedBy = rk.Members.MemberName(e.Proposer)
	}
	return l
}

// onlyLogged reports whether the log requires an effect that the member does not show, whatever others hold.
func onlyLogged(o replay.Outcome) bool {
	return o.Wrongly || o.State == replay.Missing || o.State == replay.Contradicted
}

// Nowhere counts the listed entries whose effect no source holds. It names those of their proposers that are not among
// sources (names): their databases may hold the effect.
func (l *Lost) Nowhere(sources []string) (entries int, proposers []string) {
	for i := range l.Entries {
		e := &l.Entries[i]
		if len(e.HeldBy) > 0 {
			continue
		}
		entries++
		if e.ProposedBy != "" && !slices.Contains(sources, e.ProposedBy) && !slices.Contains(proposers, e.ProposedBy) {
			proposers = append(proposers, e.ProposedBy)
		}
	}
	return entries, proposers
}
