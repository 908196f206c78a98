package verdict

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

// standing decides a member's rank. Content comes first: which required effects it lacks. Counters such as the auth
// revision never decide between members whose content differs.
type standing struct {
	// early is true if the member ends before histories part: it holds none of them.
	early  bool
	pos    int
	usable bool
	// lacks are required effects that are missing although the member applied the entries, and entries that it can get
	// from no log; damage counts records and pages that are wrong.
	lacks, damage int
	// behind are committed entries that the member does not have yet, 0 when none of them changes data. Another member
	// can still supply them.
	behind uint64
	// shorter is how many entries its log lacks of those that another log holds and no source shows to be committed:
	// members that are not among the sources may have acknowledged them. It is 0 if they change no data.
	shorter uint64
	// outside is true for a backup, for an older copy of a data dir, and for the data dir of a removed member. cut is
	// true if no member can supply the source with what it is behind: it is outside, or no log of another member
	// continues from its end. A member would then get a snapshot, that is the database of another one.
	outside, cut bool
	// fromLogs is true if a log continues from its end, and no server would send it these entries.
	fromLogs bool
	// control is 1 when its auth revision or small buckets contradict the log: it would diverge again.
	control int
	// blamed are the findings, errors and worse, that name this member and leave others out.
	blamed []*check.Finding
	// minority counts rows of bucket key in which it is alone against a majority of the others. It decides only where
	// the log cannot: the majority can be wrong.
	minority int
	// odd counts warnings in which it differs from a majority that agrees; a preference among equals only.
	odd int
	// parted is true where committed entries differ between logs: what one lacks of the other then says little.
	parted bool
	// pending is 1 when a compaction is unfinished; a preference among equals only.
	pending int
}

// sound reports whether nothing is wrong with the member. Lag does not count: it can still get those entries.
func (s standing) sound() bool {
	return s.lacks == 0 && s.damage == 0 && s.control == 0 && len(s.blamed) == 0
}

// otherContent reports whether the comparison with other members shows that a record of the member is wrong.
func (s standing) otherContent() bool {
	return slices.ContainsFunc(s.blamed, func(f *check.Finding) bool {
		return f.Check == check.K01 || f.Check == check.K12
	})
}

func (s standing) less(o standing) bool {
	if s.usable != o.usable {
		return s.usable
	}
	if s.early != o.early {
		return !s.early
	}
	if s.sound() != o.sound() {
		return s.sound()
	}
	if s.parted && s.damage != o.damage {
		return s.damage < o.damage
	}
	for _, d := range [][2]int{{s.lacks, o.lacks}, {s.damage, o.damage}, {s.control, o.control},
		{len(s.blamed), len(o.blamed)}, {s.minority, o.minority}} {
		if d[0] != d[1] {
			return d[0] < d[1]
		}
	}
	if s.behind != o.behind {
		return s.behind < o.behind
	}
	if s.shorter != o.shorter {
		return s.shorter < o.shorter
	}
	if s.outside != o.outside {
		return !s.outside
	}
	return s.odd < o.odd
}

func (s standing) equal(o standing) bool { return !s.less(o) && !o.less(s) }

// ranking orders the members by what they hold, and says what keeping one of them loses.
type ranking struct{ *Input }

// rank orders the members, nil when there is nothing to choose between.
func (rk *ranking) rank() *Best {
	members := rk.Members
	if len(members) == 0 {
		return nil
	}
	list := make([]standing, 0, len(members))
	for i, m := range members {
		list = append(list, rk.standing(i, m, rk.committedFor(i)))
	}
	rk.majority().countAgainst(list)
	rk.majority().countOdd(list)
	sort.SliceStable(list, func(i, j int) bool {
		if list[i].equal(list[j]) {
			return list[i].pending < list[j].pending
		}
		return list[i].less(list[j])
	})
	if s := rk.separateHistories().whyUnranked(); s != "" {
		return rk.unranked(list, s)
	}
	b := &Best{Members: []string{}, Ranking: []Rank{}}
	keep, records := list[rk.kept(list)], &keptRecords{}
	if list[0].usable {
		records = rk.keptRecords(keep.pos)
	}
	var best []int
	for _, s := range list {
		if s.usable && s.equal(list[0]) {
			best, b.Members = append(best, s.pos), append(b.Members, members[s.pos].Label())
		}
		below, _, _ := rk.RecordProofs(s.pos).BelowCompaction()
		proven := len(rk.unproven(s.pos, records)) == 0 && len(rk.othersOf(s.pos)) == 0 &&
			(s.pos != keep.pos || records.wrong.Count == 0) && len(below) == 0
		row := rk.rankRow(s, rk.committedFor(s.pos), proven)
		if rk.followsOther(s.pos, keep.pos) {
			row.Usable = false // not together with the kept one
		}
		b.Ranking = append(b.Ranking, row)
	}
	b.Undecided = rk.undecided(best, keep.pos, records)
	b.Why, b.For = why(b, list)
	rk.lost(b, members[keep.pos].Label(), keep.pos)
	rk.lostAbove(b, keep)
	if len(b.Members) > 0 {
		b.Lost.Records, b.Lost.Unproven = records.wrong, rk.unproven(keep.pos, records)
		b.Lost.Tail = rk.lacksTail(keep.pos)
		rk.mendRecords(&b.Lost, keep.pos)
	}
	if s := rk.whyNotReplayed(); s != "" {
		if b.Members, b.Why, b.For = []string{}, s, ""; rk.Keep == "" {
			b.Lost = Lost{KeyNames: []check.Bytes{}}
		}
	}
	return b
}

// whyNotReplayed says why no member can be called best by content: members differ, and the log, which would show which
// of them is right, was not replayed for lack of memory. It is "" otherwise.
func (rk *ranking) whyNotReplayed() string {
	if rk.Replay == nil || !rk.Replay.TooLarge || !slices.ContainsFunc(rk.Findings, func(f check.Finding) bool {
		return f.Class == check.ClassDataDivergence || f.Class == check.ClassLatentDivergence
	}) {
		return ""
	}
	return "content cannot decide: members differ, and the log, which shows which of them is right, was not replayed " +
		"for lack of memory (--max-memory)"
}

// kept is the place in the list of the member whose loss is computed: either the caller's choice or the best.
func (rk *ranking) kept(list []standing) int {
	return max(0, slices.IndexFunc(list, func(s standing) bool { return rk.Members[s.pos].Label() == rk.Keep }))
}

func (rk *ranking) standing(i int, m *evidence.Member, commit uint64) standing {
	s := standing{pos: i, parted: rk.Replay != nil && len(rk.Replay.LogDiffs) > 0, usable: m.HasDB() &&
		!m.DB.KVDamaged && m.HasWAL()}
	if m.Source.Kind != evidence.KindDataDir {
		s.usable = m.HasDB() && !m.DB.KVDamaged
	}
	if last := max(m.LastIndex(), m.ConsistentIndex()); last < commit && rk.changesUpTo(commit, last) {
		s.behind = commit - last
	}
	s.early = rk.endsBefore(rk.branches(), i)
	_, copied := rk.Replay.OlderCopies()[i]
	s.outside = m.Source.Kind == evidence.KindBackup || m.Source.Kind == evidence.KindDB || copied ||
		rk.Membership().IsRemoved(m)
	if rp := rk.Replay; rp != nil && rp.Members[i].Checked {
		s.lacks = rp.Members[i].Lacks + rp.Members[i].Surplus
		if x := rp.Members[i]; wrongState(x) || rk.doubtsOwn(i) {
			s.control = 1
		}
	}
	if s.cut = s.behind > 0 && (s.outside || !rk.continued(m, commit)); s.cut {
		s.lacks += int(s.behind)
	}
	s.fromLogs = s.behind > 0 && !s.cut && !rk.served(m, commit)
	for k := range rk.Findings {
		f := &rk.Findings[k]
		if !rk.blames(f, m.Label()) {
			continue
		}
		s.blamed = append(s.blamed, f)
		switch f.Class {
		case check.ClassWALDamage, check.ClassDBDamage, check.ClassSnapshotDamage:
			s.damage++
		case check.ClassMemberLostData:
			s.usable = false
		}
	}
	if rk.Replay != nil && m.HasLog() && !s.parted {
		s.shorter = rk.Replay.UncommittedAfter(m.LastIndex())
	}
	if sc := m.DB; sc != nil && sc.Meta.ScheduledCompact != nil &&
		(sc.Meta.FinishedCompact == nil || sc.Meta.FinishedCompact.Main < sc.Meta.ScheduledCompact.Main) {
		s.pending = 1
	}
	return s
}

// continued reports whether the log of another member continues from the end of a member up to the commit index.
func (rk *ranking) continued(m *evidence.Member, commit uint64) bool {
	last := max(m.LastIndex(), m.ConsistentIndex())
	return slices.ContainsFunc(rk.Members, func(o *evidence.Member) bool {
		return o != m && o.HasLog() && o.WAL.Summary.FirstIndex <= last+1 && o.LastIndex() >= commit
	})
}

// served reports whether every server that may lead sends a member the entries from its end up to the commit index. A
// server that starts has only those above its newest raft snapshot, whatever its WAL files hold. It sends its database
// to a member that ends before them.
func (rk *ranking) served(m *evidence.Member, commit uint64) bool {
	last := max(m.LastIndex(), m.ConsistentIndex())
	return !slices.ContainsFunc(rk.Members, func(o *evidence.Member) bool {
		s := o.NewestSnap()
		return o != m && o.HasLog() && o.LastIndex() >= commit &&
			(o.WAL.Summary.FirstIndex > last+1 || s != nil && s.Index > last)
	})
}

// blames reports whether a finding accuses this member: it names it, and not every source.
func (rk *ranking) blames(f *check.Finding, label string) bool {
	return !f.Undecided && !aboutCluster[f.Check] && f.Class != "" && f.Severity.Rank() >= check.Error.Rank() &&
		slices.Contains(f.Members, label) &&
		(len(rk.Members) == 1 || len(f.Members) < len(rk.Members))
}

// aboutCluster are the checks whose findings are about the cluster. They name the members that took part in something,
// or all of which any may be at fault (R07: logs that end early, cut off or lagging). They do not show that a file of
// one of them is wrong.
var aboutCluster = map[check.ID]bool{check.M05: true, check.M08: true, check.M10: true, check.M11: true,
	check.R07: true}

// doubtsOwn reports whether the database of a member contradicts an entry that only its own log holds, or few do.
func (rk *ranking) doubtsOwn(pos int) bool {
	return slices.ContainsFunc(rk.Replay.Doubted, func(d replay.Doubted) bool {
		return slices.Contains(d.Logs, pos) && slices.Contains(d.Against, pos)
	})
}

// wrongState reports whether a member holds state that does not result from the log, apart from effects that it lacks.
// A jump of the auth revision counts only where the log says what it must be.
func wrongState(x *replay.MemberResult) bool {
	wrong := len(x.StateDiffs) + len(x.Kept) + len(x.Reruns) + len(x.Extra) +
		x.Counts[replay.Contradicted] + x.Counts[replay.Missing]
	return wrong > 0 || x.AuthOff() || x.Ahead != nil || x.RowsAhead != nil
}

// changesAfter reports whether anything committed above index changes data: a member that lacks only logins, publish
// entries and leaders' first entries lacks nothing.
func (rk *ranking) changesAfter(index uint64) bool {
	return rk.Replay == nil || rk.Replay.ChangesAfter(index, rk.Members.SaidCommitted(rk.Replay))
}

// changesUpTo is changesAfter with the entries up to a commit index that no source shows.
func (rk *ranking) changesUpTo(commit, index uint64) bool {
	return rk.changesAfter(index) || commit > rk.Replay.Commit && rk.Replay.UncommittedAfter(index) > 0
}

// committed is the last entry that is committed: a source shows it, or the logs of a majority of the voters hold it.
func (rk *ranking) committed() uint64 {
	known := rk.Members.Committed(rk.Replay)
	if c := rk.Members.HeldByMajority(); c != nil {
		return max(known, c.Index)
	}
	return known
}

// rankRow says why a member has its place. proven is true if it is certain that it holds all that its log shows.
func (rk *ranking) rankRow(s standing, commit uint64, proven bool) Rank {
	m := rk.Members[s.pos]
	row := Rank{Member: m.Label(), Usable: s.usable, Reasons: []string{}, Behind: int(s.behind)}
	say := func(format string, args ...any) { row.Reasons = append(row.Reasons, fmt.Sprintf(format, args...)) }
	rp := rk.Replay
	switch {
	case rp != nil && rp.Members[s.pos].Checked:
		rk.sayEffects(s, proven, &row, say)
	case rp != nil && rp.Members[s.pos].Why != "":
		say("not replayed: %s", rp.Members[s.pos].Why)
	}
	if s.behind > 0 {
		say("%s", lagOf(m, s.behind, commit))
	}
	rk.sayParted(s.pos, say)
	rk.sayControl(s.pos, say)
	s.sayAgainstOthers(say)
	if s.pending > 0 {
		say("a compaction is unfinished")
	}
	if s.damage > 0 {
		say("%s", plural.Of(s.damage, "damaged place", "damaged places"))
	}
	if len(s.blamed) > 0 {
		row.NamedBy = findingIDs(s.blamed)
		say("%s", row.namedBy())
	}
	if !s.usable {
		say("cannot serve in its current state")
	}
	return row
}

// sayEffects says which effects of the log the member holds, lacks, or has beyond it.
func (rk *ranking) sayEffects(s standing, proven bool, row *Rank, say func(string, ...any)) {
	m, rp := rk.Members[s.pos], rk.Replay
	x := rp.Members[s.pos]
	row.Lacks = Count{CommittedEntries: x.Lacks, Keys: len(x.LacksKeys)}
	row.Surplus = x.Surplus
	row.Unique = Count{CommittedEntries: x.Unique, Keys: len(x.UniqueKeys)}
	switch {
	case m.DB != nil && m.DB.KVDamaged:
		// Records on pages that cannot be read are not counted as missing.
		say("part of its keys cannot be read")
	case x.Lacks+x.Surplus == 0:
		row.HoldsAll = true
		// Above the last entry of all logs nothing shows what a database should hold.
		if proven && x.To <= rp.Last && !s.otherContent() {
			say("holds every committed write up to entry %d", x.To)
		} else {
			say("lacks no committed write that is known, up to entry %d", min(x.To, rp.Last))
		}
	}
	if x.Lacks > 0 {
		acked := ""
		if x.LacksAcked > 0 {
			acked = fmt.Sprintf(" (%d of them acknowledged by their proposer)", x.LacksAcked)
		}
		say("missing %s%s", plural.Of(x.Lacks, "committed write", "committed writes"), acked)
	}
	if x.Surplus > 0 {
		say("holds %s", surplusText(x.Surplus))
	}
	if x.Unique > 0 {
		say("is the only one that holds %s", plural.Of(x.Unique, "committed write", "committed writes"))
	}
}

// sayAgainstOthers says what the member differs in from others, where nothing decides who is right.
func (s standing) sayAgainstOthers(say func(string, ...any)) {
	if s.minority > 0 {
		say("differs from the majority in %s that the log does not decide", plural.Of(s.minority, "place", "places"))
	}
	if s.odd > 0 {
		say("differs from a majority that agrees in %s", plural.Of(s.odd, "warning", "warnings"))
	}
	if s.shorter > 0 && s.behind == 0 {
		say("its log lacks %s that another log holds, perhaps committed", plural.Of(s.shorter, "entry", "entries"))
	}
}

// lagOf says how far a member lags, and where it ends.
func lagOf(m *evidence.Member, behind, commit uint64) string {
	end := "log ends at"
	if !m.HasLog() {
		end = "has applied"
	}
	return fmt.Sprintf("lags by %s (%s %d, commit %d)", plural.Of(int(behind), "committed entry", "committed entries"),
		end, max(m.LastIndex(), m.ConsistentIndex()), commit)
}

// sayControl names the counters and small buckets that the log contradicts.
func (rk *ranking) sayControl(pos int, say func(string, ...any)) {
	rp, m := rk.Replay, rk.Members[pos]
	if rp == nil || !rp.Members[pos].Checked {
		return
	}
	x := rp.Members[pos]
	switch {
	case x.AuthOff() && x.AuthEndLost:
		say("its auth revision rose without an entry")
	case x.AuthOff():
		say("its auth revision is %d, the log gives %d", m.DB.Auth.Revision, x.AuthExpected)
	}
	if n := len(x.StateDiffs); n > 0 {
		say("%s the log", plural.Of(n, "row of its small buckets contradicts", "rows of its small buckets contradict"))
	}
	if n := x.Counts[replay.Missing]; n > 0 && x.Lacks+x.Surplus == 0 {
		say("has applied %s without an effect", plural.Of(n, "entry", "entries"))
	}
	if n := x.Counts[replay.Contradicted]; n > 0 {
		say("holds other records than %s wrote", plural.Of(n, "entry", "entries"))
	}
	if rk.doubtsOwn(pos) {
		say("its log contradicts its own database")
	}
	if n := len(x.Extra); n > 0 {
		say("holds %s that no entry explains", plural.Of(n, "revision", "revisions"))
	}
	for i := range x.Reruns {
		say("holds the effects of %s twice", plural.Span(x.Reruns[i].From, x.Reruns[i].To, "entry", "entries"))
	}
	if x.Ahead != nil {
		say("holds the effects of %s above its consistent index",
			plural.Span(x.Ahead.From, x.Ahead.To, "entry", "entries"))
	}
	if s := x.RowsAhead; s != nil {
		say("%s from %s, above its consistent index",
			plural.Of(len(s.Rows), "row of its small buckets comes", "rows of its small buckets come"),
			plural.Span(s.From, s.To, "entry", "entries"))
	}
}

// maxBlamed bounds the findings that explain a member's rank.
const maxBlamed = 5

func findingIDs(fs []*check.Finding) (ids []string) {
	for _, f := range fs[:min(len(fs), maxBlamed)] {
		ids = append(ids, f.ID)
	}
	return ids
}

// why says what the choice of the best rests on, and of that what speaks for it.
func why(b *Best, list []standing) (all, forBest string) {
	switch {
	case len(b.Members) == 0:
		all = "no source is usable in its current state"
	case len(list) == 1:
		all = "the only source: " + strings.Join(b.Ranking[0].Reasons, ", ")
	case len(b.Members) == len(list):
		if all = "all members are equally good"; b.Undecided != "" {
			all = "content cannot decide between " + plural.List(b.Members) + ": " + b.Undecided
		}
	}
	if all != "" {
		return all, all
	}
	first, last := b.Ranking[0], b.Ranking[len(b.Ranking)-1]
	forBest = strings.Join(first.Reasons, ", ")
	said := []string{equally(b) + ": " + forBest}
	for _, row := range b.Ranking[len(b.Members):] {
		said = append(said, row.Member+": "+strings.Join(row.Reasons, ", "))
	}
	all = strings.Join(said, "; ")
	if first.wrongEffects() != last.wrongEffects() {
		all += ". Chosen by the writes each member actually holds, not by auth revision or majority vote"
	}
	return all, forBest
}

// equally names the best member, or several that are equally good.
func equally(b *Best) string {
	names := plural.List(b.Members)
	switch {
	case b.Undecided != "":
		return names + " (content cannot decide between them: " + b.Undecided + ")"
	case len(b.Members) > 1:
		return names + " (equally good)"
	}
	return names
}

func (in *Input) labels(positions []int) []string {
	out := []string{}
	for _, i := range positions {
		out = append(out, in.Members[i].Label())
	}
	return out
}

// Interchangeable reports whether it makes no difference which of these sources is kept. Where their contents can be
// compared, the contents decide; else none of them may lack or alone hold anything.
func (b *Best) Interchangeable(labels []string, facts func(label string) *evidence.Facts) bool {
	whole := func(label string) bool {
		at := slices.IndexFunc(b.Ranking, func(r Rank) bool { return r.Member == label })
		return at >= 0 && b.Ranking[at].wrongEffects() == 0 && b.Ranking[at].Unique.CommittedEntries == 0
	}
	for _, l := range labels[min(1, len(labels)):] {
		same := evidence.SameContent(facts(labels[0]), facts(l))
		if same.Excluded() || same == release.Unknown && (!whole(labels[0]) || !whole(l)) {
			return false
		}
	}
	return true
}
