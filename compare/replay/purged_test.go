package replay

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// story is a script of which the revisions are known while it is told. What fails on every member is told as such: a
// script executes all.
type story struct {
	*clustertest.Script
	rev int64
	mod map[string]int64
}

func newStory(version string) *story {
	return &story{Script: clustertest.NewScript(version), rev: 1, mod: map[string]int64{}}
}

// everyone are the positions of all members.
var everyone = []int{0, 1, 2}

func (s *story) wrote(r *pb.InternalRaftRequest, keys ...string) int {
	s.rev++
	for _, k := range keys {
		s.mod[k] = s.rev
	}
	return s.Add(clustertest.Step{Req: r})
}

func (s *story) failed(r *pb.InternalRaftRequest) int {
	return s.Add(clustertest.Step{Req: r, Skip: everyone})
}

// lacked is a put that one member lost.
func (s *story) lacked(member int, key, value string) int {
	s.rev++
	return s.Add(clustertest.Step{Req: putRequest(key, value, 0), Skip: []int{member}})
}

func (s *story) put(key, value string) int { return s.wrote(putRequest(key, value, 0), key) }

func (s *story) held(key string, lease int64) int {
	return s.wrote(putRequest(key, "held", lease), key)
}

func (s *story) del(keys ...string) int {
	return s.wrote(&pb.InternalRaftRequest{DeleteRange: &pb.DeleteRangeRequest{Key: []byte(keys[0])}}, keys...)
}

func (s *story) grant(id int64) int {
	return s.Add(clustertest.Step{Req: &pb.InternalRaftRequest{LeaseGrant: &pb.LeaseGrantRequest{ID: id, TTL: 600}}})
}

func (s *story) revoke(id int64) int {
	return s.wrote(&pb.InternalRaftRequest{LeaseRevoke: &pb.LeaseRevokeRequest{ID: id}})
}

func (s *story) alarm(action pb.AlarmRequest_AlarmAction) int {
	return s.Add(clustertest.Step{Req: &pb.InternalRaftRequest{Alarm: &pb.AlarmRequest{Action: action,
		MemberID: s.ID(0), Alarm: pb.AlarmType_NOSPACE}}})
}

// guarded is what clients like the Kubernetes API server write: put the key if nobody wrote it since.
func (s *story) guarded(key, value string) int {
	return s.wrote(ifMod(key, s.mod[key], value), key)
}

func (s *story) compact(rev int64) {
	s.Add(clustertest.Step{Req: &pb.InternalRaftRequest{Compaction: &pb.CompactionRequest{Revision: rev}}})
}

// purge takes the log up to here away.
func (s *story) purge() { s.Purged = s.put("last before", "the log begins") }

func putRequest(key, value string, lease int64) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte(key), Value: []byte(value), Lease: lease}}
}

func opOf(key, value string) []*pb.RequestOp {
	return []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: putRequest(key, value, 0).Put}}}
}

func ifMod(key string, mod int64, value string) *pb.InternalRaftRequest {
	c := &pb.Compare{Target: pb.Compare_MOD, Result: pb.Compare_EQUAL, Key: []byte(key),
		TargetUnion: &pb.Compare_ModRevision{ModRevision: mod}}
	return &pb.InternalRaftRequest{Txn: &pb.TxnRequest{Compare: []*pb.Compare{c}, Success: opOf(key, value)}}
}

// ifAbsent is a lock: whoever comes first has it.
func ifAbsent(key, value string) *pb.InternalRaftRequest {
	c := &pb.Compare{Target: pb.Compare_CREATE, Result: pb.Compare_EQUAL, Key: []byte(key),
		TargetUnion: &pb.Compare_CreateRevision{}}
	return &pb.InternalRaftRequest{Txn: &pb.TxnRequest{Compare: []*pb.Compare{c}, Success: opOf(key, value)}}
}

// told is what a replay tells of a member, on one line.
func told(m *MemberResult) string {
	if !m.Checked {
		return m.Why
	}
	out := []string{fmt.Sprintf("from %d", m.BaseRevision)}
	for st := Applied; st <= NotApplied; st++ {
		if n := m.Counts[st]; n > 0 && st != NoEffect && st != OutsideHistory && st != Refused {
			out = append(out, fmt.Sprintf("%s %d", st, n))
		}
	}
	for _, d := range m.Below {
		out = append(out, fmt.Sprintf("below %q", d.Key))
	}
	for _, r := range m.Reruns {
		out = append(out, fmt.Sprintf("again %d..%d", r.First, r.Last))
	}
	if len(m.Extra) > 0 {
		out = append(out, fmt.Sprintf("extra %v", m.Extra))
	}
	if m.Ahead != nil {
		out = append(out, fmt.Sprintf("ahead %d..%d", m.Ahead.From, m.Ahead.To))
	}
	for _, d := range m.StateDiffs {
		out = append(out, fmt.Sprintf("%s %s: %s, not %s", d.Bucket, d.Key, d.Observed, d.Expected))
	}
	return strings.Join(out, ", ")
}

// purgedCase is a cluster whose logs begin late; sound is what the replay must tell of node1 and node3, other of node2
// ("": the same).
type purgedCase struct {
	version      string
	tell         func(s *story)
	spoil        func(*testing.T, string)
	sound, other string
}

// some puts before the log begins: revisions 2 to 7.
func (s *story) early() {
	for i := range 6 {
		s.put(fmt.Sprint("k", i%3), fmt.Sprint("early ", i))
	}
}

func (s *story) publish(member int) { s.Start(member) }

func purgedCases() map[string]purgedCase {
	return map[string]purgedCase{
		"guarded transactions only": {tell: func(s *story) {
			s.early()
			s.compact(5)
			s.purge() // 8
			for i := range 9 {
				s.guarded(fmt.Sprint("k", i%3), fmt.Sprint("late ", i))
			}
		}, sound: "from 8, applied 9"},
		"guarded transactions, one is lost": {tell: func(s *story) {
			s.early()
			s.compact(5)
			s.purge()
			for i := range 9 {
				s.guarded(fmt.Sprint("k", i%3), fmt.Sprint("late ", i))
			}
			s.lacked(1, "lost", "1")
			s.guarded("lost later", "1")
		}, sound: "from 8, applied 11", other: "from 8, applied 10, missing 1"},
		// Nothing tells a delete from one like it that had no effect: nothing is judged, and nothing is wrong.
		"deletes only": {tell: func(s *story) {
			s.early()
			s.compact(5)
			s.purge()
			s.del("k0")
			s.failed(&pb.InternalRaftRequest{DeleteRange: &pb.DeleteRangeRequest{Key: []byte("k0")}})
			s.del("k1")
		}, sound: "from 10"},
		"lease revokes between puts": {tell: func(s *story) {
			s.grant(7)
			s.grant(8)
			s.held("a", 7)
			s.held("b", 8)
			s.held("c", 8)
			s.compact(3)
			s.purge() // 5
			s.put("d", "1")
			s.revoke(7)
			s.put("e", "1")
			s.revoke(8)
			s.put("f", "1")
		}, sound: "from 5, applied 5"},
		"lease revokes only": {tell: func(s *story) {
			s.grant(7)
			s.grant(8)
			s.held("a", 7)
			s.held("b", 8)
			s.compact(2)
			s.purge()
			s.revoke(7)
			s.revoke(8)
		}, sound: "from 6"},
		// The lock was taken before the log begins; the tries after it had no effect, and its record fits them.
		"a twin before the log wrote": {tell: func(s *story) {
			s.early()
			s.compact(5)
			s.wrote(ifAbsent("lock", "me")) // 8
			s.put("x", "1")
			s.put("x", "2")
			s.purge() // 11
			s.failed(ifAbsent("lock", "me"))
			s.put("y", "1")
			s.failed(ifAbsent("lock", "me"))
			s.put("z", "1")
		}, sound: "from 11, applied 2"},
		"entries without effect between": {tell: func(s *story) {
			s.early()
			s.compact(5)
			s.purge() // 8
			s.put("a", "1")
			for range 5 {
				s.failed(ifMod("k1", 2, "never"))
				s.failed(&pb.InternalRaftRequest{DeleteRange: &pb.DeleteRangeRequest{Key: []byte("none")}})
				s.failed(ifAbsent("k1", "never"))
			}
			s.put("b", "1")
			s.guarded("a", "2")
		}, sound: "from 8, applied 3"},
		// More entries than are matched at a time.
		"hundreds of entries without effect": {tell: func(s *story) {
			s.early()
			s.compact(5)
			s.purge() // 8
			for i := range 1500 {
				s.failed(ifMod("k1", 2, "never"))
				if i%100 == 50 {
					s.put(fmt.Sprint("n", i), "1")
				}
			}
		}, sound: "from 8, applied 15"},
		"hundreds of entries": {tell: func(s *story) {
			s.early()
			s.compact(5)
			s.purge() // 8
			for i := range 700 {
				s.put(fmt.Sprint("n", i%9), fmt.Sprint(i))
				s.failed(ifMod("k1", 2, "never"))
			}
		}, sound: "from 8, applied 700"},
		"hundreds of equal entries": {tell: func(s *story) {
			s.early()
			s.compact(5)
			s.purge() // 8
			for i := range 700 {
				s.put(fmt.Sprint("n", i%3), "beat")
			}
		}, sound: "from 8, applied 700"},
		"a restart of 3.3 repeats": {version: "3.3.0", tell: func(s *story) {
			s.early()
			s.compact(5)
			s.purge() // 8
			first := 0
			for i := range 6 {
				first = max(first, s.put(fmt.Sprint("n", i), "1")-i) // 9 to 14
			}
			s.Of[1] = clustertest.ScriptMember{Repeats: []clustertest.ScriptRepeat{{From: first + 2, To: first + 5,
				Before: first + 6}}}
			s.put("after", "1")
			s.publish(1)
			s.put("after", "2")
		}, sound: "from 8, applied 8", other: "from 8, applied 8, again 15..18"},
		"the log begins above the compact revision": {tell: func(s *story) {
			s.put("a", "1")
			s.compact(2)
			s.early()
			s.early()
			s.purge() // 15
			s.put("a", "2")
			s.guarded("k0", "late")
		}, sound: "from 15, applied 2"},
		"the log reaches below the compact revision": {tell: func(s *story) {
			s.early()
			s.purge() // 8
			s.put("a", "1")
			s.put("b", "1")
			s.put("a", "2")
			s.compact(10)
			s.put("c", "1")
		}, sound: "from 10, applied 2"},
		"alarms before the log": {tell: func(s *story) {
			s.early()
			s.compact(5)
			s.alarm(pb.AlarmRequest_ACTIVATE)
			s.Purged = s.del("k2") // 8
			s.failed(putRequest("full", "1", 0))
			s.failed(ifMod("full", 0, "1"))
			s.alarm(pb.AlarmRequest_DEACTIVATE)
			s.put("a", "1")
			s.put("b", "1")
		}, sound: "from 8, applied 3"},
		"alarms in the log": {tell: func(s *story) {
			s.early()
			s.compact(5)
			s.purge() // 8
			s.put("a", "1")
			s.alarm(pb.AlarmRequest_ACTIVATE)
			s.failed(putRequest("full", "1", 0))
			s.alarm(pb.AlarmRequest_DEACTIVATE)
			s.put("b", "1")
		}, sound: "from 8, applied 4"},
		"rights before the log": {tell: func(s *story) {
			s.EnableAuth()
			s.Add(clustertest.Step{User: "root", Req: putRequest("/app/a", "1", 0)}) // 2
			s.Purged = s.Add(clustertest.Step{User: "root", Req: putRequest("/app/b", "1", 0)})
			s.Add(clustertest.Step{User: "late", Req: putRequest("/app/c", "1", 0), Skip: everyone})
			s.Add(clustertest.Step{User: "root",
				Req: &pb.InternalRaftRequest{AuthUserAdd: &pb.AuthUserAddRequest{Name: "late",
					HashedPassword: "aGFzaA=="}}})
			s.Add(clustertest.Step{User: "root",
				Req: &pb.InternalRaftRequest{AuthUserGrantRole: &pb.AuthUserGrantRoleRequest{User: "late",
					Role: "app"}}})
			s.Add(clustertest.Step{User: "late", Req: putRequest("/app/d", "1", 0)})
			s.Add(clustertest.Step{User: "app", Req: putRequest("/app/e", "1", 0)})
		}, sound: "from 3, applied 2"}, // users and roles are taken for those of the end
	}
}

// TestPurged: of a log that begins late, the place is found where it meets the database, on sound members without a
// fault.
func TestPurged(t *testing.T) {
	for name, c := range purgedCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}

func (c purgedCase) check(t *testing.T) {
	t.Helper()
	if c.version == "" {
		c.version = "3.5.0"
	}
	s := newStory(c.version)
	c.tell(s)
	dirs := s.Write(t, t.TempDir())
	if c.spoil != nil {
		c.spoil(t, filepath.Join(dirs[1], "member"))
	}
	evidencetest.Unchanged(t, dirs...)
	r := run(t, open(t, dirs...), Options{Each: true})
	if c.other == "" {
		c.other = c.sound
	}
	for i, want := range []string{c.sound, c.other, c.sound} {
		if got := told(r.Members[i]); got != want {
			t.Errorf("node%d: %s, want %s", i+1, got, want)
		}
	}
	if s.Purged > 0 && r.First != s.Index(s.Purged)+1 {
		t.Errorf("the log begins at %d", r.First)
	}
}

// alter changes the record of a revision; drop takes it away, insert adds one.
func alter(rev int64, edit func(*mvccpb.KeyValue)) func(*testing.T, string) {
	return inDB(func(tx *bbolt.Tx) error {
		b, k := tx.Bucket([]byte("key")), revKey(rev)
		var kv mvccpb.KeyValue
		if err := kv.Unmarshal(b.Get(k)); err != nil {
			return err
		}
		edit(&kv)
		data, err := kv.Marshal()
		if err != nil {
			return err
		}
		return b.Put(k, data)
	})
}

func revKey(rev int64) []byte {
	return binary.BigEndian.AppendUint64(append(binary.BigEndian.AppendUint64(nil, uint64(rev)), '_'), 0)
}

// TestAboveTheCompactRevision: what is wrong with the first records above the compact revision is found, whether the
// log reaches back to the first entry or begins late, and nothing else is.
func TestAboveTheCompactRevision(t *testing.T) {
	begin := []func(*story){func(s *story) { s.early(); s.put("last before", "1") },
		func(s *story) { s.early(); s.purge() }}
	sixPuts := func(s *story) {
		for i := range 6 {
			s.put(fmt.Sprint("n", i), "1") // 9 to 14
		}
	}
	value := func(kv *mvccpb.KeyValue) { kv.Value = []byte("2") }
	for name, c := range map[string]struct {
		tell  func(*story)
		spoil func(*testing.T, string)
		// granted is the number of leases that the entries grant.
		granted int
		want    [2]string
	}{
		"sound": {},
		"another value": {spoil: alter(11, value),
			want: [2]string{"from 10, applied 5, contradicted 1", "from 10, applied 4, contradicted 1"}},
		"another key": {spoil: alter(11, func(kv *mvccpb.KeyValue) { kv.Key = []byte("n7") }),
			want: [2]string{"from 10, applied 5, contradicted 1", "from 10, applied 4, contradicted 1"}},
		"a lease": {spoil: alter(11, func(kv *mvccpb.KeyValue) { kv.Lease = 7 }),
			want: [2]string{"from 10, applied 5, contradicted 1", "from 10, applied 4, contradicted 1"}},
		"dropped": {spoil: inDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("key")).Delete(revKey(11)) }),
			want: [2]string{"from 10, applied 5, contradicted 1", "from 10, applied 4, contradicted 1"}},
		"the last value": {spoil: alter(15, value),
			want: [2]string{"from 10, applied 5, contradicted 1", "from 10, applied 4, contradicted 1"}},
		"below, another value": {spoil: alter(10, value),
			want: [2]string{`from 10, applied 6, below "n1"`, `from 10, applied 5, below "n1"`}},
		"one lost": {tell: func(s *story) {
			s.put("n0", "1")
			s.put("n1", "1")
			s.lacked(1, "n2", "1")
			for i := 3; i < 6; i++ {
				s.put(fmt.Sprint("n", i), "1")
			}
		}, want: [2]string{"from 10, applied 5, missing 1", "from 10, applied 4, missing 1"}},
		"one more": {tell: func(s *story) {
			s.grant(9)
			s.held("n0", 9)
			s.put("n1", "1")
			s.Of[1] = clustertest.ScriptMember{RevokesAlone: map[int]int64{s.put("n2", "1"): 9}}
			for i := 3; i < 6; i++ {
				s.put(fmt.Sprint("n", i), "1")
			}
		}, granted: 1, want: [2]string{"from 10, applied 7, extra [12], lease 9: absent, not present",
			"from 10, applied 5, extra [12]"}},
	} {
		for i, early := range begin {
			t.Run(fmt.Sprint(name, " ", i), func(t *testing.T) {
				t.Parallel()
				tell := c.tell
				if tell == nil {
					tell = sixPuts
				}
				all := func(s *story) {
					early(s) // up to 8
					tell(s)
					s.compact(10)
					s.put("last", "1")
				}
				// A compaction that the short log holds is not judged, nor are the grants before its place.
				sound := "from 10, applied 5"
				if i == 0 {
					sound = fmt.Sprintf("from 10, applied %d", 6+c.granted)
				}
				purgedCase{tell: all, spoil: c.spoil, sound: sound, other: c.want[i]}.check(t)
			})
		}
	}
}
