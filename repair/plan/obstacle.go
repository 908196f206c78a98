package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/boot"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/release"
)

// Obstacle is why no server is started on a member's data dir. What a repair does depends on it, so it is a value of
// the plan file; NotStartable is for people only.
type Obstacle string

// The obstacles; "" is none.
const (
	// ObstacleRefused: a server of the release that wrote the data dir ends when it starts on it.
	ObstacleRefused Obstacle = "server-refuses"
	// ObstacleUnknown: whether a server starts depends on more than the files show.
	ObstacleUnknown Obstacle = "not-known"
	// ObstacleForgot: a server may start, but the member has lost entries that it may have acknowledged: its vote could
	// lose more.
	ObstacleForgot Obstacle = "lost-promised-entries"
	// ObstacleNotGiven: the data dir is not among the sources.
	ObstacleNotGiven Obstacle = "not-given"
	// ObstacleNoDataDir: the source is a backup, a log or a database alone.
	ObstacleNoDataDir Obstacle = "no-data-dir"
	// ObstacleMisplaced: another member's data dir is in its place.
	ObstacleMisplaced Obstacle = "misplaced"
	// ObstacleNotMember: the newest configuration does not know the member.
	ObstacleNotMember Obstacle = "not-a-member"
	// ObstacleSecondCopy: another data dir of the same member is kept.
	ObstacleSecondCopy Obstacle = "second-copy"
	// ObstacleNameTaken: another member has its name or peer URL now. Nothing is done on hosts for it: that would
	// affect the other member.
	ObstacleNameTaken Obstacle = "name-taken"
	// ObstacleNoIdentity: the data dir does not show whose it is. Nothing is done on hosts for it.
	ObstacleNoIdentity Obstacle = "no-identity"
	// ObstacleBucketOnly: only bucket members lists it, not raft's configuration (a zombie).
	ObstacleBucketOnly Obstacle = "in-bucket-only"
)

// obstacle says whether a server may be started on a source's data dir, and if not, why.
func (ss *sources) obstacle(label string) (Obstacle, string) {
	f := ss.facts(label)
	if ss.kinds[label] != evidence.KindDataDir {
		return ObstacleNoDataDir, "the source is a " + string(ss.kinds[label]) + ", not a data dir"
	}
	a := boot.Of(f)
	switch {
	case a.Starts.Excluded():
		return ObstacleRefused, a.Why
	case a.Forgot != nil:
		return ObstacleForgot, fmt.Sprintf("its log has lost %s, which the member had applied or knew to be "+
			"committed: a server may start on it, but it must not vote", *a.Forgot)
	case a.Starts == release.Unknown:
		return ObstacleUnknown, a.Why
	}
	for i := range ss.r.Findings {
		if fd := &ss.r.Findings[i]; breaksPromise(fd, label) {
			return ObstacleForgot, fd.Title
		}
	}
	// A database that is missing or empty has no content that could be wrong: the server fills it from the log.
	if r := ss.ranks[label]; r != nil && !r.Usable && f.DB != nil && f.DB.Size > 0 {
		return ObstacleUnknown, strings.Join(r.Reasons, "; ")
	}
	return "", ""
}

// breaksPromise reports whether a finding shows that this member lost what it had acknowledged, or that its files do
// not belong together.
func breaksPromise(fd *check.Finding, label string) bool {
	if fd.Severity.Rank() < check.Error.Rank() || !slices.Contains(fd.Members, label) {
		return false
	}
	switch fd.Class {
	case check.ClassMemberLostData:
		return len(fd.Members) == 1 || fd.Check == checkMajorityHolds
	case check.ClassTornCopy:
		return len(fd.Members) == 1
	}
	return false
}

// checkMajorityHolds finds committed entries that too few voters hold: those named without them have lost what they
// acknowledged.
const checkMajorityHolds = check.R07

// damage is why a server may not be started on a source's data dir, "" when it may.
func (ss *sources) damage(label string) string {
	_, why := ss.obstacle(label)
	return why
}

// mends says what a server mends when it starts on the data dir; nothing if it must not be started.
func (ss *sources) mends(label string) []string {
	if o, _ := ss.obstacle(label); o != "" {
		return nil
	}
	a := boot.Of(ss.facts(label))
	return a.Mends
}

// onlyNeedsStart reports whether a finding about one member is cured by a start of that member.
func (ss *sources) onlyNeedsStart(fd *check.Finding) bool {
	return fd.Check.MendedByStart() && len(fd.Members) == 1 && len(ss.mends(fd.Members[0])) > 0
}

// Untouched reports whether nothing is done on hosts for the member.
func (m *Member) Untouched() bool {
	return m.Obstacle == ObstacleNameTaken || m.Obstacle == ObstacleNoIdentity
}

// Zombie reports whether only bucket members lists the member.
func (m *Member) Zombie() bool { return m.Action == Remove && m.Obstacle == ObstacleBucketOnly }
