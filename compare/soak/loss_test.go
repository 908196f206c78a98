package soak

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestWrongLoss: a source that lacks a row, or writes of another one, is not kept without a word about it.
func TestWrongLoss(t *testing.T) {
	const nothing, something = `{"committedEntries":0,"keys":0}`, `{"committedEntries":1,"keys":1}`
	const unproven, records = `{"unproven":["keys differ"]}`, `{"records":{"count":1}}`
	lacks := Truth{Damaged: []string{"a"}, Gone: map[string]string{"a": "row 00 of bucket key"}}
	hidden := lacks
	hidden.Unprovable = true
	sound, behind := []Source{{Name: "a"}, {Name: "b"}}, []Source{{Name: "a", Behind: true}, {Name: "b"}}
	for _, tc := range []struct {
		name    string
		sources []Source
		truth   Truth
		loss    string
		want    string
	}{
		{"a row is gone, nothing is said", sound, lacks, nothing, "lacks row 00"},
		{"a row is gone, a loss is named", sound, lacks, something, ""},
		{"a row is gone, not proven", sound, lacks, unproven, ""},
		{"a row is gone, a wrong record is named", sound, lacks, records, ""},
		{"a row is gone, which no source shows", sound, hidden, nothing, ""},
		{"a write is missing, nothing is said", behind, Truth{Healthy: true}, nothing, "lacks writes of b"},
		{"a write is missing, a loss is named", behind, Truth{Healthy: true}, something, ""},
		{"nothing is missing", sound, Truth{Healthy: true}, nothing, ""},
		{"the other is damaged", behind, Truth{Damaged: []string{"b"}}, nothing, ""},
	} {
		a := answer(t, `{"best":{"members":["a"],"lost":`+tc.loss+`}}`)
		a.Plan = &Plan{Mode: "live"}
		a.Plan.Best.Name = "a"
		if err := json.Unmarshal([]byte(tc.loss), &a.Plan.Lost); err != nil {
			t.Fatal(err)
		}
		got := lossOf(&Case{Sources: tc.sources, Truth: tc.truth}, a)
		if tc.want == "" && len(got) == 0 {
			continue
		}
		if len(got) != 2 || tc.want == "" || !strings.Contains(got[0], tc.want) || got[1] != "plan: "+got[0] {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestNothingIsKeptByARestore: what a restore or a rehearsal does not keep is not judged.
func TestNothingIsKeptByARestore(t *testing.T) {
	for _, c := range []struct {
		plan Plan
		want string
	}{{Plan{Mode: "restore"}, ""}, {Plan{Mode: "rehearse-only"}, ""}, {Plan{Mode: "live"}, "a"}} {
		c.plan.Best.Name = "a"
		if got := c.plan.kept(); got != c.want {
			t.Errorf("%s keeps %q, want %q", c.plan.Mode, got, c.want)
		}
	}
}

// TestGone: a row that a fault took, or altered, is gone. Of an equal copy none is, and a counter of auth is no row.
func TestGone(t *testing.T) {
	plain := filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node1")
	auth := filepath.Join(evidencetest.Incident(t, "a-auth-revision-replay"), "node1")
	ks, err := readKeyspace(plain)
	if err != nil || len(ks.records) == 0 {
		t.Fatal(err)
	}
	live := ks.records[slices.IndexFunc(ks.records, func(r record) bool { return r.live })]
	for name, tc := range map[string]struct {
		original string
		edit     func(*bolt.Tx) error
		want     string
	}{
		"dropped":         {plain, live.drop(), "of bucket key"},
		"altered":         {plain, live.put("x"), "of bucket key"},
		"equal":           {plain, func(*bolt.Tx) error { return nil }, ""},
		"auth turned off": {auth, row{bucket: "auth", key: "authEnabled"}.put("\x00"), "of bucket auth"},
		"auth counter":    {auth, row{bucket: "auth", key: "authRevision"}.put(be64(1)), ""},
	} {
		dir := filepath.Join(t.TempDir(), "node1")
		if err := evidencetest.CopyTo(tc.original, dir); err != nil {
			t.Fatal(err)
		}
		if err := editDB(dir, tc.edit); err != nil {
			t.Fatal(err)
		}
		if got := gone(tc.original, dir); !strings.HasSuffix(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
