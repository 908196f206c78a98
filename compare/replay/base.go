package replay

import (
	"cmp"
	"context"
	"sync"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// newSim builds the starting state of one member. With a log from the first entry of a new cluster that state is empty;
// otherwise the database is aligned with the log by content.
func newSim(ctx context.Context, r *Result, pos int, found *anchorCache) (*sim, error) {
	res := r.Members[pos]
	m := res.Member
	s := &sim{m: m, res: res, pos: pos, minor: m.Version.Minor, rev: 1, compact: -1, dbCompact: m.CompactRevision(),
		keys: newKeyModel(), leases: map[int64]*leaseState{}, alarms: map[alarmKey]struct{}{}, touched: map[string]bool{},
		auth: newAuthState(), baseKnown: true, kvKnown: true}
	if why := unfit(r, m.HasDB(), m.DB != nil && m.DB.KV != nil); why != "" {
		res.Why = why
		return nil, nil
	}
	fromStart := s.stretch(r) == 1 && !restored(r)
	s.cur = newCursor(m.DB.Handle, m.DB.KV.BumpMarker)
	if !fromStart {
		if err := s.align(ctx, r, found); err != nil {
			s.cur.stop()
			return nil, err
		}
		if res.Why != "" {
			s.cur.stop()
			return nil, nil
		}
	}
	s.plain = planAuth(behind(r.Survey.Auth, s.base), s.auth.clone())
	res.AuthKnown = s.auth.known
	res.AuthExpected, res.AuthExpectedMin = s.plain.at(m.AppliedMax), s.plain.at(m.AppliedMin)
	s.past, s.logEnd = pastOf(ctx, r), r.Last
	s.restarts = findRestarts(r.Survey, m.MemberID, fromStart, received(m))
	for i, other := range r.Members {
		if i != pos {
			s.others = append(s.others, other)
		}
	}
	s.stamps, s.skipped = r.Survey.Stamps[m.MemberID], s.gaps()
	if m.WAL != nil && m.WAL.Summary != nil {
		for _, sn := range m.WAL.Summary.Snapshots {
			s.snaps = append(s.snaps, sn.Index)
			s.newestSnap = max(s.newestSnap, sn.Index)
		}
	}
	res.Checked, res.BaseIndex, res.BaseRevision = true, s.base, s.rev
	return s, nil
}

// received lists the snapshots of other members that replaced the member's database.
func received(m *evidence.Member) []uint64 {
	var out []uint64
	if m.WAL != nil && m.WAL.Summary != nil {
		for _, j := range m.WAL.Summary.Jumps {
			out = append(out, j.To)
		}
	}
	return out
}

// unfit says why a member can not be replayed, "" when it can.
func unfit(r *Result, hasDB, hasKV bool) string {
	switch {
	case r.First == 0:
		return "no source brought a log entry"
	case !hasDB:
		return "there is no database that opens"
	case !hasKV:
		return "bucket key could not be read"
	}
	return ""
}

// restored tells whether the cluster began from a backup: its database then was not empty at index 0.
func restored(r *Result) bool {
	for _, m := range r.Members {
		if w := m.Member.WAL; w != nil && w.Summary != nil && w.Summary.Start == dumplog.StartRestore {
			return true
		}
	}
	return false
}

// anchor is one put of the log that may be found in the database.
type anchor struct {
	index   uint64
	ordinal int64
}

// maxAnchors bounds how many puts are looked for, maxGroups how many votes are kept.
const maxAnchors = 256

// behind leaves out the auth entries up to an index.
func behind(entries []AuthEntry, base uint64) []AuthEntry {
	for len(entries) > 0 && entries[0].Index <= base {
		entries = entries[1:]
	}
	return entries
}

// stretch is the first index behind the last gap that this member has applied past: what happened in a gap no model can
// follow. Without such a gap it is the first index of the log.
func (s *sim) stretch(r *Result) uint64 {
	from := r.First
	for _, g := range r.Gaps {
		if g.To < s.m.AppliedMin {
			from = g.To + 1
		}
	}
	return from
}

// align finds the revision at which the database meets the log: the puts at the start of its last stretch without a gap are
// looked up by key and value, and the shift between their order and the revisions that most of them agree on wins.
func (s *sim) align(ctx context.Context, r *Result, found *anchorCache) error {
	s.baseKnown, s.kvKnown = false, false
	s.auth = authFromDB(&s.m.DB.Auth)
	s.assumeBefore(r)
	until := s.m.AppliedMin
	if s.m.IndexFrozen() {
		until = s.m.AppliedMax
	}
	anchors, writes, err := found.get(ctx, r, s.stretch(r), until)
	if err != nil {
		return err
	}
	best, first, n := s.vote(anchors, max(s.m.CurrentRevision()-2*writes-1000, 0))
	if 2*n < len(anchors) {
		best, first, n = s.vote(anchors, 0)
	}
	if n == 0 {
		return s.alignEmpty(r, writes)
	}
	s.base, s.rev = first.index-1, best+first.ordinal-1
	s.absorbBase()
	return nil
}

// elect picks the shift with the most votes; of two that begin with the same entry the lower one when it has half as many: a
// restart applied the entries again, and the revisions behind it all agree with the second time.
func elect(votes map[int64]int, first map[int64]anchor) (best int64, n int) {
	for shift, v := range votes {
		earlier := cmp.Or(cmp.Compare(first[shift].index, first[best].index), cmp.Compare(shift, best)) < 0
		if v > n || v == n && earlier {
			best, n = shift, v
		}
	}
	for shift, v := range votes {
		if shift < best && first[shift].index == first[best].index && v >= 2 && 2*v >= n {
			best = shift
		}
	}
	return best, n
}

// vote looks the anchors up in the records from a revision on and returns the shift that most of them agree on, the first anchor that
// does, and how many do. An entry makes at most one revision, so the anchors lie no further back than their stretch has
// entries, or twice as far where a restart applied them again. It ends early when nearly all agree.
func (s *sim) vote(anchors map[[2]uint64]anchor, from int64) (best int64, at anchor, n int) {
	votes, first := map[int64]int{}, map[int64]anchor{}
	for rev, err := range s.m.DB.Handle.RevisionsFrom(dumpdb.Rev{Main: from}) {
		if err != nil || rev.Err != nil || rev.Tombstone || rev.Sub != 0 {
			continue
		}
		a, ok := anchors[anchorKey(rev.KV.Key, rev.KV.Value)]
		if !ok {
			continue
		}
		shift := rev.Main - a.ordinal
		votes[shift]++
		if f, ok := first[shift]; !ok || a.index < f.index {
			first[shift] = a
		}
		if votes[shift] > len(anchors)*9/10 && votes[shift] > 8 {
			break
		}
	}
	best, n = elect(votes, first)
	return best, first[best], n
}

// alignEmpty: a stretch without puts can only be aligned when nothing in it writes keys at all.
func (s *sim) alignEmpty(r *Result, writes int64) error {
	if writes > 0 {
		s.res.Why = "the log does not reach back to the first entry and none of its writes is found in the database"
		return nil
	}
	s.base, s.rev = s.stretch(r)-1, s.m.CurrentRevision()
	s.absorbBase()
	return nil
}

// absorbBase takes the records up to the base revision into the model.
func (s *sim) absorbBase() {
	for g := s.cur.peek(0); g != nil && g.main <= s.rev; g = s.cur.peek(0) {
		s.cur.take()
		for i := range g.records {
			s.keys.absorb(&g.records[i])
		}
	}
	s.kvKnown = s.rev >= s.dbCompact
	s.compact = min(s.dbCompact, s.rev)
}

func anchorKey(key, value []byte) [2]uint64 { return [2]uint64{hashValue(key), hashValue(value)} }

// anchorCache keeps the anchors of a stretch of the log: members that have applied the same share them.
type anchorCache struct {
	mu    sync.Mutex
	found map[[2]uint64]anchors
}

// anchors are puts of the log by digests of key and value, and how many entries of the stretch may write keys.
type anchors struct {
	puts   map[[2]uint64]anchor
	writes int64
}

func (c *anchorCache) get(ctx context.Context, r *Result, from, to uint64) (map[[2]uint64]anchor, int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, ok := c.found[[2]uint64{from, to}]; ok {
		return a.puts, a.writes, nil
	}
	puts, writes, err := findAnchors(ctx, r, from, to)
	if err == nil {
		if c.found == nil {
			c.found = map[[2]uint64]anchors{}
		}
		c.found[[2]uint64{from, to}] = anchors{puts, writes}
	}
	return puts, writes, err
}

// findAnchors collects the first puts of a stretch of the log, and counts the entries there that may write keys. Puts that the
// stretch repeats, however far behind, are ambiguous and left out.
func findAnchors(ctx context.Context, r *Result, from, to uint64) (map[[2]uint64]anchor, int64, error) {
	out, twice := map[[2]uint64]anchor{}, map[[2]uint64]bool{}
	ordinal, full := int64(0), false
	for it, err := range merged(ctx, evidenceOf(r)) {
		if err != nil {
			return nil, 0, err
		}
		if it.entry.Index > to {
			break
		}
		if it.entry.Index < from || !writesKeys(it.req.Kind) {
			continue
		}
		ordinal++
		p := it.req.Put
		if it.req.Kind != dumplog.KindPut || p.IgnoreValue {
			continue
		}
		full = full || len(out) >= maxAnchors
		k := anchorKey(p.Key, p.Value)
		_, dup := out[k]
		switch {
		case dup:
			delete(out, k)
			twice[k] = !full // once full, nothing is added any more
		case !full && !twice[k]:
			out[k] = anchor{index: it.entry.Index, ordinal: ordinal}
		}
	}
	return out, ordinal, nil
}

// assumeBefore fills what the log does not tell: leases that are there at the end or are named in the log existed before;
// the auth revision began where the log's auth entries, all taken as successful, lead to the one in the database.
func (s *sim) assumeBefore(r *Result) {
	for _, l := range s.m.DB.Leases {
		s.leases[int64(l.ID)] = &leaseState{ttl: l.TTL}
	}
	n := uint64(0)
	for _, e := range r.Survey.Auth {
		if e.Index >= s.stretch(r) && e.Index <= s.m.AppliedMin && e.Req.Kind != dumplog.KindAuthEnable {
			n++
		}
	}
	if s.auth.revision > n {
		s.auth.revision -= n
	}
}
