package verdict_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// nextOf is what a diagnosis of the sources says to do, one step a line.
func nextOf(t *testing.T, sources ...string) string {
	t.Helper()
	var specs []evidence.Spec
	for _, s := range sources {
		specs = append(specs, evidence.Spec{Name: filepath.Base(s), Where: s})
	}
	r, err := compare.Diagnose(t.Context(), specs, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, n := range r.Next {
		out = append(out, n.Text+" $ "+n.Command.String())
	}
	return strings.Join(out, "\n")
}

// inOrder wants the texts one after the other.
func inOrder(t *testing.T, got string, want ...string) {
	t.Helper()
	rest := got
	for _, w := range want {
		_, after, ok := strings.Cut(rest, w)
		if !ok {
			t.Fatalf("%q is not there, or not in this order %q:\n%s", w, want, got)
		}
		rest = after
	}
}

// TestNextOffersTheLosslessWayFirst for one member and for several.
func TestNextOffersTheLosslessWayFirst(t *testing.T) {
	page := evidencetest.Incident(t, "f-bbolt-page-corruption")
	inOrder(t, nextOf(t, page+"/node1"), "the database of node1 (repair db --rebuild) from its own files:",
		"repair plan node1 -o plan.yaml", "copy the data dirs of the other members", "if nothing can be repaired: restore")
	inOrder(t, nextOf(t, page+"/node1", page+"/node2", page+"/node3"), "the database of node1 (repair db --rebuild)",
		"else from the other members", "repair plan", "member remove")
	tail := evidencetest.Incident(t, "e-torn-wal-tail")
	inOrder(t, nextOf(t, tail+"/node1", tail+"/node2", tail+"/node3"), "the log of node2 (repair wal)", "repair plan")
	segment := evidencetest.Incident(t, "e3-wal-missing-last-segment")
	inOrder(t, nextOf(t, segment+"/node1", segment+"/node2", segment+"/node3"), "the log of node1 (repair wal)",
		"repair plan")
	empty := evidencetest.Incident(t, "f2-empty-db")
	inOrder(t, nextOf(t, empty+"/node3"), "the database of node3 (repair db --rebuild)", "repair plan node3 ",
		"etcd-medic rebuild --log", "copy the data dirs of the other members")
	inOrder(t, nextOf(t, empty+"/node1", empty+"/node2", empty+"/node3"), "the database of node3 (repair db --rebuild)",
		"repair plan", "member remove")
	wiped := evidencetest.Incident(t, "d-wiped-member")
	if got := nextOf(t, wiped+"/node1", wiped+"/node2", wiped+"/node3"); strings.Contains(got, "(repair ") {
		t.Errorf("the files of a wiped member are sound, and mending them is offered:\n%s", got)
	}
}

// TestNextStartsWhatServersMend: every log ends with a record that was in flight, and one meta page is bad: all of it
// needs a start only.
func TestNextStartsWhatServersMend(t *testing.T) {
	dirs := clustertest.Synth{Members: 3, Entries: 100, Keys: 10, Value: 50}.Write(t, t.TempDir())
	for i, dir := range dirs {
		if i == 0 {
			overwrite(t, filepath.Join(dir, "member", "snap", "db"), int64(os.Getpagesize())+40, []byte{0xee, 0xee})
			continue
		}
		tearTail(t, dir)
	}
	got := nextOf(t, dirs...)
	inOrder(t, got, "start ", "Nothing that it promised is lost", "look for the cause below etcd")
	for _, not := range []string{"member remove", "repair plan", "restore from"} {
		if strings.Contains(got, not) {
			t.Errorf("%q is offered where a start is enough:\n%s", not, got)
		}
	}
}

// TestNextOfAMissingDatabase: a log that is whole makes it again.
func TestNextOfAMissingDatabase(t *testing.T) {
	dir := clustertest.Synth{Members: 1, Entries: 100, Keys: 10, Value: 50}.Write(t, t.TempDir())[0]
	if err := os.Remove(filepath.Join(dir, "member", "snap", "db")); err != nil {
		t.Fatal(err)
	}
	inOrder(t, nextOf(t, dir), "start ", "rebuilds the missing database from the log", "etcd-medic rebuild --log")
}

func overwrite(t *testing.T, file string, off int64, b []byte) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.WriteAt(b, off); err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// tearTail begins a record after the last one of the log, the rest of it zeros.
func tearTail(t *testing.T, dir string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(segments) == 0 {
		t.Fatal("no segment", err)
	}
	r, err := compare.Inspect(t.Context(), evidence.Spec{Where: dir}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	segs := r.Members[0].WAL.Segments
	file, end := segments[len(segments)-1], segs[len(segs)-1].DataEnd
	if err := os.Truncate(file, end+4096); err != nil {
		t.Fatal(err)
	}
	overwrite(t, file, end, []byte{0xd0, 7, 0, 0, 0, 0, 0, 0, 0x08, 0x02, 0x10, 0x81, 0x01, 0x1a, 0xc0, 0x0f, 1, 2})
}

// TestNextFromADatabaseWithoutLog: a database that holds more than all logs is a source of a new cluster.
func TestNextFromADatabaseWithoutLog(t *testing.T) {
	lag := evidencetest.Incident(t, "k-lagging-node")
	if err := os.RemoveAll(filepath.Join(lag, "node1", "member", "wal")); err != nil {
		t.Fatal(err)
	}
	const what = "a new cluster from its database"
	inOrder(t, nextOf(t, lag+"/node1", lag+"/node3"), "add the missing files",
		"if the log of node1 is gone for good: "+what,
		"etcd-medic restore node1 -o new-cluster --accept-unproven-content --surviving node3")
	if got := nextOf(t, lag+"/node1", lag+"/node2", lag+"/node3"); strings.Contains(got, what) {
		t.Errorf("node2 holds the same, with its log:\n%s", got)
	}
	// node3 lags in its database only: its log holds what the database of node1 does.
	if err := os.CopyFS(filepath.Join(lag, "node4"), os.DirFS(filepath.Join(lag, "node3"))); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(lag, "node4", "member", "wal")); err != nil {
		t.Fatal(err)
	}
	wal := filepath.Join(lag, "node2", "member", "wal")
	if err := os.CopyFS(filepath.Join(lag, "node4", "member", "wal"), os.DirFS(wal)); err != nil {
		t.Fatal(err)
	}
	if got := nextOf(t, lag+"/node1", lag+"/node4"); strings.Contains(got, what) {
		t.Errorf("the log of node4 holds the same:\n%s", got)
	}
	if got := nextOf(t, lag+"/node1/member/snap/db"); strings.Contains(got, what) {
		t.Errorf("a database alone is no data dir:\n%s", got)
	}
}
