package replay

import (
	"math"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// TestVersionsOfAnEntry: where logs hold different entries at an index, what each of them publishes or sets is noted,
// for the members whose log does not hold another one.
func TestVersionsOfAnEntry(t *testing.T) {
	at := func(name, version string, holders ...int) *item {
		return &item{entry: dumplog.Entry{Term: 2, Index: 9}, holders: holders, req: &dumplog.Request{
			MemberAttr: &dumplog.ClusterMemberAttrSet{MemberID: 7, Name: name},
			ClusterVer: &dumplog.ClusterVersionSet{Version: version}}}
	}
	own, other := at("own", "3.5.0", 0, 1), at("other", "3.6.0", 2)
	own.others = map[int]*item{2: other}
	s := &Survey{Starts: map[dumplog.ID][]Start{}, prefixes: map[uint16]dumplog.ID{}}
	s.noteAllVersions(own)
	s.noteAllVersions(at("all", "3.7.0", 0, 1, 2))
	for pos, want := range map[int][]string{0: {"own", "all"}, 1: {"own", "all"}, 2: {"other", "all"},
		3: {"own", "other", "all"}} {
		var names []string
		for _, st := range s.StartsFor(pos, 7) {
			names = append(names, st.Name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("starts for member %d: %v, want %v", pos, names, want)
		}
	}
	for pos, want := range map[int][]string{0: {"3.5.0", "3.7.0"}, 2: {"3.6.0", "3.7.0"}} {
		var versions []string
		for _, v := range s.VersionsFor(pos) {
			versions = append(versions, v.Version)
		}
		if !slices.Equal(versions, want) {
			t.Errorf("versions for member %d: %v, want %v", pos, versions, want)
		}
	}
	if len(s.Starts[7]) != 3 || len(s.Versions) != 3 {
		t.Errorf("%+v %+v: the choice for a member changes what was noted", s.Starts, s.Versions)
	}
}

// TestLastWithout: a release without a rule may have executed every entry before the one that raised the cluster
// version to a release that has it.
func TestLastWithout(t *testing.T) {
	for want, versions := range map[uint64][]VersionSet{
		0:              {{Index: 4, Version: "3.0.0"}, {Index: 6, Version: "3.5.0"}, {Index: 90, Version: "3.6.0"}},
		70:             {{Index: 6, Version: "3.4.0"}, {Index: 70, Version: "3.5.0"}, {Index: 90, Version: "3.6.0"}},
		71:             {{Index: 6, Version: "3.3.0"}, {Index: 50, Version: "3.4.0"}, {Index: 71, Version: "3.5.0"}},
		math.MaxUint64: {{Index: 6, Version: "3.4.0"}, {Index: 70, Version: "?"}},
	} {
		if got := lastWithout(versions, release.IndexWithAuth); got != want {
			t.Errorf("%v: %d, want %d", versions, got, want)
		}
	}
}
