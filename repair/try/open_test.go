package try

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// tornLog is a data dir whose log ends with a record that was not written to its end.
func tornLog(t *testing.T) string {
	t.Helper()
	dir := clustertest.Synth{Members: 1, Entries: 100, Keys: 5, Value: 32}.Write(t, t.TempDir())[0]
	w, err := wal.Open(zap.NewNop(), filepath.Join(dir, "member", "wal"), walpb.Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	_, _, _, err = w.ReadAll()
	if err := errors.Join(err, w.Save(raftpb.HardState{}, []raftpb.Entry{{Term: 2, Index: 102,
		Data: bytes.Repeat([]byte("x"), 3000)}}), w.Close()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "member", "wal", "0000000000000000-0000000000000000.wal")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b[:len(bytes.TrimRight(b, "\x00"))-2000], 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestMendThatGivesUp: a repair that gives something up is refused, although surgery makes it, and the refusal names
// what that is. The result is not inspected.
func TestMendThatGivesUp(t *testing.T) {
	tr, _ := trials(t)
	job := plan.MendJob{Source: evidence.Spec{Name: "node1", Where: tornLog(t)}, Repairs: []string{plan.MendLog}}
	did, err := tr.Mend(t.Context(), job, func(string) { t.Error("a refused repair is inspected") })
	var r *refusal.Error
	if !errors.As(err, &r) || did != nil || r.Reason != "it gives up entry 102 of this member's log" {
		t.Errorf("did %q, %v", did, err)
	}
}

// TestMendOfASoundMember: records of a member that are right are no reason to call the result mended.
func TestMendOfASoundMember(t *testing.T) {
	dirs := clustertest.Synth{Members: 2, Entries: 20, Keys: 5, Value: 32}.Write(t, t.TempDir())
	tr, _ := trials(t)
	job := plan.MendJob{Source: evidence.Spec{Name: "node1", Where: dirs[0]},
		Peers: []evidence.Spec{{Name: "node2", Where: dirs[1]}}, Repairs: []string{plan.MendRecords}}
	if did, err := tr.Mend(t.Context(), job, func(string) { t.Error("inspected") }); err == nil || did != nil {
		t.Errorf("did %q, %v", did, err)
	}
}

// undecidedRevoke is a log with a revoke of a lease that was proposed before the last change of auth: some releases
// refuse it, and others execute it. There is no database that shows what became of it.
func undecidedRevoke(t *testing.T, authRevision uint64) string {
	t.Helper()
	h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
	h.Found(false, 0xa1)
	index := h.RootRevokes(2, authRevision)
	h.State(2, 0xa1, index)
	dir := h.Close(index, 2)
	if err := os.Remove(filepath.Join(dir, "member", "snap", "db")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRebuildOfAnOpenOutcome: no database is rebuilt if the logs do not decide what it holds.
func TestRebuildOfAnOpenOutcome(t *testing.T) {
	for authRevision, open := range map[uint64]bool{4: true, 5: false} {
		set, err := evidence.Open(t.Context(), []evidence.Spec{{Name: "node1",
			Where: undecidedRevoke(t, authRevision)}}, evidence.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tr, _ := trials(t)
		var made *plan.RebuiltFile
		err = tr.Rebuild(t.Context(), plan.RebuildJob{Logs: set.Members, Progress: func(string) {}},
			func(f *plan.RebuiltFile) error { made = f; return nil })
		_ = set.Close() // only read
		if (err != nil) != open || (made == nil) != open || open && !strings.Contains(err.Error(),
			"the outcome of 1 entries is not settled") {
			t.Errorf("proposed at auth revision %d: %+v, %v", authRevision, made, err)
		}
	}
}
