package check_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// alterMetadata changes the identity in the first segment.
func alterMetadata(t *testing.T, dir string, edit func(*etcdserverpb.Metadata)) {
	t.Helper()
	casetest.RewriteLog(t, dir, func(rec *walpb.Record) {
		if rec.Type != 1 {
			return
		}
		var md etcdserverpb.Metadata
		if err := md.Unmarshal(rec.Data); err != nil {
			t.Fatal(err)
		}
		edit(&md)
		rec.Data, _ = md.Marshal()
	})
}

func TestMemberIDAltered(t *testing.T) {
	dirs := sound().Write(t, t.TempDir())
	alterMetadata(t, dirs[0], func(md *etcdserverpb.Metadata) { md.NodeID ^= 1 << 40 })
	for _, in := range []*check.Input{dirInput(t, dirs...), dirInput(t, dirs[0])} {
		f := wantFinding(t, in, "M09", []string{"node1"}, "in no configuration and no member list")
		if f.Severity != check.Error || f.Class != "membership" {
			t.Errorf("%s %s", f.Severity, f.Class)
		}
	}
	wantOutcome(t, dirInput(t, dirs[1], dirs[2]), "M09", check.Holds)
}

func TestClusterIDAltered(t *testing.T) {
	for _, entries := range []int{80, 800} {
		s := sound()
		s.Entries = entries
		dirs := s.Write(t, t.TempDir())
		alterMetadata(t, dirs[2], func(md *etcdserverpb.Metadata) { md.ClusterID++ })
		f := wantFinding(t, identityInput(t, dirs...), "M01", []string{"node3"}, "was altered")
		if f.Class != "wal-damage" || f.Kind != check.KindClusterIDAltered || f.Evidence[0].Member != "node3" {
			t.Errorf("%s %+v", f.Class, f.Evidence)
		}
		wantFinding(t, identityInput(t, dirs[2], dirs[0]), "M01", []string{"node3", "node1"}, "of one of them",
			"do not tell")
	}
}

// A log that begins with the cluster's first members shows which of two IDs is right.
func TestClusterIDAlteredOfTwo(t *testing.T) {
	voters := []uint64{0xa1, 0xa2}
	right := apply.NewClusterID(voters)
	for name, c := range map[string]struct {
		ids  [2]uint64
		want []string
	}{
		"the first":        {[2]uint64{right + 1, right}, []string{"node1"}},
		"the second":       {[2]uint64{right, right + 1}, []string{"node2"}},
		"neither is right": {[2]uint64{right + 1, right + 2}, []string{"node1", "node2"}},
	} {
		root := t.TempDir()
		var dirs []string
		for i, id := range c.ids {
			h := clustertest.NewHand(t, root, fmt.Sprintf("node%d", i+1), voters[i], id)
			h.Found(false, voters...)
			h.Request(2, 3, nil)
			for n := range uint64(20) {
				h.Put(2, 4+n, clustertest.RequestID(0xa1, 1763000000000, n), "k", "v", true)
			}
			h.State(2, 0xa1, 23)
			h.Member(0xa1, false, true)
			h.Member(0xa2, false, true)
			dirs = append(dirs, h.Close(23, 2))
		}
		f := wantFinding(t, identityInput(t, dirs...), "M01", c.want, "was altered")
		if f.Kind != check.KindClusterIDAltered || f.Evidence[0].Member != c.want[0] ||
			(f.Evidence[0].Expected == dumplog.ID(right).String()) != (len(c.want) == 1) {
			t.Errorf("%s: %s %+v", name, f.Kind, f.Evidence)
		}
	}
}

// The data dir of another cluster does not hide that an ID was altered, whatever the order of the sources.
func TestClusterIDAlteredNextToForeignDir(t *testing.T) {
	dirs := sound().Write(t, t.TempDir())
	alterMetadata(t, dirs[2], func(md *etcdserverpb.Metadata) { md.ClusterID++ })
	h := clustertest.NewHand(t, t.TempDir(), "node1", 0xb1, 0xc9)
	h.Found(false, 0xb1)
	for n := range uint64(20) {
		h.Put(2, 2+n, clustertest.RequestID(0xb1, 1763000000000, n), "k", "v", true)
	}
	h.State(2, 0xb1, 21)
	h.Member(0xb1, false, true)
	foreign := h.Close(21, 2)
	for _, set := range [][]string{{foreign, dirs[1], dirs[2]}, {dirs[1], dirs[2], foreign}} {
		in := identityInput(t, set...)
		got := map[check.Kind]int{}
		for _, f := range runCheck(t, in, "M01").Findings {
			got[f.Kind] = len(f.Members)
		}
		want := map[check.Kind]int{check.KindClustersMixed: 3, check.KindClusterIDAltered: 2}
		if !maps.Equal(got, want) {
			t.Errorf("%v: %v", set, got)
		}
	}
}

// Clusters that were founded with equal flags share their first entries and no request.
func TestClustersOfOneFoundingAreForeign(t *testing.T) {
	root := t.TempDir()
	var dirs []string
	for i, cluster := range []uint64{0xc1, 0xc2} {
		h := clustertest.NewHand(t, root, fmt.Sprintf("node%d", i+1), 0xa1+uint64(i), cluster)
		h.Found(false, 0xa1, 0xa2)
		h.Request(2, 3, nil)
		for n := range uint64(20) {
			h.Put(2, 4+n, clustertest.RequestID(0xa1, 1763000000000+1000*cluster, n), "k", "v", true)
		}
		h.State(2, 0xa1, 23)
		h.Member(0xa1, false, true)
		h.Member(0xa2, false, true)
		dirs = append(dirs, h.Close(23, 2))
	}
	f := wantFinding(t, identityInput(t, dirs...), "M01", []string{"node1", "node2"}, "different clusters")
	if f.Class != "foreign-cluster" {
		t.Errorf("class %s", f.Class)
	}
}

// identityInput is dirInput for sources of several clusters, which are not replayed.
func identityInput(t *testing.T, dirs ...string) *check.Input {
	t.Helper()
	in := dirInput(t, dirs...)
	in.Replay = nil
	return in
}

// removedSet writes two members and the data dir of a third one that they removed, which ends before or knows of that.
func removedSet(t *testing.T, names [3]string, more uint64) []string {
	t.Helper()
	root := t.TempDir()
	var dirs []string
	for i, name := range names {
		h := clustertest.NewHand(t, root, name, 0xa1+uint64(i), 0xc1)
		h.Found(false, 0xa1, 0xa2, 0xa3)
		h.Request(2, 4, nil)
		id := func(n uint64) uint64 { return clustertest.RequestID(0xa1, 1763000000000, n) }
		index := uint64(5)
		for ; index < 15; index++ {
			h.Put(2, index, id(index), fmt.Sprintf("k%d", index), "v", true)
		}
		h.Conf(2, index, clustertest.RemoveMember(0xa3, id(index)))
		last := index + 5
		if i == 2 {
			last = index + more
		}
		for index++; index <= last; index++ {
			h.Put(2, index, id(index), fmt.Sprintf("k%d", index), "v", true)
		}
		h.State(2, 0xa1, last)
		h.Member(0xa1, false, true)
		h.Member(0xa2, false, true)
		h.Removed(0xa3)
		dirs = append(dirs, h.Close(last, 2))
	}
	return dirs
}

func TestRemovedMembersDir(t *testing.T) {
	names := [3]string{"node1", "node2", "node3"}
	dirs := removedSet(t, names, 0)
	in := dirInput(t, dirs...)
	f := wantFinding(t, in, "M08", []string{"node3"}, "which was removed")
	if f.Severity != check.Warning || f.Class != "" {
		t.Errorf("%s %q", f.Severity, f.Class)
	}
	if r := runCheck(t, in, "R02"); len(r.Findings) > 0 {
		t.Errorf("a removed member lags: %+v", r.Findings)
	}
	wantOutcome(t, dirInput(t, dirs[0], dirs[1]), "M08", check.Holds)
}

// TestRemovedMembersDirWithoutLogs: a member that lost its log has no ID, but its database names who was removed.
func TestRemovedMembersDirWithoutLogs(t *testing.T) {
	dirs := removedSet(t, [3]string{"node1", "node2", "node3"}, 0)
	if err := os.RemoveAll(filepath.Join(dirs[0], "member", "wal")); err != nil {
		t.Fatal(err)
	}
	in := dirInput(t, dirs[0], dirs[2])
	if f := wantFinding(t, in, "M08", []string{"node3"}, "says nothing of the other"); f.Severity != check.Warning {
		t.Errorf("%s %q", f.Severity, f.Class)
	}
	for _, edit := range []func(*evidence.Member){
		func(m *evidence.Member) { m.Source.Kind = evidence.KindBackup },
		func(m *evidence.Member) { m.DB.Removed = nil },
		func(m *evidence.Member) { m.DB = nil },
	} {
		in := dirInput(t, dirs[0], dirs[2])
		edit(in.Members[0])
		if f := wantFinding(t, in, "M08", []string{"node3"}, "No data dir"); f.Severity != check.Error {
			t.Errorf("%s %q", f.Severity, f.Class)
		}
	}
}

func TestRemovedMembersDirThatMatters(t *testing.T) {
	names := [3]string{"node1", "node2", "node3"}
	place := removedSet(t, [3]string{"node1", "other", "node2"}, 0)
	for name, c := range map[string]struct {
		dirs          []string
		member, words string
	}{
		"alone":                       {removedSet(t, names, 0)[2:], "node3", "No data dir of a member"},
		"holds more":                  {removedSet(t, names, 9), "node3", "committed entries 21..24"},
		"in the place of a successor": {[]string{place[0], place[2]}, "node2", "called node2 now"},
	} {
		t.Run(name, func(t *testing.T) {
			f := wantFinding(t, dirInput(t, c.dirs...), "M08", []string{c.member}, c.words)
			if f.Severity != check.Error || f.Class != "membership" {
				t.Errorf("%s %q", f.Severity, f.Class)
			}
		})
	}
}
