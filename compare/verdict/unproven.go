package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/boot"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

// unproven says why it is not proven that keeping a member loses nothing, although nothing is known to be lost. Empty:
// it is proven, as far as the committed entries that the sources can hold.
func (rk *ranking) unproven(pos int, records *keptRecords) (why []string) {
	if n := len(rk.Unread); n > 0 {
		why = append(why, fmt.Sprintf("%s could not be read", plural.Of(n, "source", "sources")))
	}
	if s := rk.absentMajority(pos); s != "" {
		why = append(why, s)
	}
	if s := rk.lacksTail(pos); s != "" {
		why = append(why, s)
	}
	if s := rk.partedUnseen(pos); s != "" {
		why = append(why, s)
	}
	if s := cmp.Or(rk.withoutLogs(), rk.aboveLogs()); s != "" {
		why = append(why, s)
	}
	for i, m := range rk.Members {
		if i != pos && m.Source.Kind == evidence.KindDataDir && !rk.comparedWith(pos, i) {
			why = append(why, fmt.Sprintf("the keys of %s could not be compared with those of %s, nor with a whole log",
				m.Label(), rk.Members[pos].Label()))
		}
	}
	if len(rk.keysUntold(records.decided)) > 0 {
		why = append(why, "keys differ between members, and the log does not show which member lacks what")
	} else if s := rk.keysUnseen(); s != "" {
		why = append(why, s)
	}
	if s := rk.recordsDiffer(pos, records); s != "" {
		why = append(why, s)
	}
	if s := rk.againstOneLog(pos); s != "" {
		why = append(why, s)
	}
	if s := rk.wrongContent(pos, records); s != "" {
		why = append(why, s)
	}
	return append(why, rk.openFor(pos)...)
}

// maxWrong bounds the findings that are named as reasons.
const maxWrong = 3

// wrongContent names the findings by which rows of a member that users see are wrong, or differ from those of others
// without a proof of who is right, "" for none. What was right there may be lost, whether or not the log shows it.
// Findings about keys are left out where wrong keys are counted as lost.
func (rk *ranking) wrongContent(pos int, records *keptRecords) string {
	label := rk.Members[pos].Label()
	counted := records.wrong.Count > 0 || rk.Replay != nil && pos < len(rk.Replay.Members) &&
		rk.Replay.Members[pos].Lacks > 0
	var named []string
	more := 0
	for i := range rk.Findings {
		f := &rk.Findings[i]
		if f.Severity.Rank() < check.Error.Rank() || !slices.Contains(f.Members, label) ||
			!f.Undecided && !rk.blames(f, label) && !f.Alone(label) || !aboutContent(f, counted) ||
			rk.otherFell(f, pos) {
			continue
		}
		if len(named) == maxWrong {
			more++
			continue
		}
		named = append(named, fmt.Sprintf("%s (%s)", f.ID, f.BareTitle()))
	}
	if more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	if len(named) == 0 {
		return ""
	}
	return fmt.Sprintf("the right content of %s may be lost where it is wrong: %s", label,
		strings.Join(named, ", "))
}

// otherFell reports whether a finding compares the revision of a member with one that is wrong: the replay shows that
// the lower one lacks effects, or the higher one has too many, and nothing of this member.
func (rk *ranking) otherFell(f *check.Finding, pos int) bool {
	if f.Kind != check.KindRevisionFalls || rk.Replay == nil || len(f.Members) != 2 {
		return false
	}
	result := func(label string) *replay.MemberResult {
		i := slices.IndexFunc(rk.Members, func(m *evidence.Member) bool { return m.Label() == label })
		if i < 0 || !rk.Replay.Members[i].Checked {
			return nil
		}
		return rk.Replay.Members[i]
	}
	high, low, own := result(f.Members[0]), result(f.Members[1]), rk.Replay.Members[pos]
	if high == nil || low == nil || own.Lacks+own.Surplus+len(own.Extra)+own.Counts[replay.Missing] > 0 {
		return false
	}
	return own == high && low.Counts[replay.Missing] > 0 || own == low && len(high.Extra) > 0
}

// aboutContent reports whether a finding is about rows that users see: keys, unless those are counted, leases, users,
// roles, and whether auth is on.
func aboutContent(f *check.Finding, counted bool) bool {
	switch f.Class {
	case check.ClassDBDamage, check.ClassDataDivergence, check.ClassLatentDivergence:
	default:
		return false
	}
	// The comparison counts undecided keys, but not where a revision is too low at a higher index.
	told := func(bucket string) bool {
		return bucket == "key" && (counted || f.Undecided && f.Kind != check.KindRevisionFalls)
	}
	return seenByUsers(f.Facts.Bucket) && !told(f.Facts.Bucket) ||
		slices.ContainsFunc(f.Evidence, func(e check.Evidence) bool {
			return seenByUsers(e.Bucket) && !told(e.Bucket) || e.Bucket == "auth" && string(e.Key) == "authEnabled"
		})
}

// seenByUsers reports whether a bucket holds rows that users see.
func seenByUsers(bucket string) bool {
	return slices.Contains([]string{"key", "lease", "authUsers", "authRoles"}, bucket)
}

// againstOneLog names the first entry of one log, or of few, that the database of a member contradicts as others do, ""
// for none.
func (rk *ranking) againstOneLog(pos int) string {
	if rk.Replay == nil {
		return ""
	}
	_, index, of := rk.RecordProofs(pos).BelowCompaction()
	for i := range rk.Replay.Doubted {
		if d := &rk.Replay.Doubted[i]; slices.Contains(d.Against, pos) {
			index, of = d.Index, len(d.Logs)
			break
		}
	}
	if index == 0 {
		return ""
	}
	logs := "one log"
	if of > 1 {
		logs = fmt.Sprintf("%d logs", of)
	}
	return fmt.Sprintf("entry %d is in %s only, and %s and other databases agree against it: which is right is not "+
		"proven", index, logs, rk.Members[pos].Label())
}

// maxRecords bounds the differing records that are named.
const maxRecords = 5

// recordsDiffer names the superseded records of a member that other members hold differently and of which nothing shows
// who is right, "" where there is none. A superseded record is not a live key, so the comparison of keys does not show
// it.
func (rk *ranking) recordsDiffer(pos int, records *keptRecords) string {
	if records.open == 0 {
		return ""
	}
	label := rk.Members[pos].Label()
	var named []string
	for i := range records.named {
		row := &records.named[i]
		named = append(named, fmt.Sprintf("at revision %s (not as on %s)", row.Rev,
			strings.Join(rk.holdOther(row, pos), ", ")))
	}
	return plural.Of(records.open, "superseded record", "superseded records") + " of " + label +
		" and other members differ: " + strings.Join(named, ", ") + ". Which member is right is not proven: true " +
		"values that only others hold are lost if " + label + " is kept"
}

// holdOther returns the members that were compared at a record and hold another version of it than a member, or that
// lack it.
func (rk *ranking) holdOther(row *diff.RecordRow, pos int) (others []string) {
	own := row.Cells[pos]
	for _, i := range row.At {
		if c := row.Cells[i]; (c == nil) != (own == nil) || c != nil && (c.Sum != own.Sum || c.Text != own.Text) {
			others = append(others, rk.Members[i].Label())
		}
	}
	return others
}

// withoutLogs says in one line what snapshots of running members do not prove, "" when a source is not such a snapshot.
func (in *Input) withoutLogs() string {
	for _, m := range in.Members {
		if m.Source.Kind != evidence.KindEndpoint {
			return ""
		}
	}
	return "no source has a log, so it is unknown which writes were acknowledged, and what members hold that " +
		"their snapshots do not show (etcd-medic collect copies a running member with its log)"
}

// aboveLogs says in one line what is not proven of the entries that running members have applied and no log holds, ""
// where there are none.
func (in *Input) aboveLogs() string {
	var last, applied uint64
	for _, m := range in.Members {
		last = max(last, m.LastIndex())
		if m.Source.Kind == evidence.KindEndpoint {
			applied = max(applied, m.AppliedMax)
		}
	}
	if last == 0 || applied <= last {
		return ""
	}
	return fmt.Sprintf("entries %d to %d are in no log, so it is unknown which writes of them were acknowledged "+
		"(etcd-medic collect copies a running member with its log)", last+1, applied)
}

// absentMajority: what a majority of voters has committed is in the log of at least one of any majority; fewer logs may
// not have it. A log that lost its end does not count: the member may have acknowledged more than anything shows.
func (rk *ranking) absentMajority(pos int) string {
	voters := rk.votersFor(pos)
	if len(voters) == 0 {
		return rk.noLogs()
	}
	given, whole := map[dumplog.ID]bool{}, map[dumplog.ID]bool{}
	var cut []string
	for i, m := range rk.Members {
		if !m.HasLog() || !slices.Contains(voters, m.MemberID) {
			continue
		}
		given[m.MemberID] = true
		if rk.endsWhole(i) {
			whole[m.MemberID] = true
		} else {
			cut = append(cut, m.Label())
		}
	}
	need := len(voters)/2 + 1
	switch {
	case len(whole) >= need:
		return ""
	case len(cut) == 0:
		return fmt.Sprintf("the logs of %d of %d voters are given, and %d are needed: the others may have "+
			"committed more", len(given), len(voters), need)
	}
	return fmt.Sprintf("%s may have acknowledged more than the logs show, whose ends are lost or not known. The whole "+
		"logs of %d of %d voters are given, and %d are needed", strings.Join(cut, ", "), len(whole), len(voters), need)
}

// votersFor are the voters of a member's cluster: those of the newest configuration that any source of it has. A
// backup shows none. Where logs differ, a new cluster may have been forced, and the member's own count.
func (rk *ranking) votersFor(pos int) []dumplog.ID {
	var newest *evidence.Member
	own := rk.Members[pos]
	if len(own.Membership.Voters) > 0 {
		newest = own
	}
	if newest != nil && (rk.Replay == nil || len(rk.Replay.LogDiffs) > 0) {
		return newest.Membership.Voters
	}
	for _, m := range rk.Members {
		if len(m.Membership.Voters) > 0 && m.ClusterID == cmp.Or(own.ClusterID, m.ClusterID) &&
			(newest == nil || m.Commit > newest.Commit) {
			newest = m
		}
	}
	if newest == nil {
		return nil
	}
	return newest.Membership.Voters
}

// lacksTail says that a member lacks entries at the end of another log of which no source shows whether they are
// committed: enough voters may hold them. It returns "" if there are none, or if too few voters can hold them.
func (rk *ranking) lacksTail(pos int) string {
	m := rk.Members[pos]
	last := max(m.LastIndex(), m.ConsistentIndex())
	if rk.Replay == nil || rk.Replay.UncommittedAfter(last) == 0 {
		return ""
	}
	voters := rk.votersFor(pos)
	for _, o := range rk.Members {
		term := o.WAL.TermAt(last + 1)
		if !o.HasLog() || term == 0 || 2*rk.mayHold(voters, term, last+1) <= len(voters) {
			continue
		}
		return fmt.Sprintf("its log lacks %s that the log of %s holds, and voters that are not among the sources may "+
			"have committed", plural.Of(rk.Replay.UncommittedAfter(last), "entry", "entries"), o.Label())
	}
	return ""
}

// mayHold counts the voters that hold an entry, or of which the sources do not show that they do not.
func (rk *ranking) mayHold(voters []dumplog.ID, term, index uint64) (n int) {
	lacks := map[dumplog.ID]bool{}
	for i, o := range rk.Members {
		if o.HasLog() && o.WAL.TermAt(index) != term && (o.LastIndex() >= index || rk.endsWhole(i)) {
			lacks[o.MemberID] = true
		}
	}
	for _, id := range voters {
		if !lacks[id] {
			n++
		}
	}
	return n
}

// noLogs says that databases alone do not show what was committed, "" where a source has a log. Snapshots of running
// members are another matter (withoutLogs).
func (rk *ranking) noLogs() string {
	if slices.ContainsFunc(rk.Members, (*evidence.Member).HasLog) || rk.withoutLogs() != "" {
		return ""
	}
	return "no source has a log, so more may have been committed than the databases show"
}

// endsWhole reports whether the log of a member shows everything that the member has acknowledged.
func (rk *ranking) endsWhole(pos int) bool {
	label := rk.Members[pos].Label()
	if pos < len(rk.Facts) && !boot.EndsWhole(&rk.Facts[pos]) {
		return false
	}
	return !slices.ContainsFunc(rk.Findings, func(f check.Finding) bool {
		return slices.Contains(f.Members, label) && endLost(&f)
	})
}

// endLost reports whether a finding says that the logs of its members lost entries which they had acknowledged, or end
// below what is committed for a reason that is not known.
func endLost(f *check.Finding) bool {
	switch {
	case f.Check == check.R07:
		return true
	case f.Severity.Rank() < check.Error.Rank():
		return false
	case f.Class == check.ClassTornCopy:
		return len(f.Members) == 1
	}
	return f.Class == check.ClassMemberLostData && f.Kind != check.KindDBRemoved
}

// comparedWith reports whether what another member holds was compared with a member, directly or by the log that both
// follow. A log that does not reach back to the first entry says nothing of keys from before it.
func (rk *ranking) comparedWith(pos, other int) bool {
	if d := rk.Diff; d != nil && d.TookPart("key", pos) && d.TookPart("key", other) {
		if b := d.Find("key"); b != nil && b.Equal != release.Unknown {
			return true
		}
	}
	rp := rk.Replay
	return !rk.Members[other].HasDB() || rp != nil && rp.Members[other].Checked && rp.Members[pos].Checked &&
		rp.Covers(0, rk.Members[other].AppliedMin)
}

// keysUnseen says that more keys differ in content than the listed ones and those that the replay judged, "" where not.
func (rk *ranking) keysUnseen() string {
	if rk.Diff == nil {
		return ""
	}
	b := rk.Diff.Find("key")
	if b == nil || b.Differ <= len(b.Rows) {
		return ""
	}
	told := rk.majority().decidedByLog()
	if rk.Replay != nil {
		for _, m := range rk.Replay.Members {
			for k := range m.LacksKeys {
				told[k] = true
			}
		}
	}
	if differ := b.Differ - b.SameContent; differ > len(told) {
		return fmt.Sprintf("%d keys differ between members, and the log shows of %d which member lacks what", differ,
			len(told))
	}
	return ""
}

// keysUntold are the differing keys of the comparison that the replay does not explain, and of which the right content
// is not proven otherwise.
func (rk *ranking) keysUntold(decided map[string]bool) (rows []*diff.Row) {
	if rk.Diff == nil {
		return nil
	}
	b := rk.Diff.Find("key")
	if b == nil || !b.Equal.Excluded() || slices.ContainsFunc(rk.Findings, func(f check.Finding) bool {
		return f.Check == check.K01 && !f.Undecided
	}) {
		return nil
	}
	told := rk.majority().decidedByLog()
	for i := range b.Rows {
		if row := &b.Rows[i]; !row.SameContent && !told[string(row.Key)] && !decided[string(row.Key)] &&
			!rk.Diff.Judged(row) {
			rows = append(rows, row)
		}
	}
	return rows
}
