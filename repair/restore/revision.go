package restore

import (
	"context"
	"fmt"
	"math"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// Revision says how the revision is raised.
type Revision struct {
	// Backup is the current revision of the backup.
	Backup int64 `json:"backup"`
	// NewestSeen is the newest revision that a surviving source has or may have reached with the entries of its log; 0
	// without sources. SeenOn names that source.
	NewestSeen int64  `json:"newestSeen"`
	SeenOn     string `json:"seenOn,omitempty"`
	// Bump is how much the revision is raised, Reserve the part of it above NewestSeen. Start is the first revision of
	// the new cluster.
	Bump    uint64 `json:"bump"`
	Reserve uint64 `json:"reserve"`
	Start   int64  `json:"start"`
	// MarkCompacted is true if everything up to Start is marked compacted, so that older watches fail instead of
	// missing events.
	MarkCompacted bool `json:"markCompacted"`
	// GivenUp counts the revisions that a surviving source certainly has and the backup lacks.
	GivenUp int64 `json:"givenUp"`
}

const (
	// DefaultReserve is added to the newest revision seen: lost members may have acknowledged more.
	DefaultReserve = 1_000_000
	// BlindBump is the raise without a surviving source, as the etcd documentation advises for Kubernetes.
	BlindBump = 1_000_000_000
)

// survivors are the facts from the surviving sources.
type survivors struct {
	newest, certain int64
	on              string
	members         map[uint64]string
	notes           []string
}

func readSurvivors(ctx context.Context, o *Options) (*survivors, error) {
	s := &survivors{members: map[uint64]string{}}
	if len(o.Surviving) == 0 {
		return s, nil
	}
	set, err := evidence.Open(ctx, o.Surviving,
		evidence.Options{Progress: o.Compare.Progress, Access: o.Compare.Access})
	if err != nil {
		return nil, err
	}
	defer func() { _ = set.Close() }()
	for _, f := range set.Failed {
		return nil, fmt.Errorf("surviving source %s: %w", f.Spec.Where, f.Err)
	}
	for _, m := range set.Members {
		s.add(m)
	}
	if s.newest == 0 {
		return nil, refusef("give a source with a database that opens, or the raise itself: --bump-revision N",
			"no surviving source shows a revision")
	}
	return s, set.Unchanged(ctx)
}

// add adds one source. An entry raises the revision by at most one, so the log bounds what its member had acknowledged.
func (s *survivors) add(m *evidence.Member) {
	for _, b := range m.Membership.Bucket {
		s.members[uint64(b)] = m.Label()
	}
	if m.MemberID != 0 {
		s.members[uint64(m.MemberID)] = m.Label()
	}
	if !m.HasDB() {
		s.notes = append(s.notes, fmt.Sprintf("%s has no database that opens: its revision is not known", m.Label()))
		return
	}
	rev, err := m.DB.Handle.CurrentRev()
	if err != nil {
		s.notes = append(s.notes, fmt.Sprintf("the revision of %s cannot be read: %v", m.Label(), err))
		return
	}
	s.certain = max(s.certain, rev)
	if last := m.LastIndex(); m.HasLog() && last > m.ConsistentIndex() {
		rev += int64(last - m.ConsistentIndex())
	}
	if rev > s.newest {
		s.newest, s.on = rev, m.Label()
	}
}

// revisionFor computes the raise.
func revisionFor(backup int64, s *survivors, o *Options) (Revision, error) {
	r := Revision{Backup: backup, NewestSeen: s.newest, SeenOn: s.on, GivenUp: max(0, s.certain-backup)}
	switch {
	case o.Bump != nil:
		r.Bump = *o.Bump
		if lead := s.newest - backup; s.newest > 0 && lead > 0 && r.Bump <= uint64(lead) && !o.LowRevision {
			return r, refusef(fmt.Sprintf("raise by more than %d, leave --bump-revision out, or accept it: "+
				"--accept-revisions-already-seen", lead),
				"raised by %d the revision is %d, and %s has seen %d: clients would get revisions again that they "+
					"know", r.Bump, backup+int64(r.Bump), s.on, s.newest)
		}
		r.Reserve = r.Bump - min(r.Bump, uint64(max(0, s.newest-backup)))
	case s.newest > 0:
		r.Reserve = o.Reserve
		r.Bump = uint64(max(0, s.newest-backup)) + o.Reserve
	default:
		r.Bump, r.Reserve = BlindBump, BlindBump
	}
	if r.Bump > math.MaxInt64-uint64(backup) {
		return r, refusef("", "revision %d cannot be raised by %d", backup, r.Bump)
	}
	r.Start, r.MarkCompacted = backup+int64(r.Bump), r.Bump > 0
	return r, nil
}
