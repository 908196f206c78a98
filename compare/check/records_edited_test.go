package check_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// dropped removes the record at a revision.
func dropped(rev int64) change { return remove("key", string(recordKey(rev))) }

// added stores the put of a key that nothing else writes.
func added(rev int64) change {
	return func(tx *bbolt.Tx) error {
		kv := mvccpb.KeyValue{Key: []byte("/new"), CreateRevision: rev, ModRevision: rev, Version: 1}
		v, err := kv.Marshal()
		if err != nil {
			return err
		}
		return put("key", string(recordKey(rev)), v)(tx)
	}
}

// compactedSet is three equal members: five keys were written four times each, at revisions 2 to 21, and a compaction
// at 19 has left the records from 15 on.
func compactedSet(t *testing.T) []string {
	t.Helper()
	dirs := clustertest.Synth{Members: 3, Entries: 20, Keys: 5, Value: 20,
		Starts: map[int]int{0: 0, 1: 1, 2: 2}}.Write(t, t.TempDir())
	for _, dir := range dirs {
		casetest.EditDB(t, dir, compacted(19, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14))
	}
	return dirs
}

// together makes several changes in one transaction.
func together(all ...change) change {
	return func(tx *bbolt.Tx) (err error) {
		for _, ch := range all {
			err = errors.Join(err, ch(tx))
		}
		return err
	}
}

// TestLiveKeysBelowACompaction: at a compacted revision a key that only some members have is open, unless the last
// transaction of one of them removed or added it, which a compaction in it may have done as well.
func TestLiveKeysBelowACompaction(t *testing.T) {
	all := []string{"node1", "node2", "node3"}
	for name, c := range map[string]struct {
		change  change
		members []string
		why     string
	}{
		"removed": {change: dropped(18), members: all[2:], why: "removed a record that others hold"},
		"added":   {change: added(12), members: all[2:], why: "added a record below its newest revision"},
		"removed by a transaction that compacted": {change: together(dropped(18), compacted(20, 15)), members: all},
		"added above all others":                  {change: added(30), members: all},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dirs := compactedSet(t)
			casetest.EditDBOnce(t, dirs[2], c.change)
			r := run(t, inputOf(t, dirs...), "K01")
			if len(r.Findings) != 1 {
				t.Fatalf("%+v", r)
			}
			f, decided := &r.Findings[0], len(c.members) == 1
			if !slices.Equal(f.Members, c.members) || f.Undecided == decided || (len(f.ByHand) == 1) != decided ||
				!strings.Contains(f.Explanation, c.why) {
				t.Errorf("%v, undecided %v, by hand %v: %s", f.Members, f.Undecided, f.ByHand, f.Explanation)
			}
		})
	}
	dirs := compactedSet(t)
	casetest.EditDB(t, dirs[2], dropped(18)) // the transaction before lacks it, too
	if r := run(t, inputOf(t, dirs...), "K01"); len(r.Findings) != 1 || !r.Findings[0].Undecided {
		t.Errorf("removed longer ago: %+v", r.Findings)
	}
}

// TestChangedRecordsBesideLiveKeys: where live keys differ, K12 still names the member whose last transaction changed
// another record.
func TestChangedRecordsBesideLiveKeys(t *testing.T) {
	one, all := []string{"node1"}, []string{"node1", "node2", "node3"}
	for name, c := range map[string]struct {
		first, second change
		want          check.Outcome
		accused       []string
	}{
		"a superseded record, and a live key without proof": {first: altered(16), second: altered(20),
			want: check.Violated, accused: one},
		"only a live key, which K01 names":     {first: altered(18), want: check.NotChecked},
		"only one that K03 names":              {first: altered(20), second: altered(21), want: check.NotChecked},
		"only a live key without proof":        {second: altered(20), want: check.NotChecked},
		"both in live keys, one without proof": {first: altered(18), second: altered(17), want: check.Violated, accused: one},
		"a superseded record and a live key": {first: together(altered(16), altered(20)), want: check.Violated,
			accused: one},
		"a superseded record and a live key, without proof": {
			second: together(altered(16), altered(20)), want: check.Violated, accused: all},
		"two live keys without proof": {second: together(altered(18), altered(20)), want: check.NotChecked},
		"a record that the other member lacks": {first: altered(16), second: together(dropped(16), dropped(20)),
			want: check.Violated, accused: one},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dirs := compactedSet(t)
			if c.first != nil {
				casetest.EditDBOnce(t, dirs[0], c.first)
			}
			if c.second != nil {
				casetest.EditDB(t, dirs[1], c.second)
			}
			r := run(t, inputOf(t, dirs...), "K12")
			if got := accused(r); r.Outcome != c.want || !slices.Equal(got, c.accused) ||
				len(r.Findings) > 0 && c.first != nil && !slices.Equal(r.Findings[0].ByHand, c.accused) {
				t.Errorf("%s (%s) %v, want %s %v: %+v", r.Outcome, r.Reason, got, c.want, c.accused, r.Findings)
			}
		})
	}
}

// TestRecordOfAMemberBelowACompaction: the keys of a member that lags below the others' compact revision cannot be
// compared at one index, but records of one revision can, and it holds what the others have from before.
func TestRecordOfAMemberBelowACompaction(t *testing.T) {
	s := clustertest.NewScript("3.6.0")
	for i := range 20 {
		key := fmt.Sprint("/k", i%5)
		if i == 5 { // revision 7
			key = "/kept"
		}
		n := s.Add(clustertest.Step{Req: clustertest.PutRequest(key, fmt.Sprint("value ", i), 0)})
		if i == 13 {
			s.Of[0] = clustertest.ScriptMember{LogUntil: n, AppliedUntil: n}
		}
	}
	for name, c := range map[string]struct {
		first, others change
		wrong         string
	}{
		"as it was":                       {},
		"a superseded record altered":     {first: altered(14), wrong: "node1"},
		"a live key lost":                 {first: dropped(7), wrong: "node1"},
		"one that was written again":      {first: dropped(14), wrong: "node1"},
		"a live key altered on the later": {others: altered(7), wrong: "node2"},
		"a tombstone is gone":             {others: dropped(7)},
	} {
		dirs := s.Write(t, t.TempDir())
		casetest.EditDB(t, dirs[0], compacted(8, 2, 3))
		for _, dir := range dirs[1:] {
			casetest.EditDB(t, dir, compacted(18, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13))
		}
		if c.first != nil {
			casetest.EditDBOnce(t, dirs[0], c.first)
		}
		if c.others != nil {
			casetest.EditDBOnce(t, dirs[1], c.others)
		}
		r := run(t, inputOf(t, dirs[:2]...), "K12")
		var want []string
		if c.wrong != "" {
			want = []string{c.wrong}
		}
		if !slices.Equal(accused(r), want) {
			t.Errorf("%s: %s (%s) %+v", name, r.Outcome, r.Reason, r.Findings)
		}
	}
}

// TestKeyLostAlikeOnALaggingMember: a lagging member, whose records are compared but not its keys, lacks a record as
// one of the others does. The keys of the others decide who of them is wrong.
func TestKeyLostAlikeOnALaggingMember(t *testing.T) {
	s := clustertest.NewScript("3.6.0")
	s.Add(clustertest.Step{Req: clustertest.PutRequest("/kept", "value", 0)}) // revision 2
	for i := range 20 {
		n := s.Add(clustertest.Step{Req: clustertest.PutRequest(fmt.Sprint("/k", i%3), fmt.Sprint("value ", i), 0)})
		if i == 10 {
			s.Of[0] = clustertest.ScriptMember{LogUntil: n, AppliedUntil: n}
		}
	}
	for name, ch := range map[string]change{"removed": dropped(2), "altered": altered(2)} {
		dirs := s.Write(t, t.TempDir())
		casetest.EditDB(t, dirs[0], compacted(8, 3, 4, 5))
		for _, dir := range dirs[1:] {
			casetest.EditDB(t, dir, compacted(20, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17))
		}
		casetest.EditDBOnce(t, dirs[0], ch)
		casetest.EditDBOnce(t, dirs[2], ch)
		r := run(t, inputOf(t, dirs...), "K01")
		if got := accused(r); !slices.Contains(got, "node3") || slices.Contains(got, "node2") {
			t.Errorf("%s: accused %v: %+v", name, got, r.Findings)
		}
	}
}

// TestLaterMemberAlone: two members lag below the compact revision of a third, and both lack what it has from before.
func TestLaterMemberAlone(t *testing.T) {
	s := clustertest.NewScript("3.6.0")
	s.Add(clustertest.Step{Req: clustertest.PutRequest("/kept", "value", 0)}) // revision 2
	for i := range 20 {
		n := s.Add(clustertest.Step{Req: clustertest.PutRequest(fmt.Sprint("/k", i%3), fmt.Sprint("value ", i), 0)})
		if i == 10 {
			s.Of[0] = clustertest.ScriptMember{LogUntil: n, AppliedUntil: n}
			s.Of[1] = s.Of[0]
		}
	}
	for _, lost := range []bool{false, true} {
		dirs := s.Write(t, t.TempDir())
		for _, dir := range dirs[:2] {
			casetest.EditDB(t, dir, compacted(8, 3, 4, 5))
			if lost {
				casetest.EditDB(t, dir, dropped(2))
			}
		}
		casetest.EditDB(t, dirs[2], compacted(20, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17))
		in := inputOf(t, dirs...)
		r := run(t, in, "K12")
		if (len(r.Findings) == 1) != lost {
			t.Errorf("lost %v: %s (%s) %+v", lost, r.Outcome, r.Reason, r.Findings)
		}
		if !lost || strings.HasPrefix(r.Findings[0].Title, "at least") {
			continue
		}
		in.Diff.Records.AtLeast = true
		if r = run(t, in, "K12"); !strings.HasPrefix(r.Findings[0].Title, "at least 1 record") {
			t.Errorf("more than can be remembered: %s", r.Findings[0].Title)
		}
	}
}

// TestKeyWrittenAgainAfterALaggingMember: a lagging member must also hold a key that a later one has written again
// since, if it was created before. Where only the later member is kept, nothing is lost.
func TestKeyWrittenAgainAfterALaggingMember(t *testing.T) {
	s := clustertest.NewScript("3.6.0")
	for i := range 20 {
		n := s.Add(clustertest.Step{Req: clustertest.PutRequest(fmt.Sprint("/k", i%5), fmt.Sprint("value ", i), 0)})
		if i == 13 { // revision 15
			s.Of[0] = clustertest.ScriptMember{LogUntil: n, AppliedUntil: n}
		}
	}
	for name, c := range map[string]struct {
		first change
		want  string
	}{
		"as it was": {want: "holds"},
		"the key is gone": {first: dropped(14), want: `revisions 4 to 15: no record of the key, expected one: others hold ` +
			`it as created at 4`},
	} {
		dirs := s.Write(t, t.TempDir())
		casetest.EditDB(t, dirs[0], compacted(14, 2, 3, 4, 5, 6, 7, 8, 9))
		for _, dir := range dirs[1:] {
			casetest.EditDB(t, dir, compacted(21, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
		}
		if c.first != nil {
			casetest.EditDB(t, dirs[0], c.first)
		}
		in := inputOf(t, dirs...)
		r := run(t, in, "K12")
		got := string(r.Outcome)
		if len(r.Findings) > 0 {
			e := &r.Findings[0].Evidence[0]
			got = fmt.Sprintf("%s: %s, expected %s", e.Field, e.Observed, e.Expected)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s: %+v", name, got, c.want, r)
		}
		for pos := range in.Members {
			open := 0
			err := in.Diff.EachRecord(t.Context(), 0, func(row *diff.RecordRow) {
				if _, o := in.RecordProofs(pos).Judge(row); o {
					open++
				}
			})
			if err != nil || (open > 0) != (c.first != nil && pos == 0) {
				t.Errorf("%s: node%d: %d open, %v", name, pos+1, open, err)
			}
		}
	}
}

// TestRecordAlikeOnOthers: a record below the compact revision that is like one that the log shows to be wrong on
// another member is wrong, too, though no log leads to it; unless more databases agree than logs hold the entry.
func TestRecordAlikeOnOthers(t *testing.T) {
	for name, c := range map[string]struct {
		altered, logs, replayed []int
		accused                 []string
		wrong, doubted          bool // of node1
		right                   bool // that node3 is
	}{
		"all members alike, and one log":  {[]int{0, 1, 2}, []int{2}, []int{2}, []string{"node3"}, false, true, false},
		"two members alike, and two logs": {[]int{0, 1}, []int{1, 2}, []int{1, 2}, []string{"node1", "node2"}, true, false, true},
		"another member":                  {[]int{2}, []int{2}, []int{2}, []string{"node3"}, false, false, false},
		"only one without a log":          {[]int{0}, []int{1, 2}, []int{1, 2}, nil, false, false, false},
		"one that a log is compared with": {[]int{0}, []int{1, 2}, []int{0}, []string{"node1"}, true, false, true},
	} {
		s := clustertest.NewScript("3.6.0")
		s.Add(clustertest.Step{Req: clustertest.PutRequest("/kept", "value", 0)}) // revision 2
		for i := range 20 {
			s.Purged = s.Add(clustertest.Step{Req: clustertest.PutRequest(fmt.Sprint("/k", i%3), fmt.Sprint(i), 0)})
		}
		for _, i := range c.logs {
			s.Of[i] = clustertest.ScriptMember{KeepsLog: true}
		}
		dirs := s.Write(t, t.TempDir())
		for _, dir := range dirs {
			casetest.EditDB(t, dir, compacted(20, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17))
		}
		for _, i := range c.altered {
			casetest.EditDB(t, dirs[i], altered(2))
		}
		in := inputOf(t, dirs...)
		for i, m := range in.Replay.Members {
			if !slices.Contains(c.replayed, i) { // as if no log led to what it holds
				m.Below, m.BelowCount = nil, 0
			}
		}
		if got := accused(run(t, in, "K03")); !slices.Equal(got, c.accused) {
			t.Errorf("%s: accused %v, want %v", name, got, c.accused)
		}
		wrong, doubted, logs := in.RecordProofs(0).BelowCompaction()
		if (len(wrong) == 1) != c.wrong || (doubted > 0 && logs == 1) != c.doubted {
			t.Errorf("%s: wrong %+v, entry %d in %d logs", name, wrong, doubted, logs)
		}
		if right := in.RecordProofs(2).RightBelow(); right["/kept"] != c.right {
			t.Errorf("%s: node3 is right about %v", name, right)
		}
	}
}
