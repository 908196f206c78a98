package replay

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Shift reports logs that lack entries of other logs, and that have all following entries at indexes lower by their
// number. A leader assigns an index to an entry once, and no member changes it. So the short logs were altered, or
// entries were added to the others: the altered ones prove nothing about those indexes.
type Shift struct {
	// Index is that of the first entry that the short logs lack, Missing how many they lack there, Alike how many
	// entries follow in both.
	Index          uint64
	Missing, Alike int
	// Short and Long are positions of members.
	Short, Long []int
	// What describes the first entry that is missing, Instead what the short logs hold at its index.
	What, Instead string
	// Proven is true where a short log ends before what its member has committed or applied, Ahead where its
	// HardStates commit more than it holds before them, and Fitting where the databases agree with the other logs and
	// not with the altered ones.
	Proven, Ahead, Fitting bool
	// Added is true if the short logs are right: the others hold entries that were added to them. Repeated says that
	// these entries are in their logs twice. Short is empty where no other log shows it.
	Added, Repeated bool
}

// Altered are the positions of the members whose logs were altered.
func (s *Shift) Altered() []int {
	if s.Added {
		return s.Long
	}
	return s.Short
}

const (
	// maxShift is how many missing entries are looked for, minAlike how many entries with content have to follow in
	// both logs, maxTail how many are compared, and maxTailBytes how much they may hold.
	maxShift     = 8
	minAlike     = 2
	maxTail      = 20_000
	maxTailBytes = 32 << 20
)

// withoutShifted surveys the log again without the logs that lack entries, or to which some were added, from there on.
// What is left may have others, elsewhere.
func withoutShifted(ctx context.Context, r *Result, o Options) (*Result, error) {
	for range r.Members {
		s, err := findShift(ctx, r, o)
		if err != nil {
			return nil, err
		}
		if s == nil && len(r.Shifts) == 0 {
			s = r.repeated()
		}
		if s == nil {
			break
		}
		t := newResult(membersOf(r))
		t.Shifts = append(slices.Clone(r.Shifts), s)
		if t.Survey, err = survey(ctx, t); err != nil {
			return nil, err
		}
		r = t
	}
	return r, nil
}

// findShift returns where the logs begin to differ because some of them lack entries; nil if they do not. If neither
// the logs nor their number show which were altered, the databases may.
func findShift(ctx context.Context, r *Result, o Options) (*Shift, error) {
	s, known, err := shiftOf(ctx, r)
	if err != nil || s == nil || known {
		return s, err
	}
	var odds [2]int
	for i, added := range []bool{false, true} {
		t := newResult(membersOf(r))
		t.Shifts = append(slices.Clone(r.Shifts),
			&Shift{Index: s.Index, Missing: s.Missing, Short: s.Short, Long: s.Long, Added: added})
		if t.Survey, err = survey(ctx, t); err != nil {
			return nil, err
		}
		if err := simulate(ctx, t, o); err != nil {
			return nil, err
		}
		odds[i] = t.contradictions()
	}
	if min(odds[0], odds[1]) > 0 || odds[0] == odds[1] { // each database may agree with its own log
		return nil, nil
	}
	s.Added, s.Fitting = odds[1] < odds[0], true
	return s, nil
}

// contradictions counts what of the databases contradicts the log.
func (r *Result) contradictions() (n int) {
	for _, m := range r.Members {
		n += m.Counts[Missing] + m.Counts[Contradicted] + len(m.Extra) + len(m.StateDiffs) + m.Lacks + m.Surplus +
			m.BelowCount
	}
	return n
}

// tail is the log of a member from an index on.
type tail struct {
	pos     int
	entries []dumplog.Entry
}

// shiftOf is findShift by the logs alone. It compares the longest logs. If these do not fit, one of them may have other
// faults further up: then two others may fit.
func shiftOf(ctx context.Context, r *Result) (s *Shift, known bool, err error) {
	for _, d := range partings(r) {
		if s, known, err = r.shiftAt(ctx, d); s != nil || err != nil {
			return s, known, err
		}
	}
	return nil, false, ctx.Err()
}

// shiftAt is shiftOf for logs that begin to differ at one place.
func (r *Result) shiftAt(ctx context.Context, d *LogDiff) (s *Shift, known bool, err error) {
	if len(d.Versions) != 2 {
		return nil, false, nil
	}
	var tails [2][]tail
	for i, v := range d.Versions {
		if tails[i], err = r.tailsOf(ctx, v, d.Index); err != nil {
			return nil, false, err
		}
	}
	for a := range tails[0] {
		for b := range tails[1] {
			if s, surplus := r.shiftBetween(d, tails, [2]int{a, b}); s != nil {
				known, err := r.side(ctx, s, surplus)
				return s, known, err
			}
		}
	}
	return nil, false, ctx.Err()
}

// tailsOf reads the logs of members from an index on, the longest first.
func (r *Result) tailsOf(ctx context.Context, members []int, index uint64) (out []tail, err error) {
	for _, i := range members {
		es, err := tailOf(ctx, r.Members[i].Member, index)
		if err != nil {
			return nil, err
		}
		out = append(out, tail{i, es})
	}
	slices.SortStableFunc(out, func(a, b tail) int {
		return cmp.Compare(r.Members[b.pos].Member.LastIndex(), r.Members[a.pos].Member.LastIndex())
	})
	return out, nil
}

// shiftBetween compares one log of each version. It returns the entries that one of them lacks as well. If others than
// the longest logs fit, the shift is of those that do.
func (r *Result) shiftBetween(d *LogDiff, tails [2][]tail, at [2]int) (s *Shift, surplus []dumplog.Entry) {
	for k := 1; k <= maxShift; k++ {
		for i := range tails {
			short, long := tails[i][at[i]].entries, tails[1-i][at[1-i]].entries
			if !missedIn(short, long, k) {
				continue
			}
			n, _ := alike(short, long[k:])
			s := &Shift{Index: d.Index, Missing: k, Alike: n, Short: d.Versions[i], Long: d.Versions[1-i],
				What: r.describeEntry(&long[0]), Instead: r.describeEntry(&short[0])}
			if at != [2]int{} {
				s.Short = fitting(tails[i], func(es []dumplog.Entry) bool { return missedIn(es, long, k) })
				s.Long = fitting(tails[1-i], func(es []dumplog.Entry) bool { return missedIn(short, es, k) })
			}
			return s, long[:k]
		}
	}
	return nil, nil
}

// fitting are the members whose logs fit.
func fitting(tails []tail, fits func([]dumplog.Entry) bool) (out []int) {
	for _, t := range tails {
		if fits(t.entries) {
			out = append(out, t.pos)
		}
	}
	return out
}

// missedIn reports whether a list of entries is another one without the first k. If those are the first entries of
// leaders only, others of the same term must follow.
func missedIn(short, long []dumplog.Entry, k int) bool {
	if len(long) <= k {
		return false
	}
	_, ok := alike(short, long[k:])
	return ok && (hasContent(long[:k]) || short[0].Term == long[0].Term)
}

// side finds out which logs were altered; known is false if nothing shows it. A request is in a log once: entries that
// are there twice were added. Else a log that ends before what its member has applied, or whose HardStates commit more
// than it holds, lacks entries, or most logs decide.
func (r *Result) side(ctx context.Context, s *Shift, surplus []dumplog.Entry) (known bool, err error) {
	for _, i := range s.Long { // one of them may have received a snapshot right before
		s.Repeated, err = requestTwice(ctx, r.Members[i].Member, s.Index, surplus)
		if err != nil || s.Repeated {
			s.Added = s.Repeated
			return s.Added, err
		}
	}
	cutShort, cutLong := r.endsEarly(s.Short, s.Missing), r.endsEarly(s.Long, 0)
	if cutLong {
		return cutShort, nil
	}
	if s.Proven = cutShort; cutShort {
		return true, nil
	}
	s.Ahead = r.commitsAhead(s.Short, s.Index) && !r.commitsAhead(s.Long, s.Index)
	if s.Ahead {
		return true, nil
	}
	err = r.repeatedBefore(ctx, s)
	s.Added = s.Repeated || len(s.Long) < len(s.Short)
	return s.Added || len(s.Long) > len(s.Short), err
}

// maxApart is how far before its repetition an entry is looked for.
const maxApart = 64

// requestTwice reports whether the log of a member holds the requests in the surplus entries from an index on right
// before it as well.
func requestTwice(ctx context.Context, m *evidence.Member, index uint64, surplus []dumplog.Entry) (bool, error) {
	before, err := tailOf(ctx, m, max(max(index, maxApart+1)-maxApart, m.WAL.Summary.FirstIndex))
	if err != nil {
		return false, err
	}
	before = slices.DeleteFunc(before, func(e dumplog.Entry) bool { return e.Index >= index })
	for i := range surplus {
		e := &surplus[i]
		req, err := e.Decode()
		if err != nil || req == nil || req.Header.ID == 0 ||
			!slices.ContainsFunc(before, func(o dumplog.Entry) bool { return bytes.Equal(o.Data, e.Data) }) {
			return false, nil
		}
	}
	return len(surplus) > 0, nil
}

// repeatedBefore finds an entry that the long logs hold twice before the index from which the short ones, which were
// purged, begin to differ. The shift then begins there.
func (r *Result) repeatedBefore(ctx context.Context, s *Shift) error {
	for _, pos := range s.Long {
		m := r.Members[pos].Member
		before, err := tailOf(ctx, m, max(max(s.Index, maxApart+1)-maxApart, m.WAL.Summary.FirstIndex))
		if err != nil {
			return err
		}
		before = slices.DeleteFunc(before, func(e dumplog.Entry) bool { return e.Index >= s.Index })
		for i := s.Missing; i+s.Missing <= len(before); i++ {
			if sameRequests(before[i-s.Missing:i], before[i:i+s.Missing]) {
				s.Index, s.Repeated = before[i].Index, true
				s.What, s.Instead = r.describeEntry(&before[i]), "the entry that follows"
				return nil
			}
		}
	}
	return nil
}

// sameRequests reports whether two lists of entries are the same requests of clients, one by one.
func sameRequests(a, b []dumplog.Entry) bool {
	for i := range a {
		req, err := a[i].Decode()
		if err != nil || req.Header.ID == 0 || !bytes.Equal(a[i].Data, b[i].Data) {
			return false
		}
	}
	return true
}

// maxPartings bounds the places at which a shift is looked for.
const maxPartings = 8

// partings are the lowest indexes at which logs begin to differ, each with other members on its sides: entries that
// were altered in one log may come before those that another one lacks.
func partings(r *Result) (out []*LogDiff) {
	all := slices.Concat(r.LogDiffs, r.SameTerm)
	slices.SortStableFunc(all, func(a, b LogDiff) int { return cmp.Compare(a.Index, b.Index) })
	for i := range all {
		if d := &all[i]; len(out) < maxPartings && !slices.ContainsFunc(out, func(o *LogDiff) bool {
			return sameSides(d, o)
		}) {
			out = append(out, d)
		}
	}
	return out
}

// sameSides reports whether the same members hold the same entry as each other at both indexes.
func sameSides(a, b *LogDiff) bool {
	return len(a.Versions) == len(b.Versions) && !slices.ContainsFunc(a.Versions, func(v []int) bool {
		return !slices.ContainsFunc(b.Versions, func(o []int) bool { return slices.Equal(v, o) })
	})
}

// firstDiff is the lowest index at which logs differ.
func firstDiff(r *Result) *LogDiff {
	var first *LogDiff
	for _, list := range [][]LogDiff{r.LogDiffs, r.SameTerm} {
		if len(list) > 0 && (first == nil || list[0].Index < first.Index) {
			first = &list[0]
		}
	}
	return first
}

func membersOf(r *Result) (out []*evidence.Member) {
	for _, m := range r.Members {
		out = append(out, m.Member)
	}
	return out
}

func membersAt(r *Result, positions []int) (out []*evidence.Member) {
	for _, i := range positions {
		out = append(out, r.Members[i].Member)
	}
	return out
}

// tailOf reads the effective log of a member from an index on.
func tailOf(ctx context.Context, m *evidence.Member, from uint64) (out []dumplog.Entry, err error) {
	last, size := from-1, 0
	for e, err := range m.WAL.Log.EntriesFrom(ctx, &m.WAL.Summary, from) {
		var d *dumplog.DamageError
		switch {
		case errors.As(err, &d):
			continue
		case err != nil:
			return nil, err
		case e.Overwritten || e.Index <= last:
			continue
		case e.Index != last+1 || len(out) == maxTail || size > maxTailBytes:
			return out, nil
		}
		last, size = e.Index, size+len(e.Data)
		e.Data = bytes.Clone(e.Data)
		out = append(out, e)
	}
	return out, ctx.Err()
}

// alike reports whether two lists of entries are equal up to the length of the shorter one, and how many of these
// entries have content.
func alike(a, b []dumplog.Entry) (n int, ok bool) {
	for i := range min(len(a), len(b)) {
		if !sameEntry(&a[i], &b[i]) {
			return 0, false
		}
		if len(a[i].Data) > 0 {
			n++
		}
	}
	return n, n >= minAlike
}

// hasContent reports whether one of the entries is more than the empty one with which a leader begins.
func hasContent(es []dumplog.Entry) bool {
	for i := range es {
		if len(es[i].Data) > 0 {
			return true
		}
	}
	return false
}

// endsEarly reports whether one of the logs ends before what its member has committed or applied. A log that lost some
// entries, and was renumbered, ends that many before its own snapshot; one before a snapshot that it received ends
// anywhere.
func (r *Result) endsEarly(members []int, lost int) bool {
	for _, i := range members {
		m := r.Members[i].Member
		known, last := max(m.Commit, m.ConsistentIndex(), m.WAL.Summary.MaxCommit), m.WAL.Summary.LastIndex
		if known > m.LastIndex() || lost > 0 && known == last+uint64(lost) {
			return true
		}
	}
	return false
}

// commitsAhead reports whether one of the logs has a HardState that commits entries from an index on before the log
// holds them.
func (r *Result) commitsAhead(members []int, index uint64) bool {
	return slices.ContainsFunc(membersAt(r, members), func(m *evidence.Member) bool {
		return slices.ContainsFunc(m.WAL.Summary.CommitAheads, func(c dumplog.CommitAhead) bool {
			return c.Last+1 >= index
		})
	})
}

func (r *Result) describeEntry(e *dumplog.Entry) string {
	req, err := e.Decode()
	if err != nil || req == nil {
		return fmt.Sprintf("%d/%d", e.Term, e.Index)
	}
	return fmt.Sprintf("%d/%d %s", e.Term, e.Index, r.describe(req))
}
