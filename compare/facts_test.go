package compare_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestFactsOfEveryNode holds the facts of every shipped data dir, as JSON, against what truth.json knows of the stopped
// directories. A node whose files were damaged on purpose is left to TestIncidents.
func TestFactsOfEveryNode(t *testing.T) {
	for _, name := range evidencetest.Incidents(t) {
		truth := evidencetest.Truth(t, name)
		for node, want := range truth.Nodes {
			if node == truth.Verdict.BadNode && strings.HasSuffix(truth.Verdict.Class, "-damage") {
				continue
			}
			t.Run(name+"/"+node, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(evidencetest.Incident(t, name), node)
				evidencetest.Unchanged(t, dir)
				r := diagnose(t, []evidence.Spec{{Name: node, Where: dir}})
				got := asMap(t, r.Members[0])
				checkDBFacts(t, got, want["db"].(map[string]any))
				checkWALFacts(t, got, want["wal"].(map[string]any))
				checkSnapFacts(t, got, want["snapshots"])
				if h, ok := want["hashkv_latest"].(map[string]any); ok {
					same(t, "hashKV", pick(got, "db", "hashKV", "hash"), h["hash"])
				}
			})
		}
	}
}

func asMap(t *testing.T, v any) map[string]any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func pick(v any, path ...string) any {
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(sorted(got)) != fmt.Sprint(sorted(want)) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// sorted orders lists as text: truth.json sorts IDs as strings, the report as numbers.
func sorted(v any) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	var out []string
	for _, x := range list {
		out = append(out, fmt.Sprint(x))
	}
	slices.Sort(out)
	return out
}

func checkDBFacts(t *testing.T, got map[string]any, want map[string]any) {
	t.Helper()
	for fact, path := range map[string][]string{
		"consistent_index":      {"db", "consistentIndex"},
		"term":                  {"db", "term"},
		"storage_version":       {"db", "storageVersion"},
		"scheduled_compact_rev": {"db", "scheduledCompactRevision"},
		"finished_compact_rev":  {"db", "finishedCompactRevision"},
		"auth_enabled":          {"auth", "enabled"},
		"auth_revision":         {"auth", "revision"},
		"records":               {"db", "revisions"},
		"tombstones":            {"db", "tombstones"},
		"live_keys":             {"db", "keys"},
		"file_size":             {"db", "size"},
	} {
		same(t, fact, pick(got, path...), want[fact])
	}
	same(t, "cluster_version", orText(pick(got, "clusterVersion")), orText(want["cluster_version"]))
	if fmt.Sprint(want["records"]) != "0" { // of an empty bucket truth.json says 0, a server 1
		same(t, "revision", pick(got, "db", "currentRevision"), want["revision"])
	}
	if users, ok := want["users"].(map[string]any); ok {
		for u, roles := range users {
			same(t, "roles of user "+u, pick(got, "auth", "users", u), orEmptyList(roles))
		}
	}
	if cs, ok := want["conf_state"].(map[string]any); ok {
		same(t, "confState voters", pick(got, "db", "confState", "voters"), cs["voters"])
	}
	var ids []string
	for _, m := range pick(got, "membership", "members").([]any) {
		ids = append(ids, fmt.Sprint(pick(m, "id")))
		w := pick(want["members"], fmt.Sprint(pick(m, "id")))
		same(t, "name", orText(pick(m, "name")), orText(pick(w, "name")))
		same(t, "peer URLs", pick(m, "peerURLs"), pick(w, "peerURLs"))
	}
	members, _ := want["members"].(map[string]any)
	if len(ids) != len(members) {
		t.Errorf("members %v, want %v", ids, members)
	}
	leases, _ := want["leases"].([]any)
	same(t, "leases", len(leases), pick(got, "db", "leases"))
}

func orEmptyList(v any) any {
	if v == nil {
		return []any{}
	}
	return v
}

func orText(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

func checkWALFacts(t *testing.T, got map[string]any, want map[string]any) {
	t.Helper()
	same(t, "member ID", got["memberID"], want["member_id"])
	same(t, "cluster ID", got["clusterID"], want["cluster_id"])
	for fact, path := range map[string][]string{
		"first_index": {"wal", "firstIndex"}, "last_index": {"wal", "lastIndex"}, "last_term": {"wal", "lastTerm"},
	} {
		same(t, fact, pick(got, path...), want[fact])
	}
	for _, f := range []string{"term", "vote", "commit"} {
		same(t, "HardState "+f, pick(got, "wal", "hardState", f), pick(want["hard_state"], f))
	}
	if diff := cmp.Diff(fmt.Sprint(want["record_types"]), fmt.Sprint(pick(got, "wal", "recordTypes"))); diff != "" {
		t.Errorf("record types: %s", diff)
	}
	segments := pick(got, "wal", "segments").([]any)
	for i, w := range want["segments"].([]any) {
		for fact, field := range map[string]string{"name": "name", "records": "records", "data_end": "dataEnd",
			"first_entry": "firstEntry", "last_entry": "lastEntry", "end": "end"} {
			same(t, "segment "+fact, pick(segments[i], field), pick(w, fact))
		}
	}
	var snaps []string
	for _, s := range pick(got, "wal", "snapshotRecords").([]any) {
		snaps = append(snaps, fmt.Sprintf("%v@term%v", pick(s, "index"), pick(s, "term")))
	}
	var wantSnaps []string
	for _, s := range want["snapshot_records"].([]any) {
		wantSnaps = append(wantSnaps, fmt.Sprint(s))
	}
	if !slices.Equal(snaps, wantSnaps) {
		t.Errorf("snapshot records %v, want %v", snaps, wantSnaps)
	}
}

func checkSnapFacts(t *testing.T, got map[string]any, want any) {
	t.Helper()
	list, _ := want.([]any)
	have := pick(got, "snapshots").([]any)
	if len(have) != len(list) {
		t.Fatalf("%d snapshot files, want %d", len(have), len(list))
	}
	for i, w := range list {
		for fact, path := range map[string][]string{"name": {"file"}, "term": {"term"}, "index": {"index"},
			"size": {"size"}} {
			same(t, "snapshot "+fact, pick(have[i], path...), pick(w, fact))
		}
		same(t, "snapshot voters", pick(have[i], "confState", "voters"), pick(w, "conf_state", "voters"))
		same(t, "snapshot damage", pick(have[i], "damage") == nil, pick(w, "crc_ok"))
		members, _ := pick(w, "v2_members").(map[string]any)
		same(t, "v2 members", len(pick(have[i], "v2", "members").([]any)), len(members))
	}
}
