package check

import (
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// listByLog is the member list as conf changes make it, up to what one member has applied.
type listByLog struct {
	// newest is the last change that gave a member its peer URLs and was certainly applied.
	newest map[dumplog.ID]*evidence.ConfEntry
	// said are all peer URLs that applied changes ever asked for, open those of changes that the member may have
	// applied.
	said, open map[dumplog.ID][][]string
	// later are the changes of peer URLs above what the member can have applied.
	later []*evidence.ConfEntry
	// whole is true when the changes reach back to the bootstrap of the cluster.
	whole bool

	now     map[dumplog.ID][]string
	removed map[dumplog.ID]bool
}

// listOf replays the conf changes of all logs under the rules by which servers refuse some of them (etcd's
// membership.RaftCluster.ValidateConfigurationChange, all versions).
func (mb *Membership) listOf(m *evidence.Member) *listByLog {
	l := &listByLog{newest: map[dumplog.ID]*evidence.ConfEntry{}, said: map[dumplog.ID][][]string{},
		open: map[dumplog.ID][][]string{}, now: map[dumplog.ID][]string{}, removed: map[dumplog.ID]bool{}}
	changes := mb.confChangesSinceGap(m)
	l.whole = len(changes) > 0 && changes[0].Index == 1
	founding := l.whole
	for i := range changes {
		c := &changes[i]
		founding = founding && c.Index == uint64(i+1) && c.Change.ID == 0
		switch {
		case c.Index > m.AppliedMax:
			if c.Change.Member != nil && len(c.Change.Member.PeerURLs) > 0 {
				l.later = append(l.later, c)
			}
		case c.Change.Member == nil && c.Change.Type == dumplog.ConfChangeRemoveNode:
			delete(l.now, c.Change.NodeID)
			l.removed[c.Change.NodeID] = true
		case c.Change.Member == nil || c.Change.Member.IsPromote || len(c.Change.Member.PeerURLs) == 0:
		case c.Index > m.AppliedMin || c.Change.ID == 0 &&
			!founding: // a forced start adds the member itself with URLs of no meaning
			l.open[c.Change.NodeID] = append(l.open[c.Change.NodeID], c.Change.Member.PeerURLs)
		default:
			l.apply(c)
		}
	}
	return l
}

// apply applies a change of peer URLs, unless servers refuse it.
func (l *listByLog) apply(c *evidence.ConfEntry) {
	id, urls := c.Change.NodeID, c.Change.Member.PeerURLs
	_, here := l.now[id]
	switch update := c.Change.Type == dumplog.ConfChangeUpdateNode; {
	case l.removed[id], update && !here && l.whole, !update && here:
		return
	}
	for other, have := range l.now {
		if other != id && shareURL(have, urls) {
			return
		}
	}
	l.now[id], l.newest[id] = urls, c
	l.said[id] = append(l.said[id], urls)
}

// ever reports whether an applied change gave the member these URLs, maybe whether a possibly applied one did.
func (l *listByLog) ever(id dumplog.ID, urls []string) bool  { return among(l.said[id], urls) }
func (l *listByLog) maybe(id dumplog.ID, urls []string) bool { return among(l.open[id], urls) }

func among(list [][]string, urls []string) bool {
	return slices.ContainsFunc(list, func(x []string) bool { return sameURLs(x, urls) })
}

// laterIndex returns the entry above what the member can have applied that gives these URLs, 0 for none.
func (l *listByLog) laterIndex(id dumplog.ID, urls []string) uint64 {
	for _, c := range l.later {
		if c.Change.NodeID == id && sameURLs(c.Change.Member.PeerURLs, urls) {
			return c.Index
		}
	}
	return 0
}

// takenByOther reports whether another row of the database has one of the URLs.
func takenByOther(m *evidence.Member, row *dumpdb.Member, urls []string) bool {
	return slices.ContainsFunc(m.DB.Members, func(o dumpdb.Member) bool {
		return o.ID != row.ID &&
			shareURL(o.PeerURLs, urls)
	})
}

func shareURL(a, b []string) bool {
	return slices.ContainsFunc(a, func(u string) bool { return slices.Contains(b, u) })
}

// sameURLs compares lists of URLs whatever their order.
func sameURLs(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func joinURLs(urls []string) string { return strings.Join(urls, ",") }
