package check_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

type change = func(*bbolt.Tx) error

func leaseKey(id uint64) []byte { return binary.BigEndian.AppendUint64(nil, id) }

func put(bucket, key string, value []byte) change {
	return func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucket)).Put([]byte(key), value) }
}

func remove(bucket, key string) change {
	return func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucket)).Delete([]byte(key)) }
}

func step(by int, user string, r *pb.InternalRaftRequest) clustertest.Step {
	return clustertest.Step{By: by, User: user, Req: r}
}

func putKey(key string, lease int64) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte(key), Value: []byte("v"), Lease: lease}}
}

func grant(id, ttl int64) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{LeaseGrant: &pb.LeaseGrantRequest{ID: id, TTL: ttl}}
}

func alarm(action pb.AlarmRequest_AlarmAction, member uint64) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{Alarm: &pb.AlarmRequest{Action: action, MemberID: member,
		Alarm: pb.AlarmType_NOSPACE}}
}

const (
	salt  = "$2a$10$fQ7qwV.KVklWVkCrBvDu/O"
	hash1 = salt + "sRSWNdU8r2O9sLn8zVVUoziSV0Mw3TC"
	hash2 = salt + "sRSWNdU8r2O8sLn8zVVUoziSV0Mw3TC"
	hash3 = "$2a$10$avG/u8bwP7KO397ZdZHtmePkz3d93EHtfEs8EWo4WvQXy7daLROpC"
)

func addUser(name, hash string) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{AuthUserAdd: &pb.AuthUserAddRequest{Name: name,
		HashedPassword: base64.StdEncoding.EncodeToString([]byte(hash)), Options: &authpb.UserAddOptions{}}}
}

// user is a row of authUsers.
func user(name, hash string) change {
	return func(tx *bbolt.Tx) error {
		b, err := (&authpb.User{Name: []byte(name), Password: []byte(hash),
			Options: &authpb.UserAddOptions{}}).Marshal()
		if err != nil {
			return err
		}
		return tx.Bucket([]byte("authUsers")).Put([]byte(name), b)
	}
}

// scripted is a cluster with users, leases and keys; auth is on.
func scripted(version string) *clustertest.Script {
	s := clustertest.NewScript(version)
	for i := range s.Members {
		s.Start(i)
	}
	s.EnableAuth()
	s.Add(step(0, "root", addUser("carol", hash1)))
	s.Add(step(0, "root", grant(7, 6000)))
	s.Add(step(1, "root", grant(8, 40)))
	s.Add(step(1, "root", grant(9, 20)))
	s.Add(step(2, "root", putKey("/leased", 7)))
	s.Add(step(0, "root", putKey("/a", 0)))
	return s
}

// TestStateDiffersOnOneMember: what differs on one member at one applied index is an error that names it, where the log
// tells which is right; nothing differs in the sound set.
func TestStateDiffersOnOneMember(t *testing.T) {
	for name, c := range map[string]struct {
		version, check string
		change         change
		members        []string
	}{
		"nothing":                       {"3.6.0", "A08", nil, nil},
		"auth off":                      {"3.6.0", "A08", put("auth", "authEnabled", []byte{0}), []string{"node2"}},
		"auth off on 3.4":               {"3.4.0", "A08", put("auth", "authEnabled", []byte{0}), []string{"node2"}},
		"a user is gone":                {"3.6.0", "A03", remove("authUsers", "app"), []string{"node2"}},
		"a password hash":               {"3.6.0", "A09", user("carol", hash2), []string{"node2"}},
		"a hash with a salt of its own": {"3.6.0", "A09", user("carol", hash3), []string{"node2"}},
		"a lease is gone":               {"3.6.0", "L01", remove("lease", string(leaseKey(7))), []string{"node2"}},
		"a lease that nobody granted": {"3.6.0", "L01", put("lease", string(leaseKey(70)), []byte{8, 70, 16, 60}),
			[]string{"node2"}},
		"a lower TTL": {"3.6.0", "L04", put("lease", string(leaseKey(8)), []byte{8, 8, 16, 5}),
			[]string{"node2"}},
		"a higher TTL than any minimum": {"3.6.0", "L04", put("lease", string(leaseKey(8)), []byte{8, 8, 16, 100}),
			[]string{"node2"}},
		"an alarm": {"3.6.0", "M17", put("alarm", string([]byte{8, 0xa1, 1, 16, 1}), nil),
			[]string{"node2"}},
		"an alarm on 3.4": {"3.4.0", "M17", put("alarm", string([]byte{8, 0xa1, 1, 16, 1}), nil),
			[]string{"node2"}},
		"client URLs": {"3.6.0", "M02",
			put("members", "a1", []byte(`{"id":161,"peerURLs":["http://127.0.0.1:2380"],"name":"node1","clientURLs":["http://10.0.0.1:2379"]}`)), []string{"node2"}},
		"a name": {"3.6.0", "M02",
			put("members", "a1", []byte(`{"id":161,"peerURLs":["http://127.0.0.1:2380"],"name":"other","clientURLs":["http://127.0.0.1:2379"]}`)), []string{"node2"}},
		"a name on 3.5, where it may lag": {"3.5.0", "M02",
			put("members", "a1", []byte(`{"id":161,"peerURLs":["http://127.0.0.1:2380"],"name":"other","clientURLs":["http://127.0.0.1:2379"]}`)), nil},
		"a row without client URLs": {"3.6.0", "M02",
			put("members", "a1", []byte(`{"id":161,"peerURLs":["http://127.0.0.1:2380"],"name":"node1"}`)), nil},
		"a member is gone": {"3.6.0", "M02", remove("members", "a1"), []string{"node2"}},
		"a member is removed": {"3.6.0", "M02", put("members_removed", "a1", []byte("removed")),
			[]string{"node2"}},
		"peer URLs": {"3.6.0", "M16",
			put("members", "a1", []byte(`{"id":161,"peerURLs":["http://10.0.0.1:2380"],"name":"node1","clientURLs":["http://127.0.0.1:2379"]}`)), []string{"node2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dirs := scripted(c.version).Write(t, t.TempDir())
			if c.change != nil {
				casetest.EditDB(t, dirs[1], c.change)
			}
			r := run(t, inputOf(t, dirs...), c.check)
			want := check.Violated
			if c.members == nil {
				want = check.Holds
			}
			if got := accused(r); r.Outcome != want || !slices.Equal(got, c.members) {
				t.Errorf("%s %v, want %s %v: %+v", r.Outcome, got, want, c.members, r.Findings)
			}
		})
	}
}

// TestLaggingMemberHidesNothing: two members at one index are compared although the third has applied less, and what
// the entries between explain is no difference.
func TestLaggingMemberHidesNothing(t *testing.T) {
	lagging := func(t *testing.T) []string {
		t.Helper()
		s := scripted("3.6.0")
		last := s.Add(step(0, "root", putKey("/b", 0)))
		s.Of[2] = clustertest.ScriptMember{AppliedUntil: last}
		s.Add(step(0, "root", grant(11, 6000)))
		s.Add(step(0, "root", addUser("dave", hash1)))
		s.Add(step(0, "root", alarm(pb.AlarmRequest_ACTIVATE, s.ID(0))))
		s.Add(step(0, "root", &pb.InternalRaftRequest{AuthDisable: &pb.AuthDisableRequest{}}))
		return s.Write(t, t.TempDir())
	}
	for _, c := range []struct {
		check  string
		change change
	}{
		{"L01", remove("lease", string(leaseKey(7)))},
		{"L01", remove("lease", string(leaseKey(11)))},
		{"A03", remove("authUsers", "dave")},
		{"A08", put("auth", "authEnabled", []byte{1})},
		{"A09", user("carol", hash2)},
		{"M17", remove("alarm", string([]byte{8, 0xa1, 1, 16, 1}))},
	} {
		dirs := lagging(t)
		if r := run(t, inputOf(t, dirs...), c.check); r.Outcome == check.Violated {
			t.Errorf("%s: a member that lags is taken for one that differs: %+v", c.check, r.Findings)
		}
		casetest.EditDB(t, dirs[0], c.change)
		if r := run(t, inputOf(t, dirs...), c.check); r.Outcome != check.Violated ||
			!slices.Equal(accused(r), []string{"node1"}) {
			t.Errorf("%s %v (%s), want node1: %+v", r.Outcome, accused(r), r.Reason, r.Findings)
		}
	}
}

// TestAuthSwitchedSince: the log shows whether auth is on, as far as the members that are compared have applied it.
func TestAuthSwitchedSince(t *testing.T) {
	disable := &pb.InternalRaftRequest{AuthDisable: &pb.AuthDisableRequest{}}
	for name, c := range map[string]struct {
		off    bool // root turns auth off before, or after, what is applied
		before bool
		change func(in *check.Input)
		on     byte
		want   []string
	}{
		"on, and off for one": {change: func(*check.Input) {}, want: []string{"node2"}},
		"turned off later":    {off: true, change: func(*check.Input) {}, want: []string{"node2"}},
		"turned off before, on for one": {off: true, before: true, on: 1, change: func(*check.Input) {},
			want: []string{"node2"}},
		"entries after it are not known": {change: func(in *check.Input) { in.Replay.Last-- },
			want: []string{"node1", "node2", "node3"}},
		"as far as the logs are known": {change: func(in *check.Input) {
			for _, m := range in.Members {
				m.AppliedMin -= 2
			}
			in.Replay.Last -= 2
		}, want: []string{"node2"}},
	} {
		s := scripted("3.6.0")
		if c.off && c.before {
			s.Add(step(0, "root", disable))
		}
		s.Add(step(0, "", grant(20, 60)))
		last := s.Add(step(0, "", grant(21, 60)))
		if c.off && !c.before {
			for i := range s.Members {
				s.Of[i] = clustertest.ScriptMember{AppliedUntil: last}
			}
			s.Add(step(0, "root", disable))
		}
		dirs := s.Write(t, t.TempDir())
		casetest.EditDB(t, dirs[1], put("auth", "authEnabled", []byte{c.on}))
		in := inputOf(t, dirs...)
		for _, m := range in.Replay.Members {
			m.StateDiffs = nil // the last entries decide where the replay of the member does not
		}
		c.change(in)
		if r := run(t, in, "A08"); r.Outcome != check.Violated || !slices.Equal(accused(r), c.want) {
			t.Errorf("%s: %s %v, want %v: %+v", name, r.Outcome, accused(r), c.want, r.Findings)
		}
	}
}

// TestMissingRowHidesNothing: a member that has not come to a lease or a user, or lost the row, does not hide how the
// others differ in it.
func TestMissingRowHidesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		check         string
		gone, altered change
	}{
		"TTL": {"L04", remove("lease", string(leaseKey(7))),
			put("lease", string(leaseKey(7)), []byte{8, 7, 16, 0xf4, 0x2e})},
		"password": {"A09", remove("authUsers", "carol"), user("carol", hash2)},
	} {
		dirs := scripted("3.6.0").Write(t, t.TempDir())
		casetest.EditDB(t, dirs[0], c.gone)
		if r := run(t, inputOf(t, dirs...), c.check); r.Outcome == check.Violated {
			t.Errorf("%s: a missing row is another check's: %+v", name, r.Findings)
		}
		casetest.EditDB(t, dirs[1], c.altered)
		if r := run(t, inputOf(t, dirs...), c.check); r.Outcome != check.Violated ||
			!slices.Contains(accused(r), "node2") || slices.Contains(accused(r), "node1") {
			t.Errorf("%s: %s %v %s", name, r.Outcome, accused(r), r.Reason)
		}
	}
}

// TestImpossibleTTL: no server stores a TTL below 1 s, so a backup alone shows it.
func TestImpossibleTTL(t *testing.T) {
	dirs := scripted("3.6.0").Write(t, t.TempDir())
	if r := run(t, inputOf(t, backupOf(t, dirs[1])), "L04"); r.Outcome == check.Violated {
		t.Errorf("sound: %+v", r.Findings)
	}
	casetest.EditDB(t, dirs[1], put("lease", string(leaseKey(9)),
		[]byte{8, 9, 16, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			0xff, 1}))
	if r := run(t, inputOf(t, backupOf(t, dirs[1])), "L04"); r.Outcome != check.Violated {
		t.Errorf("-4 s: %s %s", r.Outcome, r.Reason)
	}
	if r := run(t, inputOf(t, dirs...), "L04"); !slices.Equal(accused(r), []string{"node2"}) {
		t.Errorf("-4 s on one of three: %v", accused(r))
	}
}

// backupOf is the database of a data dir as a file of its own.
func backupOf(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), filepath.Base(dir)+".db")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestNothingTellsWhoIsWrong: without a log the members that differ are all named, and the odd one is a hint.
func TestNothingTellsWhoIsWrong(t *testing.T) {
	dirs := scripted("3.6.0").Write(t, t.TempDir())
	casetest.EditDB(t, dirs[0], put("lease", string(leaseKey(70)), []byte{8, 70, 16, 60}))
	r := run(t, inputOf(t, backupOf(t, dirs[0]), backupOf(t, dirs[1]), backupOf(t, dirs[2])), "L01")
	if r.Outcome != check.Violated || len(accused(r)) != 3 || !slices.Equal(r.Findings[0].Odd, []string{"node1.db"}) {
		t.Errorf("%s %v odd %v: %+v", r.Outcome, accused(r), r.Findings[0].Odd, r.Findings)
	}
}

// TestLastTransactionNames: a row that the last transaction changed without an entry is wrong on that member.
func TestLastTransactionNames(t *testing.T) {
	dirs := scripted("3.6.0").Write(t, t.TempDir())
	for _, d := range dirs {
		casetest.EditDB(t, d, put("lease", string(leaseKey(70)), []byte{8, 70, 16, 60}))
	}
	casetest.EditDBOnce(t, dirs[2], put("lease", string(leaseKey(70)), []byte{8, 70, 16, 50}))
	in := inputOf(t, dirs...)
	in.Replay.Members[0].LeaseFaults, in.Replay.Members[1].LeaseFaults, in.Replay.Members[2].LeaseFaults = nil, nil, nil
	for _, m := range in.Replay.Members {
		m.StateDiffs = nil
	}
	r := run(t, in, "L04")
	if r.Outcome != check.Violated || !slices.Equal(r.Findings[0].Members, []string{"node3"}) ||
		!strings.Contains(r.Findings[0].Explanation, "last transaction") {
		t.Errorf("%s: %+v", r.Outcome, r.Findings)
	}
}

// TestPasswordsOfOldProposers: a password in clear is hashed by each member with a salt of its own.
func TestPasswordsOfOldProposers(t *testing.T) {
	s := clustertest.NewScript("3.4.0")
	s.Add(step(0, "", &pb.InternalRaftRequest{AuthUserAdd: &pb.AuthUserAddRequest{Name: "old", Password: "secret",
		Options: &authpb.UserAddOptions{}}}))
	s.Add(step(0, "", putKey("/a", 0)))
	dirs := s.Write(t, t.TempDir())
	for i, h := range []string{hash1, hash3, hash1} {
		casetest.EditDB(t, dirs[i], user("old", h))
	}
	if r := run(t, inputOf(t, dirs...), "A09"); r.Outcome != check.Holds {
		t.Errorf("salts of their own: %s %s %+v", r.Outcome, r.Reason, r.Findings)
	}
	casetest.EditDB(t, dirs[1], user("old", hash2))
	if r := run(t, inputOf(t, dirs...), "A09"); r.Outcome != check.Violated {
		t.Errorf("one salt, two hashes: %s %s", r.Outcome, r.Reason)
	}
}

// TestAlarmsAgainstTheLog: one member, or all alike.
func TestAlarmsAgainstTheLog(t *testing.T) {
	row := string([]byte{8, 0xa1, 1, 16, 1})
	for name, c := range map[string]struct {
		raised bool
		change change
		want   check.Outcome
	}{
		"raised":              {true, nil, check.Holds},
		"raised and gone":     {true, remove("alarm", row), check.Violated},
		"disarmed":            {false, nil, check.Holds},
		"disarmed, and there": {false, put("alarm", row, nil), check.Violated},
	} {
		s := scripted("3.6.0")
		s.Add(step(0, "root", alarm(pb.AlarmRequest_ACTIVATE, s.ID(0))))
		if !c.raised {
			s.Add(step(0, "root", alarm(pb.AlarmRequest_DEACTIVATE, s.ID(0))))
		}
		dirs := s.Write(t, t.TempDir())
		for _, d := range dirs {
			if c.change != nil {
				casetest.EditDB(t, d, c.change)
			}
		}
		for _, sources := range [][]string{dirs, dirs[:1]} {
			if r := run(t, inputOf(t, sources...), "M17"); r.Outcome != c.want || len(accused(r)) != 0 &&
				len(accused(r)) != len(sources) {
				t.Errorf("%s, %d sources: %s %+v", name, len(sources), r.Outcome, r.Findings)
			}
		}
	}
	dirs := scripted("3.6.0").Write(t, t.TempDir())
	if r := run(t, inputOf(t, dirs[0]), "M17"); r.Outcome != check.NotChecked {
		t.Errorf("no entry about alarms: %s", r.Outcome)
	}
}

// TestRowsThatMayLag: where the log does not reach back, a name that its member never published is shown: as a warning,
// and on releases that may have left an older value in the row as information.
func TestRowsThatMayLag(t *testing.T) {
	for version, want := range map[string]check.Severity{"3.4.0": check.Info, "3.5.0": check.Info,
		"3.6.0": check.Warning} {
		for _, row := range []struct {
			name, client string
			shown        bool
		}{{"node1", "http://127.0.0.1:2379", false}, {"other", "http://127.0.0.1:2379", true},
			{"node1", "http://10.0.0.1:2379", true}} {
			s := clustertest.NewScript(version)
			s.Purged = s.Add(step(0, "", putKey("/a", 0)))
			for i := range s.Members {
				s.Start(i)
			}
			s.Add(step(0, "", putKey("/b", 0)))
			dirs := s.Write(t, t.TempDir())
			casetest.EditDB(t, dirs[1], put("members", "a1", fmt.Appendf(nil,
				`{"id":161,"peerURLs":["http://127.0.0.1:2380"],"name":%q,"clientURLs":[%q]}`, row.name, row.client)))
			r := run(t, inputOf(t, dirs...), "M16")
			var got []check.Severity
			for _, f := range r.Findings {
				if f.Evidence[0].Field == "name" || f.Evidence[0].Field == "client URLs" {
					got = append(got, f.Severity)
				}
			}
			if row.shown != slices.Equal(got, []check.Severity{want}) || !row.shown && len(got) > 0 {
				t.Errorf("%s, %+v: %v, want %s: %+v", version, row, got, want, r.Findings)
			}
		}
	}
}
