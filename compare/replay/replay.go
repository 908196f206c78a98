// Package replay determines the effect of each committed entry of the log on each member's database.
//
// etcd applies the log deterministically, and its database keeps its own history: every change of a key is a record
// under its revision. So the effect of an entry can be predicted under the rules of the etcd line that ran, from the
// member's state at that point (keys, auth buckets and auth revision, leases, alarms, compaction). The replay compares
// the prediction with the existing records. It steps all members over one merged log, because entries are replicated
// verbatim: a member whose own segments were purged is judged by the entries another member still has.
//
// If prediction and database differ, the model follows the database, so that one lost write does not make every later
// one look wrong. The replay makes no guesses below the compact revision or in unreadable pages: such entries end as
// OutsideHistory.
//
// Sources: server/etcdserver/apply*.go, server/auth/store.go, server/storage/mvcc, server/lease of etcd 3.3 to 3.7.
package replay

import (
	"cmp"
	"context"
	"crypto/sha256"
	"sync/atomic"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/memory"
)

// State is how an entry ended on a member. The zero value is unknown: not judged.
type State uint8

// The states of an entry on a member.
const (
	Unknown        State = iota
	Applied              // its effect is in the database
	NoEffect             // legally without effect: a read, a failed compare with nothing to do, a delete of nothing
	Refused              // refused by a rule; Reason says which
	Missing              // it should have taken effect and the database does not show it
	AppliedTwice         // its effect is there twice
	Contradicted         // the database holds another effect at its place
	OutsideHistory       // compacted, purged or unreadable: unknown
	NotApplied           // above what the member has applied
)

// String names the state.
func (s State) String() string {
	return [...]string{"unknown", "applied", "no-effect", "refused", "missing", "applied-twice", "contradicted",
		"outside-history", "not-applied"}[s]
}

// Reason says why an entry was refused or had no effect.
type Reason = apply.Reason

// The reasons etcd has to refuse an entry, in the order in which it looks.
const (
	ReasonNone        = apply.ReasonNone
	ReasonOldAuth     = apply.ReasonOldAuth
	ReasonPermission  = apply.ReasonPermission
	ReasonUserEmpty   = apply.ReasonUserEmpty
	ReasonNoSpace     = apply.ReasonNoSpace
	ReasonCorrupt     = apply.ReasonCorrupt
	ReasonLease       = apply.ReasonLease
	ReasonLeaseExists = apply.ReasonLeaseExists
	ReasonKey         = apply.ReasonKey
	ReasonCompacted   = apply.ReasonCompacted
	ReasonFuture      = apply.ReasonFuture
	ReasonInvalid     = apply.ReasonInvalid
)

// Outcome is how one entry ended on one member.
type Outcome struct {
	State  State
	Reason Reason
	// Rev is the main revision of its effect, 0 when it has none.
	Rev int64
	// AuthRevision is the member's own auth revision when it met the entry; 0 when unknown.
	AuthRevision uint64
	// Sig identifies the effect by content, independent of revisions: equal Sig, equal change. 0 means no effect.
	Sig uint64
	// Wrongly is true for a refusal that a member with the auth revision of the log would not have made.
	Wrongly bool
	// Against is true for an effect that the entry cannot have had by the rules, as the log shows. excluded is true if
	// the keys decide that, not alarms or rights.
	Against, excluded bool
	// Open is true where the rules allow an effect as well as none, and the database shows none: no proof that the
	// entry had none.
	Open bool
	// Partial is true when only the first records of a transaction exist, otherKeys when the records in their place are
	// of other keys.
	Partial, otherKeys bool
	// Detail says what differs, in words without values.
	Detail string
	// keys are those of the records where the request does not name all of them: a lease revoke, a delete of a range.
	keys []string
}

// OfOtherKeys reports whether the records in the place of the entry's own are of other keys.
func (o *Outcome) OfOtherKeys() bool { return o.otherKeys }

// Event is an entry that ended differently on two members, or illegally on one.
type Event struct {
	Index, Term uint64
	Kind        dumplog.Kind
	// What describes the request on one line, values redacted.
	What string
	Keys []string
	// Lease is the lease that a put or lease_revoke names, 0 when none.
	Lease int64
	// Proposer is the member that proposed it, 0 when the request ID fits none or several; Prefix are the 16 bits
	// known.
	Proposer dumplog.ID
	Prefix   uint16
	User     string
	// RangeRevision is the revision a range in a write transaction asks for, 0 when none does; RangeRevisions are those
	// of all its top-level ranges.
	RangeRevision  int64
	RangeRevisions []int64
	// Compacted is the compact revision at that entry, the lowest of those that the members had; -1 when never
	// compacted.
	Compacted int64
	// HeaderAuthRevision is the proposer's auth revision as stamped into the header.
	HeaderAuthRevision uint64
	// Outcomes are by member, in the order of Result.Members.
	Outcomes []Outcome
	// OneTerm is true if logs hold different entries of one term here: one of them was altered.
	OneTerm bool
	// Acked is true if the proposer applied the effect: the client received a success.
	Acked bool
	// Lacking and Holding list members (by position) without and with the effect that the client was promised.
	Lacking, Holding []int
	// logs counts the logs that hold the entry.
	logs int
	// versions are the entries of members whose log holds another one at this index, by position; nil if all agree.
	versions map[int]Version
}

// Version is an entry as one member's log holds it.
type Version struct {
	Term uint64
	What string
	Keys []string
}

// Version returns the entry that the log of the member at a position holds.
func (e *Event) Version(pos int) Version {
	if v, ok := e.versions[pos]; ok {
		return v
	}
	return Version{Term: e.Term, What: e.What, Keys: e.Keys}
}

// Disputed reports whether the logs hold different entries at this index.
func (e *Event) Disputed() bool { return len(e.versions) > 0 }

// Jump is a rise of a member's auth revision that the log alone does not explain.
type Jump struct {
	// Index is the entry before which it took place; Restart the publish entry of the restart that explains it, 0 if
	// none.
	Index, Restart uint64
	// Snapshot is the index of a snapshot received from another member that brought the rise, 0 if it was none.
	Snapshot uint64
	Start    time.Time
	// Extra is the rise; Possible the most that re-applying the auth entries From..To a second time can explain.
	Extra, Possible uint64
	From, To        uint64
	// Entries are the indexes of the auth entries that count again when applied a second time.
	Entries []uint64
	// AllKinds is true if what repeats auth entries on the release that ran repeats all others as well.
	AllKinds bool
}

// Compacted is a compaction entry: To is the revision that it names, Revision that of the member when it executed it.
type Compacted struct {
	Index        uint64
	To, Revision int64
}

// MemberResult is the result of the replay for one member.
type MemberResult struct {
	Member *evidence.Member
	// Checked is false when nothing could be replayed; Why says why.
	Checked bool
	Why     string
	// From and To are the first and last index judged.
	From, To uint64
	Counts   [NotApplied + 1]int
	// BaseIndex and BaseRevision are where the model of the member began: the revision that its database had at that
	// index.
	BaseIndex    uint64
	BaseRevision int64
	// LastWrite is the last entry judged that wrote a revision, 0 if there is none.
	LastWrite uint64
	// RevisionAt is the member's revision at Result.KeyCommon, 0 when it is not known.
	RevisionAt int64
	// Levels are the member's revisions at the indexes up to which members have applied. It omits an index that the
	// member's model does not reach, and one below the place where log and database meet.
	Levels map[uint64]int64
	// Below is where log and database differ at the compact revision, bounded; BelowCount counts all.
	Below      []BelowDiff
	BelowCount int
	// AuthExpected is the auth revision if every entry of the log is applied once; AuthKnown is false when the log does
	// not reach back far enough.
	AuthExpected    uint64
	AuthExpectedMin uint64
	AuthKnown       bool
	// AuthEndLost is true if the logs lack entries that the database has applied: these may have raised its auth
	// revision.
	AuthEndLost bool
	// AuthAtMost is the last entry that took effect although its header must not be below the member's auth revision:
	// up to there the member's was not above the one stamped. Its index is 0 where there is none.
	AuthAtMost Stamp
	Jumps      []Jump
	// Unexplained is the rest of the auth revision's rise after all Jumps.
	Unexplained int64
	// Undecodable are the entries of its log that do not decode, in order, bounded.
	Undecodable []Undecodable
	// Lacks and Unique count committed entries whose required effect this member lacks, or holds alone.
	Lacks, Unique         int
	LacksKeys, UniqueKeys map[string]struct{}
	// LacksAcked are those among Lacks whose client received a success.
	LacksAcked int
	// Surplus counts committed entries that must have no effect and have one on this member.
	Surplus int
	// Open counts the entries of which no database holds an effect and the sources do not show whether one is required.
	// FirstOpen is the index of the first.
	Open      int
	FirstOpen uint64
	// Extra are revisions in the database that no entry explains. PastLogs is true if it holds revisions that entries
	// after the end of all logs must have written; its consistent index is then above that end.
	Extra    []int64
	PastLogs bool
	// Reruns are stretches of the log whose effects a restart applied a second time.
	Reruns []Stretch
	// Ahead is the stretch of entries above the consistent index whose effects are in the database; nil if there is
	// none. Up to 3.4 the index legally lags for entries that write no key; then this is the last entry above it that
	// wrote one.
	Ahead *Stretch
	// RowsAhead are the entries above the consistent index whose effects are in small buckets; nil if there are none.
	// Up to 3.4 the index legally lags for such entries.
	RowsAhead *RowsAhead
	// Behind counts the entries between the consistent index and the newest raft snapshot; nil if there are none.
	Behind *Behind
	// StateDiffs are rows of buckets other than key that contradict the log at the end of the replay.
	StateDiffs []StateDiff
	// Leases are the leases of the database whose grant the log holds, in ID order.
	Leases []LeaseFact
	// Kept are leases that the database still holds although the log revokes them, among those that the server may have
	// forgotten.
	Kept []KeptLease
	// Beyond are entries that took effect beyond the rights of their user, Shut stretches in which users other than
	// root could not write.
	Beyond []Beyond
	Shut   []ShutSpan
	// Repeats are leases that a restart granted or revoked a second time, as far as the log shows (up to 3.4).
	Repeats map[int64]LeaseRepeat
	// LeaseFaults are leases that the member has or lacks contrary to the log.
	LeaseFaults []LeaseFault
	// Writes counts the judged entries that may write keys.
	Writes int64
	// Compacted is the last compaction that the member may have executed, as far as its revision there is known; nil
	// where there is none.
	Compacted *Compacted
	// Curve is the member's state along the log, for pictures.
	Curve Curve
	// Stale counts missing entries that the rights from before a received snapshot refuse.
	Stale int
	// firstBad is the first entry that did not end as the log asks; nil if there is none.
	firstBad *Event
	// baseWrites counts the entries up to BaseIndex that may write.
	baseWrites int64
	// insteadOwn counts the entries of another log that the member is taken to have executed, and not those that its
	// own log holds there.
	insteadOwn int
	// unknownWrites are entries that do not decode, or are doubted, with records in their place; bounded.
	unknownWrites []uint64
	// strays are the first of Extra, with the entry that was matched there.
	strays []stray
	// misplaced is true if the place at which log and database meet contradicts certain facts of the log. endsShort is
	// true if the log, up to the member's applied index, does not lead to the content of its database.
	misplaced, endsShort bool
	// surplus is true if the database had more revisions at that place than the log makes.
	surplus bool
}

// StateDiff is a lease, user, role or alarm that differs between the log and the database.
type StateDiff struct {
	Bucket, Key        string
	Expected, Observed string
	// Surplus is true if the row exists although the log has deleted it.
	Surplus bool
}

// FirstBad returns the first event with an illegal outcome on this member, nil when there is none.
func (r *MemberResult) FirstBad() *Event { return r.firstBad }

// Result is what the replay of all members shows.
type Result struct {
	// First and Last bound the merged log; Commit is the highest index any member proves committed, Common the highest
	// index that every member with a database has certainly applied.
	First, Last, Commit, Common uint64
	// KeyCommon is Common, or higher if the replay shows that the keys of every member are further.
	KeyCommon uint64
	Gaps      []Gap
	Members   []*MemberResult
	// Events are in index order, bounded by Options.MaxEvents; EventCount counts all.
	Events     []*Event
	EventCount int
	LogDiffs   []LogDiff
	// SameTerm are indexes at which two logs hold different entries of one term, committed or not.
	SameTerm []LogDiff
	// Shifts are the places where some logs lack entries that others hold, or hold added ones, and all have the same
	// entries after them. The altered logs are read up to there only.
	Shifts []*Shift
	// Emptied are the entries whose data was removed from a log.
	Emptied []Emptied
	// Forced are the runs of entries that --force-new-cluster wrote; Overlaps the members that ran twice at once;
	// Copies the sources that carry one member ID, in pairs.
	Forced   []Forced
	Overlaps []Overlap
	Copies   []Copies
	Survey   *Survey
	// Undecodable are, by position of the member, the entries of its log that do not decode, in order, bounded.
	Undecodable map[int][]Undecodable
	// Watched are the entries that touch Options.Watch, whatever their outcome: all, or the newest. WatchedCount counts
	// all.
	Watched      []*Event
	WatchedCount int
	// TooLarge is true if nothing was replayed, because the keys take more than Options.MaxBytes.
	TooLarge bool
	// disputed is true when two logs hold different entries at one index, committed or not.
	disputed bool
	// late are the members whose place differs from the place that the records suggest.
	late map[int]bool
	// given are the places of members that do not follow from their own records.
	given map[int]place
	// Doubted are entries of a single log that the databases contradict.
	Doubted []Doubted
	// positions has, for each member, where its log holds the entries that findings may name. looked counts those that
	// were looked for one by one.
	positions map[int]map[uint64]dumplog.Pos
	looked    atomic.Int64
}

// GivesAuth reports whether the log gives the auth revision that the database has to hold.
func (r *MemberResult) GivesAuth() bool { return r.AuthKnown && !r.AuthEndLost }

// AuthOff reports whether the auth revision differs from that of the log, where the log reaches back far enough.
func (r *MemberResult) AuthOff() bool { return r.AuthKnown && (len(r.Jumps) > 0 || r.Unexplained != 0) }

// Gap is a span of indexes that no member's log holds.
type Gap struct{ From, To uint64 }

// LogDiff is an index at which two members hold different entries although both are committed there.
type LogDiff struct {
	Index uint64
	// By maps each member to its entry, as term and description; members are positions in Result.Members.
	By map[int]string
	// Versions are the members by the entry that their log holds there, committed or not: the most frequent version
	// first.
	Versions [][]int
	// Sums are the SHA-256 of the data of the versions, in the same order, and Headers those of their requests. Emptied
	// are the versions without data that do not begin a term.
	Sums    [][sha256.Size]byte
	Headers []dumplog.Header
	Emptied []bool
	// Puts are the puts among the versions, in the same order; nil for another request, one that keeps the value or the
	// lease of its key, or a very long key.
	Puts []*PutSum
}

// PutSum is what a put writes, with the SHA-256 of the value.
type PutSum struct {
	Key   string
	Lease int64
	Size  int
	Value [sha256.Size]byte
}

// Options tune Run.
type Options struct {
	// MaxEvents bounds Result.Events, and twice that Result.Watched; 0 means 10000.
	MaxEvents int
	// Watch is a key whose entries are kept in Result.Watched; nil watches nothing.
	Watch []byte
	// Each replays every member separately, even if the records of two members and their logs are proven to be equal,
	// so that one replay gives the outcome of both. The result is the same.
	Each bool
	// MaxBytes bounds the memory that the keys of all members take; 0 means memory.Replay. With more keys nothing is
	// replayed.
	MaxBytes int64
}

func (o *Options) maxBytes() int64 { return cmp.Or(o.MaxBytes, memory.Replay()) }

// Run replays the merged log of all members against every database. Members must be of one cluster.
func Run(ctx context.Context, members []*evidence.Member, o Options) (*Result, error) {
	if o.MaxEvents == 0 {
		o.MaxEvents = 10000
	}
	r := newResult(members)
	var err error
	if r.Survey, err = survey(ctx, r); err != nil {
		return nil, err
	}
	if r, err = withoutShifted(ctx, r, o); err != nil {
		return nil, err
	}
	if r.Copies, err = copies(ctx, members); err != nil {
		return nil, err
	}
	if err := simulate(ctx, r, o); err != nil {
		return nil, err
	}
	if r, err = withoutDoubted(ctx, r, o); err != nil {
		return nil, err
	}
	if err := withoutMoved(ctx, r); err != nil {
		return nil, err
	}
	if err := forced(ctx, r); err != nil {
		return nil, err
	}
	if err := findEmptied(ctx, r); err != nil {
		return nil, err
	}
	return r, locateEvents(ctx, r)
}

func newResult(members []*evidence.Member) *Result {
	r := &Result{Common: commonIndex(members)}
	for _, m := range members {
		r.Members = append(r.Members, &MemberResult{Member: m, LacksKeys: map[string]struct{}{},
			UniqueKeys: map[string]struct{}{}})
		r.Commit = max(r.Commit, m.Commit)
	}
	r.KeyCommon = r.Common
	return r
}

// commonIndex is the lowest AppliedMin of the members that have a database: what all of them have certainly applied.
func commonIndex(members []*evidence.Member) uint64 {
	var common uint64
	seen := false
	for _, m := range members {
		if !m.HasDB() {
			continue
		}
		if !seen || m.AppliedMin < common {
			common, seen = m.AppliedMin, true
		}
	}
	return common
}
