package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// Survey is what one pass over the merged log shows before anything is replayed.
type Survey struct {
	// Starts are the publish entries of each member: every start of a server puts one into the log.
	Starts map[dumplog.ID][]Start
	// Ran are the members whose publish entry is in a log, committed or not.
	Ran map[dumplog.ID]bool
	// Auth are the entries that can change the auth buckets, in order.
	Auth []AuthEntry
	// AuthRises are the indexes of entries that may raise the auth revision, in order: see AuthRisesAfter.
	AuthRises []uint64
	// Stamps are the auth revisions that each member wrote into the headers of its proposals, which are the values of
	// its counter.
	Stamps map[dumplog.ID][]Stamp
	// Kinds counts the committed entries by kind.
	Kinds map[dumplog.Kind]int
	// LastTouch is the last entry that can change a bucket other than key, by bucket name: committed, or beyond on 3.4
	// and older.
	LastTouch map[string]uint64
	// LastChange is the last committed entry that can change any bucket: reads, logins, publish entries and leaders'
	// first entries cannot.
	LastChange uint64
	// LastUncommitted is the last such entry that no source shows to be committed; 0 if there is none.
	LastUncommitted uint64
	// Marks are what a timeline shows: terms, starts, conf changes, compactions, alarms, auth switches and versions.
	// They are bounded; MarksLeftOut counts the rest.
	Marks        []Mark
	MarksLeftOut int
	// Secrets are the secrets of users that entries carry in clear, by what they are.
	Secrets []SecretUse
	// V2Writes counts requests of the v2 API other than etcd's own bookkeeping, FirstV2Write is the index of the first.
	V2Writes     int
	FirstV2Write uint64
	// Bursts are runs of lease revokes by one member, LeaseTerms what became of leases in each term.
	Bursts     []RevokeBurst
	LeaseTerms []LeaseTerm
	// V2 are the requests of v2 clients, bounded; V2LeftOut counts the rest. Versions are the cluster versions that
	// were set.
	V2        []V2Op
	V2LeftOut int
	Versions  []VersionSet
	// keyWrites are the spans of entries that may write keys, bounded: beyond maxSpans the last one grows.
	keyWrites []Gap
	// Served are, by member, the processes that are known to have answered clients.
	Served  map[dumplog.ID][]Served
	serving map[uint16]*serving
	// beyond are requests above every known commit index that a database of 3.4 or older may hold the effect of.
	beyond []*dumplog.Request
	// grants are the last entries that grant each lease, bounded.
	grants map[int64]uint64
	// leases is what the log says of leases and their TTLs, committed or not.
	leases leaseLog
	// writers count the entries that may write keys, for each applied range of the members.
	writers []*writers
	puts    *putContents
	// rows are the entries that may change rows of small buckets, state the last state of the rows in them.
	rows  *rowTouches
	state *lastStates
	// repeat is the first request that the log holds twice; recent are the last entries.
	repeat *repeat
	recent recent
	// emptied are entries without content in the middle of a term, bounded; term is that of the last entry.
	emptied []entryID
	// exchanged are entries of one log that others hold further on, where that log holds another one; bounded.
	exchanged []entryID
	term      uint64
	// describe is a request in words.
	describe func(*dumplog.Request) string
	// prefixes maps the 16 bits of a request ID to the member, 0 when several share them.
	prefixes map[uint16]dumplog.ID
}

// Start is one publish entry.
type Start struct {
	Index uint64
	// ID is the request ID, which contains the start time of the process.
	ID RequestID
	// Name is the member's name as published, ClientURLs its addresses.
	Name       string
	ClientURLs []string
	Elsewhere
}

// Elsewhere are the members whose log holds another entry at the index, so that what this one does is not theirs.
type Elsewhere []int

func (e Elsewhere) concerns(pos int) bool { return !slices.Contains(e, pos) }

// StartsFor are the publish entries of a member, without those in whose place the log of the member at a position holds
// another entry.
func (s *Survey) StartsFor(pos int, id dumplog.ID) []Start {
	return slices.DeleteFunc(slices.Clone(s.Starts[id]), func(st Start) bool { return !st.concerns(pos) })
}

// VersionsFor are the cluster versions that were set, as far as they concern the member at a position.
func (s *Survey) VersionsFor(pos int) []VersionSet {
	return slices.DeleteFunc(slices.Clone(s.Versions), func(v VersionSet) bool { return !v.concerns(pos) })
}

// RequestID is dumplog's request ID.
type RequestID = dumplog.RequestID

// AuthEntry is an auth request in the log.
type AuthEntry struct {
	Index uint64
	Req   *dumplog.Request
}

// Stamp is a change of the auth revision that a member stamps into its proposals.
type Stamp struct {
	Index        uint64
	AuthRevision uint64
}

// survey reads the merged log once.
func survey(ctx context.Context, r *Result) (*Survey, error) {
	s := &Survey{Starts: map[dumplog.ID][]Start{}, Ran: map[dumplog.ID]bool{}, Stamps: map[dumplog.ID][]Stamp{},
		Kinds:     map[dumplog.Kind]int{},
		LastTouch: map[string]uint64{},
		Served:    map[dumplog.ID][]Served{}, serving: map[uint16]*serving{}, writers: newWriters(r),
		grants: map[int64]uint64{}, rows: newRowTouches(r.Common), state: newLastStates(),
		prefixes: map[uint16]dumplog.ID{}, describe: r.describe, puts: newPutContents(r)}
	for _, m := range r.Members {
		ms := &m.Member.Membership
		for _, ids := range [][]dumplog.ID{ms.Voters, ms.Learners, ms.Removed, ms.V2, ms.Bucket, {m.Member.MemberID}} {
			for _, id := range ids {
				s.learn(id)
			}
		}
	}
	old := slices.ContainsFunc(r.Members, func(m *MemberResult) bool {
		return !m.Member.Version.Follows(release.IndexWithEveryEntry)
	})
	var l lives
	for it, err := range r.first(ctx) {
		if err != nil {
			return nil, err
		}
		r.noteExtent(it)
		r.noteConflict(it)
		r.noteSameTerm(it)
		s.noteExchanged(it)
		s.noteRepeat(it)
		s.noteEmptied(it)
		if a := it.req.Publishes(); a != nil {
			s.Ran[a.MemberID] = true
		}
		if err := r.noteUndecodable(ctx, it); err != nil {
			return nil, err
		}
		s.leases.note(it)
		s.noteAuthRise(it, r.Common)
		r.disputed = r.disputed || len(it.others) > 0
		if it.entry.Index > r.Commit {
			if changesData(it.req) {
				s.LastUncommitted = it.entry.Index
			}
			s.noteBeyond(it, old)
			continue
		}
		for _, w := range s.writers {
			w.note(it)
		}
		s.note(it)
		s.puts.note(it)
		if it.idDisputed() {
			continue
		}
		if o := l.note(it.entry.Index, requestID(it.req), it.req.Publishes() != nil); o != nil {
			r.overlap(o, s)
		}
	}
	s.puts.end(s, r)
	return s, ctx.Err()
}

// changesData reports whether a request can change any bucket. Publish entries do not count.
func changesData(r *dumplog.Request) bool {
	return apply.WritesKeys(r.Kind) || r.Compaction != nil || len(touches(r)) > 0 && r.Publishes() == nil
}

func (r *Result) noteExtent(it *item) {
	idx := it.entry.Index
	switch {
	case r.First == 0:
		r.First = idx
	case idx != r.Last+1:
		r.Gaps = append(r.Gaps, Gap{From: r.Last + 1, To: idx - 1})
	}
	r.Last = idx
}

func (s *Survey) note(it *item) {
	s.Kinds[it.req.Kind]++
	s.mark(it)
	s.noteSecrets(it)
	s.noteRevoke(it)
	s.noteLease(it)
	s.noteV2(it)
	s.noteServed(it)
	s.noteKeyWrite(it)
	s.noteAllVersions(it)
	if c := it.req.ConfChange; c != nil {
		s.learn(c.NodeID)
	}
	if g := it.req.LeaseGrant; g != nil && len(s.grants) < maxLeaseOps {
		s.grants[g.ID] = it.entry.Index
	}
	if h := it.req.Header; h.AuthRevision > 0 && !it.stampDisputed() {
		if m := s.Proposer(h.ID); m != 0 {
			st := s.Stamps[m]
			if n := len(st); n == 0 || st[n-1].AuthRevision != h.AuthRevision {
				s.Stamps[m] = append(st, Stamp{Index: it.entry.Index, AuthRevision: h.AuthRevision})
			}
		}
	}
	for _, b := range touches(it.req) {
		s.LastTouch[b] = it.entry.Index
	}
	s.rows.note(it.entry.Index, it.req)
	s.noteState(it.entry.Index, it.req)
	if changesData(it.req) {
		s.LastChange = it.entry.Index
	}
	if it.req.Kind.ChangesAuth() {
		s.Auth = append(s.Auth, AuthEntry{Index: it.entry.Index, Req: it.req})
	}
}

// stampDisputed reports whether another log has the entry, of the same term, with another auth revision in its header:
// one of the two was altered.
func (it *item) stampDisputed() bool {
	return it.headerDisputed(func(a, b *dumplog.Header) bool { return a.AuthRevision != b.AuthRevision })
}

// idDisputed is stampDisputed for the request ID.
func (it *item) idDisputed() bool {
	return it.headerDisputed(func(a, b *dumplog.Header) bool { return a.ID != b.ID })
}

func (it *item) headerDisputed(differ func(a, b *dumplog.Header) bool) bool {
	for _, v := range it.others {
		if v.entry.Term == it.entry.Term && differ(&v.req.Header, &it.req.Header) {
			return true
		}
	}
	return false
}

// noteAllVersions notes starts and cluster versions. Where logs hold different entries, each of them did what it does
// for the members whose log holds it.
func (s *Survey) noteAllVersions(it *item) {
	if len(it.others) == 0 {
		s.noteStart(it, nil)
		s.noteVersion(it, nil)
		return
	}
	for _, v := range it.versions() {
		s.noteStart(v, it.otherHolders(v))
		s.noteVersion(v, it.otherHolders(v))
	}
}

// noteStart notes what a member publishes when it starts.
func (s *Survey) noteStart(it *item, other Elsewhere) {
	if a := it.req.Publishes(); a != nil {
		s.Starts[a.MemberID] = append(s.Starts[a.MemberID],
			Start{Index: it.entry.Index, ID: requestID(it.req), Name: a.Name, ClientURLs: slices.Clone(a.ClientURLs),
				Elsewhere: other})
		s.learn(a.MemberID)
	}
}

func (s *Survey) learn(id dumplog.ID) {
	p := uint16(id)
	if known, ok := s.prefixes[p]; ok && known != id {
		s.prefixes[p] = 0
		return
	}
	s.prefixes[p] = id
}

// requestID is the ID of the header, or of a raw v2 request, which has none.
func requestID(r *dumplog.Request) RequestID {
	if r.V2 != nil {
		return r.V2.ID
	}
	return r.Header.ID
}

// Proposer returns the member whose low 16 bits the request ID carries; 0 when none or several fit.
func (s *Survey) Proposer(id RequestID) dumplog.ID {
	if id == 0 {
		return 0
	}
	return s.prefixes[id.ProposerPrefix()]
}

// StartTime returns when the process that made id began, taking the missing high bits from the release years of etcd 3.
func StartTime(id RequestID) time.Time {
	return id.StartTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
}

// touches lists the small buckets a request can change.
func touches(r *dumplog.Request) []string {
	switch {
	case r.LeaseGrant != nil, r.LeaseRevoke != nil, r.LeaseCheckpoint != nil:
		return []string{"lease"}
	case r.Alarm != nil && !apply.ChangesAlarms(r.Alarm): // a query
		return nil
	case r.Alarm != nil:
		return []string{"alarm"}
	case r.ConfChange != nil:
		return []string{"members", "members_removed"}
	case r.MemberAttr != nil:
		return []string{"members"}
	case r.ClusterVer != nil, r.Downgrade != nil:
		return []string{"cluster"}
	case r.V2 != nil && strings.HasPrefix(r.V2.Path, "/0/members"):
		return []string{"members"}
	case r.V2 != nil && strings.HasPrefix(r.V2.Path, "/0/version"):
		return []string{"cluster"}
	case r.V2 != nil:
		return []string{"v2"}
	case r.Kind.ChangesAuth():
		return []string{"auth", "authUsers", "authRoles"}
	}
	return nil
}

// String says the gap as a range of indexes.
func (g Gap) String() string { return fmt.Sprintf("%d..%d", g.From, g.To) }

// grantedAt returns the last entry that grants a lease, 0 if there is none, and whether all grants are known.
func (s *Survey) grantedAt(id int64) (index uint64, complete bool) {
	return s.grants[id], len(s.grants) < maxLeaseOps
}
