package rebuild_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/majority"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// endedAt writes a member of three whose log ends with an entry, and which knows the commit index 10. Its database
// has applied the entries up to there. The last entry has another value with other.
func endedAt(t *testing.T, id, last uint64, other bool) evidence.Spec {
	t.Helper()
	h := clustertest.NewHand(t, t.TempDir(), fmt.Sprintf("node%x", id&0xf), id, 0xc1)
	ids := []uint64{0xa1, 0xa2, 0xa3}
	h.Found(false, ids...)
	for _, m := range ids {
		h.Member(m, false, true)
	}
	for i := uint64(4); i <= last; i++ {
		value := "v"
		if other && i == last {
			value = "w"
		}
		h.Put(2, i, clustertest.RequestID(0xa1, 1000, i), fmt.Sprintf("k%d", i), value, i <= 10)
	}
	h.State(2, 0xa1, 10)
	dir := h.Close(10, 2)
	evidencetest.Unchanged(t, dir)
	return evidence.Spec{Name: fmt.Sprintf("node%x", id&0xf), Where: dir}
}

// TestCommittedByMajority: the last entries are in the logs of a majority, and no source shows the commit. They are
// executed, and the result says how it is known that they are committed.
func TestCommittedByMajority(t *testing.T) {
	a, b, c := endedAt(t, 0xa1, 12, false), endedAt(t, 0xa2, 12, false), endedAt(t, 0xa3, 11, false)
	altered := endedAt(t, 0xa2, 12, true)
	const says, both = "committed, though no source shows the commit: the logs of ", "entries 11..12 are "
	last := rebuild.Target{Last: true}
	for name, x := range map[string]struct {
		logs, against []evidence.Spec
		to            rebuild.Target
		index         uint64
		by            string
	}{
		"two logs": {logs: []evidence.Spec{a, b}, to: last, index: 12,
			by: "entries 11..12 are " + says + "node1 and node2, 2 of 3 voters, hold entry 12"},
		"all logs": {logs: []evidence.Spec{a, b, c}, to: last, index: 12,
			by: "entries 11..12 are " + says + "node1 and node2"},
		"one ends before": {logs: []evidence.Spec{a, c}, to: last, index: 11,
			by: "entry 11 is " + says + "node1 and node3"},
		"one log":         {logs: []evidence.Spec{a}, to: last, index: 10},
		"up to one":       {logs: []evidence.Spec{a, b}, to: rebuild.Target{Index: 11}, index: 11, by: both},
		"up to known":     {logs: []evidence.Spec{a, b}, to: rebuild.Target{Index: 10}, index: 10},
		"to a revision":   {logs: []evidence.Spec{a, b}, to: rebuild.Target{Revision: 10}, index: 12, by: both},
		"to compare with": {logs: []evidence.Spec{a}, against: []evidence.Spec{b}, to: last, index: 12, by: both},
		"before the last": {logs: []evidence.Spec{a, b}, to: rebuild.Target{Before: []byte("k12")}, index: 11, by: both},
		"another last entry": {logs: []evidence.Spec{a, altered}, to: last, index: 11,
			by: "entry 11 is " + says + "node1 and node2, 2 of 3 voters, hold entry 12"},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := run(t, rebuild.Options{Logs: x.logs, Against: x.against, To: x.to})
			if err != nil {
				t.Fatal(err)
			}
			if res.To.Index != x.index || res.To.Revision != int64(x.index)-2 ||
				!strings.HasPrefix(res.ByMajority, x.by) || (x.by == "") != (res.ByMajority == "") {
				t.Errorf("ends at %+v: %q", res.To, res.ByMajority)
			}
		})
	}
	if _, err := run(t, rebuild.Options{Logs: []evidence.Spec{a, c}, To: rebuild.Target{Index: 12}}); err == nil ||
		!strings.Contains(err.Error(), "entry 12 is not proven committed: the sources prove entries up to 11") {
		t.Errorf("entry 12 of one log: %v", err)
	}
}

// TestMajorityOfTheCaller: what the caller knows of a majority counts, as far as the logs have it.
func TestMajorityOfTheCaller(t *testing.T) {
	a, b := endedAt(t, 0xa1, 12, false), endedAt(t, 0xa2, 12, false)
	set, err := evidence.Open(t.Context(), []evidence.Spec{a, b}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set.Close() }() // only read
	known := majority.Find(0xc1, set.Members)
	for log, want := range map[evidence.Spec]uint64{a: 12, endedAt(t, 0xa3, 11, false): 11} {
		wal := evidence.Spec{Name: log.Name, Where: filepath.Join(log.Where, "member", "wal")}
		res, err := run(t, rebuild.Options{Logs: []evidence.Spec{wal}, Majority: known,
			To: rebuild.Target{Last: true}})
		if err != nil || res.To.Index != want ||
			!strings.HasSuffix(res.ByMajority, "hold entry 12, and show no newer term") {
			t.Errorf("%s: %+v, %v", log.Name, res, err)
		}
	}
}

// TestCatchUpByMajority: with the logs of a majority, the last entries are executed.
func TestCatchUpByMajority(t *testing.T) {
	a, b, c := endedAt(t, 0xa1, 12, false), endedAt(t, 0xa2, 12, false), endedAt(t, 0xa3, 11, false)
	for name, x := range map[string]struct {
		logs               []evidence.Spec
		executed, unproven int64
		commit             uint64
	}{
		"alone":              {commit: 10, unproven: 2},
		"one has all":        {logs: []evidence.Spec{b}, commit: 12, executed: 2},
		"one ends before":    {logs: []evidence.Spec{c}, commit: 11, executed: 1, unproven: 1},
		"its own log, twice": {logs: []evidence.Spec{a}, commit: 10, unproven: 2},
	} {
		up, keys := caughtUp(t, rebuild.CatchUpOptions{Source: a, Logs: x.logs})
		if up.Executed != x.executed || up.Unproven != x.unproven || up.Commit != x.commit || up.Missing != 0 ||
			keys != 7+int(x.executed) || (up.ByMajority == "") != (x.executed == 0) {
			t.Errorf("%s: %d keys, %+v", name, keys, up)
		}
		says := strings.Join(up.Says(), "\n")
		if strings.Contains(says, "no source shows the commit") != (x.executed > 0) {
			t.Errorf("%s: %s", name, says)
		}
	}
}
