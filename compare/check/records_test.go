package check_test

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/release"
)

func recordKey(main int64) []byte {
	return binary.BigEndian.AppendUint64(append(binary.BigEndian.AppendUint64(nil, uint64(main)), '_'), 0)
}

// altered changes the value of the record at a revision.
func altered(rev int64) change {
	return func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("key"))
		var kv mvccpb.KeyValue
		if err := kv.Unmarshal(b.Get(recordKey(rev))); err != nil {
			return err
		}
		kv.Value = append([]byte("x"), kv.Value[1:]...)
		v, err := kv.Marshal()
		if err != nil {
			return err
		}
		return b.Put(recordKey(rev), v)
	}
}

// compacted sets the marks of a finished compaction, and removes what it leaves of the given records.
func compacted(at int64, gone ...int64) change {
	return func(tx *bbolt.Tx) error {
		for _, mark := range []string{"scheduledCompactRev", "finishedCompactRev"} {
			if err := tx.Bucket([]byte("meta")).Put([]byte(mark), recordKey(at)); err != nil {
				return err
			}
		}
		for _, rev := range gone {
			if err := tx.Bucket([]byte("key")).Delete(recordKey(rev)); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestRecords: five keys are written four times each, at revisions 2 to 21.
func TestRecords(t *testing.T) {
	all := []change{altered(9)}
	for name, c := range map[string]struct {
		changes [3][]change
		once    bool
		want    check.Outcome
		members []string
		odd     []string
	}{
		"equal": {want: check.Holds},
		"a superseded value": {changes: [3][]change{all}, want: check.Violated,
			members: []string{"node1"}},
		"known by the last transaction": {changes: [3][]change{nil, nil, all}, once: true, want: check.Violated,
			members: []string{"node3"}},
		"alike on all": {changes: [3][]change{all, all, all}, want: check.Holds},
		"compacted away elsewhere": {changes: [3][]change{{altered(9)}, {compacted(10, 2, 3, 4, 5, 9)},
			{compacted(10, 2, 3, 4, 5, 9)}}, want: check.Holds},
		"two that compacted differently": {changes: [3][]change{nil, {compacted(7, 2, 3, 4)},
			{compacted(10, 2, 3, 4, 5, 6)}}, want: check.Holds},
		"above a compaction of one member": {changes: [3][]change{{altered(13)}, {compacted(10, 2, 3, 4, 5, 6)}, nil},
			want: check.Violated, members: []string{"node1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dirs := clustertest.Synth{Members: 3, Entries: 20, Keys: 5, Value: 20,
				Starts: map[int]int{0: 0, 1: 1, 2: 2}}.Write(t, t.TempDir())
			for i, list := range c.changes {
				for _, ch := range list {
					if c.once {
						casetest.EditDBOnce(t, dirs[i], ch)
					} else {
						casetest.EditDB(t, dirs[i], ch)
					}
				}
			}
			in := inputOf(t, dirs...)
			r := run(t, in, "K12")
			if got := accused(r); r.Outcome != c.want || !slices.Equal(got, c.members) {
				t.Errorf("%s (%s) %v, want %s %v: %+v", r.Outcome, r.Reason, got, c.want, c.members, r.Findings)
			}
			if c.want == check.Violated && run(t, in, "K01").Outcome != check.Holds {
				t.Error("the live keys are equal, and called different")
			}
		})
	}
}

// TestLiveKeysProvenWrong: K01 names a member whose own database shows that each key that differs was changed there,
// and all members where one key stays open.
func TestLiveKeysProvenWrong(t *testing.T) {
	all := []string{"node1", "node2", "node3"}
	for name, c := range map[string]struct {
		once, other []change
		members     []string
	}{
		"one":            {once: []change{altered(20)}, members: []string{"node3"}},
		"two":            {once: []change{altered(20), altered(18)}, members: []string{"node3"}},
		"one stays open": {once: []change{altered(20)}, other: []change{altered(18)}, members: all},
		"none is proven": {other: []change{altered(18)}, members: all},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dirs := clustertest.Synth{Members: 3, Entries: 20, Keys: 5, Value: 20,
				Starts: map[int]int{0: 0, 1: 1, 2: 2}}.Write(t, t.TempDir())
			for _, ch := range c.other {
				casetest.EditDB(t, dirs[0], ch)
			}
			if len(c.once) > 0 {
				casetest.EditDBOnce(t, dirs[2], together(c.once...))
			}
			r := run(t, inputOf(t, dirs...), "K01")
			if len(r.Findings) != 1 {
				t.Fatalf("%+v", r)
			}
			f, decided := &r.Findings[0], len(c.members) == 1
			if !slices.Equal(f.Members, c.members) || f.Undecided == decided || (len(f.ByHand) == 1) != decided ||
				decided && f.Evidence[0].Member != "node3" {
				t.Errorf("%v, undecided %v, by hand %v, first %s", f.Members, f.Undecided, f.ByHand,
					f.Evidence[0].Member)
			}
		})
	}
}

// TestRecordsWithoutALog: nothing but the majority tells who is wrong, and that is no proof.
func TestRecordsWithoutALog(t *testing.T) {
	dirs := clustertest.Synth{Members: 3, Entries: 20, Keys: 5, Value: 20}.Write(t, t.TempDir())
	casetest.EditDB(t, dirs[1], altered(9))
	in := inputOf(t, dirs...)
	for _, e := range in.Replay.Events {
		for i := range e.Outcomes {
			e.Outcomes[i].State = 0
		}
	}
	r := run(t, in, "K12")
	if r.Outcome != check.Violated || len(accused(r)) != 3 || !slices.Equal(r.Findings[0].Odd, []string{"node2"}) ||
		!strings.Contains(r.Findings[0].Explanation, "HashKV") {
		t.Errorf("%s: %+v", r.Outcome, r.Findings)
	}
	in.Diff.Find("key").Equal = release.No
	if r := run(t, in, "K12"); r.Outcome != check.NotChecked {
		t.Errorf("live keys that differ: %s", r.Outcome)
	}
	in.Diff.Find("key").Equal, in.Diff.Records = release.Unknown, &diff.Records{Reason: "why"}
	if r := run(t, in, "K12"); r.Outcome != check.NotChecked || r.Reason != "why" {
		t.Errorf("not compared: %+v", r)
	}
}
