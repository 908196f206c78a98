package evidence_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestFactsAreBounded: the JSON form of facts lists 1000 elements of each list and counts the others, and the facts
// themselves stay as they are.
func TestFactsAreBounded(t *testing.T) {
	const n = 1500
	f := evidence.Facts{Leases: make([]evidence.LeaseFacts, n), Alarms: make([]evidence.AlarmFacts, 1000),
		DB: &evidence.DBFacts{}, WAL: &evidence.WALFacts{},
		Auth: &evidence.AuthFacts{Users: map[string][]string{}, Roles: map[string][]string{"r": make([]string, n)}},
		Snapshots: []evidence.SnapFacts{{V2: &dumplog.V2Store{UserKeys: make([]string, n)}},
			{V2: &dumplog.V2Store{UserKeys: make([]string, n)}}}}
	for i := range n {
		f.Auth.Users[fmt.Sprintf("u%04d", i)] = nil
		f.DB.Buckets = append(f.DB.Buckets, "b")
		f.Membership.Removed = append(f.Membership.Removed, dumplog.ID(i))
		f.WAL.Snapshots = append(f.WAL.Snapshots, dumplog.SnapshotRecord{Index: uint64(i)})
	}
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var got evidence.Facts
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"leases": 500, "auth.users": 500, "auth.roles[]": 500, "db.buckets": 500,
		"membership.removed": 500, "wal.snapshotRecords": 500, "snapshots.v2.userKeys": 1000} {
		if got.Omitted[name] != want {
			t.Errorf("%s: %d are left out, want %d", name, got.Omitted[name], want)
		}
	}
	if len(got.Omitted) != 7 || len(got.Leases) != 1000 || len(got.Alarms) != 1000 || len(got.Auth.Users) != 1000 ||
		len(got.Auth.Roles["r"]) != 1000 || len(got.Snapshots[0].V2.UserKeys) != 1000 {
		t.Errorf("%v", got.Omitted)
	}
	if _, first := got.Auth.Users["u0000"]; !first || got.WAL.Snapshots[0].Index != 500 {
		t.Error("not the first users, or not the newest snapshot records")
	}
	if len(f.Leases) != n || len(f.Auth.Users) != n || len(f.Auth.Roles["r"]) != n || f.Omitted != nil ||
		len(f.Snapshots[0].V2.UserKeys) != n || len(f.WAL.Snapshots) != n {
		t.Error("the facts themselves changed")
	}
}
