package replay

import "testing"

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
