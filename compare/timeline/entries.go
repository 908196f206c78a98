package timeline

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// classes are the rows of the density.
var classes = []string{"keys", "leases", "auth", "other"}

func class(k dumplog.Kind) int {
	switch {
	case k.IsKV():
		return 0
	case k.IsLease():
		return 1
	case k.IsAuth():
		return 2
	}
	return 3
}

// log makes one pass over the merged log: entries, density, times and process runs.
func (b *builder) log(ctx context.Context) error {
	t := b.t
	t.Density = Density{From: t.First, Step: (t.Last-t.First)/bins + 1, Classes: classes,
		Counts: make([][]int, len(classes)), Lacking: b.lacking()}
	n := int((t.Last-t.First)/t.Density.Step) + 1
	for i := range t.Density.Counts {
		t.Density.Counts[i] = make([]int, n)
	}
	t.Entries = Entries{Listed: b.listed(), Kinds: []string{}, Index: []uint64{}, Term: []uint64{}, Kind: []int{},
		What: []string{}}
	var lives dumplog.Lives
	for _, m := range b.in.Members {
		lives.AddMember(m.MemberID)
		lives.AddMember(m.Membership.Voters...)
		lives.AddMember(m.Membership.Learners...)
		lives.AddMember(m.Membership.Removed...)
	}
	times := dumplog.Times{Near: b.near(), Step: time.Second}
	kinds := map[dumplog.Kind]int{}
	for e, err := range b.in.Replay.Entries(ctx) {
		if err != nil {
			return err
		}
		if at := (e.Index - t.First) / t.Density.Step; e.Index >= t.First && at < uint64(n) {
			t.Density.Counts[class(e.Req.Kind)][at]++
		}
		lives.Add(e.Entry, e.Req)
		times.Add(e.Entry, e.Req)
		if covers(t.Entries.Listed, e.Index) && len(t.Entries.Index) < b.o.MaxEntries {
			b.list(&e, kinds)
		}
	}
	b.lives = lives.List()
	b.times(times.Marks())
	return ctx.Err()
}

// list adds an entry to the columns.
func (b *builder) list(e *replay.Entry, kinds map[dumplog.Kind]int) {
	l := &b.t.Entries
	k, ok := kinds[e.Req.Kind]
	if !ok {
		k = len(l.Kinds)
		kinds[e.Req.Kind], l.Kinds = k, append(l.Kinds, string(e.Req.Kind))
	}
	what := e.Describe()
	switch {
	case e.Err != nil:
		what = "cannot be decoded"
	case e.Req.Header.Username != "":
		what = Clip(what, maxText) + " user=" + Clip(e.Req.Header.Username, 60)
	}
	l.Index, l.Term, l.Kind = append(l.Index, e.Index), append(l.Term, e.Term), append(l.Kind, k)
	l.What = append(l.What, Clip(what, maxText+80))
}

// listed selects the ranges whose entries are listed. For a short log that is the whole log, otherwise the surroundings
// of important places, most important first, and the end.
func (b *builder) listed() []Span {
	t, budget := b.t, uint64(b.o.MaxEntries)
	if t.Last-t.First < budget {
		return []Span{{From: t.First, To: t.Last}}
	}
	var out []Span
	add := func(index, around uint64) {
		around = min(around, budget/2)
		if index == 0 || around == 0 || covers(out, index) {
			return
		}
		s := Span{From: max(t.First, index-min(index, around)), To: min(t.Last, index+around)}
		out = append(out, s)
		budget -= min(budget, s.To-s.From+1)
	}
	add(b.in.Break, 1500)
	for _, m := range b.in.Replay.Members {
		if e := m.FirstBad(); e != nil {
			add(e.Index, 300)
		}
		for _, j := range m.Jumps {
			add(j.Index, 200)
		}
	}
	add(t.Last, 500)
	for _, m := range t.Marks {
		add(m.Index, 20)
	}
	return merge(out)
}

// merge sorts ranges and joins those that touch.
func merge(spans []Span) []Span {
	slices.SortFunc(spans, func(x, y Span) int { return cmp.Compare(x.From, y.From) })
	out := []Span{}
	for _, s := range spans {
		if n := len(out); n > 0 && s.From <= out[n-1].To+1 {
			out[n-1].To = max(out[n-1].To, s.To)
			continue
		}
		out = append(out, s)
	}
	return out
}

func covers(spans []Span, index uint64) bool {
	for _, s := range spans {
		if s.From <= index && index <= s.To {
			return true
		}
	}
	return false
}

// near returns a time close to the log, since request IDs have only the low bits of their time.
func (b *builder) near() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// maxTimes bounds the points of time.
const maxTimes = 2000

// times keeps points of increasing time, thinned evenly, for a time axis.
func (b *builder) times(marks []dumplog.TimeMark) {
	var last time.Time
	all := []Time{}
	for _, m := range marks {
		if m.Time.Before(last) {
			continue
		}
		last = m.Time
		all = append(all, Time{Index: m.Index, Unix: m.Time.UnixMilli(), Source: string(m.Source)})
	}
	every := len(all)/maxTimes + 1
	for i, p := range all {
		if i%every == 0 || i == len(all)-1 {
			b.t.Times = append(b.t.Times, p)
		}
	}
}

// events copies the events of the replay, clipped and bounded.
func (b *builder) events() {
	rp := b.in.Replay
	b.t.EventCount = rp.EventCount
	for _, e := range rp.Events[:min(len(rp.Events), b.o.MaxEvents)] {
		x := Event{Term: e.Term, Index: e.Index, What: Clip(e.What, maxText), Proposer: b.name(e.Proposer),
			User:       Clip(e.User, 60),
			HeaderAuth: e.HeaderAuthRevision, Acked: e.Acked, Outcomes: []Outcome{},
			Lacking: append([]int{}, e.Lacking...)}
		for _, k := range e.Keys[:min(len(e.Keys), 3)] {
			x.Keys = append(x.Keys, EscapeKey([]byte(k)))
		}
		for _, o := range e.Outcomes {
			x.Outcomes = append(x.Outcomes, Outcome{State: o.State.String(), Reason: string(o.Reason), Rev: o.Rev,
				Auth: o.AuthRevision, Detail: Clip(o.Detail, maxText)})
		}
		b.t.Events = append(b.t.Events, x)
	}
}

// lacking counts the listed events by lane and bin.
func (b *builder) lacking() [][]int {
	step := (b.t.Last-b.t.First)/bins + 1
	out := make([][]int, len(b.in.Members))
	for i := range out {
		out[i] = make([]int, (b.t.Last-b.t.First)/step+1)
	}
	for _, e := range b.in.Replay.Events {
		if e.Index < b.t.First || e.Index > b.t.Last {
			continue
		}
		for _, i := range e.Lacking {
			out[i][(e.Index-b.t.First)/step]++
		}
	}
	return out
}

// marks copies the report's moments, with clipped texts.
func (b *builder) marks() {
	for _, m := range b.in.Marks {
		m.What = Clip(m.What, maxText)
		b.t.Marks = append(b.t.Marks, m)
	}
	sort.SliceStable(b.t.Marks, func(i, j int) bool { return b.t.Marks[i].Index < b.t.Marks[j].Index })
}
