package replay

import (
	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// Point is the state of a member after an entry. AuthRevision is 0 if its users and roles are unknown there. Consistent
// is the lowest index that meta/consistent_index can have on disk together with this entry's change; a restart executes
// the entries above it again. Revision is 0 if the database does not show what the entry did: then nothing is known up
// to the next point.
type Point struct {
	Index        uint64
	Revision     int64
	AuthRevision uint64
	Consistent   uint64
}

// Curve follows one member's revision and auth revision along the log, in bounded memory: where more points come than
// it keeps, only every second stretch of Stride entries yields one. Points at which the auth revision changes are kept
// first.
type Curve struct {
	Points []Point
	// Stride is the minimum number of entries between two points that differ in the revision only.
	Stride uint64
	// Steps counts the points at which the auth revision changed, or the revision became unknown or known.
	Steps int
}

// maxPoints bounds a curve, maxSteps the points among them that are kept for the auth revision.
const (
	maxPoints = 2048
	maxSteps  = 512
)

// note adds the member's state after an entry.
func (c *Curve) note(p Point) {
	n := len(c.Points)
	if n == 0 {
		c.Points, c.Stride = append(c.Points, p), 1
		return
	}
	last := c.Points[n-1]
	step := apart(p, last) && c.Steps < maxSteps
	if !step && (p.Revision == last.Revision || p.Index < last.Index+c.Stride) {
		return
	}
	if step {
		c.Steps++
	}
	if c.Points = append(c.Points, p); len(c.Points) >= maxPoints {
		c.thin()
	}
}

// apart is true for points between which a line steps or ends.
func apart(p, q Point) bool {
	return p.AuthRevision != q.AuthRevision || (p.Revision == 0) != (q.Revision == 0)
}

// thin drops every second point between changes of the auth revision.
func (c *Curve) thin() {
	c.Stride *= 2
	kept := c.Points[:1]
	for i := 1; i < len(c.Points); i++ {
		p, last := c.Points[i], kept[len(kept)-1]
		if apart(p, last) || p.Index >= last.Index+c.Stride || i == len(c.Points)-1 {
			kept = append(kept, p)
		}
	}
	c.Points = kept
}

// trace adds an entry that was just judged to the member's curve. Below the place where log and database meet the
// model's revision is a prediction, and entries that the member has not applied say nothing. Where the database does
// not show what a write did, the revision is not known until the next write that it shows.
func (s *sim) trace(kind dumplog.Kind, o Outcome) {
	if !s.met || o.State == NotApplied {
		return
	}
	p := Point{Index: s.now}
	if s.Auth.Known {
		p.AuthRevision = s.Auth.Revision
	}
	switch {
	case o.State != OutsideHistory && o.State != Unknown:
		p.Revision, p.Consistent = s.Revision, s.auth.consistent()
	case len(s.res.Curve.Points) == 0 || !apply.WritesKeys(kind):
		return
	}
	s.res.Curve.note(p)
}

// consistent returns the lowest consistent index that can be on disk together with the member's data after the entry
// being judged.
func (aw *authWatch) consistent() uint64 {
	if aw.follows(release.IndexWithEveryEntry) {
		return aw.now
	}
	if n := len(aw.authAll); n > 0 && aw.follows(release.IndexWithAuth) {
		return max(aw.saved, aw.authAll[n-1].Index)
	}
	return aw.saved
}
