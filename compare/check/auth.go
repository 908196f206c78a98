package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/release"
)

var refsAuthReplay = []string{"https://github.com/etcd-io/etcd/issues/11651",
	"https://github.com/etcd-io/etcd/pull/11652"}

var authRevisionEqual = described(Check{
	ID:    A01,
	Needs: NeedDB | NeedTwo,
	Run:   runAuthRevisionEqual,
})

func runAuthRevisionEqual(in *Input) Result {
	if in.Diff == nil {
		return Result{Reason: "the databases could not be compared"}
	}
	compared := in.authRevisions().compared()
	values := map[uint64]bool{}
	f := Finding{Kind: KindAuthRevisionsDiffer, Severity: Critical, Undecided: true,
		Title: "the auth revision differs between members",
		Refs:  refsAuthReplay}
	var parts []string
	var counted []int
	low, at := uint64(1<<64-1), uint64(0)
	for i, m := range in.Members {
		if in.Diff.NotCompared[i] != "" || !m.DB.Auth.HasRevision || !compared[i] {
			continue
		}
		rev := m.DB.Auth.Revision
		values[rev] = true
		low = min(low, rev)
		parts = append(parts, fmt.Sprintf("%s %d", m.Label(), rev))
		f.Members, counted = append(f.Members, m.Label()), append(counted, i)
	}
	if len(f.Members) < 2 {
		return Result{Reason: "fewer than two members store an auth revision"}
	}
	if len(values) == 1 {
		return Result{Outcome: Holds}
	}
	if b := in.Diff.Find("auth"); b != nil && authRow(in.Diff) == nil && !authBeyondLog(in.Replay) {
		if b.Equal != release.Unknown {
			return Result{Outcome: Holds} // an entry that not all members have applied explains the rest
		}
		return Result{Reason: b.Reason}
	}
	own, told := in.authRevisions().expected(counted)
	for i, m := range in.Members {
		if m.HasDB() && m.DB.Auth.HasRevision && compared[i] {
			expected := fmt.Sprintf("one number on all members (lowest is %d)", low)
			if n, ok := own[i]; ok && told {
				expected = n + ", as the log gives"
			}
			f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: m.DB.File, Bucket: "auth",
				Key: Bytes("authRevision"), Field: "authRevision",
				Observed: fmt.Sprint(m.DB.Auth.Revision), Expected: expected, Show: showDB(m, "auth")})
			at = max(at, m.AppliedMin)
		}
	}
	f.Explanation = "auth revisions: " + strings.Join(parts, ", ") + ". A member drops, without an error in its log, " +
		"every write whose header carries a lower auth revision than its own."
	if row := authRow(in.Diff); row != nil && !told {
		in.authRevisions().nameOdd(&f, row)
	}
	f.At.Index, f.At.Term = in.authRevisions().firstBreak()
	f.Class = ClassLatentDivergence
	return Result{Outcome: Violated, Findings: []Finding{f}}
}

// authRow is the row of the auth revision where it differs between members that can be compared, nil where it does not.
func authRow(d *diff.Result) *diff.Row {
	b := d.Find("auth")
	if b == nil {
		return nil
	}
	for i := range b.Rows {
		if string(b.Rows[i].Key) == "authRevision" {
			return &b.Rows[i]
		}
	}
	return nil
}

// authRevisions answers which auth revisions count, where they broke, and which bounds the log gives them.
type authRevisions struct{ *Input }

func (in *Input) authRevisions() authRevisions { return authRevisions{in} }

// compared are the positions of the members whose auth revisions count: all except those whose difference
// is explained by an entry that they or others have not applied.
func (in authRevisions) compared() map[int]bool {
	out := map[int]bool{}
	row := authRow(in.Diff)
	for i := range in.Members {
		out[i] = row == nil || !slices.Contains(row.Out, i) || authBeyondLog(in.Replay)
	}
	return out
}

// nameOdd fills in who holds another auth revision than most, with the members that show it.
func (in authRevisions) nameOdd(f *Finding, row *diff.Row) {
	odd, by := in.odd(row)
	f.Odd = in.Members.labelsOf(odd)
	for _, i := range by {
		m := in.Members[i]
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: m.DB.File, Bucket: "auth",
			Key: Bytes("authRevision"), Field: "authRevision after more entries, which never falls",
			Observed: fmt.Sprint(m.DB.Auth.Revision), Show: showDB(m, "auth")})
	}
}

// odd are the positions of the members whose auth revision differs from that of most members. An auth revision never
// falls: a member that has applied more entries and holds the lowest one agrees with that; by are these.
func (in authRevisions) odd(row *diff.Row) (odd, by []int) {
	at := in.Diff.Compared(row)
	if odd := row.Odd(independent(in.Input, at)); len(odd) > 0 {
		return odd, nil
	}
	low, applied := uint64(1<<64-1), uint64(0)
	for _, i := range at {
		m := in.Members[i]
		if !m.DB.Auth.HasRevision {
			return nil, nil
		}
		low, applied = min(low, m.DB.Auth.Revision), max(applied, m.AppliedMax)
	}
	var lowest, higher []int
	for i, m := range in.Members {
		switch {
		case !m.HasDB() || !m.DB.Auth.HasRevision:
		case !slices.Contains(at, i):
			if m.DB.Auth.Revision == low && m.AppliedMin > applied {
				lowest, by = append(lowest, i), append(by, i)
			}
		case m.DB.Auth.Revision == low:
			lowest = append(lowest, i)
		default:
			higher = append(higher, i)
		}
	}
	if len(independent(in.Input, lowest)) > len(independent(in.Input, higher)) {
		return higher, by
	}
	return nil, nil
}

// expected are the auth revisions that result from the log alone, by position of the member: each up to the entry that
// the member has applied last, as a range if the member stores an earlier one in it. It is false if one of them is not
// known.
func (in authRevisions) expected(members []int) (revisions map[int]string, known bool) {
	if in.Replay == nil {
		return nil, false
	}
	revisions = map[int]string{}
	for _, i := range members {
		r := in.Replay.Members[i]
		if !r.Checked || !r.GivesAuth() {
			return nil, false
		}
		revisions[i] = fmt.Sprint(r.AuthExpected)
		if own := in.Members[i].DB.Auth.Revision; r.AuthExpectedMin <= own && own < r.AuthExpected {
			revisions[i] = fmt.Sprintf("%d to %d", r.AuthExpectedMin, r.AuthExpected)
		}
	}
	return revisions, true
}

// authBeyondLog reports whether some member's auth revision is outside the range that its own log allows, whatever it
// has applied.
func authBeyondLog(rp *replay.Result) bool {
	if rp == nil {
		return false
	}
	for _, r := range rp.Members {
		if r.Checked && r.AuthOff() {
			return true
		}
	}
	return false
}

// firstBreak is the first rise of any member's auth revision at a restart; without one, the first entry refused for
// its auth revision.
func (in authRevisions) firstBreak() (index, term uint64) {
	if in.Replay == nil {
		return 0, 0
	}
	for _, r := range in.Replay.Members {
		for _, j := range r.Jumps {
			if index == 0 || j.Index < index {
				index = j.Index
			}
		}
	}
	for _, e := range in.Replay.Events {
		for i := range e.Outcomes {
			if e.RefusedWrongly(i) && (index == 0 || e.Index < index) {
				index = e.Index
			}
		}
	}
	return index, in.Members.logs().termAt(index)
}

var authRevisionMatchesLog = described(Check{
	ID:    A02,
	Needs: NeedReplay,
	Run:   runAuthRevisionMatchesLog,
})

func runAuthRevisionMatchesLog(in *Input) Result {
	var fs []Finding
	known, stored, lost := 0, 0, 0
	for i, r := range in.Replay.Members {
		m := in.Members[i]
		if !r.Checked || !m.DB.Auth.HasRevision {
			continue
		}
		stored++
		if !r.AuthKnown {
			if f := in.authRevisions().stampFinding(i); f != nil {
				fs = append(fs, *f)
			}
			continue
		}
		switch {
		case r.AuthOff():
			fs = append(fs, in.cut(authJumpFinding(in.Members, m, r)))
		case r.AuthEndLost:
			lost++
		default:
			known++
		}
	}
	switch {
	case stored == 0:
		return Result{Reason: "no member with a log stores an auth revision"}
	case known > 0 || len(fs) > 0:
	case lost > 0:
		return Result{Reason: "the logs lack entries that the databases have applied"}
	default:
		return Result{Reason: "the log does not reach back to the first entry of the cluster"}
	}
	return outcome(fs, "")
}

func authJumpFinding(ss Sources, m *evidence.Member, r *replay.MemberResult) Finding {
	f := Finding{Kind: KindAuthRevisionAgainstLog, Severity: Critical, Members: []string{m.Label()},
		Refs: refsAuthReplay, Class: ClassLatentDivergence,
		Title: fmt.Sprintf("%s holds auth revision %d; its log gives %d", m.Label(), m.DB.Auth.Revision,
			r.AuthExpected)}
	var said []string
	for _, j := range r.Jumps {
		if f.At.Index == 0 {
			f.At = At{Index: j.Index, Term: ss.logs().termAt(j.Index)}
		}
		if j.Snapshot > 0 {
			said = append(said, fmt.Sprintf("with the snapshot received at index %d it took over a database whose "+
				"auth revision stood higher by %d", j.Snapshot, j.Extra))
			continue
		}
		said = append(said, fmt.Sprintf("at the restart published by entry %d (process started %s) it rose by %d; "+
			"applying auth entries %d..%d a second time explains up to %d",
			j.Restart, j.Start.Format("2006-01-02T15:04:05Z"), j.Extra, j.From, j.To, j.Possible))
		for _, idx := range j.Entries {
			f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), Bucket: "auth", Key: Bytes("authRevision"),
				Field:    fmt.Sprintf("entry %d", idx),
				Observed: "counted twice", Expected: "counted once", Show: showLog(m, idx)})
		}
	}
	if r.Unexplained != 0 {
		said = append(said, fmt.Sprintf("a difference of %+d has no explanation in the log", r.Unexplained))
	}
	f.Evidence = append([]Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "auth", Key: Bytes("authRevision"),
		Field:    "authRevision",
		Observed: fmt.Sprint(m.DB.Auth.Revision), Expected: fmt.Sprint(r.AuthExpected), Show: showDB(m, "auth")}},
		f.Evidence...)
	f.Explanation = strings.Join(said, "; ")
	if r.AuthEndLost { // the lost entries may have raised it as well
		f.Title = m.Label() + ": its auth revision rose without an entry"
		f.Evidence[0].Expected = "no rise without an entry"
	}
	return f
}

var authContentEqual = described(Check{
	ID:    A03,
	Needs: NeedDB | NeedTwo,
	Run: func(in *Input) Result {
		return in.contents().stateEqual(ClassLatentDivergence,
			func(row *diff.Row) bool { return row.Kind != diff.PasswordRow }, "authUsers", "authRoles")
	},
})

var passwordsEqual = described(Check{
	ID:    A09,
	Needs: NeedDB | NeedTwo,
	Run:   runPasswordsEqual,
})

func runPasswordsEqual(in *Input) Result {
	r := in.contents().stateEqual(ClassLatentDivergence,
		func(row *diff.Row) bool { return row.Kind == diff.PasswordRow }, "authUsers")
	if r.Outcome != Holds || in.Diff == nil {
		return r
	}
	for _, p := range in.Diff.Passwords {
		if !p.Legal {
			continue
		}
		if why := ownSalts(in.Replay, p.User); why != "" {
			return Result{Reason: why}
		}
	}
	return r
}

// ownSalts says why differing password hashes of a user cannot be judged, "" when the log shows that each member made a
// separate one.
func ownSalts(rp *replay.Result, user string) string {
	if rp != nil && rp.Survey != nil {
		sets := rp.Survey.Passwords(user, rp.Commit)
		if n := len(sets); n > 0 && sets[n-1].Hash == nil && rp.Covers(sets[n-1].Index, rp.Commit) {
			return ""
		}
	}
	return fmt.Sprintf("the hashes of user %q have different salts and digests, as members up to 3.4 make them, and "+
		"the log does not hold the entry that set the password", user)
}

var noStaleAuthRefusal = described(Check{
	ID:    A04,
	Needs: NeedReplay,
	Run:   runStaleAuth,
})

func runStaleAuth(in *Input) Result {
	var fs []Finding
	for i, m := range in.Members {
		f := Finding{Kind: KindEntriesRefusedForAuth, Severity: Critical, Members: []string{m.Label()},
			Class: ClassDataDivergence, Refs: refsAuthReplay}
		held := true
		for _, e := range in.Replay.Events {
			o := e.Outcomes[i]
			if !e.RefusedWrongly(i) {
				continue
			}
			if f.At.Index == 0 {
				f.At = At{Term: e.Term, Index: e.Index}
			}
			held = held && len(e.Holding) > 0
			f.Evidence = append(f.Evidence, droppedEvidence(in, i, e, o))
		}
		if n := len(f.Evidence); n > 0 {
			f.Title = fmt.Sprintf("%s dropped %d committed entries that another member applied, because its auth "+
				"revision is higher", m.Label(), n)
			if !held {
				f.Title = fmt.Sprintf("%s dropped %d committed entries, because its auth revision is higher than the "+
					"log gives", m.Label(), n)
			}
			f.Explanation = "each of these entries is committed; its header carries an older auth revision than " +
				"this member's own, so this member did nothing when it came to it."
			fs = append(fs, in.cut(f))
		}
	}
	return outcome(fs, "")
}

func droppedEvidence(in *Input, pos int, e *replay.Event, o replay.Outcome) Evidence {
	by := fmt.Sprintf("member ..%04x", e.Prefix)
	if e.Proposer != 0 {
		by = in.Members.MemberName(e.Proposer)
	}
	ev := in.inLog(Evidence{Field: fmt.Sprintf("entry %d/%d", e.Term, e.Index),
		Observed: fmt.Sprintf("%s by %s user=%s: not applied, header auth revision %d < own %d", e.What, by, e.User,
			e.HeaderAuthRevision, o.AuthRevision),
		Expected: "applied"}, pos, e.Index)
	if len(e.Keys) > 0 {
		ev.Bucket, ev.Key = "key", Bytes(e.Keys[0])
	}
	return ev
}
