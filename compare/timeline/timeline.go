// Package timeline arranges the logs and databases of a cluster's members on one raft-index axis. It has terms and
// their leaders, a lane for each member with its processes, purged and damaged ranges, marks of single entries, each
// member's outcome of entries whose effect differs, curves, and the membership over time. It contains only data; pages
// and terminals draw it.
//
// It does not judge: replay and check do. It never contains values and secrets.
package timeline

import (
	"context"
	"unicode/utf8"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Timeline is everything to draw on the axis of raft indexes.
type Timeline struct {
	// First and Last bound the merged log. Commit is the highest index that any member proves committed.
	First  uint64 `json:"first"`
	Last   uint64 `json:"last"`
	Commit uint64 `json:"commit"`
	// Gaps are the indexes between First and Last that are in no log.
	Gaps  []Span   `json:"gaps"`
	Terms []Term   `json:"terms"`
	Lanes []Lane   `json:"lanes"`
	Marks []Moment `json:"marks"`
	// MarksLeftOut counts marks that are not listed.
	MarksLeftOut int `json:"marksLeftOut,omitempty"`
	// Events are entries with different outcomes on two members, or an illegal outcome on one. EventCount counts all of
	// them.
	Events     []Event `json:"events"`
	EventCount int     `json:"eventCount"`
	// Entries lists single entries of the merged log, Density counts all of them.
	Entries Entries `json:"entries"`
	Density Density `json:"density"`
	// Times are points of wall-clock time in index order, according to entries.
	Times []Time `json:"times"`
	// History is the membership of each member over time.
	History []Membership `json:"history"`
	// Notes are times and indexes from servers' own logs.
	Notes []Note `json:"notes,omitempty"`
}

// Span is a range of indexes, both ends included.
type Span struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	What string `json:"what,omitempty"`
}

// Term is one term of the merged log.
type Term struct {
	Term uint64 `json:"term"`
	Span
	// Leader is the candidate with votes in the logs, "" if there is none or several. Elected is true if the votes are
	// a majority.
	Leader  string `json:"leader,omitempty"`
	Elected bool   `json:"elected,omitempty"`
	// Votes is the number of logs that show a vote for the leader.
	Votes int `json:"votes,omitempty"`
}

// Lane is one member on the axis.
type Lane struct {
	Member string     `json:"member"`
	ID     dumplog.ID `json:"id"`
	// LogFrom and LogTo bound its log; 0 if it has none. Commit, Applied and AppliedMax are its own indexes.
	LogFrom    uint64 `json:"logFrom"`
	LogTo      uint64 `json:"logTo"`
	Commit     uint64 `json:"commit"`
	Applied    uint64 `json:"applied"`
	AppliedMax uint64 `json:"appliedMax"`
	// JudgedFrom and JudgedTo bound the replayed entries; Why says why there are none.
	JudgedFrom uint64 `json:"judgedFrom"`
	JudgedTo   uint64 `json:"judgedTo"`
	Why        string `json:"why,omitempty"`
	// Lacks counts committed entries whose effect the member lacks, Surplus those that must have none and have one on
	// it. FirstLack is the first of both.
	Lacks     int    `json:"lacks"`
	Surplus   int    `json:"surplus,omitempty"`
	FirstLack uint64 `json:"firstLack,omitempty"`
	// AuthExpected is the auth revision according to the log, nil if the log does not reach back far enough.
	AuthExpected *uint64 `json:"authExpected,omitempty"`
	Lives        []Life  `json:"lives"`
	// Purged are indexes that its log once had or that a snapshot replaced, Damaged those that damage hides or that the
	// log lost, Skipped those that a received snapshot covers. Hidden are entries whose effect the database does not
	// show, because its pages cannot be read.
	Purged  []Span `json:"purged"`
	Damaged []Span `json:"damaged"`
	Skipped []Span `json:"skipped"`
	Hidden  []Span `json:"hidden"`
	// Curve is the member's state after entries, PerPoint numbers each: index, revision (0 if unknown from there to the
	// next point), auth revision (0 if unknown) and the lowest consistent index that a restart can find there.
	Curve []int64 `json:"curve"`
}

// PerPoint is how many numbers of a curve belong to one entry.
const PerPoint = 4

// Life is one process of a member.
type Life struct {
	Span
	// Start is when the process began, in Unix milliseconds.
	Start int64 `json:"start"`
	// Publish is the entry in which it published its attributes, 0 if the log has none.
	Publish  uint64 `json:"publish,omitempty"`
	Requests int    `json:"requests"`
	// Inferred is true if only a jump of the request IDs distinguishes it from the previous process.
	Inferred bool `json:"inferred,omitempty"`
}

// Moment is an event at one index, on one axis for all members.
type Moment struct {
	Term  uint64 `json:"term,omitempty"`
	Index uint64 `json:"index"`
	// Kind is term, start, conf-change, compaction, alarm, auth, version, snapshot, auth-revision-jump, divergence, end
	// or KindLog.
	Kind string `json:"kind"`
	// Members are the affected members; empty means the cluster.
	Members []string `json:"members"`
	What    string   `json:"what"`
	// Refused is true for a conf change that every server refuses.
	Refused bool `json:"refused,omitempty"`
	// Objects are the Kubernetes objects that the entry of a divergence writes.
	Objects []evidence.Object `json:"objects,omitempty"`
}

// KindLog is the kind of a moment that is a line of a server's own log.
const KindLog = "log"

// Event is an entry with its outcome on each member.
type Event struct {
	Term     uint64   `json:"term"`
	Index    uint64   `json:"index"`
	What     string   `json:"what"`
	Keys     []string `json:"keys,omitempty"`
	Proposer string   `json:"proposer,omitempty"`
	User     string   `json:"user,omitempty"`
	// HeaderAuth is the auth revision of the proposer, as in the entry's header.
	HeaderAuth uint64 `json:"headerAuth,omitempty"`
	// Acked is true if the client was informed of the success.
	Acked bool `json:"acked,omitempty"`
	// Outcomes are by lane. Lacking are the lanes without the promised effect.
	Outcomes []Outcome `json:"outcomes"`
	Lacking  []int     `json:"lacking"`
}

// Outcome is what one member did with an entry, and why.
type Outcome struct {
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	Rev    int64  `json:"rev,omitempty"`
	Auth   uint64 `json:"auth,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// Entries is a list of single entries, column by column.
type Entries struct {
	// Listed are the ranges of indexes in the list; the whole log if it is short.
	Listed []Span `json:"listed"`
	// Kinds names the values of Kind.
	Kinds []string `json:"kinds"`
	Index []uint64 `json:"index"`
	Term  []uint64 `json:"term"`
	Kind  []int    `json:"kind"`
	What  []string `json:"what"`
}

// Density counts entries by bins of Step indexes, starting at index From.
type Density struct {
	From uint64 `json:"from"`
	Step uint64 `json:"step"`
	// Classes names the rows of Counts: keys, leases, auth, other.
	Classes []string `json:"classes"`
	Counts  [][]int  `json:"counts"`
	// Lacking counts by lane, from the listed events, the entries whose effect the member lacks.
	Lacking [][]int `json:"lacking"`
}

// Time says that the entry at Index was proposed at or after a time (Unix milliseconds).
type Time struct {
	Index  uint64 `json:"index"`
	Unix   int64  `json:"unix"`
	Source string `json:"source"`
}

// Membership is one member's role in the configuration over the log.
type Membership struct {
	ID   dumplog.ID `json:"id"`
	Name string     `json:"name"`
	// Spans are the ranges in which it was a voter or learner, according to What.
	Spans []Span `json:"spans"`
}

// Note is a statement of a server's log.
type Note struct {
	Member string `json:"member"`
	// Index is the entry it names, 0 if none. Unix is its time in milliseconds, 0 if it has none.
	Index uint64 `json:"index,omitempty"`
	Unix  int64  `json:"unix,omitempty"`
	ID    string `json:"id"`
	Line  string `json:"line"`
}

// Input is the data for a timeline.
type Input struct {
	Members []*evidence.Member
	Replay  *replay.Result
	// Marks are the moments of the report.
	Marks []Moment
	// Break is the first entry at which something broke, 0 if unknown.
	Break uint64
	// Forgot are, by position of the member, the entries that it once had but that its log lost at the end; From is 0
	// if there are none.
	Forgot []Span
	// Notes come from servers' logs.
	Notes []Note
}

// Options bound what a timeline lists.
type Options struct {
	// MaxEntries bounds the entries listed one by one, 0 means 20,000; MaxEvents the events, 0 means 5,000.
	MaxEntries, MaxEvents int
}

// maxText is the longest text of an entry; a longer key is clipped.
const maxText = 400

// bins is how many bins the density has at most.
const bins = 1000

// Build makes the timeline in one pass over the merged log. It returns nil if there is no log to draw.
func Build(ctx context.Context, in Input, o Options) (*Timeline, error) {
	if in.Replay == nil || in.Replay.Survey == nil || in.Replay.First == 0 {
		return nil, nil
	}
	if o.MaxEntries == 0 {
		o.MaxEntries = 20_000
	}
	if o.MaxEvents == 0 {
		o.MaxEvents = 5_000
	}
	rp := in.Replay
	t := &Timeline{First: rp.First, Last: rp.Last, Commit: rp.Commit, Gaps: []Span{}, Terms: []Term{}, Lanes: []Lane{},
		Marks:  []Moment{},
		Events: []Event{}, Times: []Time{}, History: []Membership{}, MarksLeftOut: rp.Survey.MarksLeftOut,
		Notes: in.Notes}
	for _, g := range rp.Gaps {
		t.Gaps = append(t.Gaps, Span{From: g.From, To: g.To})
	}
	b := &builder{in: in, o: o, t: t, names: names(in.Members)}
	b.events()
	b.marks()
	if err := b.log(ctx); err != nil {
		return nil, err
	}
	b.terms()
	b.lanes()
	b.history()
	return t, nil
}

// builder is the state shared by the parts of Build.
type builder struct {
	in    Input
	o     Options
	t     *Timeline
	names map[dumplog.ID]string
	lives []dumplog.Life
}

// names maps member IDs to labels, else to the names of the member lists.
func names(members []*evidence.Member) map[dumplog.ID]string {
	out := map[dumplog.ID]string{}
	for _, m := range members {
		for id, n := range m.Membership.Names {
			out[id] = n
		}
	}
	for _, m := range members {
		if m.MemberID != 0 {
			out[m.MemberID] = m.Label()
		}
	}
	return out
}

func (b *builder) name(id dumplog.ID) string {
	switch n := b.names[id]; {
	case id == 0:
		return ""
	case n != "":
		return n
	}
	return id.String()
}

// Clip shortens a text to a length that a page can show, at a rune.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
