package check

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// record is a record of bucket key.
type record struct {
	rev, sub  int64
	key       string
	tombstone bool
}

// keyBucket opens a database with these records.
func keyBucket(t *testing.T, records ...record) *dumpdb.DB {
	t.Helper()
	return fillBucket(t, func(put func(k []byte, kv *mvccpb.KeyValue)) {
		for _, r := range records {
			kv := &mvccpb.KeyValue{Key: []byte(r.key), ModRevision: r.rev, CreateRevision: r.rev, Version: 1}
			k := revKey(r.rev, r.sub)
			if r.tombstone {
				k, kv = append(k, 't'), &mvccpb.KeyValue{Key: []byte(r.key)}
			}
			put(k, kv)
		}
	})
}

// revKey is the key of a record in bucket key.
func revKey(main, sub int64) []byte {
	k := append(binary.BigEndian.AppendUint64(nil, uint64(main)), '_')
	return binary.BigEndian.AppendUint64(k, uint64(sub))
}

// fillBucket writes a database with records in bucket key, and opens it.
func fillBucket(t *testing.T, fill func(put func(k []byte, kv *mvccpb.KeyValue))) *dumpdb.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	b, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = b.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucket([]byte("key"))
		fill(func(k []byte, kv *mvccpb.KeyValue) {
			var value []byte
			if err == nil {
				value, err = kv.Marshal()
			}
			if err == nil {
				err = bucket.Put(k, value)
			}
		})
		return err
	})
	if err == nil {
		err = b.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// TestTombstonesAtCompaction: at the compact revision some releases keep the tombstones and others do not.
func TestTombstonesAtCompaction(t *testing.T) {
	with := []record{{7, 0, "a", true}, {7, 1, "b", true}, {7, 2, "c", false}, {8, 0, "d", true}}
	without := with[2:]
	source := func(name string, finished int64, rs []record) *evidence.Member {
		m := withDB(member(name), 9)
		m.DB.Handle, m.DB.Meta.FinishedCompact = keyBucket(t, rs...), &dumpdb.Rev{Main: finished}
		return m
	}
	for name, c := range map[string]struct {
		ss   Sources
		want string
	}{
		"on one of two": {Sources{source("a", 7, with), source("b", 7, without)},
			"the tombstones at the compact revision 7 are there on 1 member and dropped on 1"},
		"on both":        {Sources{source("a", 7, with), source("b", 7, with)}, ""},
		"on neither":     {Sources{source("a", 7, without), source("b", 7, without)}, ""},
		"not one moment": {Sources{source("a", 7, with), source("b", 6, without)}, ""},
	} {
		r := runCompactTombstones(&Input{Members: c.ss})
		if r.Outcome != Holds || (len(r.Findings) > 0) != (c.want != "") {
			t.Errorf("%s: %+v", name, r)
		}
		if len(r.Findings) > 0 && (r.Findings[0].Title != c.want ||
			r.Findings[0].Evidence[0].Observed != "2 tombstones" ||
			r.Findings[0].Evidence[1].Observed != "0 tombstones" || r.Findings[0].At.Revision.Main != 7) {
			t.Errorf("%s: %+v", name, r.Findings[0])
		}
	}
	for name, change := range map[string]func(m *evidence.Member){
		"no compaction": func(m *evidence.Member) { m.DB.Meta.FinishedCompact = nil },
		"damaged":       func(m *evidence.Member) { m.DB.KVDamaged = true },
		"not read":      func(m *evidence.Member) { m.DB.KV = nil },
		"not there":     func(m *evidence.Member) { m.DB = nil },
	} {
		m := source("a", 7, with)
		change(m)
		if r := runCompactTombstones(&Input{Members: Sources{m}}); r.Outcome == Holds || r.Reason == "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestReusedRevisions: a put at the compact revision, where members with higher revisions hold none.
func TestReusedRevisions(t *testing.T) {
	put, gone := keyBucket(t, record{7, 0, "a", false}), keyBucket(t, record{8, 0, "a", false})
	tombstone := keyBucket(t, record{7, 0, "a", true}, record{8, 0, "a", false})
	for name, c := range map[string]struct {
		change func(in *Input)
		want   []string
	}{
		"used again":     {func(*Input) {}, []string{"n1"}},
		"by two":         {func(in *Input) { in.Members[1].DB.Handle = put }, []string{"n1", "n2"}},
		"by all":         {func(in *Input) { in.Members[1].DB.Handle, in.Members[2].DB.Handle = put, put }, nil},
		"by none":        {func(in *Input) { in.Members[0].DB.Handle = gone }, nil},
		"by a tombstone": {func(in *Input) { in.Members[0].DB.Handle = tombstone }, nil},
		"others have a tombstone": {func(in *Input) {
			in.Members[1].DB.Handle, in.Members[2].DB.Handle = tombstone, tombstone
		}, []string{"n1"}},
		"not lower":          {func(in *Input) { in.Diff.Revs = []int64{11, 12, 11} }, nil},
		"one higher":         {func(in *Input) { in.Diff.Revs = []int64{10, 12, 11} }, []string{"n1"}},
		"higher":             {func(in *Input) { in.Diff.Revs[0] = 20 }, nil},
		"another compaction": {func(in *Input) { in.Members[2].DB.KV.CompactRev = 6 }, nil},
		"never compacted":    {func(in *Input) { compactAt(in, -1) }, nil},
		"compacted at 0":     {func(in *Input) { compactAt(in, 0) }, nil},
		"one left out":       {func(in *Input) { in.Diff.NotCompared = map[int]string{0: "x"} }, nil},
		"contents differ":    {func(in *Input) { in.Diff.Buckets[0].SameContent = 1 }, nil},
		"nothing differs": {func(in *Input) {
			in.Diff.Buckets[0].Differ, in.Diff.Buckets[0].SameContent = 0, 0
		}, nil},
		"not compared": {func(in *Input) { in.Diff.Buckets[0].Equal = release.Unknown }, nil},
		"no bucket":    {func(in *Input) { in.Diff.Buckets = nil }, nil},
		"no replay":    {func(in *Input) { in.Replay = nil }, nil},
		"compacted below": {func(in *Input) {
			in.Replay.Members[1].Compacted = &replay.Compacted{To: 7, Revision: 8}
		}, nil},
		"compacted at the newest": {func(in *Input) {
			in.Replay.Members[1].Compacted = &replay.Compacted{To: 7, Revision: 7}
		}, []string{"n1"}},
		"a later compaction": {func(in *Input) {
			in.Replay.Members[1].Compacted = &replay.Compacted{To: 6, Revision: 8}
		}, []string{"n1"}},
		"no diff": {func(in *Input) { in.Diff = nil }, nil},
	} {
		in := threeMembers(release.No)
		in.Diff.Buckets[0].Differ, in.Diff.Buckets[0].SameContent, in.Diff.Revs = 2, 2, []int64{10, 11, 11}
		for _, m := range in.Members {
			m.DB.Handle = gone
		}
		in.Members[0].DB.Handle = put
		compactAt(in, 7)
		if name == "by two" {
			in.Diff.Revs[1] = 10
		}
		c.change(in)
		f := reusedRevisions(in)
		if (f != nil) != (c.want != nil) || f != nil && (!slices.Equal(f.Members, c.want) ||
			f.At.Revision.Main != 7 || string(f.Evidence[0].Key) != "a" || f.Kind != KindRevisionReused) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func compactAt(in *Input, rev int64) {
	for _, m := range in.Members {
		m.DB.KV.CompactRev = rev
	}
}

// TestRevisionBelowCompaction: the newest record is not below a compaction, unless it did not finish or the release
// does not count it.
func TestRevisionBelowCompaction(t *testing.T) {
	rev := func(main int64) *dumpdb.Rev { return &dumpdb.Rev{Main: main} }
	for name, c := range map[string]struct {
		last                int64
		scheduled, finished *dumpdb.Rev
		text                string
		minor               int
		want                []Kind
		severity            Severity
	}{
		"finished":            {5, rev(7), rev(7), "3.5.0", 5, nil, ""},
		"finished before":     {5, rev(7), rev(6), "3.5.0", 5, []Kind{KindRevisionBelowScheduled}, Warning},
		"never finished":      {5, rev(7), nil, "3.5.0", 5, []Kind{KindRevisionBelowScheduled}, Warning},
		"on 3.6":              {5, rev(7), nil, "3.6.0", 6, []Kind{KindRevisionBelowScheduled}, Info},
		"at it":               {7, rev(7), nil, "3.5.0", 5, nil, ""},
		"never scheduled":     {5, nil, nil, "3.5.0", 5, nil, ""},
		"3.0, finished":       {5, rev(7), rev(7), "3.0.5", 0, []Kind{KindRevisionBelowFinished}, Info},
		"3.0, finished at it": {7, rev(7), rev(7), "3.0.5", 0, nil, ""},
		"3.0, never finished": {7, rev(7), nil, "3.0.5", 0, nil, ""},
		"an unknown release":  {5, rev(7), rev(7), "", 0, nil, ""},
	} {
		m := withDB(member("n1"), 9)
		m.Version.Text, m.Version.Minor = c.text, c.minor
		m.DB.KV.LastRev.Main, m.DB.Meta.ScheduledCompact, m.DB.Meta.FinishedCompact = c.last, c.scheduled, c.finished
		r := runRevisionNotBelowCompact(&Input{Members: Sources{m}})
		var got []Kind
		for _, f := range r.Findings {
			got = append(got, f.Kind)
			if f.Severity != c.severity || f.At.Revision.Main != c.last {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		for _, change := range []func(){func() { m.DB.KVDamaged = true }, func() { m.DB.KV = nil },
			func() { m.DB = nil }} {
			if change(); len(runRevisionNotBelowCompact(&Input{Members: Sources{m}}).Findings) > 0 {
				t.Errorf("%s: a finding about what was not read", name)
			}
		}
	}
}

// TestViolations: records that are no possible history, and leases of keys that do not exist.
func TestViolations(t *testing.T) {
	m := withDB(member("n1"), 9)
	m.DB.Handle = keyBucket(t)
	order := func(rev int64) dumpdb.Violation {
		return dumpdb.Violation{Rev: dumpdb.Rev{Main: rev}, Rule: "order", Key: []byte("k"),
			Place: dumpdb.Place{Page: 3}}
	}
	lease := dumpdb.Violation{Rev: dumpdb.Rev{Main: 4}, Rule: dumpdb.RuleLease}
	m.DB.KV.Violations = []dumpdb.Violation{lease, order(5), order(6), lease, order(0)}
	in := &Input{Members: Sources{member("n0"), m}, MaxRows: 20}
	r := mvccInvariants.Run(in)
	title := "n1: 3 records of bucket key are not a possible history (first: order)"
	if len(r.Findings) != 1 || r.Findings[0].Title != title ||
		r.Findings[0].At.Revision.Main != 5 || r.Findings[0].Facts.Undecodable {
		t.Fatalf("%+v", r)
	}
	for i, want := range []string{"--from-rev 5", "--from-rev 6", "--page 3"} {
		e := r.Findings[0].Evidence[i]
		if !strings.Contains(e.Show.String(), want) || strings.Contains(e.Field, "at revision") != (i < 2) {
			t.Errorf("%+v, want %s", e, want)
		}
	}
	title = "n1: 2 records name a lease that does not exist"
	if r := leasesOfKeysExist.Run(in); len(r.Findings) != 1 || r.Findings[0].Title != title {
		t.Errorf("%+v", r)
	}
	m.DB.KV.Violations = append(m.DB.KV.Violations, dumpdb.Violation{Rule: dumpdb.RuleUndecodable})
	if r := mvccInvariants.Run(in); !r.Findings[0].Facts.Undecodable || r.Findings[0].Facts.RecordMissing {
		t.Errorf("%+v", r)
	}
	m.DB.KV.Violations = append(m.DB.KV.Violations, dumpdb.Violation{Rule: dumpdb.RuleContiguousSub})
	if r := mvccInvariants.Run(in); !r.Findings[0].Facts.RecordMissing {
		t.Errorf("%+v", r)
	}
	m.DB.KVDamaged = true
	if r := mvccInvariants.Run(in); r.Outcome != NotChecked || r.Reason != "n1: part of bucket key cannot be read" {
		t.Errorf("%+v", r)
	}
	m.DB.KV = nil
	if r := mvccInvariants.Run(in); r.Outcome != Holds {
		t.Errorf("%+v", r)
	}
}

// TestBlame: who is named where rows differ.
func TestBlame(t *testing.T) {
	at := []int{0, 1, 2}
	ws := func(pos ...int) (out []witness) {
		for _, i := range pos {
			out = append(out, witness{pos: i, why: "the log", byHand: i == 2})
		}
		return out
	}
	type row struct {
		odd []int
		ws  []witness
	}
	for name, c := range map[string]struct {
		rows                []row
		members, odd, hands []string
		undecided           bool
		title, explanation  string
	}{
		"nothing shows it": {[]row{{}}, []string{"n1", "n2", "n3"}, nil, nil, true, "t",
			"e. Nothing shows which of them is right"},
		"a majority agrees": {[]row{{odd: []int{1}}}, []string{"n1", "n2", "n3"}, []string{"n2"}, nil, true, "t",
			"e. n2 differs from the majority, which agrees; that is a hint and no proof"},
		"one is wrong": {[]row{{ws: ws(0)}}, []string{"n1"}, nil, nil, false, "t, wrong on n1", "e. n1: the log"},
		"by hand": {[]row{{ws: ws(2)}}, []string{"n3"}, nil, []string{"n3"}, false, "t, wrong on n3",
			"e. n3: the log"},
		"said once": {[]row{{ws: ws(0)}, {ws: ws(0)}}, []string{"n1"}, nil, nil, false, "t, wrong on n1",
			"e. n1: the log"},
		"one row open": {[]row{{ws: ws(0)}, {odd: []int{1}}}, []string{"n1", "n2", "n3"}, []string{"n2"}, nil, true,
			"t, wrong on n1", "e. n1: the log"},
		"open, the same": {[]row{{ws: ws(0)}, {odd: []int{0}}}, []string{"n1"}, []string{"n1"}, nil, false,
			"t, wrong on n1", "e. n1: the log"},
	} {
		in := &Input{Members: Sources{member("n1"), member("n2"), member("n3")}}
		x, f := newBlame(), Finding{Title: "t", Explanation: "e"}
		for _, r := range c.rows {
			x.add(in, at, r.odd, r.ws)
		}
		x.name(in, &f)
		if !slices.Equal(f.Members, c.members) || !slices.Equal(f.Odd, c.odd) || !slices.Equal(f.ByHand, c.hands) ||
			f.Undecided != c.undecided || f.Title != c.title || f.Explanation != c.explanation {
			t.Errorf("%s: %+v", name, f)
		}
	}
	in := &Input{Members: Sources{member("n1")}}
	x := newBlame()
	for i := range maxWhy + 2 {
		x.add(in, at[:1], nil, []witness{{pos: 0, why: string(rune('a' + i))}})
	}
	if len(x.why) != maxWhy {
		t.Errorf("%q", x.why)
	}
}

// TestComparedStates: what could not be compared is said, once.
func TestComparedStates(t *testing.T) {
	in := threeMembers(release.Yes)
	in.Diff.Buckets = append(in.Diff.Buckets, diff.Bucket{Name: "a", Reason: "purged"},
		diff.Bucket{Name: "b", Reason: "purged"})
	for want, names := range map[string][]string{"": {"key"}, "purged": {"a", "b", "key"},
		"purged; bucket c was not compared": {"a", "c"}} {
		r := in.contents().stateEqual(ClassMembership, nil, names...)
		if r.Reason != want || (r.Outcome == Holds) != (want == "") {
			t.Errorf("%q: %+v", names, r)
		}
	}
	// Only the TTLs of leases could be compared, and they differ: of the other rows nothing is said.
	in.Diff.Buckets = append(in.Diff.Buckets, diff.Bucket{Name: "ttls", Equal: release.No, Reason: "no log"})
	if r := in.contents().stateEqual("", nil, "ttls"); r.Outcome != NotChecked || r.Reason != "no log" {
		t.Errorf("%+v", r)
	}
	for want, names := range map[string][]string{"": {"key"}, "purged": {"a"}, "bucket c was not compared": {"c"}} {
		r := in.contents().bucketsEqual(ClassMembership, names...)
		if r.Reason != want || (r.Outcome == Holds) != (want == "") {
			t.Errorf("%q: %+v", names, r)
		}
	}
	in.Diff = nil
	for _, r := range []Result{in.contents().stateEqual(ClassMembership, nil, "key"),
		in.contents().bucketsEqual("", "key"),
		runRevisionsEqual(in), runRecordsEqual(in), runAuthRevisionEqual(in)} {
		if r.Outcome == Holds || r.Reason != "the databases could not be compared" {
			t.Errorf("%+v", r)
		}
	}
}

// TestRevisionsCompared: the revisions at one index, of the members whose keys were compared.
func TestRevisionsCompared(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(in *Input)
		outcome Outcome
		reason  string
		odd     []string
	}{
		"equal":            {func(in *Input) { in.Diff.Revs[1] = 9 }, Holds, "", nil},
		"one differs":      {func(*Input) {}, Violated, "", []string{"n2"}},
		"entries show who": {func(in *Input) { in.Replay.EventCount = 1 }, Violated, "", nil},
		"no replay":        {func(in *Input) { in.Replay = nil }, Violated, "", []string{"n2"}},
		"the log shows that those who agree are wrong": {func(in *Input) {
			for _, i := range []int{0, 2} {
				in.Members[i].WAL.Summary.FirstIndex, in.Members[i].WAL.Summary.LastIndex = 1, 9
				in.Replay.Members[i].Below = []replay.BelowDiff{{Index: 5, Expected: "revision 8", Observed: "revision 9"}}
			}
		}, Violated, "", nil},
		"a key of theirs is wrong": {func(in *Input) {
			for _, i := range []int{0, 2} {
				in.Members[i].WAL.Summary.FirstIndex, in.Members[i].WAL.Summary.LastIndex = 1, 9
				in.Replay.Members[i].Below = []replay.BelowDiff{{Key: "k", Index: 5}}
			}
		}, Violated, "", []string{"n2"}},
		"two damaged": {func(in *Input) {
			in.Members[0].DB.KVDamaged, in.Members[1].DB.KVDamaged = true, true
		}, "", "fewer than two databases can be read", nil},
		"one damaged": {func(in *Input) { in.Members[1].DB.KVDamaged = true }, Holds,
			"without n2: part of its bucket key cannot be read", nil},
		"one left out": {func(in *Input) { in.Diff.NotCompared = map[int]string{1: "x"} }, Holds, "without n2: x", nil},
		"the keys of one left out": {func(in *Input) { in.Diff.KeysNotCompared = map[int]string{1: "x"} }, Holds,
			"without n2: x", nil},
		"one brings only a log": {func(in *Input) {
			in.Diff.NotCompared, in.Members[1].Source.Kind = map[int]string{1: "x"}, evidence.KindWAL
		}, Holds, "", nil},
		"a note": {func(in *Input) { in.Diff.Note = "purged" }, "", "purged", nil},
	} {
		in := threeMembers(release.Yes)
		in.Diff.Revs = []int64{9, 8, 9}
		c.change(in)
		r := in.contents().revisionsAtOneIndex()
		var odd []string
		if len(r.Findings) > 0 {
			odd = r.Findings[0].Odd
		}
		if r.Outcome != c.outcome || r.Reason != c.reason || !slices.Equal(odd, c.odd) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestPurgedMemberRows: without a change in the logs, raft's configuration shows who must be listed, and the newest
// snapshot who was removed.
func TestPurgedMemberRows(t *testing.T) {
	row := &diff.Row{Key: []byte(dumplog.ID(7).String()), Cells: []*diff.Cell{nil, {Text: "x"}}}
	for name, c := range map[string]struct {
		bucket string
		change func(m *evidence.Member)
		want   int
	}{
		"a voter":       {"members", func(m *evidence.Member) { m.Membership.Voters = []dumplog.ID{7} }, 1},
		"a learner":     {"members", func(m *evidence.Member) { m.Membership.Learners = []dumplog.ID{7} }, 1},
		"another voter": {"members", func(m *evidence.Member) { m.Membership.Voters = []dumplog.ID{8} }, 0},
		"removed": {"members_removed", func(m *evidence.Member) {
			addSnap(m, 15, &dumplog.V2Store{Removed: []dumplog.ID{7}})
		}, 1},
		"another removed": {"members_removed", func(m *evidence.Member) {
			addSnap(m, 15, &dumplog.V2Store{Removed: []dumplog.ID{8}})
		}, 0},
		"no store":    {"members_removed", func(m *evidence.Member) { addSnap(m, 15, nil) }, 0},
		"no snapshot": {"members_removed", func(*evidence.Member) {}, 0},
		"another bucket": {"members", func(m *evidence.Member) {
			addSnap(m, 15, &dumplog.V2Store{Removed: []dumplog.ID{7}})
		}, 0},
		"not comparable": {"members", func(m *evidence.Member) {
			m.Membership.Voters, m.Membership.RaftKnown = []dumplog.ID{7}, false
		}, 0},
	} {
		a, b := withDB(withLog(withSnapDir(t, "a"), 20), 20), withDB(withLog(withSnapDir(t, "b"), 20), 20)
		for _, m := range []*evidence.Member{a, b} {
			m.Membership.RaftKnown, m.Commit = true, 20
			c.change(m)
		}
		in := &Input{Members: Sources{a, b}, Replay: &replay.Result{}}
		ws := in.rowWitnesses().memberWitness(c.bucket, row, []int{0, 1})
		if len(ws) != c.want || c.want > 0 && (ws[0].pos != 0 || ws[0].expected != "listed") {
			t.Errorf("%s: %+v", name, ws)
		}
	}
}
