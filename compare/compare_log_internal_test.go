package compare

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestAbsentEntries: an index that a log has lost is not compared, and counted once where several logs lost it.
func TestAbsentEntries(t *testing.T) {
	with := func(lost ...[2]uint64) *evidence.Member {
		m := &evidence.Member{Source: &evidence.Source{Name: "a"}}
		for _, l := range lost {
			m.WAL.Summary.Damage = append(m.WAL.Summary.Damage, &dumplog.DamageError{LostFrom: l[0], LostTo: l[1]})
		}
		return m
	}
	jumped := with([2]uint64{9, 9})
	jumped.WAL.Summary.Jumps = []dumplog.Jump{{From: 3, To: 5}}
	for _, c := range []struct {
		members []*evidence.Member
		want    int
	}{
		{[]*evidence.Member{with(), with()}, 0},
		{[]*evidence.Member{with([2]uint64{0, 0})}, 0},
		{[]*evidence.Member{with([2]uint64{4, 4}), with([2]uint64{4, 6})}, 3},
		{[]*evidence.Member{with([2]uint64{8, 0})}, 3},
		{[]*evidence.Member{with([2]uint64{1, 2}), with([2]uint64{11, 0})}, 1},
		{[]*evidence.Member{jumped, with([2]uint64{5, 7}, [2]uint64{6, 6})}, 6},
		{[]*evidence.Member{with([2]uint64{1, 0})}, 9},
	} {
		if got := absent(c.members, 2, 10); got != c.want {
			t.Errorf("%+v: %d, want %d", c.members, got, c.want)
		}
	}
}

// TestMixedInWords: the clusters and their sources are named in words.
func TestMixedInWords(t *testing.T) {
	e := &ErrMixed{Clusters: map[string][]string{"b1": {"n1", "n2"}, "a1": {"old"}}}
	want := "the sources belong to different clusters: a1 (old), b1 (n1, n2); compare sources of one cluster at a time"
	if e.Error() != want {
		t.Errorf("%s", e)
	}
}
