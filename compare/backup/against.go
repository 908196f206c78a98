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
	"github.com/etcd-medic/etcd-medic/compare/verdict"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// Against is a backup compared with other sources: the comparison document, and what a restore would lose of each
// source.
type Against struct {
	*compare.Comparison
	// Reason says why the buckets could not be compared at a common index.
	Reason   string     `json:"reason,omitempty"`
	Compared []Compared `json:"compared"`
	// contradictions are where the backup contradicts the log of a source.
	contradictions []check.Finding
	// unreplayed says why the logs could not be replayed on the backup, "" if they were or there is none to replay.
	unreplayed string
}

// Compared is one source compared with the backup. Numbers are of keys; they are 0 with a Reason if they could not be
// counted.
type Compared struct {
	Source string        `json:"source"`
	Kind   evidence.Kind `json:"kind"`
	// Revision and CompactRevision are those of the source. RevisionsBehind is how far the backup lags, negative if it
	// is ahead.
	Revision        int64 `json:"revision"`
	CompactRevision int64 `json:"compactRevision"`
	RevisionsBehind int64 `json:"revisionsBehind"`
	// Counted is false if the numbers are unknown, because the source or the backup cannot be read.
	Counted bool `json:"counted"`
	// SameHistory says whether every record that both must have is identical in both; see history.
	SameHistory check.Outcome `json:"sameHistory"`
	Reason      string        `json:"reason,omitempty"`
	// BackupLacks is true if the backup lacks records of revisions that it claims to have, and otherwise agrees with
	// the source, which is of the same cluster. Lost counts the live keys among them, Altered those with other content
	// in the backup.
	BackupLacks bool `json:"backupLacks,omitempty"`
	Lost        int  `json:"lost,omitempty"`
	Altered     int  `json:"altered,omitempty"`
	// State are the rows of auth, leases and members that differ in their current state, Unequal those that differ at
	// one and the same index.
	State     []StateRow `json:"state"`
	MoreState int        `json:"moreState,omitempty"`
	Unequal   []StateRow `json:"unequal,omitempty"`
	// apart is set if none of the members of the one is or was a member of the other, restored if the log of the source
	// begins with a restore: the backup may be of the time before it.
	apart, restored bool
	// Records counts the compared records; First is the first that differs.
	Records int64   `json:"records"`
	First   *Broken `json:"firstDifference,omitempty"`
	// Missing keys are only in the source, Differ have another content, Extra are only in the backup.
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

// ChangeRow is one key that a restore of the backup would change compared with the source: missing, differ or extra.
type ChangeRow struct {
	Key    check.Bytes `json:"key"`
	Change string      `json:"change"`
	Kind   string      `json:"kind,omitempty"`
}

// StateRow is one row of a small bucket.
type StateRow struct {
	Bucket   string      `json:"bucket"`
	Key      check.Bytes `json:"key"`
	InBackup string      `json:"inBackup"`
	InSource string      `json:"inSource"`
}

// Text summarizes how far the backup lags behind the source.
func (c *Compared) Text() string {
	switch {
	case c.SameHistory == check.Violated && c.BackupLacks && c.First.rewritten:
		return fmt.Sprintf("damaged: it lacks keys that %s has had since revision %s", c.Source, c.First.revision())
	case c.SameHistory == check.Violated && c.BackupLacks:
		return fmt.Sprintf("damaged: it lacks records that %s has, from revision %s on", c.Source, c.First.revision())
	case c.SameHistory == check.Violated:
		return fmt.Sprintf("of another history than %s from revision %s on", c.Source, c.First.revision())
	case c.SameHistory == check.NotChecked:
		return fmt.Sprintf("not comparable with %s (%s)", c.Source, c.Reason)
	case c.RevisionsBehind < 0:
		return plural.Of(-c.RevisionsBehind, "revision", "revisions") + " ahead of " + c.Source + c.stateText()
	case c.RevisionsBehind == 0:
		return "level with " + c.Source + c.stateText()
	}
	return fmt.Sprintf("%d %s behind %s (%s missing, %d differ, %d gone since)", c.RevisionsBehind,
		plural.Form(c.RevisionsBehind, "revision", "revisions"), c.Source, plural.Of(c.Missing, "key", "keys"),
		c.Differ, c.Extra) + c.stateText()
}

// stateText counts the differences other than keys.
func (c *Compared) stateText() string {
	if n := len(c.State) + c.MoreState; n > 0 {
		return fmt.Sprintf("; rows of auth, leases and members that differ: %d", n)
	}
	return ""
}

const changeMissing, changeDiffer, changeExtra = "missing", "differ", "extra"

// prefixDepth is how many parts of a key name its group: /registry/pods/ for Kubernetes.
const prefixDepth = 2

// maxGroups bounds the groups that are counted separately; other keys are counted together.
const maxGroups = 1000

// against opens the other sources, compares the backup with each and adds the results to the report. A comparison that
// could not be made is in the report too: the backup's own verdict does not depend on another source. It returns an
// error only if ctx ends.
func against(ctx context.Context, m *evidence.Member, r *compare.Report, o Options) error {
	o.Options.Backup, o.Look = false, nil
	doc := &Against{Compared: []Compared{}}
	r.Backup.Against = doc
	set, err := evidence.Open(ctx, o.Against,
		evidence.Options{Hash: true, Deep: true, NoHashes: true, Progress: o.Progress, Access: o.Access,
			Redact: m.Redact})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if set == nil {
		doc.unusable(r, o.Against[0], err)
		judgeAgainst(r, doc, m)
		return nil
	}
	defer func() { _ = set.Close() }()
	for _, s := range set.Members {
		c, err := compareWith(ctx, m, s, o)
		if err != nil {
			return err
		}
		doc.Compared = append(doc.Compared, *c)
	}
	for _, f := range set.Failed {
		doc.unusable(r, f.Spec, f.Err)
	}
	if len(set.Members) > 0 {
		if err := doc.compare(ctx, m, r, set, o); err != nil {
			return err
		}
		if err := doc.replayLogs(ctx, m, set.Members, o); err != nil {
			return err
		}
	}
	if err := set.Unchanged(ctx); err != nil && ctx.Err() == nil {
		r.InputsUnchanged = false
		for i := range doc.Compared {
			if c := &doc.Compared[i]; c.SameHistory == check.Violated || c.Counted {
				c.SameHistory, c.Reason = check.NotChecked, "a source changed while it was read: "+err.Error()
			}
		}
	}
	doc.markOpen(r, set.Members)
	judgeAgainst(r, doc, m)
	return nil
}

// markOpen marks the sources that were opened and could not be compared, as when their keys cannot be read or they have
// no record in common with the backup: like one that cannot be opened, they leave the answer open.
func (a *Against) markOpen(r *compare.Report, sources []*evidence.Member) {
	for i, s := range sources {
		if a.Compared[i].SameHistory != check.NotChecked {
			continue
		}
		for k := len(r.Sources) - 1; k > 0; k-- { // the first is the backup itself
			if x := &r.Sources[k]; x.Name == s.Label() && x.Error == "" {
				x.Error = a.Compared[i].Reason
				break
			}
		}
	}
}

// unusable adds a source that could not be opened.
func (a *Against) unusable(r *compare.Report, spec evidence.Spec, err error) {
	name := spec.Name
	if name == "" {
		name = spec.Where
	}
	a.Compared = append(a.Compared, Compared{Source: name, SameHistory: check.NotChecked, Reason: err.Error(),
		Prefixes: []Group{}, Kinds: []Group{}, Rows: []ChangeRow{}, State: []StateRow{}})
	r.Sources = append(r.Sources, compare.Source{Name: name, Error: err.Error()})
}

// compare compares all buckets at the common index, as the command compare does.
func (a *Against) compare(ctx context.Context, m *evidence.Member, r *compare.Report, set *evidence.Set,
	o Options) error {
	others := set.Members
	set.Members = append([]*evidence.Member{m}, others...)
	doc, err := compare.Opened(ctx, set, o.Options)
	set.Members = others
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		for _, s := range others {
			r.Sources = append(r.Sources, compare.Source{Name: s.Label(), Kind: s.Source.Kind})
		}
		a.Reason = err.Error()
		return nil
	}
	a.Comparison = doc
	// Sources that failed are listed separately, with the reason.
	r.Sources = append(r.Sources, doc.Sources[1:1+len(others)]...)
	for i, s := range others {
		pair := doc
		if len(others) > 1 {
			// With several sources the rows do not show which pairs can be compared.
			set.Members = []*evidence.Member{m, s}
			pair, err = compare.Opened(ctx, set, o.Options)
			set.Members = others
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			a.Compared[i].atCommonIndex(m.Label(), pair)
		}
	}
	return nil
}

// stateBuckets are the buckets that a restore brings back in addition to the keys.
var stateBuckets = []string{"auth", "authUsers", "authRoles", "lease", "members", "members_removed"}

// atCommonIndex keeps the rows of the small buckets in which the backup differs from the source at the same index. If
// they have no member in common, their indexes count different logs: a restore begins a new one.
func (c *Compared) atCommonIndex(label string, doc *compare.Comparison) {
	if c.apart {
		return
	}
	for i := range doc.Buckets {
		b := &doc.Buckets[i]
		if !b.Equal.Excluded() || !slices.Contains(stateBuckets, b.Bucket) {
			continue
		}
		for _, row := range b.Rows {
			mine, ok1 := row.Members[label]
			other, ok2 := row.Members[c.Source]
			if ok1 && ok2 && cellText(mine) != cellText(other) {
				c.Unequal = append(c.Unequal, StateRow{Bucket: b.Bucket, Key: row.Key, InBackup: cellText(mine),
					InSource: cellText(other)})
			}
		}
	}
}

func cellText(c *compare.DiffCell) string {
	if c == nil {
		return absent
	}
	return c.Text
}

const absent = "absent"

// state compares the current auth, leases and members of both: what a restore would change.
func (c *Compared) state(b, s *evidence.Member, maxRows int) {
	for _, bucket := range stateBuckets {
		mine, ok1 := diff.SmallRows(b, bucket)
		others, ok2 := diff.SmallRows(s, bucket)
		if !ok1 || !ok2 {
			continue
		}
		for _, k := range diff.RowKeys(mine, others) {
			x, y := orAbsent(mine, k), orAbsent(others, k)
			if x == y {
				continue
			}
			if len(c.State) < maxRows {
				c.State = append(c.State, StateRow{Bucket: bucket, Key: check.Bytes(k), InBackup: x, InSource: y})
			} else {
				c.MoreState++
			}
		}
	}
}

func orAbsent(rows map[string]string, key string) string {
	if s, ok := rows[key]; ok {
		return s
	}
	return absent
}

// compareWith compares the backup with one source. It returns an error only if ctx ends.
func compareWith(ctx context.Context, b, s *evidence.Member, o Options) (*Compared, error) {
	c := &Compared{Source: s.Label(), Kind: s.Source.Kind, SameHistory: check.NotChecked, Prefixes: []Group{},
		Kinds: []Group{}, Rows: []ChangeRow{}, State: []StateRow{}}
	for _, x := range []*evidence.Member{b, s} {
		if !x.HasDB() || x.DB.KV == nil {
			c.Reason = "bucket key of " + x.Label() + " cannot be read"
			return c, nil
		}
	}
	maxRows := cmp.Or(o.MaxRows, defaultRows)
	c.Revision, c.CompactRevision = s.CurrentRevision(), s.CompactRevision()
	c.RevisionsBehind = c.Revision - b.CurrentRevision()
	c.apart = !sharesMember(b, s)
	c.restored = s.HasWAL() && s.WAL.Summary.Start == dumplog.StartRestore
	c.state(b, s, maxRows)
	if err := c.history(ctx, b, s); err != nil {
		return nil, err
	}
	if b.DB.KVDamaged || s.DB.KVDamaged {
		return c, nil
	}
	// Each at its own current revision: what a restore of the one lacks of the other.
	d := &diff.Result{Members: []*evidence.Member{b, s}, Revs: []int64{b.CurrentRevision(), s.CurrentRevision()},
		NotCompared: map[int]string{}}
	n := newCounter(maxRows)
	otherHistory := c.SameHistory == check.Violated && !c.BackupLacks
	err := d.Changes(ctx, 0, 1, diff.Options{}, func(ch diff.Change) error {
		if len(ch.Key) == 0 {
			return nil // the mark of restore --bump-revision; no request names such a key
		}
		if !otherHistory && c.RevisionsBehind >= 0 {
			c.mustHold(s, &ch, b.CurrentRevision())
		}
		return n.add(ch)
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		c.Reason = strings.TrimPrefix(c.Reason+"; "+err.Error(), "; ")
		return c, nil
	}
	c.BackupLacks = c.BackupLacks || c.promised() && !otherHistory && c.Lost > 0 && c.Altered == 0
	n.into(c)
	c.Counted = true
	return c, nil
}

// counter counts changes by prefix and kind.
type counter struct {
	total           Group
	prefixes, kinds map[string]*Group
	rows            []ChangeRow
	maxRows         int
}

const defaultRows = 50

func newCounter(maxRows int) *counter {
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

// prefixOf returns the group of a key: its first parts, or all but the last for a key with fewer parts.
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
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.sum(), a.sum()),
			cmp.Compare(a.Name, b.Name))
	})
	return out
}

// Judge adds the outcome of a separate check to the report. A finding changes the verdict of a healthy backup; the
// verdict of a damaged one keeps its first violation.
func Judge(r *compare.Report, id check.ID, out check.Outcome, reason string, fs ...check.Finding) {
	i := slices.IndexFunc(r.Checks, func(c compare.CheckOutcome) bool { return c.ID == id })
	if i < 0 {
		i = len(r.Checks)
		r.Checks = append(r.Checks, compare.CheckOutcome{ID: id, Title: titleOf(id)})
	}
	r.Checks[i].Outcome, r.Checks[i].Reason = out, reason
	for i := range fs {
		fs[i].Check, fs[i].ID = id, fmt.Sprintf("%s-%d", id, i+1)
	}
	r.Findings = append(r.Findings, fs...)
	v := &r.Verdict
	if len(fs) == 0 || v.Health == check.Unhealthy {
		return
	}
	f := &fs[0]
	b := &compare.FirstBreak{Check: id, Member: f.Members, Revision: f.At.Revision}
	if len(f.Evidence) > 0 {
		e := &f.Evidence[0]
		b.Bucket, b.Key, b.Expected, b.Observed = e.Bucket, e.Key, e.Expected, e.Observed
	}
	*v = compare.Verdict{Health: f.Class.Health(), Class: f.Class, Summary: f.Title, FirstBreak: b}
	if f.Class == check.ClassBackupDamaged { // the steps until here are those of a sound backup
		r.Next = verdict.BackupNext()
	}
}

func titleOf(id check.ID) string {
	for _, c := range check.All() {
		if c.ID == id {
			return c.Title
		}
	}
	return ""
}

// LeaveOpen records that a requested check could not be made. The verdict of a healthy backup becomes inconclusive;
// that of a damaged one is unchanged.
func LeaveOpen(r *compare.Report, id check.ID, reason string) {
	Judge(r, id, check.NotChecked, reason)
	if v := &r.Verdict; v.Health == check.Healthy {
		*v = compare.Verdict{Class: check.ClassInconclusive, Summary: v.Summary + "; but " + reason}
	}
}
