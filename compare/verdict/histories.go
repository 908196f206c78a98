package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/shell"
)

// sharedHistory is what members hold that share a log.
type sharedHistory struct {
	members []int
	// first is the first request in them; begun is when the process that made it began.
	first replay.RequestID
	begun time.Time
}

// unranked is the ranking where no history can be preferred, because what one lacks of another says nothing. Once the
// operator keeps a member, the members of other histories lack its whole history, and theirs are lost.
func (rk *ranking) unranked(list []standing, why string) *Best {
	b := &Best{Members: []string{}, Why: why, Ranking: []Rank{}, Lost: Lost{KeyNames: []check.Bytes{}}}
	var kept *sharedHistory
	hs := rk.separateHistories().list()
	for i := range hs {
		if slices.Contains(rk.labels(hs[i].members), rk.Keep) {
			kept = &hs[i]
		}
	}
	for _, s := range list {
		row := Rank{Member: rk.Members[s.pos].Label(), Usable: s.usable, Reasons: []string{}}
		if kept != nil && !slices.Contains(kept.members, s.pos) {
			row.Usable = false // not together with the kept one
			row.Reasons = append(row.Reasons, "its history is another one than that of "+rk.Keep)
			row.Lacks.CommittedEntries, row.Unique.CommittedEntries = rk.own(kept.members[0]), rk.own(s.pos)
		}
		b.Ranking = append(b.Ranking, row)
	}
	for i := range hs {
		if kept != nil && &hs[i] != kept {
			rk.giveUp(&b.Lost, hs[i].members[0])
		}
	}
	return b
}

// own counts the entries of a member's log after those that the histories share.
func (rk *ranking) own(pos int) int {
	entries := rk.Members[pos].LastIndex() + 1 - rk.Replay.LogDiffs[0].Index
	return int(entries) //nolint:gosec // the log holds the entry at that index
}

func (rk *ranking) giveUp(l *Lost, pos int) {
	m := rk.Members[pos]
	l.CommittedEntries += rk.own(pos)
	if m.HasDB() && m.DB.KV != nil {
		l.Keys += int(m.DB.KV.LiveKeys)
	}
	l.Command = showEntries(m.Label(), rk.Replay.LogDiffs[0].Index, m.LastIndex())
}

// separateHistories answers whether the sources hold histories of which none continues the other.
type separateHistories struct{ *ranking }

func (rk *ranking) separateHistories() separateHistories { return separateHistories{rk} }

// whyUnranked says why no member can be called best by content: committed entries differ, every log begins with a
// bootstrap or a restore, and not even their first requests are the same, so the sources hold histories of a cluster
// that was bootstrapped several times under the same IDs. It is "" otherwise. What one history lacks of another, its
// cluster never committed.
func (rk separateHistories) whyUnranked() string {
	if s := rk.forcedApart(); s != "" {
		return s
	}
	if rk.Replay == nil || len(rk.Replay.LogDiffs) == 0 ||
		slices.ContainsFunc(rk.Members, func(m *evidence.Member) bool {
			return m.HasLog() && m.WAL.Summary.Start != dumplog.StartBootstrap &&
				m.WAL.Summary.Start != dumplog.StartRestore
		}) {
		return ""
	}
	hs := rk.list()
	if len(hs) < 2 {
		return ""
	}
	var said []string
	for _, h := range hs {
		said = append(said, rk.describe(h))
	}
	old, young := hs[0], hs[len(hs)-1]
	switch restored, logs := rk.countRestored(); {
	case restored > 0 && restored < logs:
		return "content cannot decide: the sources are clusters with the same IDs, one from before a restore and one " +
			"that the restore began. Neither has what the other acknowledged since the backup: choose the history to " +
			"keep, then copy over what the other holds. " + strings.Join(said, "; ")
	case restored > 0:
		return "content cannot decide: the sources are separate clusters with the same IDs, each restored and " +
			"started by itself. None has what the others acknowledged: choose the history to keep, then copy over " +
			"what the others hold. " + strings.Join(said, "; ")
	}
	s := "content cannot decide: the sources are separate clusters with the same IDs. " + strings.Join(said, "; ")
	if old.begun.Before(young.begun) {
		names, keeps := rk.namesOf(young), rk.namesOf(old)
		s += fmt.Sprintf(". If these are the hosts of one cluster, the data of %s was lost, and the cluster was "+
			"bootstrapped there again. Then the earlier data is on %s only, and what was written since is on %s. "+
			"Start no member until one history is chosen", names, keeps, names)
	}
	return s
}

// forcedSides are the forced start at which the logs part, and the members on its two sides; nil otherwise.
func (rk separateHistories) forcedSides() (run *replay.Forced, sides [][]int) {
	if rk.Replay == nil || len(rk.Replay.LogDiffs) == 0 {
		return nil, nil
	}
	d := rk.Replay.LogDiffs[0]
	if len(d.Versions) != 2 {
		return nil, nil
	}
	for i := range rk.Replay.Forced {
		if r := &rk.Replay.Forced[i]; r.First <= d.Index && d.Index <= r.Last {
			return r, d.Versions
		}
	}
	return nil, nil
}

// forcedApart says why no member can be called best where a new cluster was forced on one of them and others continued
// without it, a majority or not: which of the two is the cluster now, only its operators know. It is "" otherwise.
func (rk separateHistories) forcedApart() string {
	run, _ := rk.forcedSides()
	if run == nil {
		return ""
	}
	var said []string
	for _, h := range rk.list() {
		said = append(said, rk.describe(h))
	}
	slices.Sort(said)
	return fmt.Sprintf("content cannot decide: a new cluster was forced on %s at entry %d, and the other side holds "+
		"other committed entries from there on. Neither has what the other acknowledged: choose the history to "+
		"keep, then copy over what the other holds. %s", rk.Members[run.Member].Label(), run.First,
		strings.Join(said, "; "))
}

// countRestored counts the sources whose log begins with a restore, and those with a log.
func (rk separateHistories) countRestored() (restored, logs int) {
	for _, m := range rk.Members {
		if m.HasLog() {
			logs++
		}
		if m.HasLog() && m.WAL.Summary.Start == dumplog.StartRestore {
			restored++
		}
	}
	return restored, logs
}

// list groups the members by the first request after their common beginning, the oldest history first; where a
// forced start parted them, by the side that they are on.
func (rk separateHistories) list() []sharedHistory {
	var out []sharedHistory
	if _, sides := rk.forcedSides(); sides != nil {
		for _, members := range sides {
			out = append(out, sharedHistory{members: members})
		}
		return out
	}
	for i, m := range rk.Members {
		if !m.HasWAL() || m.WAL.First.ID == 0 {
			continue
		}
		id := m.WAL.First.ID
		at := slices.IndexFunc(out, func(h sharedHistory) bool { return h.first == id })
		if at < 0 {
			at, out = len(out), append(out, sharedHistory{first: id, begun: replay.StartTime(id)})
		}
		out[at].members = append(out[at].members, i)
	}
	slices.SortStableFunc(out, func(a, b sharedHistory) int { return a.begun.Compare(b.begun) })
	return out
}

func (rk separateHistories) namesOf(h sharedHistory) string {
	return strings.Join(rk.labels(h.members), ", ")
}

func (rk separateHistories) describe(h sharedHistory) string {
	m := rk.Members[h.members[0]]
	s := fmt.Sprintf("%s: log to %d/%d", rk.namesOf(h), m.WAL.Summary.LastTerm, m.LastIndex())
	if m.HasDB() && m.DB.KV != nil {
		s += fmt.Sprintf(", revision %d, %s", m.CurrentRevision(), plural.Of(int(m.DB.KV.LiveKeys), "key", "keys"))
	}
	if h.first == 0 {
		return s
	}
	return s + ", first process began " + h.begun.UTC().Format("2006-01-02T15:04:05Z")
}

// nextHistories leaves the choice to the operator and shows what each history holds.
func (ad *advice) nextHistories(add func(text string, command shell.Command)) {
	add("keep every data dir unchanged and start no member: if both histories meet, one overwrites the other", none)
	histories := ad.ranking.separateHistories()
	for _, h := range histories.list() {
		label := ad.Members[h.members[0]].Label()
		add("see what "+histories.namesOf(h)+" holds", shell.Format("etcd-medic extract {} --format jsonl -o {}.jsonl",
			shell.Source(label), shell.FileName(label)))
	}
	add("plan the repair with the history to keep, and copy the other's keys from the extract",
		shell.Format("etcd-medic repair plan").Sources(ad.allLabels()...).
			Then(shell.Format("--best <MEMBER> -o plan.yaml")))
}
