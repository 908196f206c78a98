package timeline

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// terms lists the terms of the merged log with the leader according to the votes in the logs.
func (b *builder) terms() {
	byTerm := map[uint64]*Term{}
	var order []uint64
	for _, m := range b.in.Members {
		for _, t := range m.WAL.LastByTerm {
			x := byTerm[t.Term]
			if x == nil {
				x = &Term{Term: t.Term, Span: Span{From: t.First, To: t.Last}}
				byTerm[t.Term], order = x, append(order, t.Term)
			}
			x.From, x.To = min(x.From, t.First), max(x.To, t.Last)
		}
	}
	votes, quorum := b.votes()
	for _, n := range order {
		x := byTerm[n]
		for id, count := range votes[n] {
			if len(votes[n]) > 1 && count < quorum {
				continue // several candidates, and no known majority
			}
			x.Leader, x.Votes, x.Elected = b.name(id), count, count >= quorum
		}
		b.t.Terms = append(b.t.Terms, *x)
	}
	slices.SortFunc(b.t.Terms, func(x, y Term) int { return cmp.Compare(x.Term, y.Term) })
}

// votes counts, by term, the logs that voted for each candidate, and returns the size of a majority.
func (b *builder) votes() (votes map[uint64]map[dumplog.ID]int, quorum int) {
	votes, quorum = map[uint64]map[dumplog.ID]int{}, 1
	seen := map[dumplog.ID]bool{}
	var newest *evidence.Member
	for _, m := range b.in.Members {
		if !m.HasWAL() || m.MemberID == 0 || seen[m.MemberID] {
			continue
		}
		seen[m.MemberID] = true
		if newest == nil || m.Commit > newest.Commit {
			newest, quorum = m, m.Membership.Quorum()
		}
		for _, v := range m.WAL.Summary.Votes {
			if votes[v.Term] == nil {
				votes[v.Term] = map[dumplog.ID]int{}
			}
			votes[v.Term][v.For]++
		}
	}
	return votes, quorum
}

// lanes fills one lane per member.
func (b *builder) lanes() {
	for i, m := range b.in.Members {
		r := b.in.Replay.Members[i]
		l := Lane{Member: m.Label(), ID: m.MemberID, Commit: m.Commit, Applied: m.AppliedMin, AppliedMax: m.AppliedMax,
			JudgedFrom: r.From, JudgedTo: r.To,
			Lacks: r.Lacks, Surplus: r.Surplus, Lives: []Life{}, Purged: []Span{}, Damaged: []Span{},
			Skipped: []Span{}, Hidden: []Span{},
			Curve: curve(&r.Curve)}
		if !r.Checked {
			l.Why = Clip(r.Why, maxText)
		}
		l.FirstLack = b.firstLack(i)
		if r.GivesAuth() {
			l.AuthExpected = &r.AuthExpected
		}
		if m.HasWAL() {
			b.logOf(&l, &m.WAL.Summary)
		}
		if i < len(b.in.Forgot) {
			l.forgot(b.in.Forgot[i])
		}
		l.hidden(r)
		b.livesOf(&l)
		b.t.Lanes = append(b.t.Lanes, l)
	}
}

// firstLack returns the first listed entry whose effect a member lacks, 0 if there is none.
func (b *builder) firstLack(member int) uint64 {
	for _, e := range b.in.Replay.Events {
		if slices.Contains(e.Lacking, member) {
			return e.Index
		}
	}
	return 0
}

// logOf fills in the purged, skipped and damaged ranges of the member's log.
func (b *builder) logOf(l *Lane, s *dumplog.Summary) {
	l.LogFrom, l.LogTo = s.FirstIndex, s.LastIndex
	if s.FirstIndex > 1 {
		what := "not in its log: purged, or before it joined"
		if s.Start == dumplog.StartPurged {
			what = "purged from its log"
		}
		l.Purged = append(l.Purged, Span{From: 1, To: s.FirstIndex - 1, What: what})
	}
	for _, j := range s.Jumps {
		if j.To >= j.From {
			l.Skipped = append(l.Skipped, Span{From: j.From, To: j.To,
				What: "replaced by a snapshot from the leader"})
		}
	}
	for _, d := range s.Damage {
		if d.LostFrom == 0 {
			continue
		}
		to := d.LostTo
		if to == 0 {
			to = max(b.t.Last, d.LostFrom)
		}
		l.Damaged = append(l.Damaged, Span{From: d.LostFrom, To: to,
			What: Clip(fmt.Sprintf("%s in %s at offset %d", d.Kind, d.Segment, d.Offset), maxText)})
	}
}

// forgot adds the entries that the log lost at its end, as far as no damage covers them already.
func (l *Lane) forgot(s Span) {
	for _, d := range l.Damaged {
		if d.From <= s.From && s.From <= d.To {
			s.From = d.To + 1
		}
	}
	if s.From != 0 && s.From <= s.To {
		l.Damaged = append(l.Damaged, Span{From: s.From, To: s.To,
			What: "not in its log; the member had applied them or knew that they are committed"})
	}
}

// hidden adds the entries whose effect the member's database does not show.
func (l *Lane) hidden(r *replay.MemberResult) {
	points := r.Curve.Points
	for i, p := range points {
		if p.Revision != 0 {
			continue
		}
		to := r.To
		if i+1 < len(points) {
			to = points[i+1].Index - 1
		}
		l.Hidden = append(l.Hidden, Span{From: p.Index, To: to,
			What: "the database does not show what these entries did"})
	}
}

// livesOf splits the lane into the processes that proposed entries.
func (b *builder) livesOf(l *Lane) {
	for i := range b.lives {
		x := &b.lives[i]
		if len(x.Members) != 1 || l.ID == 0 || x.Members[0] != l.ID {
			continue
		}
		if n := len(l.Lives); n > 0 {
			l.Lives[n-1].To = max(l.Lives[n-1].From, x.First-1)
		}
		l.Lives = append(l.Lives, Life{Span: Span{From: x.First, To: max(x.Last, l.LogTo)},
			Start: x.Start(b.near()).UnixMilli(), Publish: x.Publish,
			Requests: x.Requests, Inferred: x.Inferred})
	}
}

func curve(c *replay.Curve) []int64 {
	out := make([]int64, 0, PerPoint*len(c.Points))
	for _, p := range c.Points {
		out = append(out, int64(p.Index), p.Revision, int64(p.AuthRevision), int64(p.Consistent))
	}
	return out
}
