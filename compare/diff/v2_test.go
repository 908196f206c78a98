package diff_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// v2StoreOf compares the v2 stores of members.
func v2StoreOf(t *testing.T, members []*evidence.Member, rp *replay.Result) *diff.Bucket {
	t.Helper()
	r, err := diff.Run(context.Background(), members, rp, diff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := r.Find("v2store")
	if b == nil {
		t.Fatal("the v2 store was not compared")
	}
	return b
}

// TestV2Store: equal in a sound cluster; a change of one member's store differs, unless an entry between two snapshots
// explains it.
func TestV2Store(t *testing.T) {
	members, rp := opened(t, "m-healthy-3.5")
	if b := v2StoreOf(t, members, rp); !b.Equal.Certain() || b.Compared < 4 {
		t.Fatalf("sound: %+v", b)
	}
	file := members[1].NewestSnap()
	move := func(by int) {
		at := file.Index
		file.Index = uint64(int(at) + by)
		for i := range members[1].WAL.Summary.Snapshots {
			if s := &members[1].WAL.Summary.Snapshots[i]; s.Index == at {
				s.Index = file.Index
			}
		}
	}
	move(-1)
	if b := v2StoreOf(t, members, rp); !b.Equal.Certain() || b.Reason != "" {
		t.Errorf("sound, at two indexes: %+v", b)
	}
	move(1)
	file.V2.Members[0].PeerURLs = []string{"http://elsewhere:2380"}
	file.V2.UserKeys = append(file.V2.UserKeys, "/1/foo")
	b := v2StoreOf(t, members, rp)
	if !b.Equal.Excluded() || b.Differ != 2 || !strings.Contains(b.Rows[1].Cells[1].Text, "elsewhere") {
		t.Errorf("changed: %+v", b)
	}
	id := file.V2.Members[0].ID
	for _, c := range []struct {
		of   dumplog.V2Member
		want string
	}{
		{dumplog.V2Member{ID: id, PeerURLs: []string{"http://y", "http://x"}, IsLearner: true},
			"peer URLs http://x,http://y learner"},
		{dumplog.V2Member{ID: id, Name: "n", PeerURLs: []string{"http://x"},
			ClientURLs: []string{"http://z", "http://y"}}, "name n, peer URLs http://x, client URLs http://y,http://z"},
	} {
		file.V2.Members[0] = c.of
		if b := v2StoreOf(t, members, rp); b.Differ != 2 || b.Rows[1].Cells[1].Text != c.want {
			t.Errorf("%+v, want %q", b, c.want)
		}
	}
	move(-1)
	starts, keys := rp.Survey.Starts[id], rp.Survey.V2
	rp.Survey.Starts[id] = []replay.Start{{Index: file.Index + 1}}
	if b := v2StoreOf(t, members, rp); !b.Equal.Excluded() || b.Differ != 1 || string(b.Rows[0].Key) != "key /1/foo" {
		t.Errorf("a start between: %+v", b)
	}
	rp.Survey.V2 = []replay.V2Op{{Index: file.Index + 1}}
	if b := v2StoreOf(t, members, rp); b.Equal != release.Unknown ||
		!strings.Contains(b.Reason, "can change the v2 store") {
		t.Errorf("entries between for all that differs: %+v", b)
	}
	rp.Survey.V2, rp.Survey.V2LeftOut = nil, 1
	if b := v2StoreOf(t, members, rp); b.Equal != release.Unknown {
		t.Errorf("more v2 requests than are kept: %+v", b)
	}
	rp.Survey.V2LeftOut = 0
	rp.Survey.Starts[id], rp.Survey.V2 = []replay.Start{{Index: file.Index}, {Index: file.Index + 2}}, keys
	if b := v2StoreOf(t, members, rp); !b.Equal.Excluded() || b.Differ != 2 {
		t.Errorf("starts before and after: %+v", b)
	}
	rp.Survey.Starts[id] = starts
	if b := v2StoreOf(t, members, rp); !b.Equal.Excluded() {
		t.Errorf("no entry between: %+v", b)
	}
	rp.Gaps = []replay.Gap{{From: file.Index + 1, To: file.Index + 1}}
	if b := v2StoreOf(t, members, rp); b.Equal != release.Unknown ||
		!strings.Contains(b.Reason, "do not have all entries") {
		t.Errorf("the log lacks the entries between: %+v", b)
	}
}

// TestV2StoreOfARestore: a restore writes a store without the cluster version and the removed members of the backup,
// which later ones have without an entry.
func TestV2StoreOfARestore(t *testing.T) {
	members, rp := opened(t, "m-healthy-3.5")
	file := members[1].NewestSnap()
	file.V2.Version, file.V2.Removed = "", nil
	for _, c := range []struct {
		term, index uint64
		restore     bool
	}{{1, uint64(len(file.V2.Members)), true}, {2, uint64(len(file.V2.Members)), false},
		{1, uint64(len(file.V2.Members)) + 1, false}} {
		file.Term, file.Index = c.term, c.index
		for i := range members[1].WAL.Summary.Snapshots {
			s := &members[1].WAL.Summary.Snapshots[i]
			s.Term, s.Index = file.Term, file.Index
		}
		rp.Survey.Versions = nil
		b := v2StoreOf(t, members, rp)
		differs := slices.ContainsFunc(b.Rows, func(row diff.Row) bool { return string(row.Key) == "version" })
		if differs == c.restore {
			t.Errorf("%d/%d: %+v", c.term, c.index, b)
		}
	}
}
