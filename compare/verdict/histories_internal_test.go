package verdict

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// TestSeparateHistories: content decides nothing between members of clusters that were bootstrapped or restored by
// themselves under the same IDs, and that have no request in common.
func TestSeparateHistories(t *testing.T) {
	const bootstrap, restore = dumplog.StartBootstrap, dumplog.StartRestore
	begun := func(start, n uint64) replay.RequestID { return replay.RequestID(1<<48 | start<<8 | n) }
	for name, c := range map[string]struct {
		starts [2]dumplog.StartKind
		first  [2]replay.RequestID
		change func(rk *ranking)
		want   []string
	}{
		"bootstrapped one after the other": {[2]dumplog.StartKind{bootstrap, bootstrap},
			[2]replay.RequestID{begun(9000, 1), begun(5000, 1)}, nil,
			[]string{"the sources are separate clusters with the same IDs. n2: log to", "the data of n1 was lost"}},
		"bootstrapped at once": {[2]dumplog.StartKind{bootstrap, bootstrap},
			[2]replay.RequestID{begun(5000, 1), begun(5000, 2)}, nil,
			[]string{"the sources are separate clusters with the same IDs. n1: log to", "!was lost"}},
		"both restored": {[2]dumplog.StartKind{restore, restore},
			[2]replay.RequestID{begun(5000, 1), begun(9000, 1)}, nil,
			[]string{"separate clusters with the same IDs, each restored and started by itself", "; n2: log to"}},
		"one restored": {[2]dumplog.StartKind{bootstrap, restore},
			[2]replay.RequestID{begun(5000, 1), begun(9000, 1)}, nil,
			[]string{"one from before a restore and one that the restore began", "n1: log to"}},
		"one restored, the other without a log": {[2]dumplog.StartKind{restore, restore},
			[2]replay.RequestID{begun(5000, 1), begun(9000, 1)},
			func(rk *ranking) { rk.Members[1].WAL.Summary.LastIndex = 0 },
			[]string{"each restored and started by itself"}},
		"one history": {[2]dumplog.StartKind{bootstrap, bootstrap},
			[2]replay.RequestID{begun(5000, 1), begun(5000, 1)}, nil, nil},
		"one without a request": {[2]dumplog.StartKind{bootstrap, bootstrap}, [2]replay.RequestID{begun(5000, 1), 0}, nil, nil},
		"a log that was purged": {[2]dumplog.StartKind{bootstrap, ""},
			[2]replay.RequestID{begun(5000, 1), begun(9000, 1)}, nil, nil},
		"equal logs": {[2]dumplog.StartKind{bootstrap, bootstrap},
			[2]replay.RequestID{begun(5000, 1), begun(9000, 1)}, func(rk *ranking) { rk.Replay.LogDiffs = nil }, nil},
		"nothing was replayed": {[2]dumplog.StartKind{bootstrap, bootstrap},
			[2]replay.RequestID{begun(5000, 1), begun(9000, 1)}, func(rk *ranking) { rk.Replay = nil }, nil},
	} {
		rk := rankingOf(evidence.KindDataDir, evidence.KindDataDir)
		rk.Replay.LogDiffs = []replay.LogDiff{{Index: 4}}
		for i, m := range rk.Members {
			lists(m, 7, evidence.Membership{})
			m.WAL.Summary.Start, m.WAL.First.ID = c.starts[i], c.first[i]
		}
		if c.change != nil {
			c.change(rk)
		}
		got := rk.separateHistories().whyUnranked()
		if (got == "") != (c.want == nil) {
			t.Errorf("%s: %q", name, got)
		}
		for _, w := range c.want {
			if not := strings.TrimPrefix(w, "!"); strings.Contains(got, not) != (not == w) {
				t.Errorf("%s: %q, want %q", name, got, w)
			}
		}
	}
}

// TestNextPlanOfAStranger: nothing is planned for members that are not in the configuration of their cluster.
func TestNextPlanOfAStranger(t *testing.T) {
	ad := adviceFor(evidence.KindDataDir)
	ad.Best = &Best{Members: []string{"n1"}}
	ad.Facts = []evidence.Facts{{Name: "n1"}}
	ad.Members[0].Membership.Voters = []dumplog.ID{0xb1, 0xb2}
	inThisOrder(t, adviceOf(ad, ad.nextPlan), []string{"copy the data dirs of the members that the cluster has"})
	ad.Members[0].Membership.Voters = []dumplog.ID{0xa1, 0xb2}
	inThisOrder(t, adviceOf(ad, ad.nextPlan), []string{"write the repair plan", "try it on scratch copies"})
}

// TestNextTry: what is repaired from which files, and that the member to keep has to be named where only the operator
// can choose it.
func TestNextTry(t *testing.T) {
	two := &Best{Members: []string{"n1", "n2"}}
	for name, c := range map[string]struct {
		members int
		best    *Best
		mends   []string
		want    string
	}{
		"nothing":      {2, two, nil, ""},
		"alone":        {1, nil, []string{"the log of n1"}, "repair the log of n1 from its own files: tried on scratch copies"},
		"of two":       {2, nil, []string{"the log of n1"}, "repair the log of n1 from its own files, else from the other members: "},
		"two of two":   {2, nil, []string{"a", "b"}, "repair a, b from their own files, else from the other members: "},
		"equally good": {2, two, []string{"a"}, "The members are equally good and hold different content: name the one to keep"},
	} {
		ad := adviceFor(make([]evidence.Kind, c.members)...)
		for i, m := range ad.Members {
			m.Source.Kind = evidence.KindDataDir
			db := &evidence.DBFacts{CompactRevision: new(int64), Hashes: map[string]string{"key": fmt.Sprint(i)}}
			ad.Facts = append(ad.Facts, evidence.Facts{Name: m.Label(), DB: db})
		}
		ad.Best = c.best
		got := strings.Join(adviceOf(ad, func(add func(string, shell.Command)) { ad.nextTry(c.mends, add) }), "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) ||
			c.best == nil && strings.Contains(got, "name the one") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestNextAloneAfterAStart: where a start is all that one data dir needs, no other is asked for.
func TestNextAloneAfterAStart(t *testing.T) {
	ad := adviceFor(evidence.KindDataDir)
	ad.Facts = []evidence.Facts{{Name: "n1", WAL: &evidence.WALFacts{FirstIndex: 1, LastIndex: 4,
		Damage: []evidence.DamageFacts{{OnStart: dumplog.StartCuts, LostFrom: 5, LostTo: 5}}}}}
	got := adviceOf(ad, ad.nextAlone)
	if len(got) == 0 || !strings.HasPrefix(got[0], "start n1 on its own data dir") ||
		slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "keep this copy") }) {
		t.Errorf("%q", got)
	}
}

// TestRecordsReadAgain: where more records differ than are listed, each of them is judged, and those that cannot be
// read again are open.
func TestRecordsReadAgain(t *testing.T) {
	var specs []evidence.Spec
	for i, values := range [][]string{{"a", "b", "c", "d"}, {"a", "x", "y", "z"}} {
		h := clustertest.NewHand(t, t.TempDir(), fmt.Sprint("n", i+1), uint64(0xa1+i), 0xc1)
		h.Found(false, 0xa1, 0xa2)
		h.Request(2, 3, nil)
		for _, v := range values {
			h.Revision("k", v)
		}
		h.State(2, 0xa1, 3)
		specs = append(specs, evidence.Spec{Name: fmt.Sprint("n", i+1), Where: h.Close(3, 2)})
	}
	set, err := evidence.Open(t.Context(), specs, evidence.Options{Deep: true})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx    context.Context
		differ int
		rows   int
	}{{t.Context(), 3, 3}, {canceled, 5, 0}} {
		rk := &ranking{Input: &Input{Input: &check.Input{Ctx: c.ctx, Members: set.Members}}}
		rk.Diff = &diff.Result{Members: set.Members, NotCompared: map[int]string{}, KeysNotCompared: map[int]string{},
			Records: &diff.Records{Equal: release.No, Differ: c.differ}}
		k := rk.keptRecords(0)
		if k.open != c.differ || len(k.named) != c.rows || k.wrong.Count != 0 {
			t.Errorf("%d open of %d, %d named, %d wrong", k.open, c.differ, len(k.named), k.wrong.Count)
		}
	}
}
