package datadir_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// cloneInChild is the child of TestKilledClone: it says when it begins to write.
func cloneInChild(src, dst string) int {
	set, err := evidence.Open(context.Background(), []evidence.Spec{{Name: "node1", Where: src}}, evidence.Options{})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	t, err := datadir.TargetOf(set.Members[0])
	if err == nil {
		fmt.Println("begin")
		_, err = datadir.Clone(context.Background(), set.Members[0], []datadir.Target{t}, dst,
			datadir.CloneOptions{Edits: []datadir.Edit{datadir.SetAuthRevision(3)}})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// TestKilledClone kills a clone at different moments: under the final name stands nothing or the whole, and the next
// run succeeds.
func TestKilledClone(t *testing.T) {
	src := clustertest.Synth{Members: 1, Entries: 20_000, Keys: 100, Value: 1000}.Write(t, t.TempDir())[0]
	evidencetest.Unchanged(t, src)
	set := openSet(t, src)
	killed := 0
	for delay := range 6 {
		dst := filepath.Join(t.TempDir(), "clone")
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "DATADIR_CLONE="+src, "DATADIR_DST="+dst)
		out, err := cmd.StdoutPipe()
		ok(t, err)
		ok(t, cmd.Start())
		_, err = out.Read(make([]byte, 5)) // begin
		ok(t, err)
		time.Sleep(time.Duration(delay*delay) * 4 * time.Millisecond)
		ok(t, cmd.Process.Kill())
		if err := cmd.Wait(); err != nil {
			killed++
		}
		if _, err := os.Stat(dst); err == nil {
			whole(t, filepath.Join(dst, "node1"))
			continue
		}
		_, err = datadir.Clone(context.Background(), set.Members[0], targets(t, set), dst, datadir.CloneOptions{})
		ok(t, err)
		whole(t, filepath.Join(dst, "node1"))
	}
	if killed == 0 {
		t.Error("no clone was killed")
	}
}

func whole(t *testing.T, dir string) {
	t.Helper()
	if r := readWithEtcd(t, dir); r.index != 20_001 || r.snap.Metadata.Index != 20_001 || len(r.bucket) != 1 {
		t.Errorf("%+v", r)
	}
}
