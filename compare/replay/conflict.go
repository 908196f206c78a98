package replay

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// maxSameTerm bounds the list of indexes at which entries of one term differ.
const maxSameTerm = 100

// noteSameTerm records an index at which two logs hold different entries of one term, committed or not. One leader
// creates all entries of a term and never two at one index (log matching, raft paper 5.3), so there were two leaders,
// or a log was altered. A forced start writes its removals without a leader, in the term that it finds.
func (r *Result) noteSameTerm(it *item) {
	if len(it.others) == 0 || len(r.SameTerm) >= maxSameTerm {
		return
	}
	versions := slices.DeleteFunc(it.versions(), func(v *item) bool {
		return v.req.ConfChange != nil && isForcedRemoval(v.req.ConfChange)
	})
	ofTerm := map[uint64]int{}
	for _, v := range versions {
		ofTerm[v.entry.Term]++
	}
	d := LogDiff{Index: it.entry.Index, By: map[int]string{}}
	for _, v := range versions {
		if ofTerm[v.entry.Term] < 2 {
			continue
		}
		for _, h := range v.holders {
			d.By[h] = r.describeVersion(v, versions)
		}
	}
	if len(d.By) == 0 {
		return
	}
	r.addVersions(&d, versions)
	r.SameTerm = append(r.SameTerm, d)
}

// versions returns the different entries at the index, first the entry in most logs, then in the order of the logs.
func (it *item) versions() []*item {
	out := []*item{it}
	for _, o := range it.others {
		if !slices.Contains(out, o) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *item) int {
		return cmp.Or(cmp.Compare(len(b.holders), len(a.holders)), cmp.Compare(a.holders[0], b.holders[0]))
	})
	return out
}

// otherHolders are the members whose log holds another entry at the index than this version.
func (it *item) otherHolders(v *item) (out Elsewhere) {
	for _, o := range it.versions() {
		if o != v {
			out = append(out, o.holders...)
		}
	}
	return out
}

// describeVersion describes one of several entries at an index. Entries that read the same are distinguished by the ID
// of their request, by the auth revision in its header, or else by the digest of their bytes.
func (r *Result) describeVersion(v *item, versions []*item) string {
	what, h := r.describe(v.req), v.req.Header
	request, stamp, digest := "", "", ""
	for _, o := range versions {
		switch {
		case o == v || o.entry.Term != v.entry.Term || r.describe(o.req) != what:
		case h.ID != o.req.Header.ID:
			request = fmt.Sprintf(" request=%x", uint64(h.ID))
		case h.AuthRevision != o.req.Header.AuthRevision:
			stamp = fmt.Sprintf(" authRevision=%d", h.AuthRevision)
		default:
			digest = fmt.Sprintf(" entry=<len %d digest %s>", len(v.entry.Data), r.digest(v.entry.Data))
		}
	}
	return fmt.Sprintf("%d/%d %s%s", v.entry.Term, v.entry.Index, what, cmp.Or(digest, stamp, request))
}

// addVersions fills in who holds which entry.
func (r *Result) addVersions(d *LogDiff, versions []*item) {
	for _, v := range versions {
		log := &r.Members[v.holders[0]].Member.WAL
		d.Versions, d.Headers = append(d.Versions, v.holders), append(d.Headers, v.req.Header)
		d.Sums = append(d.Sums, sha256.Sum256(v.entry.Data))
		d.Emptied = append(d.Emptied, v.isEmpty() && log.TermAt(d.Index-1) == v.entry.Term)
		d.Puts = append(d.Puts, putSum(v.req))
	}
}

// maxSumKey bounds the keys of PutSum, in bytes.
const maxSumKey = 4096

func putSum(r *dumplog.Request) *PutSum {
	if r.Kind != dumplog.KindPut || keeps(r.Put) || len(r.Put.Key) > maxSumKey {
		return nil
	}
	return &PutSum{string(r.Put.Key), r.Put.Lease, len(r.Put.Value), sha256.Sum256(r.Put.Value)}
}

func (it *item) isEmpty() bool {
	return it.entry.Type == dumplog.EntryNormal && len(it.entry.Data) == 0
}

// stepDisputed executes the entry that the member's own log has. If that entry cannot have written the next records of
// the database, and they are what another log's entry of the same term wrote, then the member has applied the other
// one: its log was altered afterwards, and it lacks nothing.
func (s *sim) stepDisputed(it *item, ahead []*item) Outcome {
	own := it.forMember(s.pos)
	if it.instead[s.pos] != nil {
		o := s.step(own, ahead)
		if o.State == Applied {
			o.State, o.Detail = Contradicted, otherEffect
			s.res.insteadOwn++
		}
		return o
	}
	if v := s.broughtOver(it); v != nil {
		return s.step(v, ahead)
	}
	other := s.executedInstead(it, own, ahead)
	if other == nil {
		return s.step(own, ahead)
	}
	o := s.step(other, ahead)
	if o.State == Applied {
		o.State, o.Detail = Contradicted, otherEffect
	}
	return o
}

// broughtOver returns the version that the next records of the database show, where the member's own log holds none of
// them: a snapshot brought the member over the entry. nil if the records show none.
func (s *sim) broughtOver(it *item) *item {
	if len(it.others) == 0 || !s.met || it.entry.Index <= s.base || it.entry.Index > s.m.AppliedMin ||
		it.others[s.pos] != nil || slices.Contains(it.holders, s.pos) {
		return nil
	}
	g := s.cur.peek(0)
	if g == nil || g.main != s.Revision+1 {
		return nil
	}
	for _, v := range it.versions() {
		if v.err == nil && apply.WritesKeys(v.req.Kind) && matches(s.Evaluate(v.req).Writes, g) {
			return v
		}
	}
	return nil
}

// executedInstead returns the entry of another log that the member's database shows, nil if there is none or if a later
// entry of that member's log can have written the same records.
func (s *sim) executedInstead(it, own *item, ahead []*item) *item {
	if len(it.others) == 0 || !s.met || own.entry.Index <= s.base || own.entry.Index > s.m.AppliedMax {
		return nil
	}
	g := s.cur.peek(0)
	if g == nil || g.main != s.Revision+1 {
		return nil
	}
	if v := s.exchanged(it, own, ahead); v != nil {
		return v
	}
	for _, h := range []*group{g, s.cur.peek(1)} { // the second one if the first are records that no entry explains
		if apply.WritesKeys(own.req.Kind) && h != nil && couldWrite(own.req, h) {
			return nil
		}
	}
	for _, a := range ahead {
		if next := a.forMember(s.pos); apply.WritesKeys(next.req.Kind) {
			if couldWrite(next.req, g) {
				return nil
			}
			break
		}
	}
	for _, v := range it.versions() {
		if v.entry.Term == own.entry.Term && apply.WritesKeys(v.req.Kind) && matches(s.Evaluate(v.req).Writes, g) {
			return v
		}
	}
	return nil
}

// exchanged returns the entry of another log that wrote the next records if a later entry differs between the logs too,
// and its version in that log wrote records after them: the member's own log holds the two in another order. nil if the
// records do not show that. Entries between the two may have written records, or none.
func (s *sim) exchanged(it, own *item, ahead []*item) *item {
	at := slices.IndexFunc(ahead, func(a *item) bool { return len(a.others) > 0 })
	g := s.cur.peek(0)
	if at < 0 || !apply.WritesKeys(own.req.Kind) || couldWrite(own.req, g) {
		return nil
	}
	next := ahead[at].forMember(s.pos)
	if !apply.WritesKeys(next.req.Kind) || !couldWrite(next.req, g) {
		return nil
	}
	v := otherThatWrote(it, own, g)
	for n := 1; v != nil && n <= at+1; n++ {
		h := s.cur.peek(n)
		if h == nil || h.main != g.main+int64(n) {
			break
		}
		if couldWrite(own.req, h) {
			if otherThatWrote(ahead[at], next, h) == nil {
				return nil
			}
			return v
		}
	}
	return nil
}

// otherThatWrote returns another version of a member's own entry that can have written a group, nil if there is none.
func otherThatWrote(it, own *item, g *group) *item {
	versions := it.versions()
	i := slices.IndexFunc(versions, func(v *item) bool {
		return v != own && v.entry.Term == own.entry.Term && apply.WritesKeys(v.req.Kind) && couldWrite(v.req, g)
	})
	if i < 0 {
		return nil
	}
	return versions[i]
}

// DiffWithin returns the first index after from and up to to at which committed entries of two logs differ, 0 if there
// is none.
func (r *Result) DiffWithin(from, to uint64) uint64 {
	for _, d := range r.LogDiffs {
		if d.Index > from && d.Index <= to {
			return d.Index
		}
	}
	if n := len(r.LogDiffs); n >= maxLogDiffs && r.LogDiffs[n-1].Index < to {
		return max(from, r.LogDiffs[n-1].Index) + 1 // beyond the list
	}
	return 0
}

// DiffsComplete reports whether LogDiffs and SameTerm hold every index there is, not only the first ones.
func (r *Result) DiffsComplete() bool {
	return len(r.LogDiffs) < maxLogDiffs && len(r.SameTerm) < maxSameTerm
}
