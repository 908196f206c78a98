package restore_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
	"github.com/etcd-medic/etcd-medic/repair/restore"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func three(t testing.TB) restore.Plan {
	t.Helper()
	m, err := restore.ParseInitialCluster("n1=http://10.0.0.1:2380,n2=http://10.0.0.2:2380,n3=http://10.0.0.3:2380")
	ok(t, err)
	return restore.Plan{Members: m}
}

func good(t testing.TB) string {
	t.Helper()
	return filepath.Join(evidencetest.Incident(t, "o-backup-good"), "backup.db")
}

func spec(path string) evidence.Spec { return evidence.Spec{Where: path} }

// TestRestoredDirsAreReadByEtcd opens the dirs with etcd's own packages, as a server does.
func TestRestoredDirsAreReadByEtcd(t *testing.T) {
	src := good(t)
	evidencetest.Unchanged(t, src)
	out := filepath.Join(t.TempDir(), "new")
	r, err := restore.Run(context.Background(), restore.Options{Backup: spec(src), Plan: three(t), Out: out})
	ok(t, err)
	if r.After.Class != "freshly-restored" || !r.InputsUnchanged || r.Revision.Start != 1_000_000_181 ||
		len(r.Members) != 3 {
		t.Fatalf("report %+v", r)
	}
	lg := zap.NewNop()
	for _, m := range r.Members {
		dir := evidencetest.Copy(t, filepath.Join(out, m.Name))
		w, err := wal.Open(lg, filepath.Join(dir, "member", "wal"), walpb.Snapshot{})
		ok(t, err)
		meta, state, ents, err := w.ReadAll()
		ok(t, err)
		ok(t, w.Close())
		var md etcdserverpb.Metadata
		ok(t, md.Unmarshal(meta))
		if md.NodeID != uint64(m.MemberID) || md.ClusterID != uint64(r.ClusterID) {
			t.Errorf("%s: metadata %+v", m.Name, md)
		}
		if state.Term != 1 || state.Commit != 3 || len(ents) != 3 || ents[2].Type != raftpb.EntryConfChange {
			t.Errorf("%s: state %+v, %d entries", m.Name, state, len(ents))
		}
		be := backend.NewDefaultBackend(lg, filepath.Join(dir, "member", "snap", "db"))
		s := mvcc.NewStore(lg, be, &lease.FakeLessor{}, mvcc.StoreConfig{})
		res, err := s.Range(context.Background(), []byte{0}, []byte{0xff}, mvcc.RangeOptions{})
		if err != nil || len(res.KVs) != 130 || s.Rev() != r.Revision.Start {
			t.Errorf("%s: %d keys at %d, %v", m.Name, len(res.KVs), s.Rev(), err)
		}
		s.Close()
		ok(t, be.Close())
	}
}

func TestRefused(t *testing.T) {
	src := good(t)
	raw := filepath.Join(t.TempDir(), "raw.db")
	ok(t, datadir.CopyDB(context.Background(), raw, src))
	short := evidencetest.Copy(t, src)
	ok(t, os.Truncate(short, 20000))
	alarmed := backupWith(t, src, datadir.PutBucketKey("alarm", []byte{8, 7, 16, 2}, nil))
	urls := []string{"http://10.0.0.1:2380"}
	twin := backupWith(t, src, datadir.SetMembers([]datadir.Member{{ID: apply.NewMemberID(urls, "old"), Name: "n1",
		PeerURLs: urls}}, nil))
	flipped := filepath.Join(evidencetest.Incident(t, "o-backup-bit-flip"), "backup.db")
	evidencetest.Unchanged(t, src, raw, short, alarmed, twin, flipped)
	for name, c := range map[string]struct {
		src, says string
		change    func(*restore.Options)
		accept    func(*restore.Options)
	}{
		"wrong trailer": {src: flipped, says: "trailer", accept: func(o *restore.Options) { o.Unproven = true }},
		"no trailer":    {src: raw, says: "trailer", accept: func(o *restore.Options) { o.Unproven = true }},
		"cut short":     {src: short, says: "pages", change: func(o *restore.Options) { o.Unproven = true }},
		"CORRUPT":       {src: alarmed, says: "CORRUPT", accept: func(o *restore.Options) { o.Alarmed = true }},
		"old token": {src: twin, says: "old member", change: func(o *restore.Options) { o.Plan.Token = "old" },
			accept: func(o *restore.Options) { o.Plan.Token = "new" }},
		"same name": {src: src, says: "named n1",
			change: func(o *restore.Options) { o.Plan.Members[1].Name = "n1" }},
		"same URL": {src: src, says: "same peer URL",
			change: func(o *restore.Options) { o.Plan.Members[1].PeerURLs = urls }},
		"bad URL": {src: src, says: "no port",
			change: func(o *restore.Options) { o.Plan.Members[1].PeerURLs = []string{"http://x"} }},
		"folder name": {src: src, says: "folder",
			change: func(o *restore.Options) { o.Plan.Members[1].Name = "../n1" }},
		"endpoint": {src: "http://127.0.0.1:1", says: "not a backup"},
	} {
		out := filepath.Join(t.TempDir(), "new")
		o := restore.Options{Backup: spec(c.src), Plan: three(t), Out: out}
		if c.change != nil {
			c.change(&o)
		}
		_, err := restore.Run(context.Background(), o)
		var refused *refusal.Error
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := filepath.Glob(out + "*"); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
		if c.accept != nil {
			c.accept(&o)
			if _, err := restore.Run(context.Background(), o); err != nil {
				t.Errorf("%s, accepted: %v", name, err)
			}
		}
	}
}

// TestWarnedLayer: a warning about the pages of a backup costs nothing that is restored, so it is a note.
func TestWarnedLayer(t *testing.T) {
	db, src := filepath.Join(t.TempDir(), "db"), filepath.Join(t.TempDir(), "backup.db")
	ok(t, datadir.CopyDB(context.Background(), db, good(t)))
	f, err := os.OpenFile(db, os.O_RDWR, 0)
	ok(t, err)
	_, err = f.WriteAt([]byte{1}, 2) // the page header of a meta page says another page
	ok(t, errors.Join(err, f.Close()))
	_, err = datadir.WriteBackup(context.Background(), src, db)
	ok(t, err)
	r, err := restore.Run(t.Context(), restore.Options{Backup: spec(src), Plan: three(t),
		Out: filepath.Join(t.TempDir(), "new")})
	ok(t, err)
	if !slices.ContainsFunc(r.Notes, func(s string) bool { return strings.HasPrefix(s, "metas: ") }) {
		t.Errorf("%q", r.Notes)
	}
}

func backupWith(t *testing.T, src string, edits ...datadir.Edit) string {
	t.Helper()
	db, out := filepath.Join(t.TempDir(), "db"), filepath.Join(t.TempDir(), "backup.db")
	ok(t, datadir.CopyDB(context.Background(), db, src, edits...))
	_, err := datadir.WriteBackup(context.Background(), out, db)
	ok(t, err)
	return out
}

// TestRevisionIsAboveAllThatSurvived: what the database shows, and what the log behind it may have done.
func TestRevisionIsAboveAllThatSurvived(t *testing.T) {
	old := clustertest.Synth{Members: 1, Entries: 500, Keys: 10, Value: 20}
	ahead := clustertest.Synth{Members: 1, Entries: 800, Keys: 10, Value: 20}
	db := filepath.Join(t.TempDir(), "db")
	old.WriteDB(t, db)
	src := backupWith(t, db)
	dirs := ahead.Write(t, t.TempDir())
	again := ahead.Write(t, t.TempDir()) // of a cluster that was restored
	casetest.EditDB(t, again[0], func(tx *bbolt.Tx) error {
		return errors.Join(datadir.BumpRevision(1000)(tx), datadir.MarkCompacted()(tx))
	})
	lagging := old.Write(t, t.TempDir()) // its log is replaced by the longer one: 300 entries not applied
	walDir := filepath.Join(lagging[0], "member", "wal")
	ok(t, os.RemoveAll(walDir))
	ahead.WriteWAL(t, walDir, 0)
	for _, c := range []struct {
		surviving    string
		newest, lost int64
		raised       int64
	}{{dirs[0], 801, 300, 0}, {again[0], 1801, 300, 1000}, {lagging[0], 801, 0, 0}, {src, 501, 0, 0}} {
		o := restore.Options{Backup: spec(src), Plan: three(t), Out: filepath.Join(t.TempDir(), "new"),
			Surviving: []evidence.Spec{spec(c.surviving)}, Reserve: 1000}
		r, err := restore.Run(context.Background(), o)
		ok(t, err)
		want := restore.Revision{Backup: 501, NewestSeen: c.newest, SeenOn: r.Revision.SeenOn,
			Bump: uint64(c.newest - 501 + 1000), Reserve: 1000,
			Start: c.newest + 1000, MarkCompacted: true, GivenUp: c.lost, Raised: c.raised}
		if d := cmp.Diff(want, r.Revision); d != "" {
			t.Error(d)
		}
		if says := strings.Join(r.GivesUp, "\n"); strings.Contains(says, "502 to 1801 without the 1000 that") != (c.raised > 0) ||
			strings.Contains(says, "300 revisions, ") != (c.lost > 0) {
			t.Errorf("gives up %q", says)
		}
		low := uint64(c.newest - 501)
		o.Bump, o.Out = &low, filepath.Join(t.TempDir(), "new")
		var refused *refusal.Error
		if _, err := restore.Run(context.Background(), o); c.newest > 501 && !errors.As(err, &refused) {
			t.Errorf("a raise to what was seen: %v", err)
		}
	}
}

func TestMembersOfTheBackup(t *testing.T) {
	r, err := restore.Run(context.Background(),
		restore.Options{Backup: spec(good(t)), Out: filepath.Join(t.TempDir(), "new"),
			Plan: restore.Plan{DataDir: "/var/lib/etcd/{name}"}})
	ok(t, err)
	if len(r.Members) != 3 || !strings.Contains(r.Members[0].Start, "--data-dir /var/lib/etcd/node2 ") ||
		!strings.Contains(r.Members[0].Start, "--advertise-client-urls") {
		t.Errorf("members %+v", r.Members)
	}
}

func TestPlanFile(t *testing.T) {
	for text, bad := range map[string]bool{
		"token: x\nmembers:\n- name: a\n  peerURLs: [http://a:1]\n": false,
		`{"members": [{"name": "a", "peerURLs": ["http://a:1"]}]}`:  false,
		"membres: []\n":            true,
		"members:\n- nme: a\n":     true,
		"members: 7\n":             true,
		strings.Repeat("[", 10000): true,
	} {
		path := filepath.Join(t.TempDir(), "plan.yaml")
		ok(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := restore.ReadPlan(path); (err != nil) != bad {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// TestTwoRestores: the same flags give the same cluster, which hosts that restore by themselves need, and a warning;
// another token gives other IDs, and sources of the first restore raise the second one above it.
func TestTwoRestores(t *testing.T) {
	src := good(t)
	run := func(change func(o *restore.Options)) *restore.Report {
		t.Helper()
		o := restore.Options{Backup: spec(src), Plan: three(t), Out: filepath.Join(t.TempDir(), "new"), Reserve: 10}
		o.Plan.Token = ""
		change(&o)
		r, err := restore.Run(context.Background(), o)
		ok(t, err)
		return r
	}
	out := filepath.Join(t.TempDir(), "first")
	first := run(func(o *restore.Options) { o.Out = out })
	second := run(func(*restore.Options) {})
	if first.Token != second.Token || first.ClusterID != second.ClusterID ||
		first.Revision.Start != second.Revision.Start || first.TokenGiven {
		t.Errorf("%+v\n%+v", first, second)
	}
	if all := strings.Join(second.Warnings, "\n"); !strings.Contains(all, "--initial-cluster-token") ||
		!strings.Contains(all, "--surviving") {
		t.Errorf("warnings %q", all)
	}
	other := run(func(o *restore.Options) {
		o.Plan.Token = "another"
		for i := range first.Members {
			o.Surviving = append(o.Surviving, spec(filepath.Join(out, first.Members[i].Name)))
		}
	})
	if other.ClusterID == first.ClusterID || other.Members[0].MemberID == first.Members[0].MemberID ||
		other.Revision.Start <= first.Revision.Start || len(other.Warnings) != 0 {
		t.Errorf("%+v", other)
	}
	// Without a token of its own the second gets another one too, since it starts higher.
	third := run(func(o *restore.Options) { o.Surviving = append(o.Surviving, spec(filepath.Join(out, "n1"))) })
	if third.ClusterID == first.ClusterID || third.Token == first.Token {
		t.Errorf("%+v", third)
	}
}

// TestServerIsNoBackup: the command that saves a snapshot asks the server that was named.
func TestServerIsNoBackup(t *testing.T) {
	var no *refusal.Error
	_, err := restore.Run(t.Context(), restore.Options{Backup: spec("https://[::1]:2379")})
	if want := "etcdctl --endpoints 'https://[::1]:2379' snapshot save FILE"; !errors.As(err, &no) ||
		!strings.HasSuffix(no.Hint, want) {
		t.Errorf("%+v", err)
	}
}

// TestSourcesOfARestore: what is no backup, what survived without a revision, and where the result may not be.
func TestSourcesOfARestore(t *testing.T) {
	src := good(t)
	member := filepath.Join(evidencetest.Incident(t, "m-healthy-3.5"), "node1")
	evidencetest.Unchanged(t, src, member)
	exists := t.TempDir()
	for name, c := range map[string]struct {
		o    restore.Options
		says string
	}{
		"nothing":         {restore.Options{}, "a running member is not a backup"},
		"a server":        {restore.Options{Backup: spec("http://127.0.0.1:1")}, "a running member is not a backup"},
		"no file":         {restore.Options{Backup: spec(filepath.Join(exists, "none"))}, "none"},
		"a log":           {restore.Options{Backup: spec(filepath.Join(member, "member", "wal"))}, "a backup"},
		"into the source": {restore.Options{Backup: spec(member), Out: filepath.Join(member, "new")}, "inside the source"},
		"into a survivor": {restore.Options{Backup: spec(src), Out: filepath.Join(member, "new"),
			Surviving: []evidence.Spec{spec(member)}}, "inside the source"},
		"over a folder": {restore.Options{Backup: spec(src), Out: exists}, "already exists"},
		"no survivor": {restore.Options{Backup: spec(src), Surviving: []evidence.Spec{spec(filepath.Join(exists, "none"))}},
			"none"},
		"a survivor without a revision": {restore.Options{Backup: spec(src),
			Surviving: []evidence.Spec{spec(filepath.Join(member, "member", "wal"))}},
			"no surviving source shows a revision"},
	} {
		c.o.Plan = three(t)
		if c.o.Out == "" {
			c.o.Out = filepath.Join(t.TempDir(), "new")
		}
		if r, err := restore.Run(t.Context(), c.o); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if _, err := os.Stat(c.o.Out); err == nil && c.o.Out != exists {
			t.Errorf("%s: %s is left", name, c.o.Out)
		}
	}
}

// TestMetaOfEachLine: servers before 3.5 never write term and ConfState into the database, so old ones must not stay;
// later servers need those of the new cluster.
func TestMetaOfEachLine(t *testing.T) {
	for incident, has := range map[string]bool{"gen-healthy-3.4": false, "m-healthy-3.5": true} {
		member := filepath.Join(evidencetest.Incident(t, incident), "node1")
		src := backupWith(t, filepath.Join(member, "member", "snap", "db"))
		out := filepath.Join(t.TempDir(), "new")
		r, err := restore.Run(t.Context(), restore.Options{Backup: spec(src), Plan: three(t), Out: out, Unproven: true})
		ok(t, err)
		db, err := dumpdb.Open(filepath.Join(out, "n2", "member", "snap", "db"))
		ok(t, err)
		m, err := db.MetaBucket()
		if err != nil || *m.ConsistentIndex != 3 || (m.Term != nil) != has || (m.ConfState != nil) != has {
			t.Errorf("%s: %+v, %v", incident, m, err)
		}
		if has && (*m.Term != 1 || len(m.ConfState.Voters) != 3 || len(m.ConfState.Learners) != 0) {
			t.Errorf("%s: %+v", incident, m)
		}
		if list, err := db.Members(); err != nil || len(list) != 3 || len(r.Members) != 3 {
			t.Errorf("%s: %+v, %v", incident, list, err)
		}
		ok(t, db.Close())
	}
}
