package preflight_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/preflight"
	"github.com/etcd-medic/etcd-medic/compare/serverlog"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/release"
)

const self = 0xa1 // the first member that clustertest.Synth writes

func foretell(t *testing.T, where, to string) *preflight.Result {
	t.Helper()
	evidencetest.Unchanged(t, where)
	v, err := preflight.ParseVersion(to)
	if err != nil {
		t.Fatal(err)
	}
	r, err := preflight.Run(t.Context(), evidence.Spec{Name: "node1", Where: where}, v, preflight.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range r.Rules {
		if o.Outcome == check.Violated && (o.Says == "" || o.Level == preflight.Stops &&
			(o.Server == "" || len(o.Evidence) == 0)) ||
			o.Outcome == check.NotChecked && o.Says == "" || o.Outcome == "" {
			t.Errorf("bare outcome %+v", o)
		}
	}
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func editDB(edit func(*bbolt.Tx) error) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		db, err := bbolt.Open(filepath.Join(dir, "member", "snap", "db"), 0o600, &bbolt.Options{NoFreelistSync: true})
		must(t, err)
		must(t, db.Update(edit))
		must(t, db.Close())
	}
}

func put(bucket, key string, value []byte) func(*testing.T, string) {
	return editDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucket)).Put([]byte(key), value) })
}

// patch changes bytes of the first file that matches.
func patch(pattern string, at int64, b []byte) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, "member", pattern))
		if err != nil || len(files) == 0 {
			t.Fatal("no file ", pattern, err)
		}
		f, err := os.OpenFile(files[0], os.O_RDWR, 0)
		must(t, err)
		_, err = f.WriteAt(b, at)
		must(t, errors.Join(err, f.Close()))
	}
}

// relog writes the log anew: ten empty entries, what is given behind them, and a HardState.
func relog(commit uint64, more ...raftpb.Entry) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		folder := filepath.Join(dir, "member", "wal")
		must(t, os.RemoveAll(folder))
		meta, err := (&etcdserverpb.Metadata{NodeID: self, ClusterID: 0xc1}).Marshal()
		must(t, err)
		w, err := wal.Create(zap.NewNop(), folder, meta)
		must(t, err)
		cc, err := (&raftpb.ConfChange{Type: raftpb.ConfChangeAddNode, NodeID: self,
			Context: []byte(`{"id":161,"peerURLs":["http://127.0.0.1:2380"],"name":"node1"}`)}).Marshal()
		must(t, err)
		ents := []raftpb.Entry{{Term: 1, Index: 1, Type: raftpb.EntryConfChange, Data: cc}}
		for i := uint64(2); i <= 10; i++ {
			ents = append(ents, raftpb.Entry{Term: 2, Index: i})
		}
		for i := range more {
			more[i].Term, more[i].Index = 2, uint64(11+i)
		}
		must(t, w.Save(raftpb.HardState{Term: 2, Vote: self, Commit: commit}, append(ents, more...)))
		must(t, w.Close())
	}
}

func removal(t testing.TB) raftpb.Entry {
	b, err := (&raftpb.ConfChange{Type: raftpb.ConfChangeRemoveNode, NodeID: self}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raftpb.Entry{Type: raftpb.EntryConfChange, Data: b}
}

func v2(t testing.TB, path string) raftpb.Entry {
	b, err := (&etcdserverpb.Request{ID: 7, Method: "PUT", Path: path,
		Val: `{"name":"node1","clientURLs":["http://127.0.0.1:2379"]}`}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raftpb.Entry{Data: b}
}

// snapshotAt adds a raft snapshot at an index, in the log and as a file.
func snapshotAt(index uint64) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		cs := raftpb.ConfState{Voters: []uint64{self}}
		w, err := wal.Open(zap.NewNop(), filepath.Join(dir, "member", "wal"), walpb.Snapshot{})
		must(t, err)
		_, _, _, err = w.ReadAll()
		must(t, err)
		must(t, w.SaveSnapshot(walpb.Snapshot{Index: index, Term: 2, ConfState: &cs}))
		must(t, w.Close())
		s := snap.New(zap.NewNop(), filepath.Join(dir, "member", "snap"))
		must(t, s.SaveSnap(raftpb.Snapshot{Data: []byte(`{"Root":{"Path":"/","Children":{"0":{"Path":"/0","Children":{"members":{"Path":"/0/members","Children":{}},"removed_members":{"Path":"/0/removed_members","Children":{}}}}}},"CurrentVersion":2}`),
			Metadata: raftpb.SnapshotMetadata{Index: index, Term: 2, ConfState: cs}}))
	}
}

func u64(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func all(steps ...func(*testing.T, string)) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		for _, s := range steps {
			s(t, dir)
		}
	}
}

// spoils are dirs of one member, each with one thing that stops etcd 3.6.16, or with something that looks like it and
// does not.
func spoils(t testing.TB) map[string]struct {
	spoil func(*testing.T, string)
	stops string
} {
	first := func(bucket string) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			k, _ := tx.Bucket([]byte(bucket)).Cursor().First()
			return tx.Bucket([]byte(bucket)).Delete(bytes.Clone(k))
		}
	}
	low := put("meta", "consistent_index", u64(5))
	return map[string]struct {
		spoil func(*testing.T, string)
		stops string
	}{
		"sound":               {func(*testing.T, string) {}, ""},
		"sound, written anew": {all(relog(10), low), ""},
		"page overwritten":    {patch("snap/db", 4096*4, bytes.Repeat([]byte{0xa5}, 4096)), "P02"},
		"no valid meta page": {all(patch("snap/db", 40, []byte{1}), patch("snap/db", 4096+40, []byte{1})),
			"P02"},
		"storage version of 3.9":     {put("meta", "storageVersion", []byte("3.9.0")), "P06"},
		"cluster version of 3.9":     {put("cluster", "clusterVersion", []byte("3.9.0")), "P10"},
		"cluster version of 3.5":     {put("cluster", "clusterVersion", []byte("3.5.0")), ""},
		"flipped byte in the log":    {patch("wal/*.wal", 3000, []byte{0xff, 0xff}), "P07"},
		"first segment gone":         {rename, "P08"},
		"commit beyond the log":      {all(relog(40), low), "P11"},
		"lease that does not decode": {put("lease", "12345678", []byte{0xff, 0xff}), "P12"},
		"removed":                    {all(relog(11, removal(t)), low), "P17"},
		"v2 key":                     {all(relog(11, v2(t, "/1/foo")), low), "P13"},
		"v2 attributes":              {all(relog(11, v2(t, "/0/members/a1/attributes")), low), ""},
		"v2 key behind the snapshot": {all(relog(11, v2(t, "/1/foo")), put("meta", "consistent_index", u64(11)),
			snapshotAt(11)), ""},
		"database behind the snapshot": {all(relog(10), low, snapshotAt(9)), "P05"},
		"unknown to its own list": {all(relog(10), put("meta", "consistent_index", u64(10)),
			editDB(first("members"))), "P18"},
	}
}

// rename makes the only segment one that begins later.
func rename(t *testing.T, dir string) {
	t.Helper()
	folder := filepath.Join(dir, "member", "wal")
	must(t, os.Rename(filepath.Join(folder, "0000000000000000-0000000000000000.wal"),
		filepath.Join(folder, "0000000000000001-0000000000000014.wal")))
}

// TestAgainstTheServer spoils a dir in one way at a time and starts the server that this program brings on a copy: the
// prediction must agree.
func TestAgainstTheServer(t *testing.T) {
	for name, c := range spoils(t) {
		t.Run(name, func(t *testing.T) {
			dir := clustertest.Synth{Members: 1, Entries: 200, Keys: 20, Value: 100}.Write(t, t.TempDir())[0]
			c.spoil(t, dir)
			r := foretell(t, dir, "3.6.16")
			if r.Stops != c.stops {
				t.Errorf("stops at %q, want %q: %+v", r.Stops, c.stops, r.StopsAt())
			}
			said, boots := serve(t, evidencetest.Copy(t, dir))
			if r.Boots != release.AnswerOf(boots) {
				t.Errorf("foretold %v, boots %v: %s", r.Boots, boots, said)
			}
			s := r.StopsAt()
			if s == nil {
				return
			}
			if !words(said, s.Server) {
				t.Errorf("foretold %q, the server says %q", s.Server, said)
			}
			// What the server says leads back to the rule.
			if !slices.ContainsFunc(serverlog.Scan(said),
				func(m serverlog.Match) bool { return slices.Contains(m.Rules, s.Rule) }) {
				t.Errorf("no known message in what the server says names %s: %s", s.Rule, said)
			}
		})
	}
}

// words tells whether the server's log holds one of the texts that a rule foretells.
func words(said, foretold string) bool {
	for _, s := range []string{": ", ", or: ", " (", ","} {
		foretold = strings.ReplaceAll(foretold, s, "|")
	}
	for _, w := range strings.Split(foretold, "|") {
		if w = strings.TrimSpace(w); len(w) >= 12 && strings.Contains(said, w) {
			return true
		}
	}
	return false
}

func serve(t *testing.T, dir string) (string, bool) {
	t.Helper()
	box, err := node.New(t.Context(), node.Options{Dir: filepath.Join(t.TempDir(), "box"), Server: node.Bundled(),
		UnsafeNoFsync: true})
	must(t, err)
	defer func() { must(t, box.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	m, err := box.Start(ctx, node.MemberConfig{Name: "node1", DataDir: dir, PeerURLs: []string{"http://127.0.0.1:2380"},
		ClientURLs:     []string{"http://127.0.0.1:2379"},
		InitialCluster: "node1=http://127.0.0.1:2380"})
	must(t, err)
	err = m.Ready(ctx)
	b, rerr := os.ReadFile(m.LogFile())
	must(t, rerr)
	return strings.ReplaceAll(string(b), `\"`, `"`), err == nil
}

// TestIncidents: the shipped dirs on every line, as far as what they hold decides it.
func TestIncidents(t *testing.T) {
	for _, c := range []struct{ dir, to, stops string }{
		{"m-healthy-3.5/node1", "3.5", ""},
		{"m-healthy-3.5/node1", "3.6", ""},
		{"m-healthy-3.5/node1", "3.4", "P10"},
		{"m-healthy-3.6/node1", "3.6", ""},
		{"m-healthy-3.6/node1", "3.5", "P10"},
		{"m-healthy-3.7/node1", "3.6", "P06"},
		{"m-healthy-3.7/node1", "3.8", ""},
		{"f-bbolt-page-corruption/node1", "3.5", "P02"},
		{"f-bbolt-page-corruption/node2", "3.5", ""},
		{"e-torn-wal-tail/node2", "3.5", ""},
	} {
		where := filepath.Join(evidencetest.Incident(t, filepath.Dir(c.dir)), filepath.Base(c.dir))
		if r := foretell(t, where, c.to); r.Stops != c.stops || r.Boots != release.AnswerOf(c.stops == "") {
			t.Errorf("%s to %s: stops at %q, want %q: %+v", c.dir, c.to, r.Stops, c.stops, r.StopsAt())
		}
	}
}

// TestReady: what does not stop the server is told beside, with what to do.
func TestReady(t *testing.T) {
	for _, c := range []struct {
		spoil func(*testing.T, string)
		to    string
		rule  string
	}{
		{put("cluster", "clusterVersion", []byte("3.4.0")), "3.6", "P21"},
		{put("cluster", "clusterVersion", []byte("3.4.0")), "3.7", "P22"},
		{put("meta", "storageVersion", []byte("3.6.0")), "3.4", "P23"},
		{put("members", "7", []byte(`{"id":7,"peerURLs":["http://10.0.0.9:2380"],"name":"ghost"}`)), "3.7", "P20"},
		{all(relog(10), put("meta", "consistent_index", u64(10)), snapshotAt(9),
			patch("snap/*.snap", 30, []byte{0xff, 0xff})), "3.6", "P03"},
		{patch("wal/*.wal", 24_000, make([]byte, 40_000)), "3.6", "P19"},
	} {
		dir := clustertest.Synth{Members: 1, Entries: 200, Keys: 20, Value: 100}.Write(t, t.TempDir())[0]
		c.spoil(t, dir)
		r := foretell(t, dir, c.to)
		if !slices.ContainsFunc(r.Rules, func(o preflight.Outcome) bool {
			return o.Rule == c.rule &&
				o.Outcome == check.Violated
		}) || len(r.Ready) == 0 {
			t.Errorf("%s to %s: %+v, ready %q", c.rule, c.to, r.Rules, r.Ready)
		}
	}
}

// TestCanNotBeTold: without a log nobody can tell what the server makes of the dir.
func TestCanNotBeTold(t *testing.T) {
	dir := clustertest.Synth{Members: 1, Entries: 20, Keys: 5, Value: 10}.Write(t, t.TempDir())[0]
	must(t, os.RemoveAll(filepath.Join(dir, "member", "wal")))
	if r := foretell(t, dir, "3.6"); r.Boots != release.Unknown || r.Stops != "" {
		t.Errorf("boots %v, stops %s", r.Boots, r.Stops)
	}
	if _, err := preflight.Run(t.Context(), evidence.Spec{Where: filepath.Join(dir, "member", "snap", "db")},
		preflight.Version{Minor: 6, Patch: -1}, preflight.Options{}); err == nil {
		t.Error("a database file passes for a data dir")
	}
}

// TestRulesByRelease: which servers each rule is about.
func TestRulesByRelease(t *testing.T) {
	want := map[string]string{"P03": "[3 4 5 6]", "P04": "[6]", "P06": "[6 7 8]", "P13": "[6 7 8]", "P14": "[3 4 5]",
		"P15": "[3]", "P16": "[7 8]", "P18": "[4 5 6 7 8]", "P20": "[6 7 8]", "P23": "[3 4]"}
	for _, r := range preflight.Rules() {
		if want[r.ID] == "" {
			want[r.ID] = "[3 4 5 6 7 8]"
		}
		if got := fmt.Sprint(r.Lines()); got != want[r.ID] {
			t.Errorf("%s is about %s, want %s", r.ID, got, want[r.ID])
		}
	}
}

// TestRulesAreDocumented: IDs are unique, ordered by a start, and every rule says what must hold and where etcd checks
// it.
func TestRulesAreDocumented(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range preflight.Rules() {
		if seen[r.ID] || len(r.ID) != 3 || r.Title == "" || len(r.Doc) < 80 || r.Run == nil || len(r.Lines()) == 0 ||
			r.Level == "" {
			t.Errorf("%s is incomplete", r.ID)
		}
		seen[r.ID] = true
	}
}

func TestParseVersion(t *testing.T) {
	for in, want := range map[string]string{"3.6": "3.6", "v3.5.21": "3.5.21", "3.8": "3.8"} {
		if v, err := preflight.ParseVersion(in); err != nil || v.String() != want {
			t.Errorf("%s: %v %v", in, v, err)
		}
	}
	for _, in := range []string{"", "3", "3.2", "3.9", "2.3", "3.x", "3.6.1.2"} {
		if v, err := preflight.ParseVersion(in); err == nil {
			t.Errorf("%q is taken as %v", in, v)
		}
	}
	for in, want := range map[string]bool{"3.3": true, "3.3.20": false, "3.4.7": false, "3.4.8": true, "3.4": true,
		"3.5.0": true} {
		if v, _ := preflight.ParseVersion(in); v.Follows(release.SnapNeedsRecord) != want {
			t.Errorf("%s: without a patch release the newest of the minor version is meant", in)
		}
	}
}

// TestMissingParts: a rule about a part that is not there does not hold, and whether the server starts is decided by
// the rules that say what it does without that part.
func TestMissingParts(t *testing.T) {
	whole := filepath.Join(evidencetest.Incident(t, "m-healthy-3.5"), "node1")
	without := func(part string) string {
		dir := evidencetest.Copy(t, whole)
		must(t, os.RemoveAll(filepath.Join(dir, "member", filepath.FromSlash(part))))
		return dir
	}
	noLog, noDB := without("wal"), without("snap/db")
	for _, minor := range release.Minors() {
		to := fmt.Sprintf("3.%d", minor)
		for _, c := range []struct {
			dir, open string
			boots     release.Answer
		}{
			{noLog, "P01 P04 P05 P07 P08 P10 P11 P13 P14 P15 P16 P17 P18 P19", release.Unknown},
			{noDB, "P02 P06 P12 P20 P21 P23", release.No},
		} {
			if c.dir == noDB && minor > 5 { // these read the members from the database
				c.open += " P10 P18"
			}
			r := foretell(t, c.dir, to)
			if r.Boots != c.boots {
				t.Errorf("%s on %s: boots %v", c.dir, to, r.Boots)
			}
			for _, o := range r.Rules {
				if strings.Contains(c.open, o.Rule) && o.Outcome == check.Holds {
					t.Errorf("without %s, on %s: %s (%s) holds", c.open, to, o.Rule, o.Title)
				}
			}
			if slices.ContainsFunc(r.Ready, func(s string) bool { return strings.Contains(s, "another member or cluster") }) {
				t.Errorf("on %s: %q", to, r.Ready)
			}
		}
		if r := foretell(t, whole, to); slices.ContainsFunc(r.Rules,
			func(o preflight.Outcome) bool { return o.Outcome == check.NotChecked }) {
			t.Errorf("whole, on %s: %+v", to, r.Rules)
		}
	}
}
