// Package check holds the invariants that an etcd data dir, or several of one cluster, must satisfy.
//
// A check looks at facts and replay, never at files, and ends in one of three outcomes: it holds, it is violated (with
// findings), or it could not be checked (with the reason). The zero value is "not checked", so that silence never reads
// as "fine". Checks are in one file per topic, and in the explicit list All.
package check

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Severity orders findings; --fail-on compares against it.
type Severity string

// The severities, lowest first.
const (
	Info     Severity = "info"
	Warning  Severity = "warning"
	Error    Severity = "error"
	Critical Severity = "critical"
)

// Rank returns the position of the severity, 0 for info; -1 for a name that is not a severity.
func (s Severity) Rank() int {
	for i, v := range []Severity{Info, Warning, Error, Critical} {
		if s == v {
			return i
		}
	}
	return -1
}

// Outcome is the verdict of one check.
type Outcome string

// The three verdicts. The empty string, the zero value, reads as not checked.
const (
	NotChecked Outcome = "not-checked"
	Holds      Outcome = "holds"
	Violated   Outcome = "violated"
)

// Bytes are bytes in JSON as the contract wants them: {"text": …} when valid printable UTF-8, else {"base64": …}.
type Bytes []byte

// MarshalJSON writes the text or base64 form.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if b.Printable() {
		return json.Marshal(map[string]string{"text": string(b)})
	}
	return json.Marshal(map[string]string{"base64": base64.StdEncoding.EncodeToString(b)})
}

// UnmarshalJSON reads what MarshalJSON writes, as it is in plan files.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	var x struct {
		Text   string `json:"text"`
		Base64 []byte `json:"base64"`
	}
	if err := json.Unmarshal(data, &x); err != nil {
		return err
	}
	if *b = x.Base64; *b == nil {
		*b = Bytes(x.Text)
	}
	return nil
}

// Printable reports whether the bytes are valid UTF-8 without control characters.
func (b Bytes) Printable() bool {
	if !utf8.Valid(b) {
		return false
	}
	for _, r := range string(b) {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// Rev is a revision in JSON: main and sub as numbers.
type Rev struct {
	Main int64 `json:"main"`
	Sub  int64 `json:"sub"`
}

// At is the place of a finding in the log and in the history of revisions; zero fields are unknown.
type At struct {
	Term     uint64 `json:"term,omitempty"`
	Index    uint64 `json:"index,omitempty"`
	Revision *Rev   `json:"revision,omitempty"`
}

// Evidence is a place that a reader can inspect with another tool.
type Evidence struct {
	Member string `json:"member,omitempty"`
	File   string `json:"file,omitempty"`
	Offset *int64 `json:"offset,omitempty"`
	Length int64  `json:"length,omitempty"`
	Bucket string `json:"bucket,omitempty"`
	Key    Bytes  `json:"key,omitempty"`
	// Object names what Kubernetes keeps under the key: kind, namespace, name and who wrote it last, never its content.
	Object *evidence.Object `json:"object,omitempty"`
	Page   *uint64          `json:"page,omitempty"`
	Field  string           `json:"field,omitempty"`
	// Observed and Expected are in words or numbers; never secrets or values.
	Observed string `json:"observed,omitempty"`
	Expected string `json:"expected,omitempty"`
	// Show is the etcd-medic command that shows the place.
	Show shell.Command `json:"-"`
}

// MarshalJSON writes show as text for a shell, and as a list of arguments.
func (e Evidence) MarshalJSON() ([]byte, error) {
	type fields Evidence
	return json.Marshal(struct {
		fields
		Show     string        `json:"show,omitempty"`
		ShowArgs shell.Command `json:"showArgs,omitzero"`
	}{fields(e), e.Show.String(), e.Show})
}

// Remedy is one thing to do about a finding.
type Remedy struct {
	Text         string        `json:"text"`
	Command      shell.Command `json:"-"`
	Risk         string        `json:"risk,omitempty"`
	Precondition string        `json:"precondition,omitempty"`
}

// MarshalJSON writes the command as text for a shell, and as a list of arguments.
func (r Remedy) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Text         string        `json:"text"`
		Command      string        `json:"command,omitempty"`
		CommandArgs  shell.Command `json:"commandArgs,omitzero"`
		Risk         string        `json:"risk,omitempty"`
		Precondition string        `json:"precondition,omitempty"`
	}{r.Text, r.Command.String(), r.Command, r.Risk, r.Precondition})
}

// Finding is one fact that a check judged. A finding without evidence does not exist.
type Finding struct {
	// ID is unique in one report: the check's ID and a number, such as A01-1.
	ID          string     `json:"id"`
	Check       ID         `json:"check"`
	Severity    Severity   `json:"severity"`
	Members     []string   `json:"members"`
	At          At         `json:"at"`
	Title       string     `json:"title"`
	Explanation string     `json:"explanation"`
	Evidence    []Evidence `json:"evidence"`
	// More counts evidence beyond the listed.
	More   int      `json:"more,omitempty"`
	Remedy []Remedy `json:"remedy,omitempty"`
	Refs   []string `json:"refs,omitempty"`
	// Undecided is true where members differ and nothing shows which of them is wrong. Members are then all that
	// differ, and none of them is accused.
	Undecided bool `json:"-"`
	// Open is true where the finding names who is wrong in some rows, and nothing shows it in others.
	Open bool `json:"-"`
	// Each is true where the finding states the same of each of its members by itself, and compares nothing.
	Each bool `json:"-"`
	// Odd are members that differ from a majority that agrees, where the finding compares: a hint at who is wrong, not
	// proof.
	Odd []string `json:"-"`
	// ByHand are members whose last transaction changed what the finding is about without an entry of the log.
	ByHand []string `json:"-"`
	// Class is the verdict class that this finding supports, "" when it does not decide one.
	Class Class `json:"-"`
	// Kind is the statement; Facts are the values that belong to it.
	Kind  Kind  `json:"-"`
	Facts Facts `json:"-"`
}

// Facts are the values of a finding, apart from its members, its place and its evidence. A field with its zero value
// does not belong to the statement.
type Facts struct {
	// About are the members of the cluster that it is about, by ID; they need not be among the sources.
	About []dumplog.ID
	// LogDamage and DBDamage are the kind of a damaged place.
	LogDamage dumplog.DamageKind
	DBDamage  dumpdb.DamageKind
	// Page is the first damaged page of a database, Bucket the bucket that it belongs to, "" when unknown.
	Page   *uint64
	Bucket string
	// Undecodable is true where a record of bucket key cannot be decoded any more. The file itself shows that its bytes
	// changed, whatever the log or other members show.
	Undecodable bool
	// RecordMissing is true where a transaction lacks a record before another one of it: more than values changed.
	RecordMissing bool
	// VotersAbsent is true where a majority is missing only without voters that have run and are not among the sources.
	VotersAbsent bool
	// VotersDiffer is true where members differ in who is listed as a voter or as a learner.
	VotersDiffer bool
}

// Is reports whether the finding's kind is one of kinds.
func (f *Finding) Is(kinds ...Kind) bool { return slices.Contains(kinds, f.Kind) }

// OfCopy reports whether a copy of a running member may show it: pages and files of different moments.
func (f *Finding) OfCopy() bool {
	switch f.Kind {
	case KindLogPurged, KindDBBeyondLog, KindRootHoldsRevisions, KindPageReused:
		return true
	}
	return slices.Contains(pageKinds, f.Facts.DBDamage) || slices.Contains(tornKinds, f.Facts.LogDamage) ||
		f.Facts.LogDamage == dumplog.DamageMissingSegment
}

// BareTitle is the title without the member at its beginning, if the finding is about a single member.
func (f *Finding) BareTitle() string {
	return strings.TrimPrefix(f.Title, plural.List(f.Members)+": ")
}

// Alone reports whether the finding says something of the member by itself, and not that it differs from others.
func (f *Finding) Alone(label string) bool {
	return slices.Contains(f.Members, label) && (f.Each || len(f.Members) == 1)
}

// Apart reports whether the evidence shows that two members differ in one place.
func (f *Finding) Apart(a, b string) bool {
	type place struct{ bucket, field, key string }
	held := map[place]string{}
	at := func(e *Evidence) place { return place{e.Bucket, e.Field, string(e.Key)} }
	for i := range f.Evidence {
		if e := &f.Evidence[i]; e.Member == a {
			held[at(e)] = e.Observed
		}
	}
	return slices.ContainsFunc(f.Evidence, func(e Evidence) bool {
		seen, both := held[at(&e)]
		return e.Member == b && both && seen != e.Observed
	})
}

// Result is what a check returns.
type Result struct {
	Outcome Outcome
	// Reason says why it was not checked, or what limits the outcome.
	Reason   string
	Findings []Finding
}

// Int64 and Uint64 return pointers, for optional evidence fields.
func Int64(v int64) *int64 { return &v }

// Uint64 returns a pointer to v.
func Uint64(v uint64) *uint64 { return &v }
