package replay

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/lease/leasepb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// twinCase is a set of three members and the one whose replay each of them shares.
type twinCase struct {
	write func(t *testing.T, dir string) []string
	reps  []int
	// apart is true where the members are replayed one by one in the end all the same.
	apart bool
}

func synth(edit func(*clustertest.Synth)) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		t.Helper()
		s := clustertest.Synth{Members: 3, Entries: 600, Keys: 40, Value: 64}
		if edit != nil {
			edit(&s)
		}
		return s.Write(t, dir)
	}
}

// scripted is a cluster with users, leases, transactions, deletes and a compaction; every member was started twice.
func scripted(version string, edit func(*clustertest.Script)) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		t.Helper()
		s := clustertest.NewScript(version)
		as := func(user string, r *pb.InternalRaftRequest) { s.Add(clustertest.Step{User: user, Req: r}) }
		put := func(user, key string, lease int64) {
			as(user, &pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte(key), Value: []byte(user), Lease: lease}})
		}
		s.EnableAuth()
		as("root", &pb.InternalRaftRequest{LeaseGrant: &pb.LeaseGrantRequest{ID: 9, TTL: 600}})
		for i := range 30 {
			put("app", "/app/"+string(rune('a'+i%7)), 0)
			put("root", "/leased/"+string(rune('a'+i%5)), 9)
		}
		s.Start(1)
		as("root", &pb.InternalRaftRequest{DeleteRange: &pb.DeleteRangeRequest{Key: []byte("/app/a"),
			RangeEnd: []byte("/app/c")}})
		as("root", &pb.InternalRaftRequest{Compaction: &pb.CompactionRequest{Revision: 20}})
		as("root", &pb.InternalRaftRequest{LeaseGrant: &pb.LeaseGrantRequest{ID: 10, TTL: 600}})
		put("app", "/app/z", 10)
		as("root", &pb.InternalRaftRequest{LeaseRevoke: &pb.LeaseRevokeRequest{ID: 9}})
		as("root", &pb.InternalRaftRequest{AuthUserAdd: &pb.AuthUserAddRequest{Name: "late",
			HashedPassword: "aGFzaA=="}})
		put("app", "/app/end", 0)
		s.Start(2)
		if edit != nil {
			edit(s)
		}
		return s.Write(t, dir)
	}
}

// then edits the files of the second member.
func then(write func(*testing.T, string) []string, edit func(t *testing.T, member string)) func(*testing.T,
	string) []string {
	return func(t *testing.T, dir string) []string {
		t.Helper()
		dirs := write(t, dir)
		edit(t, filepath.Join(dirs[1], "member"))
		return dirs
	}
}

func inDB(edit func(tx *bbolt.Tx) error) func(*testing.T, string) {
	return func(t *testing.T, member string) {
		t.Helper()
		db, err := bbolt.Open(filepath.Join(member, "snap", "db"), 0o600, nil)
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

// putIn stores a row; the value nil deletes it.
func putIn(bucket, key string, value []byte) func(*testing.T, string) {
	return inDB(func(tx *bbolt.Tx) error {
		if value == nil {
			return tx.Bucket([]byte(bucket)).Delete([]byte(key))
		}
		return tx.Bucket([]byte(bucket)).Put([]byte(key), value)
	})
}

// flipIn turns one bit of the last place where a file holds what.
func flipIn(file, what string) func(*testing.T, string) {
	return func(t *testing.T, member string) {
		t.Helper()
		path := filepath.Join(member, file)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		i := bytes.LastIndex(b, []byte(what))
		if i < 0 {
			t.Fatalf("%s does not hold %q", file, what)
		}
		b[i+len(what)+20] ^= 4
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// logOf replaces the log.
func logOf(s clustertest.Synth) func(*testing.T, string) {
	return func(t *testing.T, member string) {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(member, "wal")); err != nil {
			t.Fatal(err)
		}
		s.WriteWAL(t, filepath.Join(member, "wal"), 1)
	}
}

func encoded(t *testing.T, m interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	b, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	firstSegment = "wal/0000000000000000-0000000000000000.wal"
	somePod      = "/registry/pods/ns-3/pod-000020"
)

func twinCases(t *testing.T) map[string]twinCase {
	t.Helper()
	otherLog := logOf(clustertest.Synth{Members: 3, Entries: 600, Keys: 41, Value: 64})
	all, own, others := []int{0, 0, 0}, []int{0, 1, 2}, []int{0, 1, 0}
	lease := encoded(t, &leasepb.Lease{ID: 10, TTL: 900})
	return map[string]twinCase{
		"equal":  {write: synth(nil), reps: all},
		"purged": {write: synth(func(s *clustertest.Synth) { s.Purged = 300 }), reps: all},
		"restarts": {write: synth(func(s *clustertest.Synth) {
			s.Starts = map[int]int{10: 0, 300: 1,
				500: 2}
		}), reps: all},
		"one lost writes":         {write: synth(func(s *clustertest.Synth) { s.Skip = map[int]map[int]bool{1: {50: true, 51: true}} }), reps: others},
		"one repeated writes":     {write: synth(repeats(1)), reps: others},
		"all repeated writes":     {write: synth(repeats(0, 1, 2)), reps: all, apart: true},
		"all repeated their last": {write: synth(repeatsLast), reps: all, apart: true},
		"all lost writes":         {write: synth(lost), reps: all},
		"a bit of a value":        {write: then(synth(nil), flipIn("snap/db", somePod)), reps: others},
		"a bit of the log":        {write: then(synth(nil), flipIn(firstSegment, somePod)), reps: all},
		"another log":             {write: then(synth(nil), otherLog), reps: own},
		"another index": {write: then(synth(nil),
			putIn("meta", "consistent_index", []byte{0, 0, 0, 0, 0, 0, 2, 0})), reps: others},
		"purged elsewhere": {write: then(synth(func(s *clustertest.Synth) { s.Purged = 300 }),
			logOf(clustertest.Synth{Members: 3, Entries: 600, Keys: 40, Value: 64, Purged: 100})), reps: all},
		"a shorter log": {write: then(synth(nil),
			logOf(clustertest.Synth{Members: 3, Entries: 290, Keys: 40, Value: 64})), reps: all},
		"auth of 3.5": {write: scripted("3.5.0", nil), reps: all},
		"auth of 3.4": {write: scripted("3.4.0", nil), reps: own},
		"all lack a lease, which one restarted after": {write: leaseLost("3.4.0"), reps: all, apart: true},
		"the same in 3.5": {write: leaseLost("3.5.0"), reps: all},
		"another user": {write: then(scripted("3.5.0", nil),
			putIn("authUsers", "late", encoded(t, &authpb.User{Name: []byte("late"), Roles: []string{"app"}}))),
			reps: others},
		"a user less": {write: then(scripted("3.5.0", nil), putIn("authUsers", "late", nil)),
			reps: others},
		"another password": {write: then(scripted("3.5.0", nil),
			putIn("authUsers", "late", encoded(t, &authpb.User{Name: []byte("late"), Password: []byte("salt")}))),
			reps: all},
		"another permission": {write: then(scripted("3.5.0", nil),
			putIn("authRoles", "app", encoded(t, &authpb.Role{Name: []byte("app")}))), reps: others},
		"another auth revision": {write: then(scripted("3.5.0", nil),
			putIn("auth", "authRevision", []byte{0, 0, 0, 0, 0, 0, 0, 77})), reps: others},
		"another TTL": {write: then(scripted("3.5.0", nil),
			putIn("lease", "\x00\x00\x00\x00\x00\x00\x00\x0a", lease)), reps: others},
		"an alarm": {write: then(scripted("3.5.0", nil),
			putIn("alarm", string(encoded(t, &pb.AlarmMember{MemberID: 0xa1, Alarm: pb.AlarmType_CORRUPT})), []byte{})),
			reps: others},
		"a tombstone of before": {write: scripted("3.5.0", func(s *clustertest.Script) { keepsTombstone(s) }),
			reps: others},
		"a snapshot of the leader": {write: scripted("3.5.0",
			func(s *clustertest.Script) { s.Of[1] = clustertest.ScriptMember{LogUntil: 20, SnapshotAt: 60} }),
			reps: others},
		"one refused what others do": {write: scripted("3.5.0", func(s *clustertest.Script) {
			s.Add(clustertest.Step{User: "app",
				Req:  &pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte("/app/x"), Value: []byte("x")}},
				Skip: []int{1}})
		}), reps: others},
	}
}

// leaseLost is a cluster without users that lacks a lease, which was granted right before a start of the last member.
func leaseLost(version string) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		t.Helper()
		s := clustertest.NewScript(version)
		put := func() {
			s.Add(clustertest.Step{Req: &pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte("/a")}}})
		}
		for range 8 {
			put()
		}
		s.Add(clustertest.Step{Req: &pb.InternalRaftRequest{LeaseGrant: &pb.LeaseGrantRequest{ID: 9, TTL: 600}},
			Skip: []int{0, 1, 2}})
		s.Start(2)
		put()
		return s.Write(t, dir)
	}
}

func repeats(members ...int) func(*clustertest.Synth) {
	return func(s *clustertest.Synth) {
		s.Starts, s.Repeat = map[int]int{300: 1, 310: 0, 320: 2}, map[int]map[int]int{}
		for _, m := range members {
			s.Repeat[m] = map[int]int{295: 250}
		}
	}
}

func repeatsLast(s *clustertest.Synth) {
	s.Starts, s.Repeat = map[int]int{300: 1}, map[int]map[int]int{}
	for m := range s.Members {
		s.Repeat[m] = map[int]int{600: 550}
	}
}

func lost(s *clustertest.Synth) {
	s.Skip = map[int]map[int]bool{}
	for m := range s.Members {
		s.Skip[m] = map[int]bool{50: true, 51: true}
	}
}

// keepsTombstone makes a compaction at the revision of a delete, whose tombstone one member keeps.
func keepsTombstone(s *clustertest.Script) {
	s.Of[1] = clustertest.ScriptMember{KeepsTombstone: true}
	s.Add(clustertest.Step{User: "root", Req: &pb.InternalRaftRequest{DeleteRange: &pb.DeleteRangeRequest{Key: []byte("/app/z")}}})
	s.Add(clustertest.Step{User: "root", Req: &pb.InternalRaftRequest{Compaction: &pb.CompactionRequest{Revision: 66}}})
}
