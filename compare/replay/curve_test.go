package replay

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/release"
)

// TestCurveIsBounded: a million entries leave a bounded curve that still has every change of the auth revision, in
// order.
func TestCurveIsBounded(t *testing.T) {
	var c Curve
	auth := uint64(1)
	for i := uint64(1); i <= 1_000_000; i++ {
		if i%10_000 == 0 {
			auth++
		}
		c.note(Point{Index: i, Revision: int64(i), AuthRevision: auth})
	}
	if n := len(c.Points); n >= maxPoints || n < maxPoints/4 {
		t.Errorf("%d points are kept, want below %d and not many fewer", n, maxPoints)
	}
	steps := 0
	for i := 1; i < len(c.Points); i++ {
		if c.Points[i].Index <= c.Points[i-1].Index || c.Points[i].Revision < c.Points[i-1].Revision {
			t.Fatalf("point %d %+v does not follow %+v", i, c.Points[i], c.Points[i-1])
		}
		if c.Points[i].AuthRevision != c.Points[i-1].AuthRevision {
			steps++
			if c.Points[i].Index%10_000 != 0 {
				t.Errorf("the auth revision rises at entry %d, where it did not", c.Points[i].Index)
			}
		}
	}
	if steps != 100 {
		t.Errorf("%d changes of the auth revision are kept, want 100", steps)
	}
}

// TestCurveOfHostileAuth: an auth revision that changes with every entry cannot make the curve grow without bound.
func TestCurveOfHostileAuth(t *testing.T) {
	var c Curve
	for i := uint64(1); i <= 100_000; i++ {
		c.note(Point{Index: i, Revision: int64(i), AuthRevision: i})
	}
	if n := len(c.Points); n >= maxPoints+maxSteps {
		t.Errorf("%d points are kept", n)
	}
}

// TestCurveHasGaps: where nothing is known of a stretch, the line ends before it and begins again after it, however
// long the log is.
func TestCurveHasGaps(t *testing.T) {
	var c Curve
	for i := uint64(1); i <= 100_000; i++ {
		p := Point{Index: i, Revision: int64(i), AuthRevision: 1}
		if i >= 40_000 && i < 50_000 {
			p.Revision = 0
		}
		c.note(p)
	}
	var gaps []uint64
	for i, p := range c.Points {
		if p.Revision == 0 {
			gaps = append(gaps, p.Index, c.Points[i+1].Index)
		}
	}
	if len(gaps) != 2 || gaps[0] != 40_000 || gaps[1] != 50_000 {
		t.Errorf("gaps %v", gaps)
	}
}

// TestCurveOfHostileGaps: revisions that are known and unknown in turn cannot make the curve grow without bound.
func TestCurveOfHostileGaps(t *testing.T) {
	var c Curve
	for i := uint64(1); i <= 100_000; i++ {
		c.note(Point{Index: i, Revision: int64(i % 2 * i)})
	}
	if n := len(c.Points); n >= maxPoints+maxSteps {
		t.Errorf("%d points are kept", n)
	}
}

// TestConsistentOnDisk: up to 3.4 the index on disk moves with key writes, from 3.4.8 on with auth entries as well, and
// from 3.5 on with every entry.
func TestConsistentOnDisk(t *testing.T) {
	for name, c := range map[string]struct {
		version release.Version
		saved   uint64
		auth    []uint64
		want    uint64
	}{
		"3.4.0":                           {release.Exact(4, 0), 3, []uint64{4, 5}, 3},
		"3.4.9":                           {release.Exact(4, 9), 3, []uint64{4, 5}, 5},
		"3.4.9, a key write after it":     {release.Exact(4, 9), 6, []uint64{4, 5}, 6},
		"3.4.9, without auth entries":     {release.Exact(4, 9), 3, nil, 3},
		"any 3.4":                         {release.AnyOf(4), 3, []uint64{4, 5}, 3},
		"3.6":                             {release.Exact(6, 0), 3, []uint64{4, 5}, 9},
		"3.6, without anything before it": {release.Exact(6, 0), 0, nil, 9},
	} {
		s := newBench(t, 4, -1).sim
		s.Version, s.saved, s.now = c.version, c.saved, 9
		for _, index := range c.auth {
			s.auth.authAll = append(s.auth.authAll, AuthEntry{Index: index})
		}
		if got := s.auth.consistent(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
