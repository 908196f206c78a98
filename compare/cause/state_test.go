package cause_test

import (
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// TestAuthStructure: auth buckets that no server could have written, and those that only look so.
func TestAuthStructure(t *testing.T) {
	const id = "auth-structure-broken"
	edit := func(bucket, key string, value []byte) spoil {
		return editDB(func(tx *bbolt.Tx) error {
			if value == nil {
				return tx.Bucket([]byte(bucket)).Delete([]byte(key))
			}
			return tx.Bucket([]byte(bucket)).Put([]byte(key), value)
		})
	}
	user := func(name string, roles ...string) []byte {
		b, err := (&authpb.User{Name: []byte(name), Password: []byte("hash"), Roles: roles}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	withOptions := func(name, hash string, noPassword bool, roles ...string) []byte {
		b, err := (&authpb.User{Name: []byte(name), Password: []byte(hash), Roles: roles,
			Options: &authpb.UserAddOptions{NoPassword: noPassword}}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	both := func(a, b spoil) spoil { return func(t *testing.T, node string) { a(t, node); b(t, node) } }
	s := withAuth(newScript("3.5.0"))
	s.Add(as("root", 0, put("/a", "1", 0)))
	old := told{class: "latent-divergence", cause: "auth-revision-unequal", certainty: "strong", absent: []string{id},
		holds: []string{"A05"}}
	low := told{class: "latent-divergence", cause: "auth-revision-unequal", certainty: "strong",
		violated: []string{"A05"}}
	bad := told{class: "db-damage", cause: id, certainty: "proof", best: []string{"node1", "node3"},
		violated: []string{"A05"}}
	fine := told{class: "latent-divergence", cause: "unexplained-first-divergence", absent: []string{id},
		holds: []string{"A05"}}
	for name, c := range map[string]struct {
		spoil spoil
		want  told
	}{
		"role gone":          {edit("authRoles", "app", nil), bad},
		"root gone":          {edit("authUsers", "root", nil), bad},
		"root without role":  {edit("authUsers", "root", user("root")), bad},
		"roles out of order": {edit("authUsers", "app", user("app", "root", "app")), bad},
		"no auth revision":   {edit("auth", "authRevision", nil), bad},
		"fewer revisions than grants": {both(edit("authUsers", "app", withOptions("app", "hash", false, "app")),
			edit("auth", "authRevision", binary.BigEndian.AppendUint64(nil, 2))), low},
		"as many revisions as grants": {both(edit("authUsers", "app", withOptions("app", "hash", false, "app")),
			edit("auth", "authRevision", binary.BigEndian.AppendUint64(nil, 3))), old},
		"users of old releases":          {edit("auth", "authRevision", binary.BigEndian.AppendUint64(nil, 1)), old},
		"neither a password nor options": {edit("authUsers", "other", []byte("\x0a\x05other")), bad},
		"options instead of a password":  {edit("authUsers", "other", withOptions("other", "", true)), fine},
		"an unknown field in a user":     {edit("authUsers", "app", append(user("app", "app"), 0x2a, 0)), bad},
		"an unknown field in a role":     {edit("authRoles", "app", []byte("\x0a\x03app\x1a\x00")), bad},
		"no row for root":                {edit("authRoles", "root", nil), fine},
		"user without a role":            {edit("authUsers", "app", user("app")), fine},
		"row does not decode": {edit("authUsers", "root", []byte{0xff}),
			told{class: "db-damage", cause: "bbolt-page-damage", certainty: "strong",
				absent: []string{id, "unexplained-first-divergence"}, holds: []string{"A05"}}},
		"sound": {nil, told{class: "healthy", absent: []string{id}, holds: []string{"A05"}}},
	} {
		t.Run(name, func(t *testing.T) { c.want.check(t, diagnoseScript(t, s, nil, c.spoil)) })
	}
	t.Run("users before auth is on", func(t *testing.T) {
		s := newScript("3.4.0")
		s.Add(as("", 0, &pb.InternalRaftRequest{AuthUserAdd: &pb.AuthUserAddRequest{Name: "someone",
			HashedPassword: "aGFzaA=="}}))
		s.Add(as("", 0, put("/a", "1", 0)))
		told{class: "healthy", absent: []string{id}, holds: []string{"A05"}}.check(t, diagnoseScript(t, s))
	})
}

// TestSecretsInLog: passwords in clear are told, hashes are not, and the verdict stays.
func TestSecretsInLog(t *testing.T) {
	const id = "auth-secrets-in-wal"
	s := withAuth(newScript("3.4.0"))
	told{class: "healthy", absent: []string{id}, holds: []string{"A06"}}.check(t, diagnoseScript(t, s))
	s.Add(as("root", 0, &pb.InternalRaftRequest{AuthUserChangePassword: &pb.AuthUserChangePasswordRequest{Name: "app",
		Password: "open sesame"}}))
	r := diagnoseScript(t, s)
	told{class: "healthy", causes: []string{id}}.check(t, r)
	if f := findings(r, "node1", "A06"); len(f) != 1 || f[0].At.Index != s.Index(13) {
		t.Errorf("%+v", f)
	}
	doc, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(doc), "sesame") {
		t.Error("the secret is in the report")
	}
}

// deletes is a cluster whose newest revision is a delete, compacted there if asked.
func deletes(version string, compact bool) *clustertest.Script {
	s := newScript(version)
	for i := range 5 {
		s.Add(as("", 0, put("/gone", string(rune('a'+i)), 0)))
	}
	s.Add(as("", 1, put("/stays", "1", 0)))
	s.Add(as("", 1, deleteKey("/gone")))
	if compact {
		s.Add(as("", 1, &pb.InternalRaftRequest{Compaction: &pb.CompactionRequest{Revision: 8}}))
	}
	return s
}

// TestTombstoneAtCompactRevision: kept by one release, dropped by the other; a delete that is really missing is
// something else.
func TestTombstoneAtCompactRevision(t *testing.T) {
	const id = "tombstone-dropped-at-compact-revision"
	s := deletes("3.5.0", true)
	told{class: "healthy", absent: []string{id}, holds: []string{"K07", "K10"}}.check(t, diagnoseScript(t, s))
	s.Of[1] = clustertest.ScriptMember{KeepsTombstone: true}
	r := diagnoseScript(t, s)
	told{class: "healthy", causes: []string{id}, holds: []string{"K01", "K03", "K04"}, best: all3}.check(t, r)
	if f := findings(r, "", "K07"); len(f) != 1 || f[0].Evidence[1].Observed != "1 tombstone" {
		t.Errorf("%+v", f)
	}
	missing := deletes("3.5.0", false)
	missing.Add(as("", 1, deleteKey("/stays"), 2))
	missing.Add(as("", 1, put("/x", "1", 0)))
	told{class: "data-divergence", cause: "unexplained-first-divergence", absent: []string{id},
		violated: []string{"K01"}}.check(t, diagnoseScript(t, missing))
}

// TestRevisionBelowCompaction: tombstones at the end are gone and the compaction is not finished.
func TestRevisionBelowCompaction(t *testing.T) {
	const id = "revision-decrease-after-compaction-crash"
	crashed := editDB(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Delete([]byte("finishedCompactRev"))
	})
	r := diagnoseScript(t, deletes("3.4.0", true), nil, crashed)
	told{class: "compaction-skew", causes: []string{id}, violated: []string{"K10"},
		holds: []string{"K01", "K03", "K04"}}.check(t, r)
	if f := findings(r, "node2", "K10"); len(f) != 1 || f[0].At.Revision.Main != 7 {
		t.Errorf("%+v", f)
	}
	t.Run("finished", func(t *testing.T) {
		told{class: "healthy", absent: []string{id}, holds: []string{"K10"}}.check(t,
			diagnoseScript(t, deletes("3.4.0", true)))
	})
	t.Run("the tombstone is still there", func(t *testing.T) {
		s := deletes("3.4.0", true)
		for i := range s.Members {
			s.Of[i] = clustertest.ScriptMember{KeepsTombstone: true}
		}
		told{class: "compaction-skew", absent: []string{id}, holds: []string{"K10"}}.check(t,
			diagnoseScript(t, s, nil, crashed))
	})
	t.Run("started by an old release", func(t *testing.T) {
		s := deletes("3.4.0", true)
		at := s.Start(1)
		s.Of[1] = clustertest.ScriptMember{FallsBack: at}
		for i := range 5 {
			s.Add(as("", 0, put("/new", string(rune('a'+i)), 0)))
			s.Add(as("", 0, put("/next"+string(rune('a'+i)), "1", 0)))
		}
		r := diagnoseScript(t, s)
		told{class: "data-divergence", violated: []string{"K01", "K02", "K10"}, cause: id, certainty: "strong"}.check(t,
			r)
		if f := findings(r, "node2", "K10"); len(f) != 1 || f[0].At.Revision.Main != 8 {
			t.Errorf("%+v", f)
		}
	})
	t.Run("a write is missing behind a compaction", func(t *testing.T) {
		s := deletes("3.4.0", true)
		s.Start(1)
		s.Add(as("", 0, put("/stays", "2", 0), 1))
		s.Add(as("", 0, put("/new", "1", 0)))
		told{class: "data-divergence", cause: "unexplained-first-divergence", absent: []string{id}}.check(t,
			diagnoseScript(t, s))
	})
	t.Run("bumped by a restore", func(t *testing.T) {
		bump := editDB(func(tx *bbolt.Tx) error {
			k := append(binary.BigEndian.AppendUint64(append(binary.BigEndian.AppendUint64(nil, 1008), '_'), 0),
				[]byte{}...)
			if err := tx.Bucket([]byte("key")).Put(k, nil); err != nil {
				return err
			}
			return tx.Bucket([]byte("meta")).Put([]byte("scheduledCompactRev"), k)
		})
		r := diagnoseScript(t, deletes("3.6.0", false), bump, bump, bump)
		told{class: string(r.Verdict.Class), absent: []string{id}, holds: []string{"K10"}}.check(t, r)
	})
}

// TestRecordContradiction: a record that no server writes is a proof where nothing else tells what should be there.
func TestRecordContradiction(t *testing.T) {
	const id = "mvcc-record-contradiction"
	s := newScript("3.5.0")
	for i := range 5 {
		s.Add(as("", 0, put("/a", string(rune('a'+i)), 0)))
	}
	edit := func(change func(*mvccpb.KeyValue)) spoil {
		return editDB(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte("key"))
			var kv mvccpb.KeyValue
			if err := kv.Unmarshal(b.Get(revKey(4))); err != nil {
				return err
			}
			change(&kv)
			data, err := kv.Marshal()
			if err != nil {
				return err
			}
			return b.Put(revKey(4), data)
		})
	}
	for name, change := range map[string]func(*mvccpb.KeyValue){
		"version":         func(kv *mvccpb.KeyValue) { kv.Version = 9 },
		"mod revision":    func(kv *mvccpb.KeyValue) { kv.ModRevision = 3 },
		"create revision": func(kv *mvccpb.KeyValue) { kv.CreateRevision = 3 },
	} {
		t.Run(name, func(t *testing.T) {
			dirs := s.Write(t, t.TempDir())
			edit(change)(t, dirs[0]+"/member")
			r := diagnose(t, []evidence.Spec{{Name: "db", Where: dirs[0] + "/member/snap/db"}})
			told{class: "db-damage", cause: id, certainty: "proof", violated: []string{"K04"}}.check(t, r)
			r = diagnose(t, []evidence.Spec{{Name: "db", Where: dirs[1] + "/member/snap/db"}})
			told{class: "healthy", absent: []string{id}, holds: []string{"K04"}}.check(t, r)
		})
	}
	t.Run("another value is none", func(t *testing.T) {
		r := diagnoseScript(t, s, edit(func(kv *mvccpb.KeyValue) { kv.Value = []byte("x") }))
		told{class: "data-divergence", cause: "value-bytes-altered", absent: []string{id},
			holds: []string{"K04"}}.check(t, r)
	})
}
