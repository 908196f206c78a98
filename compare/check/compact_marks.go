package check

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

var compactMarksFit = described(Check{
	ID:    K13,
	Needs: NeedDB,
	Run:   runCompactMarks,
})

func runCompactMarks(in *Input) Result {
	var fs []Finding
	checked := 0
	for _, m := range in.Members {
		if !m.HasDB() || m.DB.Meta.ScheduledCompact == nil && m.DB.Meta.FinishedCompact == nil ||
			m.Source.Kind == evidence.KindBackup || m.Source.Kind == evidence.KindEndpoint {
			continue
		}
		checked++
		s, f := m.DB.Meta.ScheduledCompact, m.DB.Meta.FinishedCompact
		switch {
		case f != nil && (s == nil || f.Main > s.Main):
			fs = append(fs, finishedAboveScheduled(m, s, f))
		case in.compactRequests().neverRequested(m):
			fs = append(fs, scheduledAlone(m, s, "no entry that it has applied requests it",
				"the revision of a compaction in the log"))
		default:
			if o := in.compactRequests().belowScheduled(m); o != nil {
				why := fmt.Sprintf("%s, which has applied as much, is at revision %d", o.Label(), o.CurrentRevision())
				if o.AppliedMin < m.AppliedMax {
					why = fmt.Sprintf("%s is at revision %d, and no entry since then requests it", o.Label(),
						o.CurrentRevision())
				}
				fs = append(fs, scheduledAlone(m, s, why, "at most the revision of the cluster"))
			}
		}
	}
	if checked == 0 {
		return Result{Reason: "no data dir holds a compaction mark"}
	}
	return outcome(fs, "")
}

// scheduledAlone is the finding of a compaction that is scheduled on one member and cannot have been requested.
func scheduledAlone(m *evidence.Member, s *dumpdb.Rev, why, expected string) Finding {
	return Finding{Kind: KindCompactionNotRequested, Severity: Error, Class: ClassDBDamage,
		Members: []string{m.Label()},
		At:      At{Index: m.AppliedMin, Revision: &Rev{Main: s.Main}},
		Title: fmt.Sprintf("%s: the compaction at revision %d is scheduled and cannot have been requested: %s",
			m.Label(), s.Main, why),
		Explanation: "the mark was edited or damaged: at its next start the member removes records that the other " +
			"members keep",
		Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("scheduledCompactRev"),
			Field:    "scheduledCompactRev",
			Observed: s.String(), Expected: expected, Show: showDB(m, "meta")}}}
}

// compactRequests answers which compactions the logs request.
type compactRequests struct {
	Members Sources
	Replay  *replay.Result
	ctx     context.Context //nolint:containedctx // for one question
}

// belowScheduled returns another member that has applied as much, or all that could raise the revision, whose newest
// record is the same and whose revision is below the compaction that m has scheduled; nil when there is none. A server
// refuses to compact above its revision.
func (cr *compactRequests) belowScheduled(m *evidence.Member) *evidence.Member {
	s, f, kv := m.DB.Meta.ScheduledCompact, m.DB.Meta.FinishedCompact, m.DB.KV
	if s == nil || f != nil && f.Main >= s.Main || kv == nil || m.DB.KVDamaged || s.Main <= kv.LastRev.Main {
		return nil
	}
	for _, o := range cr.Members {
		if o != m && o.HasDB() && o.HasLog() && o.ClusterID == m.ClusterID && o.DB.KV != nil && !o.DB.KVDamaged &&
			o.DB.KV.LastRev == kv.LastRev && o.CurrentRevision() < s.Main && cr.requestsNone(m, o.AppliedMin) {
			return o
		}
	}
	return nil
}

// requestsNone reports whether the logs hold all entries that m has applied above an index, and none requests the
// scheduled compaction.
func (cr *compactRequests) requestsNone(m *evidence.Member, above uint64) bool {
	if above >= m.AppliedMax {
		return true
	}
	if cr.Replay == nil || len(cr.Replay.LogDiffs) > 0 || !cr.Replay.Covers(above, m.AppliedMax) {
		return false
	}
	c, ok := cr.compactionsFor(m, m.DB.Meta.ScheduledCompact.Main, nil)
	return ok && !c.requested
}

func finishedAboveScheduled(m *evidence.Member, s, f *dumpdb.Rev) Finding {
	scheduled := "none"
	if s != nil {
		scheduled = s.String()
	}
	return Finding{Kind: KindCompactionNotScheduled, Severity: Error, Class: ClassDBDamage,
		Members: []string{m.Label()},
		At:      At{Revision: &Rev{Main: f.Main}},
		Title: fmt.Sprintf("%s: the compaction at revision %d is finished and was never scheduled", m.Label(),
			f.Main),
		Explanation: "every release stores the scheduled revision before the finished one: a mark was edited or " +
			"damaged, and the member refuses reads that others answer",
		Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("finishedCompactRev"),
			Field:    "finishedCompactRev",
			Observed: f.String(), Expected: "at most the scheduled one: " + scheduled, Show: showDB(m, "meta")}}}
}

// neverRequested reports whether a compaction is scheduled and unfinished that no log requests, and the logs hold every
// entry that could have requested it.
func (cr *compactRequests) neverRequested(m *evidence.Member) bool {
	s, f, kv := m.DB.Meta.ScheduledCompact, m.DB.Meta.FinishedCompact, m.DB.KV
	if s == nil || f != nil && f.Main >= s.Main || kv == nil || m.DB.KVDamaged || kv.BumpMarker.Main >= s.Main {
		return false
	}
	if cr.Replay == nil || cr.Replay.First == 0 || len(cr.Replay.LogDiffs) > 0 || !m.HasLog() ||
		!m.Version.Follows(release.IndexWithEveryEntry) {
		return false
	}
	c, ok := cr.compactionsFor(m, s.Main, f)
	switch {
	case !ok || c.requested:
		return false
	case cr.Replay.First == 1 && !cr.Members.logs().anyRestored() && (kv.BumpMarker == dumpdb.Rev{}) &&
		cr.Replay.Covers(0, m.AppliedMax):
		return true
	}
	// The compaction before it is finished, or a put came after it that no rule refuses. Had the scheduled one come
	// first, the revision was at least that high already, and no later write would be below it.
	return s.Main > kv.LastRev.Main && (c.finished > 0 && c.lastPut > c.finished &&
		cr.Replay.Covers(c.finished, m.AppliedMax) ||
		m.DB.Auth.Revision <= 1 && c.surePut > 0 && cr.Replay.Covers(c.surePut, m.AppliedMax))
}

// compactions is what the logs say about the compactions that one database names.
type compactions struct {
	requested bool
	// finished is the last entry that requests the finished compaction, lastPut the last put, both applied by the
	// member. surePut is the last put that needs no lease and no key, in the member's log before the first alarm:
	// without auth no rule refuses it.
	finished, lastPut, surePut uint64
}

// lastApplied is the last entry that a member may have applied.
func (cr *compactRequests) lastApplied(m *evidence.Member) uint64 {
	if pos := slices.Index(cr.Members, m); cr.Replay != nil && cr.Replay.Members[pos].Ahead == nil {
		return m.AppliedMax
	}
	return math.MaxUint64
}

// compactionsFor reads the logs of all members of the cluster; ok is false when damage hides a part of one.
func (cr *compactRequests) compactionsFor(m *evidence.Member, scheduled int64, finished *dumpdb.Rev) (c compactions,
	ok bool) {
	alarmed, last := len(m.DB.Alarms) > 0, cr.lastApplied(m) // an alarm was on at any entry perhaps
	for _, o := range cr.Members {
		if !o.HasLog() || o.ClusterID != m.ClusterID {
			continue
		}
		for e, err := range o.WAL.Log.Entries(cr.ctx, &o.WAL.Summary) {
			if err != nil {
				return c, false
			}
			req, err := e.Decode()
			switch {
			case err != nil:
				return c, false
			case req.Compaction != nil && req.Compaction.Revision == scheduled && e.Index <= last:
				c.requested = true
				return c, true
			case e.Overwritten || e.Index > m.AppliedMin:
			case req.Compaction != nil && finished != nil && req.Compaction.Revision == finished.Main:
				c.finished = max(c.finished, e.Index)
			case req.Kind == dumplog.KindPut || req.Kind == dumplog.KindTxn:
				c.lastPut = max(c.lastPut, e.Index)
				if o == m && !alarmed && replay.PlainPut(req) {
					c.surePut = e.Index
				}
			case req.Kind == dumplog.KindAlarm && o == m:
				alarmed = true
			}
		}
	}
	return c, true
}
