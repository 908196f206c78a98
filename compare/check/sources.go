package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/majority"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Sources are the members under examination, with what their own files show.
type Sources []*evidence.Member

func (ss Sources) labels() []string {
	out := []string{}
	for _, m := range ss {
		out = append(out, m.Label())
	}
	return out
}

func (ss Sources) labelsOf(positions []int) []string {
	out := []string{}
	for _, i := range positions {
		out = append(out, ss[i].Label())
	}
	return out
}

func (ss Sources) labelsAt(set map[int]bool) []string {
	return ss.labelsOf(slices.Sorted(maps.Keys(set)))
}

func (ss Sources) byID(id dumplog.ID) *evidence.Member {
	for _, m := range ss {
		if m.MemberID == id {
			return m
		}
	}
	return nil
}

// SaidCommitted is the last entry that a running member among the sources says is committed, or that a database has
// applied which holds a revision that no log explains and no other source has; 0 without any. No log may hold it. rp is
// nil without a log.
func (ss Sources) SaidCommitted(rp *replay.Result) (index uint64) {
	for i, m := range ss {
		if m.Source.Kind == evidence.KindEndpoint || ss.NewestWithoutLog(m) || ss.aboveLogs(i) && ss.holdsMore(i, rp) {
			index = max(index, m.Commit)
		}
	}
	return index
}

// Committed is the highest index that the sources show as committed. A database whose index is beyond the end of all
// logs shows that only if it has a revision that neither the others have nor the logs explain: otherwise the index
// alone may be wrong. rp is nil without a log.
func (ss Sources) Committed(rp *replay.Result) (index uint64) {
	for i, m := range ss {
		commit := m.Commit
		if ss.aboveLogs(i) && !ss.holdsMore(i, rp) {
			commit = min(commit, ss.lastOfLogs())
		}
		index = max(index, commit)
	}
	return index
}

// lastOfLogs is the last entry of all logs.
func (ss Sources) lastOfLogs() (last uint64) {
	for _, m := range ss {
		last = max(last, m.LastIndex())
	}
	return last
}

// aboveLogs reports whether the index of a database is beyond the end of all logs, although the source has a log.
func (ss Sources) aboveLogs(i int) bool {
	return ss[i].HasLog() && ss[i].ConsistentIndex() > ss.lastOfLogs()
}

// holdsMore reports whether a database has a revision that neither the others have nor the logs explain.
func (ss Sources) holdsMore(i int, rp *replay.Result) bool {
	explained := rp != nil && rp.Members[i].Checked && !rp.Members[i].PastLogs
	return !explained && ss.hasNewest(ss[i])
}

// HeldByMajority is the last entry that is committed because the logs of a majority of the voters hold it, though no
// source shows the commit; nil if there is none. The sources must be of one cluster.
func (ss Sources) HeldByMajority() *majority.Commit {
	at := slices.IndexFunc(ss, (*evidence.Member).HasLog)
	if at < 0 {
		return nil
	}
	return majority.Find(ss[at].ClusterID, ss)
}

// NewestWithoutLog reports whether a source has no log, and a database with a revision that no other source has.
func (ss Sources) NewestWithoutLog(m *evidence.Member) bool {
	return m.HasDB() && !m.HasLog() && ss.hasNewest(m)
}

// hasNewest reports whether no other source has the revision of a database.
func (ss Sources) hasNewest(m *evidence.Member) bool {
	return !slices.ContainsFunc(ss, func(o *evidence.Member) bool {
		return o != m && o.CurrentRevision() >= m.CurrentRevision()
	})
}

// MemberName names a member by its label among the sources, else by its ID.
func (ss Sources) MemberName(id fmt.Stringer) string {
	for _, m := range ss {
		if m.MemberID != 0 && m.MemberID.String() == id.String() {
			return m.Label()
		}
	}
	return id.String()
}

// atHand reports whether the member's data dir is among the sources.
func (ss Sources) atHand(id dumplog.ID) bool {
	return slices.ContainsFunc(ss, func(m *evidence.Member) bool { return m.MemberID == id && m.HasWAL() })
}

// backups are the sources that are backups and could be opened.
func (ss Sources) backups() []*evidence.Member {
	var out []*evidence.Member
	for _, m := range ss {
		if (m.Source.Kind == evidence.KindBackup || m.Source.Kind == evidence.KindEndpoint) && m.DB != nil {
			out = append(out, m)
		}
	}
	return out
}

// unreadableParts lists members with a part that could not be read at all, so that it is not checked.
func (ss Sources) unreadableParts(part string) string {
	var said []string
	for _, m := range ss {
		for _, p := range m.Problems {
			if p.Part == part {
				said = append(said, fmt.Sprintf("%s: %s: %v", m.Label(), p.File, p.Err))
			}
		}
	}
	return strings.Join(said, "; ")
}
