package backup

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Against is a backup held against other sources: the document of compare, and what each source has that a restore would lose.
type Against struct {
	*compare.Comparison
	Compared []Compared `json:"compared"`
}

// Compared is one source as seen from the backup. Numbers are of keys; they are 0 with a Reason when they could not be counted.
type Compared struct {
	Source string        `json:"source"`
	Kind   evidence.Kind `json:"kind"`
	// Revision and CompactRevision of the source; RevisionsBehind is how far the backup lags, negative when it is ahead.
	Revision        int64 `json:"revision"`
	CompactRevision int64 `json:"compactRevision"`
	RevisionsBehind int64 `json:"revisionsBehind"`
	// Counted is false when the numbers could not be taken: the source or the backup cannot be read.
	Counted bool `json:"counted"`
	// SameHistory tells whether every record that both must hold stands in both with the same bytes; see sameHistory.
	SameHistory check.Outcome `json:"sameHistory"`
	Reason      string        `json:"reason,omitempty"`
	// Records counts those that were held against each other; First is the first that differs.
	Records int64   `json:"records"`
	First   *Broken `json:"firstDifference,omitempty"`
	// Missing keys are in the source and not in the backup, Differ hold something else, Extra are gone from the source.
	Missing  int         `json:"missing"`
	Differ   int         `json:"differ"`
	Extra    int         `json:"extra"`
	Prefixes []Group     `json:"prefixes"`
	Kinds    []Group     `json:"kinds"`
	Rows     []ChangeRow `json:"rows"`
	More     int         `json:"more,omitempty"`
}

// Group counts the keys of one prefix or Kubernetes kind.
type Group struct {
	Name    string `json:"name"`
	Missing int    `json:"missing"`
	Differ  int    `json:"differ"`
	Extra   int    `json:"extra"`
}

// ChangeRow is one key that a restore of the backup would leave otherwise than the source has it: missing, differ or extra.
type ChangeRow struct {
	Key    check.Bytes `json:"key"`
	Change string      `json:"change"`
	Kind   string      `json:"kind,omitempty"`
}

// Text says in short how far the backup lags behind the source.
func (c *Compared) Text() string {
	switch {
	case c.SameHistory == check.Violated:
		return fmt.Sprintf("of another history than %s from revision %s on", c.Source, c.First.revision())
	case c.SameHistory == check.NotChecked:
		return fmt.Sprintf("not comparable with %s (%s)", c.Source, c.Reason)
	case c.RevisionsBehind < 0:
		return fmt.Sprintf("%d revisions ahead of %s", -c.RevisionsBehind, c.Source)
	case c.RevisionsBehind == 0:
		return "level with " + c.Source
	}
	return fmt.Sprintf("%d revisions behind %s (%d keys missing, %d differ, %d gone since)", c.RevisionsBehind, c.Source, c.Missing, c.Differ, c.Extra)
}

const (
	changeMissing = "missing"
	changeDiffer  = "differ"
	changeExtra   = "extra"
)

// prefixDepth is how many parts of a key name its group: /registry/pods/ for Kubernetes.
const prefixDepth = 2

// maxGroups bounds the groups that are told apart; keys beyond are counted together.
const maxGroups = 1000

// against opens the other sources, holds the backup against each and puts what it found into the report.
func against(ctx context.Context, m *evidence.Member, r *compare.Report, o Options) error {
	o.Options.Backup, o.Look = false, nil
	set, err := evidence.Open(ctx, o.Against, evidence.Options{Hash: true, Deep: true, NoHashes: true, Progress: o.Progress, Access: o.Access})
	if err != nil {
		return err
	}
	defer func() { _ = set.Close() }()
	doc := &Against{Compared: []Compared{}}
	for _, s := range set.Members {
		c, err := compareWith(ctx, m, s, o)
		if err != nil {
			return err
		}
		doc.Compared = append(doc.Compared, *c)
	}
	others := set.Members
	set.Members = append([]*evidence.Member{m}, others...)
	doc.Comparison, err = compare.Opened(ctx, set, o.Options)
	set.Members = others
	if err != nil {
		return err
	}
	r.Backup.Against = doc
	r.Sources = append(r.Sources, doc.Sources[1:]...)
	judgeAgainst(r, doc, m)
	return set.Unchanged(ctx)
}

// compareWith holds the backup against one source.
func compareWith(ctx context.Context, b, s *evidence.Member, o Options) (*Compared, error) {
	c := &Compared{Source: s.Label(), Kind: s.Source.Kind, SameHistory: check.NotChecked, Prefixes: []Group{}, Kinds: []Group{}, Rows: []ChangeRow{}}
	for _, x := range []*evidence.Member{b, s} {
		if !x.HasDB() || x.DB.KV == nil || x.DB.KVDamaged {
			c.Reason = "bucket key of " + x.Label() + " can not be read in full"
			return c, nil
		}
	}
	c.Revision, c.CompactRevision = s.CurrentRevision(), s.CompactRevision()
	c.RevisionsBehind = c.Revision - b.CurrentRevision()
	if err := c.history(ctx, b, s); err != nil {
		return nil, err
	}
	// Each at its own current revision: what a restore of the one lacks of the other.
	d := &diff.Result{Members: []*evidence.Member{b, s}, Revs: []int64{b.CurrentRevision(), s.CurrentRevision()}, LeftOut: map[int]string{}}
	n := newCounter(o.MaxRows)
	if err := d.Changes(ctx, 0, 1, diff.Options{}, n.add); err != nil {
		return nil, err
	}
	n.into(c)
	c.Counted = true
	return c, nil
}

// counter sums changes up by prefix and kind.
type counter struct {
	total           Group
	prefixes, kinds map[string]*Group
	rows            []ChangeRow
	maxRows         int
}

func newCounter(maxRows int) *counter {
	if maxRows == 0 {
		maxRows = 50
	}
	return &counter{prefixes: map[string]*Group{}, kinds: map[string]*Group{}, maxRows: maxRows}
}

func (n *counter) add(c diff.Change) error {
	kind, value := changeDiffer, c.Value
	switch {
	case c.Delete:
		kind, value = changeExtra, c.Was
	case c.New:
		kind = changeMissing
	}
	groups := []*Group{&n.total, group(n.prefixes, prefixOf(c.Key))}
	name := dumpdb.KindName(value)
	if name != "" {
		groups = append(groups, group(n.kinds, name))
	}
	for _, g := range groups {
		switch kind {
		case changeMissing:
			g.Missing++
		case changeDiffer:
			g.Differ++
		default:
			g.Extra++
		}
	}
	if len(n.rows) < n.maxRows {
		n.rows = append(n.rows, ChangeRow{Key: slices.Clone(c.Key), Change: kind, Kind: name})
	}
	return nil
}

// prefixOf is the group of a key: its first parts, and for a key of fewer parts all but the last.
func prefixOf(key []byte) string {
	p := dumpdb.KeyPrefix(key, prefixDepth)
	if len(p) == len(key) && !bytes.HasSuffix(p, []byte("/")) {
		if i := bytes.LastIndexByte(p, '/'); i >= 0 {
			p = p[:i+1]
		}
	}
	return string(p)
}

func group(m map[string]*Group, name string) *Group {
	if g := m[name]; g != nil {
		return g
	}
	if len(m) >= maxGroups {
		name = "(others)"
		if g := m[name]; g != nil {
			return g
		}
	}
	g := &Group{Name: name}
	m[name] = g
	return g
}

func (g *Group) sum() int { return g.Missing + g.Differ + g.Extra }

func (n *counter) into(c *Compared) {
	c.Missing, c.Differ, c.Extra = n.total.Missing, n.total.Differ, n.total.Extra
	c.Prefixes, c.Kinds = bySize(n.prefixes), bySize(n.kinds)
	c.Rows = append(c.Rows, n.rows...)
	slices.SortStableFunc(c.Rows, func(a, b ChangeRow) int { return strings.Compare(string(a.Key), string(b.Key)) })
	c.More = n.total.sum() - len(n.rows)
}

func bySize(m map[string]*Group) []Group {
	out := make([]Group, 0, len(m))
	for _, g := range m {
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b Group) int { return cmp.Or(cmp.Compare(b.sum(), a.sum()), cmp.Compare(a.Name, b.Name)) })
	return out
}

// judgeAgainst turns another history into a finding of B08.
func judgeAgainst(r *compare.Report, a *Against, m *evidence.Member) {
	out := check.Holds
	var reasons []string
	var fs []check.Finding
	for i := range a.Compared {
		c := &a.Compared[i]
		switch c.SameHistory {
		case check.Violated:
			out = check.Violated
			fs = append(fs, historyFinding(c, m))
		case check.Holds:
		default:
			reasons = append(reasons, c.Source+": "+c.Reason)
		}
	}
	if out == check.Holds && (len(reasons) > 0 || len(a.Compared) == 0) {
		out = check.NotChecked
	}
	Judge(r, "B08", out, strings.Join(reasons, "; "), fs...)
	if out == check.Violated && r.Verdict.Class == "data-divergence" {
		r.Next = []compare.Next{{Text: "diagnose all members of the cluster: one of them, or the backup, holds another history", Command: shell.Format("etcd-medic diagnose <SOURCE...>")}}
	}
}

// Judge puts the outcome of a check that is made beside the report into it. A finding changes the verdict of a backup that was good until
// then; one that was bad already keeps its first break.
func Judge(r *compare.Report, id string, out check.Outcome, reason string, fs ...check.Finding) {
	for i := range r.Checks {
		if r.Checks[i].ID == id {
			r.Checks[i].Outcome, r.Checks[i].Reason = out, reason
		}
	}
	for i := range fs {
		fs[i].Check, fs[i].ID = id, fmt.Sprintf("%s-%d", id, i+1)
	}
	r.Findings = append(r.Findings, fs...)
	v := &r.Verdict
	if len(fs) == 0 || v.Healthy != nil && !*v.Healthy {
		return
	}
	f, bad := &fs[0], false
	b := &compare.FirstBreak{Check: id, Member: f.Members, Revision: f.At.Revision}
	if len(f.Evidence) > 0 {
		e := &f.Evidence[0]
		b.Bucket, b.Key, b.Expected, b.Observed = e.Bucket, e.Key, e.Expected, e.Observed
	}
	*v = compare.Verdict{Healthy: &bad, Class: f.Class, Summary: f.Title, FirstBreak: b}
}

// LeaveOpen notes that a check that was asked for could not be made. A backup that was good until then is inconclusive: what was asked is not
// answered. One that is damaged stays so.
func LeaveOpen(r *compare.Report, id, reason string) {
	Judge(r, id, check.NotChecked, reason)
	if v := &r.Verdict; v.Healthy != nil && *v.Healthy {
		*v = compare.Verdict{Class: "inconclusive", Summary: v.Summary + "; but " + reason}
	}
}

func historyFinding(c *Compared, m *evidence.Member) check.Finding {
	f := check.Finding{Severity: check.Error, Class: "data-divergence", Members: []string{m.Label(), c.Source},
		Title:       fmt.Sprintf("%s and %s hold different records at revision %s", m.Label(), c.Source, c.First.revision()),
		Explanation: "a backup and a member of the same cluster hold the same records at every revision that both have; from here on they are of different histories, or one was altered"}
	f.At.Revision = &c.First.Revision
	for _, e := range []check.Evidence{{Member: m.Label(), File: m.DB.File, Observed: c.First.InBackup, Expected: c.First.InSource}, {Member: c.Source, Observed: c.First.InSource, Expected: c.First.InBackup}} {
		e.Bucket, e.Key, e.Field = "key", c.First.Key, "revision "+c.First.revision()
		f.Evidence = append(f.Evidence, e)
	}
	return f
}
