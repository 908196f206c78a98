package check

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/shell"
)

// TestCommandsInJSON: evidence and remedies have their command as text and as arguments, and none if there is none.
func TestCommandsInJSON(t *testing.T) {
	for want, v := range map[string]any{
		`{"text":"do it","command":"a 'x y'","commandArgs":["a","x y"],"risk":"r","precondition":"p"}`: Remedy{
			Text: "do it", Command: shell.Format("a {}", "x y"), Risk: "r", Precondition: "p"},
		`{"text":"do it"}`: Remedy{Text: "do it"},
	} {
		b, err := json.Marshal(v)
		if err != nil || string(b) != want {
			t.Errorf("%s, want %s: %v", b, want, err)
		}
	}
	b, err := json.Marshal(Evidence{Member: "n1", Show: shell.Format("b {}", "z")})
	if err != nil || !strings.Contains(string(b), `"show":"b z"`) || !strings.Contains(string(b), `"showArgs":["b","z"]`) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestStoredTTLs: no server stores less than was asked for, nor more, but for one minimum that is at most 75 s.
func TestStoredTTLs(t *testing.T) {
	lease := func(asked, stored int64) replay.LeaseFact {
		return replay.LeaseFact{ID: asked*1000 + stored, Index: 5, Asked: asked, Stored: stored}
	}
	for name, c := range map[string]struct {
		leases []replay.LeaseFact
		want   []Kind
	}{
		"as asked":         {[]replay.LeaseFact{lease(60, 60), lease(90, 90)}, nil},
		"less":             {[]replay.LeaseFact{lease(60, 59)}, []Kind{KindTTLBelowGrant}},
		"one minimum":      {[]replay.LeaseFact{lease(1, 3), lease(2, 3), lease(9, 9)}, nil},
		"highest minimum":  {[]replay.LeaseFact{lease(1, 75)}, nil},
		"above any":        {[]replay.LeaseFact{lease(1, 76)}, []Kind{KindTTLAboveGrant}},
		"two minimums":     {[]replay.LeaseFact{lease(1, 3), lease(1, 5)}, []Kind{KindTTLMinimumsMixed}},
		"one not raised":   {[]replay.LeaseFact{lease(1, 3), lease(2, 2)}, []Kind{KindTTLMinimumsMixed}},
		"less and higher":  {[]replay.LeaseFact{lease(60, 50), lease(80, 90)}, []Kind{KindTTLBelowGrant, KindTTLAboveGrant}},
		"raised, as asked": {[]replay.LeaseFact{lease(75, 75), lease(1, 75)}, nil},
	} {
		var got []Kind
		for _, f := range (&Input{}).storedTTLs().findings(member("n1"), c.leases) {
			got = append(got, f.Kind)
			if len(f.Evidence) == 0 || f.Title == "" || !slices.Equal(f.Members, []string{"n1"}) {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func member(name string) *evidence.Member {
	return &evidence.Member{Source: &evidence.Source{Name: name, Kind: evidence.KindDataDir}}
}

// withLog gives a member a log that ends at an index.
func withLog(m *evidence.Member, last uint64) *evidence.Member {
	m.WAL = evidence.WAL{Log: &dumplog.Log{}}
	m.WAL.Summary.FirstIndex, m.WAL.Summary.LastIndex = 1, last
	return m
}

// TestDatabaseRemoved: a database is gone, or a new one, only if the log has a snapshot, and nothing in it was read.
func TestDatabaseRemoved(t *testing.T) {
	build := func(change func(m *evidence.Member)) *evidence.Member {
		m := withLog(member("n1"), 90)
		m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: 40}}
		m.DB = &evidence.DB{Handle: &dumpdb.DB{}, KV: &dumpdb.KVStats{}}
		if change != nil {
			change(m)
		}
		return m
	}
	index := uint64(5)
	for name, c := range map[string]struct {
		change func(m *evidence.Member)
		want   string
	}{
		"empty":       {nil, "empty"},
		"no snapshot": {func(m *evidence.Member) { m.WAL.Summary.Snapshots = nil }, ""},
		"no log":      {func(m *evidence.Member) { m.WAL.Log = nil }, ""},
		"records":     {func(m *evidence.Member) { m.DB.KV.Revisions = 1 }, ""},
		"an index":    {func(m *evidence.Member) { m.DB.Meta.ConsistentIndex = &index }, ""},
		"damaged":     {func(m *evidence.Member) { m.DB.Damage = make([]*dumpdb.DamageError, 1) }, ""},
		"not read":    {func(m *evidence.Member) { m.DB.KV = nil }, ""},
		"not there":   {func(m *evidence.Member) { m.DB = nil }, ""},
	} {
		got := ""
		if f := databaseRemoved(build(c.change)); f != nil {
			got = f.Evidence[0].Observed
			if f.Kind != KindDBRemoved || f.Severity != Critical || !strings.Contains(f.Title, "at index 40") {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestRemovedMatters: the dir of a removed member matters if no member is given, if it holds more than they do, or if
// it was given in the place of another one.
func TestRemovedMatters(t *testing.T) {
	removed := withLog(member("n3"), 20)
	removed.MemberID, removed.ClusterID, removed.Commit = 0xa3, 7, 20
	removed.Membership.Removed = []dumplog.ID{0xa3}
	other := withLog(member("n1"), 30)
	other.MemberID, other.ClusterID = 0xa1, 7
	other.Membership = evidence.Membership{Voters: []dumplog.ID{0xa1, 0xb3}, Removed: []dumplog.ID{0xa3},
		Names: map[dumplog.ID]string{0xa1: "n1"}}
	matters := func(ms ...*evidence.Member) string {
		mb := (&Input{Members: ms}).Membership()
		_, ev := mb.removedMatters(removed)
		return ev.Field
	}
	if got := matters(removed); got != "other sources" {
		t.Errorf("alone: %q", got)
	}
	if got := matters(other, removed); got != "" {
		t.Errorf("a note: %q", got)
	}
	removed.Commit = 31
	if got := matters(other, removed); got != "commit index" {
		t.Errorf("it holds more: %q", got)
	}
	removed.Commit, other.Membership.Names[0xb3] = 20, "n3"
	if got := matters(other, removed); got != "member of that name" {
		t.Errorf("given in place of its successor: %q", got)
	}
	other.Membership.Voters = []dumplog.ID{0xa1}
	if got := matters(other, removed); got != "" {
		t.Errorf("a name of no member: %q", got)
	}
}
