package compare_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// spoil changes one node of a private copy of an incident.
type spoil func(t *testing.T, node string)

// violations is what must be noticed: each takes a sound set, spoils node1 and names the checks that must be violated.
// Together with the incidents it shows every check violated once.
var violations = []struct {
	name, incident string
	spoil          spoil
	checks         []string
	class          string
}{
	{"flipped byte in the log", "m-healthy-3.5", flipIn("wal/*.wal", 20_000), []string{"W01"}, "wal-damage"},
	{"segment of another member", "m-healthy-3.5", foreignSegment, []string{"W03"}, "wal-damage"},
	{"flipped byte in a raft snapshot", "m-healthy-3.5", flipIn("snap/*.snap", 500), []string{"S01"},
		"snapshot-damage"},
	{"database older than the snapshot", "m-healthy-3.5", editDB(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("consistent_index"), binary.BigEndian.AppendUint64(nil, 100))
	}), []string{"S02"}, ""},
	{"dead meta page", "m-healthy-3.5", flipIn("snap/db", 4096+40), []string{"D01"}, "db-damage"},
	{"member row that is no JSON", "m-healthy-3.5", editDB(func(tx *bbolt.Tx) error {
		k, _ := tx.Bucket([]byte("members")).Cursor().First()
		return tx.Bucket([]byte("members")).Put(bytes.Clone(k), []byte("{"))
	}), []string{"D03"}, "db-damage"},
	{"revision taken out of the middle", "m-healthy-3.5",
		editDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("key")).Delete(revKey(200)) }),
		[]string{"K04", "K03"}, "data-divergence"},
	{"revisions taken off the end", "k-lagging-node",
		editDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("key")).Delete(append(revKey(149), 't')) }),
		[]string{"K03"}, "data-divergence"},
	{"lease taken out", "m-healthy-3.5", editDB(func(tx *bbolt.Tx) error {
		k, _ := tx.Bucket([]byte("lease")).Cursor().First()
		return tx.Bucket([]byte("lease")).Delete(bytes.Clone(k))
	}), []string{"L01", "L02", "K03"}, "latent-divergence"},
	{"user taken out", "m-healthy-3.5", editDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("authUsers")).Delete([]byte("bob")) }),
		[]string{"A03", "K03"}, "latent-divergence"},
	{"auth revision raised by hand", "m-healthy-3.6", editDB(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("auth")).Put([]byte("authRevision"), binary.BigEndian.AppendUint64(nil, 99))
	}), []string{"A01", "A02"}, "latent-divergence"},
	{"member taken out of the bucket", "m-healthy-3.6", editDB(func(tx *bbolt.Tx) error {
		k, _ := tx.Bucket([]byte("members")).Cursor().First()
		return tx.Bucket([]byte("members")).Delete(bytes.Clone(k))
	}), []string{"M02", "M03"}, "membership"},
	{"file cut short", "m-healthy-3.5", cutDB(400_000), []string{"D02"}, "db-damage"},
	{"term of another time", "m-healthy-3.5", editDB(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("term"), binary.BigEndian.AppendUint64(nil, 7))
	}), []string{"D05"}, "torn-copy"},
	{"promotion missing in the bucket", "m-healthy-3.5",
		editMember("node1", func(m map[string]any) { m["isLearner"] = true }), []string{"M07"}, "membership"},
	{"removed member still listed", "m-healthy-3.5", editDB(func(tx *bbolt.Tx) error {
		k, _ := tx.Bucket([]byte("members_removed")).Cursor().First()
		id, err := strconv.ParseUint(string(k), 16, 64)
		if err != nil {
			return err
		}
		return tx.Bucket([]byte("members")).Put(bytes.Clone(k),
			fmt.Appendf(nil, `{"id":%d,"peerURLs":["http://127.0.0.1:1"],"name":"ghost"}`, id))
	}), []string{"M07"}, "membership"},
	{"CORRUPT alarm", "k-lagging-node", editDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("alarm")).Put([]byte{8, 1, 16, 2}, nil) }), []string{"M06"}, ""},
}

// causesOf are the causes that a violation must be put down to.
var causesOf = map[string]string{
	"flipped byte in the log":          "wal-crc-mismatch",
	"flipped byte in a raft snapshot":  "snap-file-damaged",
	"database older than the snapshot": "data-dir-rolled-back",
	"auth revision raised by hand":     "auth-revision-unequal",
	"dead meta page":                   "bbolt-meta-damage",
	"file cut short":                   "db-truncated",
	"term of another time":             "wal-and-db-from-different-times",
	"promotion missing in the bucket":  "learner-promotion-not-persisted",
	"removed member still listed":      "zombie-members-v3-bucket",
}

// TestViolations spoils sound sets and wants exactly the named trouble to be found on the spoiled node.
func TestViolations(t *testing.T) {
	for _, v := range violations {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			dir := evidencetest.Copy(t, evidencetest.Incident(t, v.incident))
			v.spoil(t, filepath.Join(dir, "node1", "member"))
			evidencetest.Unchanged(t, dir)
			r := diagnose(t, specsOf(t, dir))
			if r.Verdict.Health != check.Unhealthy {
				t.Errorf("verdict %v %s: %s", r.Verdict.Health, r.Verdict.Class, r.Verdict.Summary)
			}
			for _, id := range v.checks {
				if got := outcome(r, id); got != check.Violated {
					t.Errorf("%s %s, want violated", id, got)
				}
			}
			if v.class != "" && string(r.Verdict.Class) != v.class {
				t.Errorf("class %s (%s), want %s", r.Verdict.Class, r.Verdict.Summary, v.class)
			}
			if want := causesOf[v.name]; want != "" &&
				!slices.ContainsFunc(r.Causes, func(c compare.Cause) bool { return string(c.ID) == want }) {
				t.Errorf("causes %+v, want %s", r.Causes, want)
			}
			everyFindingHasEvidence(t, r)
		})
	}
}

func revKey(main int64) []byte {
	return binary.BigEndian.AppendUint64(append(binary.BigEndian.AppendUint64(nil, uint64(main)), '_'), 0)
}

// flipIn flips one bit of the first file that matches.
func flipIn(pattern string, at int64) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(node, pattern))
		if err != nil || len(files) == 0 {
			t.Fatal("no file ", pattern, err)
		}
		f, err := os.OpenFile(files[0], os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1)
		if _, err := f.ReadAt(b, at); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte{b[0] ^ 0x10}, at); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func editDB(edit func(*bbolt.Tx) error) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		db, err := bbolt.Open(filepath.Join(node, "snap", "db"), 0o600, &bbolt.Options{NoFreelistSync: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Update(edit); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// foreignSegment puts the segment of node2 behind that of node1.
func foreignSegment(t *testing.T, node string) {
	t.Helper()
	other := filepath.Join(filepath.Dir(filepath.Dir(node)), "node2", "member", "wal",
		"0000000000000000-0000000000000000.wal")
	b, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(node, "wal", "0000000000000001-0000000000000151.wal"), b[:700_000],
		0o600); err != nil {
		t.Fatal(err)
	}
}

func cutDB(size int64) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		if err := os.Truncate(filepath.Join(node, "snap", "db"), size); err != nil {
			t.Fatal(err)
		}
	}
}

// editMember changes the JSON of the member of that name in bucket members. Numbers keep their digits.
func editMember(name string, edit func(map[string]any)) spoil {
	return editDB(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("members"))
		return b.ForEach(func(k, v []byte) error {
			if !strings.Contains(string(v), strconv.Quote(name)) {
				return nil
			}
			var m map[string]any
			d := json.NewDecoder(bytes.NewReader(v))
			d.UseNumber()
			if err := d.Decode(&m); err != nil {
				return err
			}
			edit(m)
			out, err := json.Marshal(m)
			if err != nil {
				return err
			}
			return b.Put(bytes.Clone(k), out)
		})
	})
}

// TestSegmentTakenOut needs a log of several segments, which no incident has. It changes etcd's segment size for its
// own log.
func TestSegmentTakenOut(t *testing.T) {
	old := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = 64 << 10
	dirs := clustertest.Synth{Members: 3, Entries: 2000, Keys: 100, Value: 100}.Write(t, t.TempDir())
	wal.SegmentSizeBytes = old
	specs := synthSpecs(dirs)
	if r := diagnose(t, specs); r.Verdict.Class != "healthy" {
		t.Fatalf("sound set: %s %s", r.Verdict.Class, r.Verdict.Summary)
	}
	segments, err := filepath.Glob(filepath.Join(dirs[1], "member", "wal", "*.wal"))
	if err != nil || len(segments) < 4 {
		t.Fatal(segments, err)
	}
	if err := os.Remove(segments[2]); err != nil {
		t.Fatal(err)
	}
	evidencetest.Unchanged(t, dirs...)
	r := diagnose(t, specs)
	if r.Verdict.Class != "wal-damage" || *r.Verdict.Cause != "wal-segment-missing" ||
		!slices.Equal(r.Best.Members, []string{"node1", "node3"}) {
		t.Errorf("%s %v best %v", r.Verdict.Class, r.Verdict.Cause, r.Best.Members)
	}
	if outcome(r, "K03") == check.Violated {
		t.Error("the hole in one log is taken for a wrong database")
	}
}

func synthSpecs(dirs []string) []evidence.Spec {
	var specs []evidence.Spec
	for _, d := range dirs {
		specs = append(specs, evidence.Spec{Name: filepath.Base(d), Where: d})
	}
	return specs
}

// TestEntrySkippedAfterACrash builds what 3.5.0 to 3.5.2 left behind: one entry without effect on one member, a start
// of that member behind it, everything else applied one revision lower. Two skipped entries in one life are something
// else.
func TestEntrySkippedAfterACrash(t *testing.T) {
	for name, c := range map[string]struct {
		skip map[int]bool
		want string
	}{
		"one":             {map[int]bool{40: true}, "cindex-ahead-of-apply"},
		"one per life":    {map[int]bool{40: true, 55: true}, "cindex-ahead-of-apply"},
		"two in one life": {map[int]bool{40: true, 45: true}, "unexplained-first-divergence"},
		"no crash behind": {map[int]bool{70: true}, "unexplained-first-divergence"},
	} {
		t.Run(name, func(t *testing.T) {
			s := clustertest.Synth{Members: 3, Entries: 80, Keys: 20, Value: 20,
				Starts: map[int]int{0: 0, 1: 1, 2: 2, 50: 1, 60: 1}, Skip: map[int]map[int]bool{1: c.skip}}
			dirs := s.Write(t, t.TempDir())
			evidencetest.Unchanged(t, dirs...)
			r := diagnose(t, synthSpecs(dirs))
			if r.Verdict.Class != "data-divergence" || r.Verdict.Cause == nil || string(*r.Verdict.Cause) != c.want ||
				!slices.Equal(r.Best.Members, []string{"node1", "node3"}) {
				t.Fatalf("%s %v best %v: %s", r.Verdict.Class, r.Verdict.Cause, r.Best.Members, r.Verdict.Summary)
			}
			if lacks := r.Best.Ranking[2].Lacks.CommittedEntries; lacks != len(c.skip) {
				t.Errorf("%d entries lacking, want %d", lacks, len(c.skip))
			}
		})
	}
}

// TestMajorityCanBeWrong: two of three members skipped an entry that was acknowledged; the third is the one to keep.
func TestMajorityCanBeWrong(t *testing.T) {
	s := clustertest.Synth{Members: 3, Entries: 80, Keys: 20, Value: 20, Starts: map[int]int{0: 0, 1: 1, 2: 2},
		Skip: map[int]map[int]bool{1: {40: true}, 2: {40: true}}}
	dirs := s.Write(t, t.TempDir())
	evidencetest.Unchanged(t, dirs...)
	if r := diagnose(t, synthSpecs(dirs)); !slices.Equal(r.Best.Members, []string{"node1"}) ||
		r.Best.Lost.CommittedEntries != 0 {
		t.Errorf("best %v, lost %+v: %s", r.Best.Members, r.Best.Lost, r.Best.Why)
	}
}

// TestLearnerFlagLost: raft counts a member as a learner, bucket members calls it a voter.
func TestLearnerFlagLost(t *testing.T) {
	s := clustertest.Synth{Members: 3, Entries: 20, Keys: 5, Value: 20, Starts: map[int]int{0: 0, 1: 1, 2: 2},
		Learners: map[int]bool{2: true}}
	dirs := s.Write(t, t.TempDir())
	evidencetest.Unchanged(t, dirs...)
	r := diagnose(t, synthSpecs(dirs))
	if r.Verdict.Class != "membership" || r.Verdict.Cause == nil || *r.Verdict.Cause != "member-update-drops-learner" ||
		outcome(r, "M07") != check.Violated {
		t.Errorf("%s %v: %s", r.Verdict.Class, r.Verdict.Cause, r.Verdict.Summary)
	}
}
