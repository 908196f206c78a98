package verdict

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Verdict is the answer in short.
type Verdict struct {
	Health    check.Health     `json:"healthy"`
	Class     check.Class      `json:"class"`
	Cause     *cause.ID        `json:"cause"`
	Certainty *cause.Certainty `json:"certainty"`
	// Summary is the whole answer in one sentence: cause, statement, losses and best members.
	Summary    string      `json:"summary"`
	FirstBreak *FirstBreak `json:"firstBreak"`
	// Statement is the part of Summary that neither the cause nor the ranking has, for pages that show those as well.
	Statement string `json:"-"`
	// Problem is Summary without the best members, for pages that show those as well.
	Problem string `json:"-"`
}

// Add appends to the statement and so to the summary.
func (v *Verdict) Add(text string) {
	v.Summary += text
	if v.Statement != "" {
		v.Statement += text
	}
	if v.Problem != "" {
		v.Problem += text
	}
}

// Says is the statement: the whole summary unless a cause or a best member is part of it.
func (v *Verdict) Says() string { return cmp.Or(v.Statement, v.Summary) }

// FirstBreak is the first invariant that broke, by raft index.
type FirstBreak struct {
	Check    check.ID    `json:"check"`
	Member   []string    `json:"member"`
	Term     uint64      `json:"term,omitempty"`
	Index    uint64      `json:"index,omitempty"`
	Revision *check.Rev  `json:"revision,omitempty"`
	Bucket   string      `json:"bucket,omitempty"`
	Key      check.Bytes `json:"key,omitempty"`
	Expected string      `json:"expected"`
	Observed string      `json:"observed"`
}

// Cause is one entry of the catalogue that fits the findings.
type Cause struct {
	ID        cause.ID        `json:"id"`
	Title     string          `json:"title"`
	Certainty cause.Certainty `json:"certainty"`
	Members   []string        `json:"members"`
	// Because lists the findings it rests on.
	Because   []string `json:"because"`
	RefutedBy string   `json:"refutedBy"`
	// Affected are the releases with the defect, FixedIn the first ones without it; texts in JSON.
	Affected []release.Range `json:"affected"`
	FixedIn  []release.Range `json:"fixedIn"`
	Refs     []string        `json:"refs"`
	Recovery string          `json:"recovery,omitempty"`
	Loss     string          `json:"loss,omitempty"`
	// Secondary is true when it explains something other than the verdict; such causes come last.
	Secondary bool `json:"aside,omitempty"`
}

// Best ranks the members by content.
type Best struct {
	// Members are all that are equally good, best first.
	Members []string `json:"members"`
	// Undecided says what these members hold differently although nothing shows which of them is right, and what would
	// show it; "" where they do not differ so.
	Undecided string `json:"undecided,omitempty"`
	// Why says in one sentence what the choice rests on.
	Why string `json:"why"`
	// For is the part of Why that speaks for the best, without what speaks against the others.
	For     string `json:"-"`
	Ranking []Rank `json:"ranking"`
	Lost    Lost   `json:"lost"`
}

// Rank is one member's standing.
type Rank struct {
	Member  string   `json:"member"`
	Usable  bool     `json:"usable"`
	Reasons []string `json:"reasons"`
	// HoldsAll is true where the first reason is that it holds every committed write, or lacks none that is known.
	HoldsAll bool `json:"-"`
	// Behind is how many committed entries it has not got yet, as a member that lags does.
	Behind int   `json:"-"`
	Lacks  Count `json:"lacks"`
	Unique Count `json:"unique"`
	// Surplus counts the committed entries that have an effect on it and must have none.
	Surplus int `json:"surplus,omitempty"`
	// NamedBy are the findings that accuse the member. They are among the reasons, too.
	NamedBy []string `json:"namedBy,omitempty"`
}

// wrongEffects counts the committed entries whose effect on the member is not the required one.
func (r *Rank) wrongEffects() int { return r.Lacks.CommittedEntries + r.Surplus }

func (r *Rank) namedBy() string { return "named by " + strings.Join(r.NamedBy, ", ") }

// OtherReasons are the reasons but for the findings that accuse the member.
func (r *Rank) OtherReasons() []string {
	return slices.DeleteFunc(slices.Clone(r.Reasons), func(s string) bool {
		return len(r.NamedBy) > 0 && s == r.namedBy()
	})
}

// Count counts committed entries whose effect is missing or held by one member alone, and the keys they touch.
type Count struct {
	CommittedEntries int `json:"committedEntries"`
	Keys             int `json:"keys"`
}

// Lost lists what choosing the first of the best members gives up.
type Lost struct {
	CommittedEntries int           `json:"committedEntries"`
	Keys             int           `json:"keys"`
	Entries          []LostEntry   `json:"entries,omitempty"`
	KeyNames         []check.Bytes `json:"keyNames,omitempty"`
	Command          shell.Command `json:"-"`
	// MoreCommands write out those that the log of Command does not hold: several histories parted from the kept one.
	MoreCommands []shell.Command `json:"moreCommandArgs,omitempty"`
	// AfterEnd are those of the committed entries that a source lacks because it ends before them, and that no member
	// can supply: the source is a backup or the data dir of a removed member, or no log continues from its end. Their
	// keys are not counted.
	AfterEnd int `json:"afterEnd,omitempty"`
	// Parted are those of the committed entries that the log of another member holds, from where the logs part. Their
	// keys are counted as far as the comparison of the contents shows them.
	Parted int `json:"parted,omitempty"`
	// Awaited are committed entries that the member has not got yet. They are lost unless another member supplies it
	// with them before its content becomes that of the others.
	Awaited int `json:"awaited,omitempty"`
	// FromLogs is true if only the logs supply the awaited entries: a server of another member, once started, would
	// send the member its database instead.
	FromLogs bool `json:"fromLogs,omitempty"`
	// Records are records of the kept member that are proven wrong: what was right is lost with them. Mend is the
	// command that takes those from other members that hold the right ones; none where no member does.
	Records LostRecords   `json:"records,omitzero"`
	Mend    shell.Command `json:"-"`
	// with are the sources that Mend takes records from.
	with []string
	// Unproven says why it is not proven that nothing more is lost; empty where it is. Tail is the reason among them
	// that names entries which other logs hold after the end of the member's own: a rebuild may execute these.
	Unproven []string `json:"unproven,omitempty"`
	Tail     string   `json:"-"`
}

// LostRecords are records of bucket key, live or superseded, that are proven wrong on the kept member.
type LostRecords struct {
	// Count counts them. OfEntries are those of them that the lost committed entries wrote.
	Count     int `json:"count"`
	OfEntries int `json:"ofEntries,omitempty"`
	// Mendable counts those of which a source holds the right one.
	Mendable int `json:"mendable,omitempty"`
	// Rows are the first of them, at most MaxWrongRecords.
	Rows []LostRecord `json:"rows"`
}

// First returns the same with at most n rows.
func (r LostRecords) First(n int) LostRecords {
	r.Rows = r.Rows[:min(n, len(r.Rows)):min(n, len(r.Rows))]
	return r
}

// LostRecord is one record that is proven wrong.
type LostRecord struct {
	Bucket   string      `json:"bucket"`
	Key      check.Bytes `json:"key"`
	Revision check.Rev   `json:"revision"`
	// Kept is what the member holds, Expected what the proof says, both without key and value; Why is the proof.
	Kept     string `json:"kept"`
	Expected string `json:"expected"`
	Why      string `json:"why"`
	// Index is the entry that wrote it, 0 where the proof is not the log.
	Index uint64 `json:"index,omitempty"`
	// HeldBy are the sources that hold the right record; none when that is not known.
	HeldBy []string `json:"heldBy"`
}

// Loses says what is lost by records that no lost committed entry wrote, "" where there are none. on is the member.
func (r *LostRecords) Loses(on string) string {
	n := r.Count - r.OfEntries
	if n == 0 {
		return ""
	}
	return "the right content of " + plural.Of(n, "record that is", "records that are") + " proven wrong on " + on
}

// MendedWith reports whether a source is one that Mend takes records from.
func (l *Lost) MendedWith(source string) bool { return slices.Contains(l.with, source) }

// None reports whether nothing is known to be lost.
func (l *Lost) None() bool { return l.CommittedEntries == 0 && l.Keys == 0 && l.Records.Count == 0 }

// Shown reports whether anything of what is lost can be shown: it is listed, or a log holds it.
func (l *Lost) Shown() bool {
	return len(l.Entries) > 0 || len(l.Records.Rows) > 0 || !l.Command.IsZero()
}

// String is "3 committed writes on 2 keys", or "no committed write".
func (l Lost) String() string {
	switch wrong := l.Records.Loses("it"); {
	case wrong == "":
		return l.whole() + l.Condition()
	case l.CommittedEntries > 0 || l.Keys > 0:
		return l.whole() + ", and " + wrong + l.Condition()
	default:
		return wrong + l.Condition()
	}
}

// Condition says under which condition the entries that the member awaits are not lost, "" where it awaits none.
func (l Lost) Condition() string {
	if l.Awaited == 0 {
		return ""
	}
	entries := "the last " + plural.Of(l.Awaited, "committed entry", "committed entries")
	if l.FromLogs {
		return ", if " + entries + " are first added to its database from the logs (a server would send it another " +
			"database)"
	}
	return ", if it first gets " + entries + " from another member"
}

// whole says what is lost of the entries, as if the member already had those that it awaits.
func (l Lost) whole() string {
	var parts []string
	writes := l.CommittedEntries - l.AfterEnd - l.Parted
	if writes > 0 || l.Keys > 0 && l.Parted == 0 {
		parts = append(parts, plural.Of(writes, "committed write", "committed writes")+" on "+
			plural.Of(l.Keys, "key", "keys"))
	}
	if l.Parted > 0 {
		parts = append(parts, l.OfOtherHistory())
	}
	if l.AfterEnd > 0 {
		parts = append(parts, "the last "+plural.Of(l.AfterEnd, "committed entry", "committed entries"))
	}
	if len(parts) == 0 {
		return "no committed write"
	}
	return strings.Join(parts, ", and ")
}

// OfOtherHistory names the entries that only another history holds.
func (l *Lost) OfOtherHistory() string {
	return plural.Of(l.Parted, "committed entry", "committed entries") + " of the other history"
}

// MarshalJSON writes the commands as text for a shell, and as lists of arguments.
func (l Lost) MarshalJSON() ([]byte, error) {
	type fields Lost
	var more []string
	for _, c := range l.MoreCommands {
		more = append(more, c.String())
	}
	return json.Marshal(struct {
		fields
		Command     string        `json:"command,omitempty"`
		CommandArgs shell.Command `json:"commandArgs,omitzero"`
		More        []string      `json:"moreCommands,omitempty"`
		Mend        string        `json:"mend,omitempty"`
		MendArgs    shell.Command `json:"mendArgs,omitzero"`
	}{fields(l), l.Command.String(), l.Command, more, l.Mend.String(), l.Mend})
}

// LostEntry is one committed entry whose effect would be lost, and who holds it.
type LostEntry struct {
	Term  uint64 `json:"term"`
	Index uint64 `json:"index"`
	What  string `json:"what"`
	// HeldBy are the sources whose databases show it; none when only the log does.
	HeldBy []string `json:"heldBy"`
	// ProposedBy is the member that proposed it, by label or ID; "" when the entry does not show it.
	ProposedBy string `json:"proposedBy,omitempty"`
}

// CheckOutcome is the verdict of one check.
type CheckOutcome struct {
	ID      check.ID      `json:"id"`
	Title   string        `json:"title"`
	Outcome check.Outcome `json:"outcome"`
	Reason  string        `json:"reason,omitempty"`
}

// Next is something to do now.
type Next struct {
	Text    string        `json:"text"`
	Command shell.Command `json:"-"`
	// Member is the member that a step by hand is about, as its text begins; "" when it is about all.
	Member string `json:"-"`
	// ByHand is true for steps of the procedure without this program, which is an alternative to the other steps.
	ByHand bool `json:"byHand,omitempty"`
	// Gathers is true for a step that brings data dirs on which the others depend: it comes before any repair.
	Gathers bool `json:"-"`
}

// MarshalJSON writes the command as text for a shell, and as a list of arguments.
func (n Next) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Text        string        `json:"text"`
		Command     string        `json:"command,omitempty"`
		CommandArgs shell.Command `json:"commandArgs,omitzero"`
		ByHand      bool          `json:"byHand,omitempty"`
	}{n.Text, n.Command.String(), n.Command, n.ByHand})
}
