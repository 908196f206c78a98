package compare

import (
	"context"
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/compare/verdict"
)

// Confirmer has a real etcd server execute the log of the sources and compares the result with their databases. The
// result of the replay is nil when the sources belong to different clusters.
type Confirmer func(ctx context.Context, members []*evidence.Member, rp *replay.Result) (*Confirmation, error)

// ConfirmStatus is what the second opinion says of one member.
type ConfirmStatus string

// The statuses. NotPossible is also the status where a difference proves nothing; the reason says which.
const (
	Confirmed   ConfirmStatus = "confirmed"
	Refuted     ConfirmStatus = "refuted"
	NotPossible ConfirmStatus = "not-possible"
)

// Confirmation is the second opinion of a real server: what diagnose --confirm adds to the report.
type Confirmation struct {
	// Base is the state that the server started from; nil when there was none.
	Base *ConfirmBase `json:"base"`
	// Server is the version that executed the log and Origin where it comes from; "" when none ran.
	Server string `json:"server,omitempty"`
	Origin string `json:"origin,omitempty"`
	// Reason says why nothing could be confirmed; "" when the server ran.
	Reason  string            `json:"reason,omitempty"`
	Members []ConfirmedMember `json:"members"`
	// Notes are things to know about the run, each one sentence.
	Notes []string `json:"notes,omitempty"`
	// Sandbox says how the server was kept apart from everything else.
	Sandbox []string `json:"sandbox,omitempty"`
	Seconds float64  `json:"seconds"`
}

// ConfirmBase is where the execution of the log starts.
type ConfirmBase struct {
	// Kind is new-cluster, backup, snapshot-db or member-db; Source is the source that holds it, "" for a new cluster.
	Kind     string `json:"kind"`
	Source   string `json:"source,omitempty"`
	Index    uint64 `json:"index"`
	Revision int64  `json:"revision"`
}

// ConfirmedMember is the second opinion about one source.
type ConfirmedMember struct {
	Member string        `json:"member"`
	Status ConfirmStatus `json:"status"`
	Reason string        `json:"reason"`
	// Index is the applied index at which the contents were compared, 0 when they were not; Revision is that of the
	// server there.
	Index    uint64 `json:"index,omitempty"`
	Revision int64  `json:"revision,omitempty"`
	// Replay is what the replay says of the same database: agrees, differs, or "" when it could not be replayed.
	Replay string `json:"replay,omitempty"`
	// Records counts the records of bucket key that were compared; LeftOut are buckets that prove nothing, each with
	// the reason.
	Records int64    `json:"records,omitempty"`
	LeftOut []string `json:"leftOut,omitempty"`
	// First is the first differing revision of bucket key, nil when the bucket is equal.
	First       *ConfirmFirst       `json:"first,omitempty"`
	Differences []ConfirmDifference `json:"differences,omitempty"`
	// More counts differences beyond the listed.
	More int `json:"more,omitempty"`
}

// ConfirmFirst is the first revision at which a member's history is not that of the server, and the entry that makes
// it.
type ConfirmFirst struct {
	Revision int64  `json:"revision"`
	Index    uint64 `json:"index,omitempty"`
	Term     uint64 `json:"term,omitempty"`
	What     string `json:"what,omitempty"`
}

// ConfirmDifference is one row that differs between the member and the server.
type ConfirmDifference struct {
	Bucket   string      `json:"bucket"`
	Key      check.Bytes `json:"key"`
	Revision *check.Rev  `json:"revision,omitempty"`
	Observed string      `json:"observed"`
	Expected string      `json:"expected"`
}

// FromNewCluster is the kind of base that nothing can be wrong with.
const FromNewCluster = "new-cluster"

// What the replay says of a database.
const (
	ReplayAgrees  = "agrees"
	ReplayDiffers = "differs"
)

// Text is the second opinion about all members on one line.
func (c *Confirmation) Text() string {
	if c.Reason != "" {
		return "not possible: " + c.Reason
	}
	var parts []string
	for _, s := range []ConfirmStatus{Confirmed, Refuted, NotPossible} {
		if names := c.with(s); len(names) > 0 {
			parts = append(parts, strings.ReplaceAll(string(s), "-", " ")+": "+strings.Join(names, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

func (c *Confirmation) with(s ConfirmStatus) (names []string) {
	for i := range c.Members {
		if c.Members[i].Status == s {
			names = append(names, c.Members[i].Member)
		}
	}
	return names
}

// confirm asks for the second opinion and adds it to the report.
func (c *collected) confirm(ctx context.Context, r *Report) error {
	if c.o.Confirm == nil {
		return nil
	}
	conf, err := c.o.Confirm(ctx, c.in.Members, c.in.Replay)
	if err != nil {
		return fmt.Errorf("confirm: %w", err)
	}
	r.AddConfirmation(conf)
	return nil
}

// AddConfirmation puts the second opinion into the report. Where it contradicts the diagnosis, check X10 says so: a
// report that called the set healthy is then inconclusive, because one of the two is wrong. Any other verdict stays.
func (r *Report) AddConfirmation(conf *Confirmation) {
	r.Confirm = conf
	out := CheckOutcome{ID: check.SecondOpinion.ID, Title: check.SecondOpinion.Title, Outcome: check.NotChecked,
		Reason: conf.Reason}
	fs := r.contradictions(conf)
	switch {
	case len(fs) > 0:
		out.Outcome = check.Violated
	case len(conf.with(Confirmed))+len(conf.with(Refuted)) > 0:
		out.Outcome = check.Holds
	case out.Reason == "":
		out.Reason = "no member could be compared with what a server makes of the log"
	}
	r.Checks = append(r.Checks, out)
	for i := range fs {
		fs[i].Check, fs[i].ID = out.ID, fmt.Sprintf("%s-%d", out.ID, i+1)
	}
	r.Findings = append(r.Findings, fs...)
	verdict.SortFindings(r.Findings)
	if len(fs) == 0 {
		return
	}
	if v := &r.Verdict; v.Health == check.Healthy {
		*v = Verdict{Class: check.ClassInconclusive, Summary: "the replay and a real server disagree: " + fs[0].Title}
		r.Next = append([]Next{{Text: "keep all data dirs, do not repair on this report, and report the " +
			"disagreement: one of the two is wrong"}}, r.Next...)
		return
	}
	r.Verdict.Add("; the replay and a real server disagree: " + fs[0].Title)
}

// contradictions lists the members about which the server contradicts the diagnosis.
func (r *Report) contradictions(conf *Confirmation) []check.Finding {
	var out []check.Finding
	for i := range conf.Members {
		m := &conf.Members[i]
		f := check.Finding{Kind: check.KindSecondOpinionDiffers, Severity: check.Warning, Members: []string{m.Member}}
		ev := check.Evidence{Member: m.Member}
		switch {
		case m.Status == Refuted && m.Replay != ReplayDiffers && !r.accuses(m.Member):
			f.Title = fmt.Sprintf("%s: etcd %s makes other content of the log than this database holds; the "+
				"diagnosis found nothing wrong with it", m.Member, conf.Server)
			if len(m.Differences) > 0 {
				d := &m.Differences[0]
				ev.Bucket, ev.Key, ev.Observed, ev.Expected = d.Bucket, d.Key, d.Observed, d.Expected
				f.At.Revision = d.Revision
			}
		case m.Status == Confirmed && m.Replay == ReplayDiffers && conf.Base != nil && conf.Base.Kind == FromNewCluster:
			// Any other base may hold the same wrong content.
			f.Title = fmt.Sprintf("%s: the replay finds wrong content; etcd %s makes exactly this content of the log",
				m.Member, conf.Server)
			ev.Field, ev.Observed, ev.Expected = "content at index "+fmt.Sprint(m.Index), "equal to the server's",
				"different, as the replay says"
		default:
			continue
		}
		f.At.Index = 0
		f.Explanation = "a server that executes the committed entries comes to another result than the replay of " +
			"this program; until it is known which of the two is wrong, neither proves anything about this member"
		f.Evidence = []check.Evidence{ev}
		out = append(out, f)
	}
	return out
}

// accuses reports whether an error names the member.
func (r *Report) accuses(member string) bool {
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Severity.Rank() < check.Error.Rank() {
			continue
		}
		for _, name := range f.Members {
			if name == member {
				return true
			}
		}
	}
	return false
}
