package replay

import (
	"strconv"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestUnwritten: a data dir at revision 100 after 40 entries, and a backup whose index is that of the 30th of them: if
// that counts this log, the revision of the backup is 90 or more, and it was 60 or more when the log began.
func TestUnwritten(t *testing.T) {
	for name, c := range map[string]struct {
		rev    int64
		change func(r *Result)
		want   bool
	}{
		"before the log began":                     {rev: 60, want: true},
		"hardly a write of the log":                {rev: 80, want: true},
		"too low by one":                           {rev: 89, want: true},
		"possible at its index":                    {rev: 90},
		"some found, though it is from before":     {60, found(14, 20), true},
		"half of the entries found":                {60, found(15, 20), false},
		"some of those that were judged are found": {80, found(9, 20), true},
		"half of those that were judged are found": {80, found(10, 20), false},
		"the log begins with a bootstrap": {60, func(r *Result) {
			r.Members[0].Member.WAL.Summary.Start = dumplog.StartBootstrap
		}, false},
		"the log begins later":      {60, func(r *Result) { r.Survey.writers[1].first = 2 }, false},
		"purged, and far below":     {74, purged(41, 0), true},
		"purged, and not far below": {75, purged(41, 0), false},
		"purged, another term":      {80, purged(41, 5), true},
		"purged, the same term":     {80, purged(41, 4), false},
		"purged, the term of an old server": {80, func(r *Result) {
			purged(41, 5)(r)
			r.Members[1].Member.Version.Minor = 4
		}, false},
		"purged, another term and possible at its index": {90, purged(41, 5), false},
		"purged beyond its index":                        {79, purgedBeyond, true},
		"purged beyond its index and possible there":     {80, purgedBeyond, false},
		"purged, a member that the cluster never had": {80, func(r *Result) {
			purged(41, 0)(r)
			r.Members[1].Member.Membership.Bucket = []dumplog.ID{1, 9}
		}, true},
		"purged, a member that was removed": {80, func(r *Result) {
			purged(41, 0)(r)
			r.Members[1].Member.Membership.Bucket = []dumplog.ID{1, 9}
			r.Members[0].Member.Membership.Removed = []dumplog.ID{9}
		}, false},
		"purged, a member that may have been added since": {80, func(r *Result) {
			purged(41, 0)(r)
			r.Members[1].Member.Membership.Bucket = []dumplog.ID{1, 9}
			r.Members[0].Member.AppliedMin = 39
		}, false},
		"the data dir's begins later": {60, func(r *Result) { r.Survey.writers[0].first = 2 }, false},
		"no entry up to its index":    {60, func(r *Result) { r.Survey.writers[1].total = 0 }, false},
		"a data dir":                  {60, func(r *Result) { r.Members[1].Member.WAL.Log = &dumplog.Log{} }, false},
		"no database":                 {60, func(r *Result) { r.Members[1].Member.DB.Handle = nil }, false},
		"no bucket key":               {60, func(r *Result) { r.Members[1].Member.DB.KV = nil }, false},
		"the data dir is not so far": {80, func(r *Result) {
			r.Survey.writers[0].appliedRange, r.Survey.writers[0].total = appliedRange{30, 30}, 20
			r.Members[0].Member.AppliedMin, r.Members[0].Member.AppliedMax = 30, 30
		}, true},
		"another data dir with a low revision is not so far": {80, func(r *Result) {
			m := &evidence.Member{AppliedMin: 30, AppliedMax: 30, WAL: r.Members[0].Member.WAL}
			m.DB = &evidence.DB{Handle: &dumpdb.DB{}, KV: &dumpdb.KVStats{LastRev: dumpdb.Rev{Main: 20}}}
			r.Members = append(r.Members, &MemberResult{Member: m})
			r.Survey.writers = append(r.Survey.writers, &writers{appliedRange: appliedRangeOf(m), first: 1, total: 20})
		}, true},
		"no survey": {60, func(r *Result) { r.Survey = nil }, false},
		"where log and database of the data dir meet": {94, func(r *Result) {
			x := r.Members[0]
			x.Checked, x.BaseRevision, x.baseWrites = true, 95, 20
		}, true},
		"above that": {95, func(r *Result) {
			x := r.Members[0]
			x.Checked, x.BaseRevision, x.baseWrites = true, 95, 20
		}, false},
	} {
		r := restoredAndBackup(c.rev)
		if c.change != nil {
			c.change(r)
		}
		other := r.Unwritten(1)
		got := other != nil
		low := int64(90)
		switch {
		case strings.HasPrefix(name, "purged beyond"):
			low = 80
		case strings.HasPrefix(name, "the data dir is"):
			low = 100
		}
		if got && other.Inferred != strings.HasPrefix(name, "purged") {
			t.Errorf("%s: inferred %v", name, other.Inferred)
		}
		if got != c.want || got && other.AtLeast != low && c.rev < 90 {
			t.Errorf("%s: %+v", name, other)
		}
	}
}

// TestRefusedWrites: where auth is on and no log shows a restore, a backup without the writes of the log may be of a
// member that refused them.
func TestRefusedWrites(t *testing.T) {
	stamped, plain := put("a", "1"), put("b", "1")
	stamped.Header.AuthRevision = 7
	for name, c := range map[string]struct {
		change  func(r *Result)
		put     *dumplog.Request
		refused bool
	}{
		"with an auth revision":     {purged(41, 0), stamped, true},
		"without":                   {purged(41, 0), plain, false},
		"of another term":           {purged(41, 5), stamped, false},
		"the log shows the restore": {func(*Result) {}, stamped, false},
	} {
		r := restoredAndBackup(60)
		r.Survey.puts = newContents()
		r.Survey.puts.note(itemAt(39, c.put))
		r.Survey.puts.full = true // so contents, which these databases lack, say nothing
		c.change(r)
		if other := r.Unwritten(1); other == nil || other.Refused != c.refused ||
			strings.Contains(other.String(), "refused") != c.refused {
			t.Errorf("%s: %+v", name, other)
		}
	}
	many := newContents()
	m := &evidence.Member{AppliedMin: 40, AppliedMax: 40}
	for i := range manyPuts {
		many.note(itemAt(uint64(20+i), put("a", strings.Repeat("1", i+1))))
	}
	many.note(itemAt(39, stamped))
	if many.mayRefuseAll(m) {
		t.Error("many puts carry no auth revision")
	}
}

// TestUnwrittenByContents: a backup whose revision is possible at its index is one of another log if no entry of the
// log, purged or not, put what it holds. Where the logs end before its index and show no restore, later entries may
// have.
func TestUnwrittenByContents(t *testing.T) {
	s := fourPuts()
	s.put("e", "5")
	backup := openStory(t, s)
	backup.WAL = evidence.WAL{}
	long := fourPuts()
	for i := range 12 {
		long.put("f", strconv.Itoa(i))
	}
	dir := openStory(t, long)
	for _, start := range []dumplog.StartKind{dumplog.StartRestore, dumplog.StartPurged} {
		for name, last := range map[string]*dumplog.Request{"nothing of the log": put("a", "x"),
			"its last put is the log's": put("e", "5")} {
			dir.WAL.Summary.Start = start
			r := &Result{Members: []*MemberResult{{Member: dir}, {Member: backup}},
				Survey: &Survey{puts: newContents()}, Last: dir.AppliedMin}
			r.Survey.writers = newWriters(r)
			for i, w := range r.Survey.writers {
				w.first, w.last, w.total = 2, w.until, int64(30-20*i)
			}
			for i := range 8 {
				r.Survey.puts.note(itemAt(2, put("a", strings.Repeat("1", i+1))))
			}
			r.Survey.puts.note(itemAt(backup.AppliedMin, last))
			other := r.Unwritten(1)
			if got := other != nil; got != (last.Put.Value[0] == 'x') || got && other.AtLeast != 0 {
				t.Errorf("%s, %s: %+v", start, name, other)
			}
			r.Last = backup.AppliedMin - 1
			if got := r.Unwritten(1) != nil; got != (last.Put.Value[0] == 'x' && start == dumplog.StartRestore) {
				t.Errorf("%s, %s, logs that end before: %v", start, name, got)
			}
		}
	}
}

// purged leaves 30 of the entries of the log up to the index of the backup, and 10 after it. The term of the entry at
// that index is 4, or unknown.
func purged(first, term uint64) func(r *Result) {
	at := uint64(40)
	return func(r *Result) {
		dir, backup := r.Members[0].Member, r.Members[1].Member
		for _, w := range r.Survey.writers {
			w.first, w.last = first, w.until
		}
		dir.WAL.Summary.Start = dumplog.StartPurged
		dir.WAL.LastByTerm = []evidence.TermEnd{{Term: 4, First: 1, Last: 50}}
		backup.DB.Meta.ConsistentIndex, backup.Membership.Bucket = &at, []dumplog.ID{1}
		dir.MemberID = 1
		if term > 0 {
			backup.DB.Meta.Term = &term
		}
	}
}

// purgedBeyond leaves the entries from 46 on, of which 15 write: the five between may have too, so it is 80 or more.
func purgedBeyond(r *Result) {
	purged(46, 0)(r)
	r.Members[1].Member.Membership.Bucket = []dumplog.ID{1, 9}
	r.Survey.writers[0].total = 15
	*r.Survey.writers[1] = writers{appliedRange: r.Survey.writers[1].appliedRange}
}

func found(applied int, judged int64) func(r *Result) {
	return func(r *Result) {
		x := r.Members[1]
		x.Checked, x.Writes, x.Counts[Applied] = true, judged, applied
	}
}

func restoredAndBackup(rev int64) *Result {
	dir := &evidence.Member{ClusterID: 1, AppliedMin: 50, AppliedMax: 50}
	dir.WAL.Log, dir.WAL.Summary.Start = &dumplog.Log{}, dumplog.StartRestore
	backup := &evidence.Member{AppliedMin: 40, AppliedMax: 40}
	for m, rev := range map[*evidence.Member]int64{dir: 100, backup: rev} {
		m.DB = &evidence.DB{Handle: &dumpdb.DB{}, KV: &dumpdb.KVStats{LastRev: dumpdb.Rev{Main: rev}}}
	}
	r := &Result{Members: []*MemberResult{{Member: dir}, {Member: backup}}, Survey: &Survey{}}
	r.Survey.writers = newWriters(r)
	for i, total := range []int64{40, 30} {
		r.Survey.writers[i].first, r.Survey.writers[i].total = 1, total
	}
	return r
}
