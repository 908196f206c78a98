package replay

import (
	"cmp"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// anchor is one put of the log that may be found in the database.
type anchor struct {
	index   uint64
	ordinal int64
}

// maxAnchors bounds how many puts are looked for, maxHeld how many revisions are kept while it is open where the base lies.
const (
	maxAnchors = 256
	maxHeld    = 8192
)

func anchorKey(key, value []byte) [2]uint64 { return [2]uint64{hashValue(key), hashValue(value)} }

// stand is how far a member has applied: below min a gap of the log can be passed over, up to until its effects are looked for.
type stand struct{ min, until uint64 }

func standOf(m *evidence.Member) stand {
	if m.IndexFrozen() {
		return stand{m.AppliedMin, m.AppliedMax}
	}
	return stand{m.AppliedMin, m.AppliedMin}
}

// anchors are the first puts of the last stretch of the log without a gap, by digests of key and value, and how many entries of the
// stretch may write keys. Puts that the stretch repeats, however far behind, are ambiguous and left out. The survey collects them.
type anchors struct {
	stand
	puts   map[[2]uint64]anchor
	writes int64
	twice  map[[2]uint64]bool
	full   bool
	// last is the index before; on is false while the stretch begins with the first entry of a new cluster, where nothing is looked
	// for.
	last uint64
	on   bool
}

// newAnchors makes one for every stand of the members.
func newAnchors(r *Result) (out []*anchors) {
	for _, m := range r.Members {
		if at := standOf(m.Member); m.Member.HasDB() && !slices.ContainsFunc(out, func(a *anchors) bool { return a.stand == at }) {
			out = append(out, anchorsAt(at, restored(r)))
		}
	}
	return out
}

func anchorsAt(at stand, on bool) *anchors {
	return &anchors{stand: at, on: on, puts: map[[2]uint64]anchor{}, twice: map[[2]uint64]bool{}}
}

// note takes the next entry.
func (a *anchors) note(it *item) {
	idx := it.entry.Index
	if idx > a.until {
		return
	}
	if idx != a.last+1 && (a.last == 0 || a.last < idx && idx-1 < a.min) {
		*a = *anchorsAt(a.stand, true)
	}
	a.last = idx
	if !a.on || !mayWrite(it.req) {
		return
	}
	a.writes++
	p := it.req.Put
	if it.req.Kind != dumplog.KindPut || p.IgnoreValue {
		return
	}
	a.full = a.full || len(a.puts) >= maxAnchors
	k := anchorKey(p.Key, p.Value)
	_, dup := a.puts[k]
	switch {
	case dup:
		delete(a.puts, k)
		a.twice[k] = !a.full // once full, nothing is added any more
	case !a.full && !a.twice[k]:
		a.puts[k] = anchor{index: idx, ordinal: a.writes}
	}
}

// mayWrite tells whether the request writes keys in any state of the key space.
func mayWrite(r *dumplog.Request) bool {
	if r.Kind != dumplog.KindTxn {
		return writesKeys(r.Kind)
	}
	return txnMayWrite(r.Txn, 0)
}

func txnMayWrite(t *dumplog.TxnRequest, depth int) bool {
	branches := [][]dumplog.RequestOp{t.Success, t.Failure}
	switch {
	case slices.ContainsFunc(t.Compare, neverTrue):
		branches = branches[1:]
	case len(t.Compare) == 0:
		branches = branches[:1]
	}
	return slices.ContainsFunc(slices.Concat(branches...), func(op dumplog.RequestOp) bool {
		return op.Put != nil || op.DeleteRange != nil || op.Txn != nil && (depth >= maxTxnDepth || txnMayWrite(op.Txn, depth+1))
	})
}

// neverTrue knows the compares that hold for no key, with which clients propose something that has no effect: no version and no
// revision is below 0.
func neverTrue(c dumplog.Compare) bool {
	switch c.Target {
	case targetVersion, targetCreate, targetMod:
		return c.Result == resultLess && c.Num <= 0 || c.Result == resultEqual && c.Num < 0
	}
	return false
}

// align finds the revision at which the database meets the log: the puts at the start of its last stretch without a gap are
// looked up by key and value, and the shift between their order and the revisions that most of them agree on wins.
func (s *sim) align(r *Result) {
	s.baseKnown, s.kvKnown = false, false
	s.auth = authFromDB(&s.m.DB.Auth)
	s.assumeBefore(r)
	at := slices.IndexFunc(r.Survey.anchors, func(a *anchors) bool { return a.stand == standOf(s.m) })
	a := r.Survey.anchors[at]
	// An entry makes at most one revision, so the anchors lie no further back than their stretch has entries, or twice as far where a
	// restart applied them again.
	from := max(s.m.CurrentRevision()-2*a.writes-1000, 0)
	t := tally{anchors: a.puts}
	if !s.voteAhead(&t, from) {
		t = tally{anchors: a.puts}
		s.vote(&t, from)
		if _, n := t.elect(); 2*n < len(a.puts) {
			t = tally{anchors: a.puts}
			s.vote(&t, 0)
		}
	}
	best, n := t.elect()
	if n == 0 {
		s.alignEmpty(r, a.writes)
		return
	}
	s.base, s.rev = t.first[best].index-1, best+t.first[best].ordinal-1
	s.absorbBase()
}

// tally counts how many anchors agree on each shift between the order in the log and the revisions; first is the first entry that
// does.
type tally struct {
	anchors map[[2]uint64]anchor
	votes   map[int64]int
	first   map[int64]anchor
}

// count looks a put of the database up among the anchors. It is true when nearly all anchors agree.
func (t *tally) count(main int64, k [2]uint64) bool {
	a, ok := t.anchors[k]
	if !ok {
		return false
	}
	if t.votes == nil {
		t.votes, t.first = map[int64]int{}, map[int64]anchor{}
	}
	shift := main - a.ordinal
	t.votes[shift]++
	if f, ok := t.first[shift]; !ok || a.index < f.index {
		t.first[shift] = a
	}
	n := t.votes[shift]
	return n > len(t.anchors)*9/10 && n > 8
}

// elect picks the shift with the most votes; of two that begin with the same entry the lower one when it has half as many: a
// restart applied the entries again, and the revisions behind it all agree with the second time.
func (t *tally) elect() (best int64, n int) {
	for shift, v := range t.votes {
		earlier := cmp.Or(cmp.Compare(t.first[shift].index, t.first[best].index), cmp.Compare(shift, best)) < 0
		if v > n || v == n && earlier {
			best, n = shift, v
		}
	}
	for shift, v := range t.votes {
		if shift < best && t.first[shift].index == t.first[best].index && v >= 2 && 2*v >= n {
			best = shift
		}
	}
	return best, n
}

// vote looks for the anchors in the records from a revision on. It ends early when nearly all agree.
func (s *sim) vote(t *tally, from int64) {
	for rev, err := range s.m.DB.Handle.RevisionsFrom(dumpdb.Rev{Main: from}) {
		if err != nil || rev.Err != nil || rev.Tombstone || rev.Sub != 0 {
			continue
		}
		if t.count(rev.Main, anchorKey(rev.KV.Key, rev.KV.Value)) {
			return
		}
	}
}

// voteAhead is vote on the records that the model takes in anyway. What lies before the first anchor met is taken in at once, the
// rest is held back until nearly all agree. Where they do not soon, it is false, and the reading begins anew.
func (s *sim) voteAhead(t *tally, from int64) bool {
	for held := 0; held < maxHeld; {
		g := s.cur.peek(held)
		if g == nil {
			break
		}
		if r := &g.records[0]; g.main >= from && r.rev.Sub == 0 && !r.del && !r.bad &&
			t.count(g.main, [2]uint64{xxhash.Sum64String(r.key), r.vhash}) {
			return true
		}
		if len(t.votes) > 0 {
			held++
			continue
		}
		s.cur.take()
		s.absorb(g)
	}
	s.cur.stop()
	s.keys, s.cur = newKeyModel(), newCursor(s.m.DB.Handle, s.m.DB.KV.BumpMarker)
	return false
}
