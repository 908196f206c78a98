package soak

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/server/v3/lease/leasepb"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

func TestCatalogue(t *testing.T) {
	names := map[string]bool{}
	for _, f := range Faults() {
		if names[f.Name] || f.Name == healthyKind || strings.ContainsAny(f.Name, "/ +") {
			t.Errorf("name %q", f.Name)
		}
		names[f.Name] = true
	}
	if len(names) < 60 {
		t.Errorf("%d faults", len(names))
	}
}

// synthetic returns data dirs whose logs have several segments. The purged ones have lost the first of them, legally.
func synthetic(t *testing.T, purged int) []string {
	t.Helper()
	was := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = 8 << 10
	defer func() { wal.SegmentSizeBytes = was }()
	return clustertest.Synth{Members: 3, Entries: 900, Keys: 20, Value: 64, Purged: purged}.Write(t, t.TempDir())
}

// TestEveryFaultChangesItsVictimOnly applies every fault to data dirs of incidents and to written ones. Each must find
// something to alter in at least one of them, say what it did and leave the sources it only reads as they are.
func TestEveryFaultChangesItsVictimOnly(t *testing.T) {
	var sets [][]string
	for _, name := range []string{"m-healthy-3.6", "m-healthy-3.7", "a-auth-revision-replay", "k-lagging-node"} {
		dirs, err := filepath.Glob(filepath.Join(evidencetest.Incident(t, name), "node*"))
		if err != nil || len(dirs) < 3 {
			t.Fatalf("%s: %v %v", name, dirs, err)
		}
		sets = append(sets, dirs)
	}
	sets = slices.Concat([][]string{synthetic(t, 0), synthetic(t, 300)}, sets)
	var all []string
	for _, s := range sets {
		all = append(all, s...)
	}
	evidencetest.Unchanged(t, all...)
	foreign := func() string { return filepath.Join(evidencetest.Incident(t, "n-silent-kv-divergence"), "node2") }
	for _, f := range Faults() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			applied := 0
			for i := 0; i < len(sets) && applied < 2; i++ {
				dirs := sets[i]
				dir := filepath.Join(t.TempDir(), "node1")
				if err := evidencetest.CopyTo(dirs[0], dir); err != nil {
					t.Fatal(err)
				}
				v := &Victim{Dir: dir, Rng: Rand(1, f.Name), Line: "3.6.16", Others: dirs[1:], Older: dirs[1],
					Live: dirs[2], Backups: []string{dbFile(dirs[1])}, Foreign: foreign, Forced: foreign}
				effect, err := f.Apply(v)
				if errors.Is(err, errNotHere) {
					if !same(dirs[0], dir, !f.Raw) {
						t.Error("changed although there was nothing to alter")
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", dirs[0], err)
				}
				if f.Mix && same(dirs[0], dir, true) {
					continue // members that hold the same
				}
				applied++
				if same(dirs[0], dir, !f.Raw) {
					t.Errorf("%s: nothing changed: %s", dirs[0], effect.What)
				}
				if effect.What == "" || effect.Benign && effect.Alone || effect.Open && effect.Alone {
					t.Errorf("effect %+v", effect)
				}
			}
			if applied == 0 {
				t.Error("nothing to alter anywhere")
			}
		})
	}
}

func TestBackupFaultsChangeTheFile(t *testing.T) {
	for _, f := range backupFaults {
		src := dbFile(synthetic(t, 0)[0])
		file := evidencetest.Copy(t, src)
		st, err := os.Stat(file)
		if err == nil {
			err = f.apply(file, st.Size(), Rand(1, f.name))
		}
		if err != nil || same(src, file, false) {
			t.Errorf("%s: changed: %t, %v", f.name, !same(src, file, false), err)
		}
	}
}

// TestRewrittenLogIsStillOne writes a log again without a change: the bytes must be the same, checksums included.
func TestRewrittenLogIsStillOne(t *testing.T) {
	for _, purged := range []int{0, 300} {
		src := synthetic(t, purged)[0]
		dir := evidencetest.Copy(t, src)
		segs, err := readLog(dir)
		if err != nil || len(segs) < 2 {
			t.Fatalf("%d segments, %v", len(segs), err)
		}
		if err := writeLog(segs); err != nil {
			t.Fatal(err)
		}
		again, err := readLog(dir)
		if err != nil {
			t.Fatal(err)
		}
		for i := range segs {
			if !slices.EqualFunc(segs[i].records, again[i].records, func(a, b walRecord) bool {
				return a.typ == b.typ && a.from == b.from && string(a.data) == string(b.data)
			}) {
				t.Errorf("segment %d differs", i)
			}
		}
		a := InProcess([]Source{{Name: "node1", Path: dir}})
		for _, f := range a.Findings {
			if f.grave() {
				t.Errorf("purged %d: %s %s", purged, f.ID, f.Title)
			}
		}
		if a.Failure != "" {
			t.Error(a.Failure)
		}
	}
}

func TestTruthOf(t *testing.T) {
	members := []Source{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	shown := func(string) bool { return true }
	hidden := func(string) bool { return false }
	effects := func(e *Effect, names ...string) map[string]*Effect {
		out := map[string]*Effect{}
		for _, n := range names {
			out[n] = e
		}
		return out
	}
	for _, tc := range []struct {
		name                              string
		sources                           []Source
		effects                           map[string]*Effect
		healthy, unprovable, best, accuse bool // best and accuse: they are judged
	}{
		{"alone on one", members, effects(&Effect{Alone: true}, "a"), false, false, true, true},
		{"alone on all", members, effects(&Effect{Alone: true}, "a", "b", "c"), false, false, true, true},
		{"two others show it", members, effects(&Effect{Witness: shown}, "a"), false, false, true, true},
		{"one other shows it: who is right is open", members[:2], effects(&Effect{Witness: shown}, "a"), false, false,
			false, true},
		{"two lie: the majority is wrong", members, effects(&Effect{Witness: shown}, "a", "b"), false, false, false,
			false},
		{"nothing shows it", members, effects(&Effect{Witness: hidden}, "a"), false, true, false, true},
		{"a single source", members[:1], effects(&Effect{Witness: shown}, "a"), false, true, false, true},
		{"as good as before", members, effects(&Effect{Benign: true}, "a"), true, false, true, true},
		{"open", members, effects(&Effect{Open: true, Alone: false}, "a"), false, true, false, true},
		{"all members together show it", members, effects(&Effect{WithAll: true}, "a"), false, false, false, true},
		{"two of three do not", members[:2], effects(&Effect{WithAll: true}, "a"), false, true, false, true},
		{"only a lagging one shows it", []Source{{Name: "a"}, {Name: "b", Lags: true}},
			effects(&Effect{Witness: shown}, "a"), false, true, false, false},
	} {
		got := truthOf("x", len(members), tc.sources, tc.effects)
		if got.Healthy != tc.healthy || got.Unprovable != tc.unprovable || got.AnyBest == tc.best ||
			got.AnyAccused == tc.accuse {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
}

// TestWhatShowsAnEditOfPublishedAddresses: on 3.5 a row may legally keep a value that was published before, so only a
// log that holds all of them shows the edit; on later releases another member's row does.
func TestWhatShowsAnEditOfPublishedAddresses(t *testing.T) {
	for _, c := range []struct {
		line           string
		purged         int
		restored, seen bool
	}{{"3.5.35", 0, false, true}, {"3.5.35", 300, false, false}, {"3.5.35", 0, true, false},
		{"3.6.16", 300, false, true}} {
		dirs := synthetic(t, c.purged)
		for _, f := range memberFaults {
			if f.Name != "member-client-url" && f.Name != "member-name" {
				continue
			}
			copied := filepath.Join(t.TempDir(), "copy")
			if err := evidencetest.CopyTo(dirs[0], copied); err != nil {
				t.Fatal(err)
			}
			e, err := f.Apply(&Victim{Dir: copied, Rng: Rand(1, f.Name), Line: c.line, Restored: c.restored})
			if err != nil {
				t.Fatal(err)
			}
			if seen := e.Witness(dirs[1]); seen != c.seen {
				t.Errorf("%s %s, purged %d, restored %v: shown by another member %v", f.Name, c.line, c.purged,
					c.restored, seen)
			}
		}
	}
}

// TestRaisesTTL: only a TTL above the one before is raised; other buckets have none.
func TestRaisesTTL(t *testing.T) {
	row := func(id, ttl int64) string {
		b, err := (&leasepb.Lease{ID: id, TTL: ttl}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for name, c := range map[string]struct {
		bucket, before, after string
		want                  int64
	}{
		"raised":         {"lease", row(7, 1), row(7, 17), 17},
		"lowered":        {"lease", row(7, 17), row(7, 1), 0},
		"equal":          {"lease", row(7, 17), row(7, 17), 0},
		"another lease":  {"lease", row(7, 1), row(8, 17), 0},
		"another bucket": {"alarm", row(7, 1), row(7, 17), 0},
	} {
		if got := raisesTTL(c.bucket, c.before, c.after); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
