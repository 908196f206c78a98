package restore

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
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
	// GivenUp counts the revisions that a surviving source certainly has and the backup lacks. Raised are not among
	// them: those that nothing wrote, because an earlier restore raised the revision of that source over them.
	GivenUp int64 `json:"givenUp"`
	Raised  int64 `json:"raised,omitempty"`
}

const (
	// DefaultReserve is added to the newest revision seen: lost members may have acknowledged more.
	DefaultReserve = 1_000_000
	// BlindBump is the raise without a surviving source, as the etcd documentation advises for Kubernetes.
	BlindBump = 1_000_000_000
)

// survivors are the facts from the surviving sources.
type survivors struct {
	// backup is the revision of the backup. newest is what a source has or may have, written what one of them wrote
	// after backup, raised what a restore skipped up to there.
	backup, newest, written, raised int64
	on                              string
	members                         map[uint64]string
	notes                           []string
}

func readSurvivors(ctx context.Context, o *Options, backup int64) (*survivors, error) {
	s := &survivors{backup: backup, members: map[uint64]string{}}
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
		if err := s.add(ctx, m); err != nil {
			return nil, err
		}
	}
	if s.newest == 0 {
		return nil, refusef("give a source with a database that opens, or the raise itself: --bump-revision N",
			"no surviving source shows a revision")
	}
	return s, set.Unchanged(ctx)
}

// add adds one source. An entry raises the revision by at most one, so the log bounds what its member had acknowledged.
func (s *survivors) add(ctx context.Context, m *evidence.Member) error {
	for _, b := range m.Membership.Bucket {
		s.members[uint64(b)] = m.Label()
	}
	if m.MemberID != 0 {
		s.members[uint64(m.MemberID)] = m.Label()
	}
	if !m.HasDB() {
		s.notes = append(s.notes, fmt.Sprintf("%s has no database that opens: its revision is not known", m.Label()))
		return nil
	}
	rev, err := m.DB.Handle.CurrentRev()
	if err != nil {
		s.notes = append(s.notes, fmt.Sprintf("the revision of %s cannot be read: %v", m.Label(), err))
		return nil
	}
	raised, err := raisedOver(ctx, m.DB.Handle, s.backup)
	if err != nil {
		return err
	}
	if n := rev - s.backup - raised; n > s.written {
		s.written, s.raised = n, raised
	}
	if last := m.LastIndex(); m.HasLog() && last > m.ConsistentIndex() {
		rev += int64(last - m.ConsistentIndex())
	}
	if rev > s.newest {
		s.newest, s.on = rev, m.Label()
	}
	return nil
}

// raisedOver counts the revisions above one that restores have skipped: each ends at an empty record, which no server
// writes. What a compaction removed before such a record counts as skipped, too.
func raisedOver(ctx context.Context, db *dumpdb.DB, above int64) (n int64, err error) {
	last := above
	for rec, err := range db.RevisionsFrom(dumpdb.Rev{Main: above + 1}) {
		var bad *dumpdb.DamageError
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case errors.As(err, &bad):
			continue
		case err != nil:
			return 0, err
		case len(rec.Raw) == 0 && !rec.Tombstone:
			n += rec.Main - last
		}
		last = rec.Main
	}
	return n, nil
}

// revisionFor computes the raise.
func revisionFor(backup int64, s *survivors, o *Options) (Revision, error) {
	r := Revision{Backup: backup, NewestSeen: s.newest, SeenOn: s.on, GivenUp: s.written, Raised: s.raised}
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
