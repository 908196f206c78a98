package rebuild_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/membershippb"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// rowsBesideKeys are the rows of the buckets without keys and of meta, as BUCKET KEY=VALUE.
func rowsBesideKeys(t *testing.T, path string) string {
	t.Helper()
	db, err := bbolt.Open(path, 0o400, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var out strings.Builder
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			if string(name) == "key" {
				return nil
			}
			return b.ForEach(func(k, v []byte) error {
				_, err := fmt.Fprintf(&out, "%s %q=%q\n", name, k, v)
				return err
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// besideKeys writes a log with requests of a cluster of a line that change other buckets than key.
func besideKeys(t *testing.T, version string) (logs []evidence.Spec, n uint64) {
	t.Helper()
	type request = etcdserverpb.InternalRaftRequest
	h := clustertest.NewHand(t, t.TempDir(), "n1", 1, 7)
	h.Found(false, 1)
	h.Request(2, 2, nil)
	n = 2
	next := func() uint64 { n++; return n }
	do := func(r request) {
		i := next()
		r.Header = &etcdserverpb.RequestHeader{ID: clustertest.RequestID(1, 1, i)}
		h.Request(2, i, &r)
	}
	do(request{ClusterVersionSet: &membershippb.ClusterVersionSetRequest{Ver: version[:3] + ".0"}})
	h.Publish(2, next(), 1, 100)
	h.Conf(2, next(), clustertest.AddLearner(2, 101))
	h.Publish(2, next(), 2, 102)
	h.Conf(2, next(), clustertest.AddVoter(3, 103))
	h.Conf(2, next(), clustertest.RemoveMember(3, 104))
	h.Publish(2, next(), 3, 105)                        // a removed member's, which is skipped
	h.Conf(2, next(), clustertest.AddVoter(3, 106))     // an ID that was removed
	h.Conf(2, next(), clustertest.RemoveMember(5, 107)) // an ID that never was
	h.Conf(2, next(), clustertest.MoveMember(2, 108))
	do(request{LeaseGrant: &etcdserverpb.LeaseGrantRequest{ID: 5, TTL: 100}})
	do(request{LeaseGrant: &etcdserverpb.LeaseGrantRequest{ID: 6, TTL: 1}})
	do(request{LeaseGrant: &etcdserverpb.LeaseGrantRequest{ID: 8, TTL: 50}})
	do(request{LeaseGrant: &etcdserverpb.LeaseGrantRequest{ID: 8, TTL: 60}}) // exists
	do(request{LeaseCheckpoint: &etcdserverpb.LeaseCheckpointRequest{Checkpoints: []*etcdserverpb.LeaseCheckpoint{
		{ID: 5, Remaining_TTL: 40}, {ID: 7, Remaining_TTL: 30}}}})
	do(request{LeaseRevoke: &etcdserverpb.LeaseRevokeRequest{ID: 8}})
	do(request{Put: &etcdserverpb.PutRequest{Key: []byte("a"), Value: []byte("v")}})
	do(request{Compaction: &etcdserverpb.CompactionRequest{Revision: 2}})
	for member, alarm := range []etcdserverpb.AlarmType{etcdserverpb.AlarmType_NOSPACE,
		etcdserverpb.AlarmType_CORRUPT} {
		do(request{Alarm: &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE,
			MemberID: uint64(member + 1), Alarm: alarm}})
	}
	do(request{Alarm: &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_DEACTIVATE, MemberID: 1,
		Alarm: etcdserverpb.AlarmType_NOSPACE}})
	do(request{DowngradeInfoSet: &membershippb.DowngradeInfoSetRequest{Enabled: true, Ver: "3.4.0"}})
	h.Conf(2, next(), clustertest.Promote(2, 109))
	h.Conf(2, next(), clustertest.AddLearner(0x10, 110))
	h.State(2, 1, n)
	return []evidence.Spec{{Where: filepath.Join(h.Close(n, 2), "member", "wal")}}, n
}

// TestRowsBesideKeys executes membership changes, leases, alarms and versions: the rows are those that a server of the
// line writes (server/etcdserver/api/membership, server/lease, server/etcdserver/api/v3alarm), whether they are built
// from the log alone or from a database of any index.
func TestRowsBesideKeys(t *testing.T) {
	for version, want := range map[string]string{"3.5.0": rows35, "3.6.12": rows36} {
		wal, n := besideKeys(t, version)
		o := rebuild.Options{Logs: wal, Version: release.Of(version), To: rebuild.Target{Last: true}}
		for at := uint64(2); at <= n; at += 3 {
			o.Base, o.To = evidence.Spec{}, rebuild.Target{Index: at}
			o.Out = filepath.Join(t.TempDir(), "base.db")
			if _, err := run(t, o); err != nil {
				t.Fatalf("%s, index %d: %v", version, at, err)
			}
			o.Base, o.To = evidence.Spec{Where: o.Out}, rebuild.Target{Last: true}
			o.Out = filepath.Join(t.TempDir(), "out.db")
			if _, err := run(t, o); err != nil {
				t.Fatalf("%s, from index %d: %v", version, at, err)
			}
			if d := cmp.Diff(want, rowsBesideKeys(t, o.Out)); d != "" {
				t.Fatalf("%s, from index %d (-want +rebuilt)\n%s", version, at, d)
			}
		}
	}
}

// Of 3.5.0: the update of a learner makes its row that of a voter, so it cannot be promoted and does not count as a
// learner; in raft it stays one.
var rows35 = strings.ReplaceAll(`alarm "\b\x02\x10\x02"=""
auth "authRevision"="\x00\x00\x00\x00\x00\x00\x00\x01"
cluster "clusterVersion"="3.5.0"
cluster "downgrade"="{\"target-version\":\"3.4.0\",\"enabled\":true}"
lease "\x00\x00\x00\x00\x00\x00\x00\x05"="\b\x05\x10d"
lease "\x00\x00\x00\x00\x00\x00\x00\x06"="\b\x06\x10\x02"
members "1"="{\"id\":1,\"peerURLs\":[\"HOST:1\"],\"name\":\"node1\",\"clientURLs\":[\"HOST:2379\"]}"
members "10"="{\"id\":16,\"peerURLs\":[\"HOST:16\"],\"isLearner\":true}"
members "2"="{\"id\":2,\"peerURLs\":[\"HOST:9\"],\"name\":\"node2\",\"clientURLs\":[\"HOST:2379\"]}"
members_removed "3"="removed"
meta "confState"="{\"voters\":[1],\"learners\":[2,16],\"auto_leave\":false}"
meta "consistent_index"="\x00\x00\x00\x00\x00\x00\x00\x1a"
meta "finishedCompactRev"="\x00\x00\x00\x00\x00\x00\x00\x02_\x00\x00\x00\x00\x00\x00\x00\x00"
meta "scheduledCompactRev"="\x00\x00\x00\x00\x00\x00\x00\x02_\x00\x00\x00\x00\x00\x00\x00\x00"
meta "term"="\x00\x00\x00\x00\x00\x00\x00\x02"
`, "HOST", "http://127.0.0.1")

// Of 3.6.12: an updated learner can be promoted, and the remaining TTL of a lease is stored.
var rows36 = strings.NewReplacer("3.5.0", "3.6.0", `\x10d"`, `\x10d\x18("`,
	`{\"voters\":[1],\"learners\":[2,16]`, `{\"voters\":[1,2],\"learners\":[16]`).Replace(rows35)

// TestRaftOfBase: raft's configuration continues from that of the base, whatever its rows say. 3.5.1 to 3.5.19 could
// lose a promotion in the rows.
func TestRaftOfBase(t *testing.T) {
	wal, _ := besideKeys(t, "3.5.0")
	o := rebuild.Options{Logs: wal, Version: release.Of("3.5.0"), To: rebuild.Target{Index: 6},
		Out: filepath.Join(t.TempDir(), "base.db")}
	for stored, want := range map[string]string{`{"voters":[1,2]}`: `{"voters":[1,2],"learners":[16],"auto_leave":false}`,
		`{"voters":[1],"learners":[2]}`: `{"voters":[1],"learners":[2,16],"auto_leave":false}`,
		`{"voters":[1],"learners":[9]}`: `{"voters":[1],"learners":[2,16],"auto_leave":false}`, "[": ""} {
		o.Base, o.To, o.Out = evidence.Spec{}, rebuild.Target{Index: 6}, filepath.Join(t.TempDir(), "base.db")
		if _, err := run(t, o); err != nil {
			t.Fatal(err)
		}
		editDB(t, o.Out, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("meta")).Put([]byte("confState"), []byte(stored))
		})
		o.Base, o.To, o.Out = evidence.Spec{Where: o.Out}, rebuild.Target{Last: true}, filepath.Join(t.TempDir(), "out")
		o.SkipHashCheck = true
		_, err := run(t, o)
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), "meta") {
				t.Errorf("%s: %v", stored, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := rowsBesideKeys(t, o.Out); !strings.Contains(got, fmt.Sprintf("meta %q=%q\n", "confState", want)) {
			t.Errorf("%s: %s", stored, got)
		}
	}
}

// TestManyEntries: a long log needs several transactions, and a compaction drops its records in several portions. One
// record per key stays at or below the compact revision.
func TestManyEntries(t *testing.T) {
	const entries, compacted = 20_100, 20_050
	h := clustertest.NewHand(t, t.TempDir(), "n1", 1, 7)
	h.Found(false, 1)
	h.Request(2, 2, nil)
	for i := range uint64(entries) { // revision i+2
		h.Put(2, 3+i, clustertest.RequestID(1, 1, i), fmt.Sprint(i%2), fmt.Sprint(i), false)
	}
	h.Request(2, 3+entries, &etcdserverpb.InternalRaftRequest{Header: &etcdserverpb.RequestHeader{ID: 9},
		Compaction: &etcdserverpb.CompactionRequest{Revision: compacted}})
	h.State(2, 1, 3+entries)
	var said []string
	o := rebuild.Options{Logs: []evidence.Spec{{Where: filepath.Join(h.Close(3+entries, 2), "member", "wal")}},
		Version: release.Of("3.5.0"), To: rebuild.Target{Last: true}, Out: filepath.Join(t.TempDir(), "out.db"),
		Progress: func(s string) { said = append(said, s) }}
	r, err := run(t, o)
	if err != nil {
		t.Fatal(err)
	}
	if keys := held(t, o.Out, false); len(keys) != 2 || keys[0].Version != entries/2 || r.To.Revision != entries+1 ||
		r.To.CompactRevision != compacted || r.Keys != 2 || r.Records != entries {
		t.Errorf("%+v, %+v", keys, r)
	}
	if !slices.Contains(said, "10000 entries, revision 9999") || !slices.Contains(said, "20000 entries, revision 19999") {
		t.Errorf("%q", said)
	}
	db, err := dumpdb.Open(o.Out)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	n := 0
	for rev, err := range db.Revisions() {
		if err != nil || rev.Rev.Main < compacted-1 {
			t.Fatalf("%+v, %v", rev, err)
		}
		n++
	}
	if n != entries+2-compacted+1 {
		t.Errorf("%d records", n)
	}
}
