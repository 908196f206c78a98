package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// branch is what logs hold from the entry on at which they part from others: there two leaders have committed entries
// of different terms, and each has acknowledged its own.
type branch struct {
	members  []int
	from, to uint64
	// left is true if all of these logs continue with a snapshot of the other history. Their databases hold nothing of
	// the branch then.
	left bool
}

func (b *branch) entries() int { return int(b.to - b.from + 1) } //nolint:gosec // to is at or above from

// branches returns the histories that part, nil where no logs part. Where one entry was altered, the logs agree
// after it.
func (rk *ranking) branches() []branch {
	if rk.Replay == nil || !slices.ContainsFunc(rk.Findings, func(f check.Finding) bool {
		return f.Kind == check.KindCommittedEntriesDiffer
	}) {
		return nil
	}
	return rk.parting(0, nil)
}

// parting returns the histories that part first, at one of the differences between logs or after it; nil where none do.
// With members given, it is the histories of these.
func (rk *ranking) parting(from int, among []int) []branch {
	for i := from; i < len(rk.Replay.LogDiffs); i++ {
		if out := rk.partingAt(i, among); out != nil {
			rk.withOneTerm(out, from, i)
			return out
		}
	}
	return nil
}

// split returns the histories into which a branch parts later, nil if all its members follow one.
func (rk *ranking) split(b *branch) []branch {
	from := slices.IndexFunc(rk.Replay.LogDiffs, func(d replay.LogDiff) bool { return d.Index > b.from })
	if from < 0 || len(b.members) < 2 {
		return nil
	}
	return rk.parting(from, b.members)
}

// withOneTerm moves the start of branches to the first of the differing entries right before it. The two leaders were
// in one term there: the data dir was copied before the vote of that term. Where no other term follows, an altered
// entry looks the same.
func (rk *ranking) withOneTerm(bs []branch, first, at int) {
	list := rk.Replay.LogDiffs
	for ; at > first && list[at-1].Index+1 == list[at].Index && differAt(&list[at-1], bs); at-- {
		for i := range bs {
			bs[i].from = list[at-1].Index
		}
	}
}

// differAt reports whether the logs of each branch hold one entry at a difference, and those of others another.
func differAt(d *replay.LogDiff, bs []branch) bool {
	seen := map[int]bool{}
	for i := range bs {
		version := -1
		for _, h := range bs[i].members {
			at := slices.IndexFunc(d.Versions, func(holders []int) bool { return slices.Contains(holders, h) })
			if at < 0 {
				continue // its log ends before
			}
			if version >= 0 && at != version {
				return false
			}
			version = at
		}
		if version < 0 || seen[version] {
			return false
		}
		seen[version] = true
	}
	return true
}

// partingAt returns the histories that part at one of the differences between logs, nil if they meet again.
func (rk *ranking) partingAt(at int, among []int) (out []branch) {
	d := &rk.Replay.LogDiffs[at]
	terms := map[uint64]bool{}
	for _, holders := range d.Versions {
		b := branch{from: d.Index, left: true}
		for _, h := range holders {
			if _, committed := d.By[h]; !committed || among != nil && !slices.Contains(among, h) {
				continue
			}
			end, left := rk.runEnd(h, d.Index)
			b.members, b.to, b.left = append(b.members, h), max(b.to, end), b.left && left
		}
		if len(b.members) == 0 {
			continue
		}
		terms[rk.Members[b.members[0]].WAL.TermAt(d.Index)] = true
		out = append(out, b)
	}
	if len(terms) < 2 || len(terms) < len(out) {
		return nil
	}
	common := out[0].to
	for i := range out {
		common = min(common, out[i].to)
	}
	if !rk.differUpTo(at, common) {
		return nil
	}
	return out
}

// differUpTo reports whether logs differ at every index from a place in the list of differences up to an index, as far
// as these are listed.
func (rk *ranking) differUpTo(at int, last uint64) bool {
	list := rk.Replay.LogDiffs[at:]
	for i := range list {
		if list[i].Index != list[0].Index+uint64(i) {
			return false
		}
		if list[i].Index >= last {
			return true
		}
	}
	return !rk.Replay.DiffsComplete()
}

// runEnd is the last committed entry of a member's log before a snapshot that it received after an index, or at its
// end. left is true if there is such a snapshot.
func (rk *ranking) runEnd(pos int, index uint64) (end uint64, left bool) {
	m := rk.Members[pos]
	for _, j := range m.WAL.Summary.Jumps {
		if j.From > index {
			return j.From - 1, true
		}
	}
	return min(m.LastIndex(), m.Commit), false
}

// branchOf is the place of the branch that the content of a member follows, -1 where that is not known.
func (rk *ranking) branchOf(bs []branch, pos int) int {
	m := rk.Members[pos]
	follows := func(b *branch) bool {
		if slices.Contains(b.members, pos) {
			_, left := rk.runEnd(pos, b.from)
			return !left
		}
		return slices.ContainsFunc(b.members, func(h int) bool {
			o := rk.Members[h]
			last := min(m.LastIndex(), o.LastIndex())
			return last >= b.from && m.WAL.TermAt(last) != 0 && m.WAL.TermAt(last) == o.WAL.TermAt(last)
		})
	}
	for i := range bs {
		if follows(&bs[i]) {
			return i
		}
	}
	return -1
}

// pathOf is the branches that the content of a member follows, by place: one of the first parting, then one of those
// into which that splits.
func (rk *ranking) pathOf(bs []branch, pos int) (path []int) {
	for len(bs) > 0 {
		own := rk.branchOf(bs, pos)
		if own < 0 {
			break
		}
		path, bs = append(path, own), rk.split(&bs[own])
	}
	return path
}

// partPaths reports whether two paths name different branches of one parting.
func partPaths(a, b []int) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return true
		}
	}
	return false
}

// othersOf are the branches that a member does not follow. What they hold is lost if it is kept.
func (rk *ranking) othersOf(pos int) (out []branch) {
	bs := rk.branches()
	if rk.endsBefore(bs, pos) {
		for i := range bs {
			out = append(out, rk.whole(bs[i])...)
		}
		return out
	}
	for _, own := range rk.pathOf(bs, pos) {
		for i := range bs {
			if i != own {
				out = append(out, rk.whole(bs[i])...)
			}
		}
		bs = rk.split(&bs[own])
	}
	return out
}

// endsBefore reports whether a member holds only what is common to all histories. Whichever of them it gets later, it
// cannot be kept in place of their members without losing them all.
func (rk *ranking) endsBefore(bs []branch, pos int) bool {
	m := rk.Members[pos]
	return len(bs) > 0 && max(m.LastIndex(), m.ConsistentIndex()) < bs[0].from
}

// whole is a branch with all into which it splits, each entry in one of them: the longest begins where the branch does.
func (rk *ranking) whole(b branch) (out []branch) {
	subs := rk.split(&b)
	if subs == nil {
		return []branch{b}
	}
	longest := 0
	for i := range subs {
		if subs[i].to > subs[longest].to {
			longest = i
		}
	}
	subs[0], subs[longest] = subs[longest], subs[0]
	for i := range subs {
		out = append(out, rk.whole(subs[i])...)
	}
	out[0].from = b.from
	return out
}

// followsOther reports whether two members follow histories that parted. No server brings one of them to the other: it
// would have to replace entries that it has committed.
func (rk *ranking) followsOther(a, b int) bool {
	bs := rk.branches()
	return partPaths(rk.pathOf(bs, a), rk.pathOf(bs, b))
}

// partedUnseen says that voters which are not among the sources may hold more of histories that parted, "" where none
// did or all voters are there.
func (rk *ranking) partedUnseen(pos int) string {
	if len(rk.branches()) == 0 {
		return ""
	}
	missing := 0
	for _, v := range rk.votersFor(pos) {
		if !slices.ContainsFunc(rk.Members, func(m *evidence.Member) bool { return m.HasLog() && m.MemberID == v }) {
			missing++
		}
	}
	if missing == 0 {
		return ""
	}
	return fmt.Sprintf("members committed different entries, and %s not among the sources: what else was committed "+
		"is not known", plural.Of(missing, "voter is", "voters are"))
}

// committedFor is the last entry that is committed in the history that a member follows.
func (rk *ranking) committedFor(pos int) uint64 {
	bs := rk.branches()
	own := rk.pathOf(bs, pos)
	if len(own) == 0 {
		return rk.committed()
	}
	commit := uint64(0)
	for i, m := range rk.Members {
		if path := rk.pathOf(bs, i); len(path) > 0 && !partPaths(own, path) {
			commit = max(commit, m.Commit)
		}
	}
	return commit
}

// lostBranches adds the entries that only another history holds.
func (rk *ranking) lostBranches(l *Lost, branches []branch) {
	for i := range branches {
		b := &branches[i]
		l.CommittedEntries += b.entries()
		l.Parted += b.entries()
		command := showEntries(rk.Members[rk.longest(b)].Label(), b.from, b.to)
		if l.Command.IsZero() {
			l.Command = command
		} else {
			l.MoreCommands = append(l.MoreCommands, command)
		}
	}
}

// longest is a member whose log holds the branch to its end.
func (rk *ranking) longest(b *branch) int {
	return b.members[max(0, slices.IndexFunc(b.members, func(h int) bool {
		end, _ := rk.runEnd(h, b.from)
		return end == b.to
	}))]
}

// inBranch reports whether an event is about an entry that counts as one of another history.
func inBranch(branches []branch, e *replay.Event) bool {
	return slices.ContainsFunc(branches, func(b branch) bool { return b.from <= e.Index && e.Index <= b.to })
}

// sayParted names the other history for a member.
func (rk *ranking) sayParted(pos int, say func(string, ...any)) {
	for _, b := range rk.othersOf(pos) {
		say("does not follow the log of %s, which holds %s from entry %d on", strings.Join(rk.labels(b.members), ", "),
			plural.Of(b.entries(), "other committed entry", "other committed entries"), b.from)
	}
}
