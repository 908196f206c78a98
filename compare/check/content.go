package check

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

var keysEqual = described(Check{
	ID:    K01,
	Needs: NeedDB | NeedTwo,
	Run: func(in *Input) Result {
		r := in.contents().bucketsEqual(ClassDataDivergence, "key")
		if r.Outcome == Holds {
			r.Reason = in.contents().withoutKeysOf()
		}
		for i := range r.Findings {
			in.contents().nameWrongKeys(&r.Findings[i])
		}
		return r
	},
})

// contents makes findings of what the comparison of the databases shows.
type contents struct{ *Input }

func (in *Input) contents() contents { return contents{in} }

// nameWrongKeys names the members whose keys their own databases prove wrong, if that decides about every key that
// differs. What the log decides is said by K03.
func (in contents) nameWrongKeys(f *Finding) {
	b, rw, x := in.Diff.Find("key"), in.rowWitnesses(), newBlame()
	if b.Differ > len(b.Rows) {
		return
	}
	for i := range b.Rows {
		if !in.judgeKeyRow(rw, x, &b.Rows[i]) {
			return
		}
	}
	if x.open {
		return
	}
	x.name(in.Input, f)
	for from := range f.Evidence { // of each key the wrong versions first
		to := from
		for to < len(f.Evidence) && bytes.Equal(f.Evidence[to].Key, f.Evidence[from].Key) {
			to++
		}
		if at := slices.IndexFunc(f.Evidence[from:to], func(e Evidence) bool {
			return slices.Contains(f.Members, e.Member)
		}); at > 0 {
			f.Evidence[from], f.Evidence[from+at] = f.Evidence[from+at], f.Evidence[from]
		}
	}
}

// judgeKeyRow adds who is wrong about a key. It returns false where the record of the key cannot be judged. Members
// that have compacted the key's revision were not compared at its record: then the key itself decides.
func (in contents) judgeKeyRow(rw *rowWitnesses, x *blame, key *diff.Row) bool {
	rev := key.LastWrite()
	if rev == 0 {
		return false
	}
	judge := func(row *diff.RecordRow, asks ...func(*diff.RecordRow) []witness) {
		ws := firstWitnesses(row, asks...)
		if !othersAgree(row, ws) {
			ws = nil
		}
		x.add(in.Input, row.At, nil, ws)
	}
	var rows []diff.RecordRow
	whole := true
	err := in.Diff.EachRecord(rw.ctx, rev, func(row *diff.RecordRow) {
		rows = append(rows, *row)
		for i := range in.Members {
			whole = whole && (!in.Diff.TookPart("key", i) || slices.Contains(row.At, i))
		}
	})
	if err != nil {
		return false
	}
	if whole && len(rows) > 0 {
		for i := range rows {
			judge(&rows[i], rw.recordByHistory, rw.recordByLastTransaction)
		}
		return true
	}
	row := rw.liveRecord(key, rev)
	if row != nil {
		judge(row, rw.keyByLastTransaction)
	}
	return row != nil
}

// othersAgree reports whether all members that no witness accuses hold a record alike.
func othersAgree(row *diff.RecordRow, ws []witness) bool {
	rest := slices.DeleteFunc(slices.Clone(row.At), func(i int) bool {
		return slices.ContainsFunc(ws, func(w witness) bool { return w.pos == i })
	})
	return !slices.ContainsFunc(rest, func(i int) bool { return !sameCell(row.Cells[i], row.Cells[rest[0]]) })
}

// bucketsEqual turns the comparison of buckets into a result with one finding per bucket that differs.
func (in contents) bucketsEqual(class Class, names ...string) Result {
	if in.Diff == nil {
		return Result{Reason: "the databases could not be compared"}
	}
	var fs []Finding
	reason := ""
	for _, n := range names {
		b := in.Diff.Find(n)
		switch {
		case b == nil:
			reason = "bucket " + n + " was not compared"
		case b.Equal == release.Unknown:
			reason = b.Reason
		case b.Equal.Excluded():
			fs = append(fs, in.cut(in.bucketFinding(class, b)))
		}
	}
	return outcome(fs, reason)
}

// withoutKeysOf says of which members the keys were not compared, and why: what holds is not proven of these. Sources
// that bring no database by their kind do not count.
func (in contents) withoutKeysOf() string {
	var out []string
	for i, m := range in.Members {
		why := cmp.Or(in.Diff.NotCompared[i], in.Diff.KeysNotCompared[i])
		if why == "" && m.DB.KVDamaged {
			why = "part of its bucket key cannot be read"
		}
		if why != "" && m.Source.Kind != evidence.KindWAL && m.Source.Kind != evidence.KindSnap {
			out = append(out, "without "+m.Label()+": "+why)
		}
	}
	return strings.Join(out, "; ")
}

// rowsDiffer says how many rows of a bucket differ.
func rowsDiffer(n, all int, bucket string) string {
	return fmt.Sprintf("%d of %s of bucket %s %s between members", n, plural.Of(all, "row", "rows"), bucket,
		plural.Form(n, "differs", "differ"))
}

func (in contents) bucketFinding(class Class, b *diff.Bucket) Finding {
	f := Finding{Kind: KindKeysDiffer, Severity: Critical, Class: class, Undecided: true,
		Title: rowsDiffer(b.Differ, b.Compared, b.Name)}
	for i, m := range in.Members {
		if in.Diff.TookPart(b.Name, i) {
			f.Members = append(f.Members, m.Label())
		}
	}
	f.At.Index = in.Diff.Common
	var only []string
	for i, n := range b.Only {
		if n > 0 {
			only = append(only, fmt.Sprintf("%d only on %s", n, in.Members[i].Label()))
		}
	}
	f.Explanation = fmt.Sprintf("compared at index %d", in.Diff.Common)
	if len(only) > 0 {
		f.Explanation += "; " + strings.Join(only, ", ")
	}
	if b.SameContent > 0 {
		f.Explanation += fmt.Sprintf("; %d have equal values and differ in their revisions only", b.SameContent)
	}
	for _, row := range b.Rows {
		f.Evidence = append(f.Evidence, in.rowEvidence(b.Name, row)...)
	}
	f.More = (b.Differ - len(b.Rows)) * len(f.Members)
	return f
}

func (in contents) rowEvidence(bucket string, row diff.Row) []Evidence {
	var out []Evidence
	for i, m := range in.Members {
		if !in.Diff.TookPart(bucket, i) {
			continue
		}
		e := Evidence{Member: m.Label(), File: m.DB.File, Bucket: bucket, Key: Bytes(row.Key), Observed: "absent",
			Expected: "equal on all members"}
		if c := row.Cells[i]; c != nil {
			e.Observed = cellText(bucket, c)
		}
		e.Show = showDB(m, bucket)
		if bucket == "key" && shell.CanPass(row.Key) {
			e.Show = showDB(m, "key", "--history", row.Key)
		}
		out = append(out, e)
	}
	return out
}

func cellText(bucket string, c *diff.Cell) string {
	if bucket != "key" {
		return c.Text
	}
	s := fmt.Sprintf("mod %d create %d version %d value <len %d digest %s>", c.Mod, c.Create, c.Version, c.ValueLen,
		c.ValueDigest)
	if c.Sub != 0 {
		s = fmt.Sprintf("record %d.%d ", c.Mod, c.Sub) + s
	}
	if c.Lease != 0 {
		s += fmt.Sprintf(" lease %x", uint64(c.Lease))
	}
	return s
}

var revisionsEqual = described(Check{
	ID:    K02,
	Needs: NeedDB | NeedTwo,
	Run:   runRevisionsEqual,
})

func runRevisionsEqual(in *Input) Result {
	if in.Diff == nil {
		return Result{Reason: "the databases could not be compared"}
	}
	r := in.contents().revisionsAtOneIndex()
	if r.Outcome != Violated {
		if f := in.contents().revisionFalls(); f != nil {
			return Result{Outcome: Violated, Findings: []Finding{*f}}
		}
	}
	return r
}

func (in contents) revisionsAtOneIndex() Result {
	if in.Diff.Note != "" {
		return Result{Reason: in.Diff.Note}
	}
	f := Finding{Kind: KindRevisionsDiffer, Severity: Critical, Class: ClassDataDivergence, Undecided: true,
		Title: "the revision differs between members at the same applied index", At: At{Index: in.Diff.Common}}
	seen := map[int64]bool{}
	var parts []string
	for i, m := range in.Members {
		if !in.Diff.TookPart("key", i) || m.DB.KVDamaged {
			continue // the last revision may be on the page that cannot be read
		}
		seen[in.Diff.Revs[i]] = true
		f.Members = append(f.Members, m.Label())
		parts = append(parts, fmt.Sprintf("%s %d", m.Label(), in.Diff.Revs[i]))
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: m.DB.File, Bucket: "key", Field: "revision",
			Observed: fmt.Sprint(in.Diff.Revs[i]), Expected: "equal on all members", Show: showDB(m, "key", "--stats")})
	}
	if len(f.Members) < 2 {
		return Result{Reason: "fewer than two databases can be read"}
	}
	if len(seen) == 1 {
		return Result{Outcome: Holds, Reason: in.withoutKeysOf()}
	}
	f.Explanation = fmt.Sprintf("revisions at index %d: %s", in.Diff.Common, strings.Join(parts, ", "))
	if in.Replay == nil || in.Replay.EventCount == 0 { // else the entries show who is wrong
		f.Odd = in.oddRevisions(f.Members)
	}
	return Result{Outcome: Violated, Findings: []Finding{f}}
}

// oddRevisions are the members whose revision differs from that of more than half of the named members. Those whose
// revision the log shows to be wrong are left out, those with revisions that no entry wrote have no vote.
func (in contents) oddRevisions(named []string) []string {
	var at []int
	for i, m := range in.Members {
		if slices.Contains(named, m.Label()) &&
			!slices.ContainsFunc(in.belowAgainstLog(i), replay.BelowDiff.OfRevision) {
			at = append(at, i)
		}
	}
	at = independent(in.Input, at)
	count, all := map[int64]int{}, 0
	for _, i := range at {
		if !in.unwrittenRevisions(i) {
			count[in.Diff.Revs[i]]++
			all++
		}
	}
	for _, rev := range in.revisionsBehind(at) {
		// What a member that lags has reached shows which of the others is too low, if only one revision is not.
		low := func(r int64) bool { return r < rev }
		if fits := slices.DeleteFunc(slices.Collect(maps.Keys(count)), low); len(fits) == 1 && len(count) > 1 {
			count[fits[0]]++
			all++
		}
	}
	var odd []string
	for _, i := range at {
		most := slices.ContainsFunc(slices.Collect(maps.Values(count)), func(n int) bool { return 2*n > all })
		if most && 2*count[in.Diff.Revs[i]] <= all {
			odd = append(odd, in.Members[i].Label())
		}
	}
	return odd
}

// unwrittenRevisions reports whether a member has revisions that no entry of the log wrote.
func (in contents) unwrittenRevisions(pos int) bool {
	return in.Replay != nil && len(in.Replay.Members[pos].Extra) > 0
}

// revisionsBehind are the revisions of members that have applied a part of what the named ones have. All have one log,
// so none of the named ones can have a lower revision.
func (in contents) revisionsBehind(named []int) (revs []int64) {
	if in.Replay == nil || len(in.Replay.LogDiffs) > 0 || len(in.Replay.Shifts) > 0 {
		return nil
	}
	older := in.Replay.OlderCopies()
	for i, m := range in.Members {
		if _, copied := older[i]; copied || slices.Contains(named, i) || !in.ordered(i) {
			continue
		}
		if !slices.ContainsFunc(named, func(n int) bool {
			o := in.Members[n]
			return m.AppliedMax >= o.AppliedMin || !continues(o, m) || Restored(o) != Restored(m)
		}) {
			revs = append(revs, m.CurrentRevision())
		}
	}
	return revs
}

var dbMatchesLog = described(Check{
	ID:    K03,
	Needs: NeedReplay,
	Run:   runDBMatchesLog,
})

func runDBMatchesLog(in *Input) Result {
	var fs []Finding
	var unchecked, open []string
	for i, m := range in.Members {
		r := in.Replay.Members[i]
		if r.Open > 0 {
			open = append(open, fmt.Sprintf("%s: %s without an effect in the database may have had one (the first "+
				"is %d)", m.Label(), plural.Of(r.Open, "entry", "entries"), r.FirstOpen))
		}
		if !r.Checked {
			if m.HasDB() || m.HasWAL() {
				unchecked = append(unchecked, m.Label()+": "+r.Why)
			}
			continue
		}
		fs = append(fs, replayFindings(in, i, m, r)...)
	}
	fs = append(fs, in.doubtedFindings()...)
	out := outcome(fs, strings.Join(unchecked, "; "))
	if out.Outcome == Holds && len(open) > 0 {
		out.Reason = strings.Join(open, "; ") + ": the sources do not show what decides it"
	}
	return out
}

func replayFindings(in *Input, i int, m *evidence.Member, r *replay.MemberResult) []Finding {
	f := Finding{Kind: KindEntriesWithoutEffect, Severity: Critical, Members: []string{m.Label()},
		Class: ClassDataDivergence}
	n := 0
	for _, e := range in.Replay.Events {
		o := e.Outcomes[i]
		if o.State != replay.Missing && o.State != replay.Contradicted && o.State != replay.AppliedTwice &&
			(!o.Against || len(in.Members) > 1 && e.Kind == dumplog.KindLeaseRevoke) {
			continue
		}
		n++
		if f.At.Index == 0 {
			f.At = At{Term: e.Term, Index: e.Index}
			if o.Rev > 0 {
				f.At.Revision = &Rev{Main: o.Rev}
			}
		}
		own, seen := e.Version(i), o.State.String()+": "+o.Detail
		if o.Against {
			seen = fmt.Sprintf("%s at revision %d, %s", o.State, o.Rev, o.Detail)
		}
		ev := in.inLog(Evidence{Bucket: "key", Field: fmt.Sprintf("entry %d/%d", own.Term, e.Index),
			Observed: seen, Expected: own.What}, i, e.Index)
		if len(own.Keys) > 0 {
			ev.Key = Bytes(own.Keys[0])
		}
		f.Evidence = append(f.Evidence, ev)
	}
	for _, rev := range r.Extra {
		n++
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: m.DB.File, Bucket: "key",
			Field:    fmt.Sprintf("revision %d", rev),
			Observed: "records that no log entry explains", Expected: "every revision made by one entry",
			Show: showRev(m, rev)})
	}
	var out []Finding
	if n > 0 {
		f.Title = fmt.Sprintf("%s's database disagrees with the log in %s", m.Label(), plural.Of(n, "place", "places"))
		f.Explanation = fmt.Sprintf("replayed entries %d..%d: %d applied, %d refused by a rule, %d without effect, "+
			"%d missing, %d contradicted, %d outside history",
			r.From, r.To, r.Counts[replay.Applied], r.Counts[replay.Refused], r.Counts[replay.NoEffect],
			r.Counts[replay.Missing],
			r.Counts[replay.Contradicted], r.Counts[replay.OutsideHistory])
		if f.At.Index == 0 && len(r.Extra) > 0 {
			f.At.Revision = &Rev{Main: r.Extra[0]}
		}
		out = append(out, in.cut(f))
	}
	if rows := in.belowAgainstLog(i); len(rows) > 0 {
		out = append(out, in.cut(in.belowFinding(i, rows)))
	}
	return append(out, stateFindings(in, m, r)...)
}

// doubtedFindings are about entries of one log, or of few, that more databases contradict, one for the same logs.
func (in *Input) doubtedFindings() (out []Finding) {
	at := map[string]int{}
	for i := range in.Replay.Doubted {
		d := &in.Replay.Doubted[i]
		logs := fmt.Sprint(d.Logs)
		k, ok := at[logs]
		if !ok {
			k = len(out)
			at[logs] = k
			out = append(out, in.doubtedFinding(d))
		}
		f := &out[k]
		f.Members = slices.Compact(slices.Sorted(slices.Values(append(f.Members, in.Members.labelsOf(d.Against)...))))
		for _, log := range d.Logs {
			f.Evidence = append(f.Evidence, in.entryEvidence(log, d.Index, d.What, "what the databases hold"))
		}
		for _, pos := range d.Against {
			ev := Evidence{Member: in.Members[pos].Label(), File: in.Members[pos].DB.File, Bucket: "key",
				Field: fmt.Sprintf("entry %d/%d", d.Term, d.Index), Observed: d.Seen, Expected: d.What}
			if len(d.Keys) > 0 {
				ev.Key = Bytes(d.Keys[0])
			}
			f.Evidence = append(f.Evidence, ev)
		}
	}
	for i := range out {
		out[i] = in.cut(out[i])
	}
	return out
}

func (in *Input) doubtedFinding(d *replay.Doubted) Finding {
	logs := in.Members.labelsOf(d.Logs)
	that, another := "that log", "the log"
	if len(logs) > 1 {
		that, another = "these logs", "one of these logs"
	}
	return Finding{Kind: KindLogAgainstDatabases, Severity: Critical, Class: ClassDataDivergence, Undecided: true,
		Members: logs, At: At{Term: d.Term, Index: d.Index},
		Title: fmt.Sprintf("entry %d, which only the %s of %s %s, contradicts the databases of %s", d.Index,
			plural.Form(len(logs), "log", "logs"), plural.List(logs), plural.Form(len(logs), "holds", "hold"),
			plural.List(in.Members.labelsOf(d.Against))),
		Explanation: "these databases agree with each other, and each member writes its own: the entry was altered " +
			"in " + that + ", unless the databases were made from one another or all changed alike. Another copy of " +
			another + " decides it"}
}

// stateFindings: rows of the small buckets that contradict the log.
func stateFindings(in *Input, m *evidence.Member, r *replay.MemberResult) []Finding {
	if len(r.StateDiffs) == 0 {
		return nil
	}
	f := Finding{Kind: KindRowsAgainstLog, Severity: Error, Members: []string{m.Label()}, Class: ClassLatentDivergence,
		At: At{Index: r.To},
		Title: fmt.Sprintf("%s of small buckets of %s %s the log", plural.Of(len(r.StateDiffs), "row", "rows"),
			m.Label(), plural.Form(len(r.StateDiffs), "contradicts", "contradict")),
		Explanation: "leases, users, roles and alarms follow from the log alone"}
	shows := map[string]shell.Command{}
	for _, d := range r.StateDiffs {
		if shows[d.Bucket].IsZero() {
			shows[d.Bucket] = showDB(m, d.Bucket)
		}
		in.add(&f, func() Evidence {
			return Evidence{Member: m.Label(), File: m.DB.File, Bucket: d.Bucket,
				Key: Bytes(d.Key), Observed: d.Observed, Expected: d.Expected, Show: shows[d.Bucket]}
		})
	}
	return []Finding{f}
}
