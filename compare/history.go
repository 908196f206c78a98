package compare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// KeyHistory is the document of history: one key through the log and through the databases of all members, from live,
// older and free pages.
type KeyHistory struct {
	SchemaVersion int         `json:"schemaVersion"`
	Tool          Tool        `json:"tool"`
	Sources       []Source    `json:"sources"`
	Key           check.Bytes `json:"key"`
	// Entries are the committed log entries that name the key, in index order, with what each did on each member.
	Entries []KeyEntry `json:"entries"`
	// EntriesOmitted counts older entries that are not listed.
	EntriesOmitted int `json:"entriesOmitted,omitempty"`
	// Records are the key's records by member, in revision order.
	Records map[string][]KeyRecord `json:"records"`
	// RecordsOmitted counts by member the older records that are not listed.
	RecordsOmitted map[string]int `json:"recordsOmitted,omitempty"`
	// Damage says by member what could not be read, so that absence proves nothing there.
	Damage map[string][]string `json:"damage,omitempty"`
	// LeftOut says by member what was not read although nothing shows damage, such as a file without permission.
	LeftOut map[string][]string `json:"leftOut,omitempty"`
	// LogFirst and LogLast are the first and the last index of all logs, 0 if none was read.
	LogFirst uint64 `json:"logFirst,omitempty"`
	LogLast  uint64 `json:"logLast,omitempty"`
	// Note says what limits the answer.
	Note string `json:"note,omitempty"`
}

// KeyEntry is one log entry that names the key, or revokes its lease.
type KeyEntry struct {
	Term         uint64            `json:"term"`
	Index        uint64            `json:"index"`
	What         string            `json:"what"`
	Proposer     string            `json:"proposer,omitempty"`
	User         string            `json:"user,omitempty"`
	AuthRevision uint64            `json:"authRevision,omitempty"`
	Outcomes     map[string]string `json:"outcomes"`
}

// KeyRecord is one record of the key in a database. Origin says where it was found: live, older, free or unreachable.
type KeyRecord struct {
	Revision       string `json:"revision"`
	Tombstone      bool   `json:"tombstone,omitempty"`
	CreateRevision int64  `json:"createRevision,omitempty"`
	Version        int64  `json:"version,omitempty"`
	Lease          string `json:"lease,omitempty"`
	Value          *Value `json:"value,omitempty"`
	// Object names what Kubernetes keeps in the value; nil for other values.
	Object *evidence.Object `json:"object,omitempty"`
	Origin dumpdb.Origin    `json:"origin"`
	Page   uint64           `json:"page"`
}

// Of a key with more records the newest are listed, of all members together. Of more bytes of values than that only
// length and digest are given.
const (
	maxKeyRecords = 60_000
	maxKeyValues  = 64 << 20
)

// History follows one key through all sources.
func History(ctx context.Context, key []byte, specs []evidence.Spec, o Options) (*KeyHistory, error) {
	o.fill()
	set, err := evidence.Open(ctx, specs, evidence.Options{Hash: true, Deep: true, Progress: o.Progress,
		Access: o.Access})
	if err != nil {
		return nil, err
	}
	defer func() { _ = set.Close() }()
	r := &Report{}
	r.sources(set, o)
	h := &KeyHistory{SchemaVersion: SchemaVersion, Tool: Tool{Name: "etcd-medic", Version: o.Version},
		Sources: r.Sources, Key: key,
		Entries: []KeyEntry{}, Records: map[string][]KeyRecord{}}
	if clusters(set.Members) > 1 {
		return nil, mixed(set.Members)
	}
	rp, err := replay.RunWithPlausibleIndex(ctx, set.Members, replay.Options{Watch: key, MaxBytes: o.ReplayBytes})
	if err != nil {
		return nil, err
	}
	c := &collected{set: set, o: o, in: &check.Input{Ctx: ctx, Members: set.Members, Replay: rp}}
	h.entries(c)
	b := historyBound{records: max(1, maxKeyRecords/max(1, len(set.Members))), values: maxKeyValues, shown: o.Values}
	for _, m := range set.Members {
		for _, p := range m.Problems {
			if p.Part != "snap" { // of which nothing is shown
				h.unread(m, &p)
			}
		}
		h.logDamage(m)
		if !m.HasDB() {
			continue
		}
		if m.Source.Kind == evidence.KindBackup && m.DB.Trailer.State == "mismatch" {
			add(&h.Damage, m, "the sha256 trailer is not that of the file: bytes were changed or lost since it was "+
				"saved, and a changed value shows nowhere else")
		}
		if m.DB.Handle != nil {
			if d := m.DB.Handle.InvalidMeta(); d != nil {
				add(&h.Damage, m, d.Error()+"; the records may be those of one transaction of the server earlier")
			}
		}
		if err := h.records(ctx, m, &b); err != nil {
			return nil, err
		}
	}
	h.Note, h.LogFirst, h.LogLast = noteOf(rp), rp.First, rp.Last
	return h, set.Unchanged(ctx)
}

// noteOf says what of the log is not at hand, and of which members it is not known how its entries ended.
func noteOf(rp *replay.Result) string {
	if rp.First == 0 {
		return "no log was read: which entries named the key is not known"
	}
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if rp.First > 1 {
		note("the logs begin at entry %d", rp.First)
	}
	for _, g := range rp.Gaps {
		note("entries %d to %d are in no log", g.From, g.To)
	}
	if rp.Last > rp.Commit {
		note("entries %d to %d are not listed: no source shows them to be committed", rp.Commit+1, rp.Last)
	}
	if past := pastLogs(rp); past != nil {
		note("the logs end at entry %d, and %s has applied up to %d", rp.Last, past.Label(), past.AppliedMin)
	}
	for _, m := range rp.Members {
		if m.Why != "" {
			note("how the entries ended on %s is not known: %s", m.Member.Label(), m.Why)
		}
	}
	return strings.Join(notes, "; ")
}

// pastLogs is the member that has applied the most entries after the end of all logs, nil if there is none.
func pastLogs(rp *replay.Result) (most *evidence.Member) {
	for _, r := range rp.Members {
		if m := r.Member; m.HasDB() && m.AppliedMin > rp.Last && (most == nil || m.AppliedMin > most.AppliedMin) {
			most = m
		}
	}
	return most
}

func (h *KeyHistory) entries(c *collected) {
	names, earlier := c.names(), map[int]bool{}
	for i := range c.in.Members {
		earlier[i] = c.in.Replay.Unwritten(i) != nil
	}
	for _, e := range c.in.Replay.Watched {
		x := KeyEntry{Term: e.Term, Index: e.Index, What: e.What, User: e.User, AuthRevision: e.HeaderAuthRevision,
			Outcomes: map[string]string{}}
		if e.Proposer != 0 {
			x.Proposer = nameOr(names, e.Proposer)
		}
		for i, o := range e.Outcomes {
			text := outcomeText(o)
			if earlier[i] {
				text = "not known: the backup is from before the restore that began this log"
			}
			x.Outcomes[c.in.Members[i].Label()] = text
		}
		h.Entries = append(h.Entries, x)
	}
	h.EntriesOmitted = c.in.Replay.WatchedCount - len(h.Entries)
}

func outcomeText(o replay.Outcome) string {
	s := o.State.String()
	if o.Reason != "" {
		s += " (" + string(o.Reason) + ")"
	}
	if o.Rev > 0 {
		s += fmt.Sprintf(" at revision %d", o.Rev)
	}
	if o.Detail != "" {
		s += ": " + o.Detail
	}
	return s
}

// unread adds a file that could not be read, as damage if it is that.
func (h *KeyHistory) unread(m *evidence.Member, p *evidence.Problem) {
	var db *dumpdb.DamageError
	var log *dumplog.DamageError
	what := fmt.Sprintf("%s cannot be read: %v", p.File, p.Err)
	if p.Part == "file" { // whose error says so
		what = fmt.Sprintf("%s: %v", p.File, p.Err)
	}
	if errors.As(p.Err, &db) || errors.As(p.Err, &log) {
		add(&h.Damage, m, what)
		return
	}
	add(&h.LeftOut, m, what)
}

// maxLogDamage bounds the damaged places of a log that are named.
const maxLogDamage = 20

// logDamage adds the damaged places of a member's log. An entry that names the key may be in what is lost.
func (h *KeyHistory) logDamage(m *evidence.Member) {
	all := m.WAL.Summary.Damage
	for i, d := range all {
		if i == maxLogDamage {
			add(&h.Damage, m, fmt.Sprintf("%d more damaged places of the log", len(all)-i))
			return
		}
		add(&h.Damage, m, "log: "+d.Error()+lostEntries(d))
	}
}

// lostEntries says which entries damage hides, "" if it hides none or if that is not known.
func lostEntries(d *dumplog.DamageError) string {
	switch {
	case d.LostFrom == 0:
		return ""
	case d.LostTo == 0:
		return fmt.Sprintf(" (entries from %d on)", d.LostFrom)
	case d.LostTo == d.LostFrom:
		return fmt.Sprintf(" (entry %d)", d.LostFrom)
	}
	return fmt.Sprintf(" (entries %d to %d)", d.LostFrom, d.LostTo)
}

// add adds what could not be read of a member.
func add(to *map[string][]string, m *evidence.Member, what string) {
	if *to == nil {
		*to = map[string][]string{}
	}
	(*to)[m.Label()] = append((*to)[m.Label()], what)
}

// historyBound is what may be listed: records of one member, and bytes of values of all.
type historyBound struct {
	records, values int
	// shown is true if values are shown.
	shown bool
}

// records lists every record of the key that the file holds anywhere. If there are too many, the file is read again for
// the newest ones.
func (h *KeyHistory) records(ctx context.Context, m *evidence.Member, b *historyBound) error {
	list, n := []KeyRecord{}, 0
	values := b.values
	err := h.each(ctx, m, true, func(rec *dumpdb.Salvaged) {
		if n++; n <= b.records {
			list = append(list, b.record(m, rec))
		}
	})
	if older := n - b.records; err == nil && older > 0 {
		if h.RecordsOmitted == nil {
			h.RecordsOmitted = map[string]int{}
		}
		h.RecordsOmitted[m.Label()] = older
		list, n, b.values = list[:0], 0, values
		err = h.each(ctx, m, false, func(rec *dumpdb.Salvaged) {
			if n++; n > older && len(list) < b.records {
				list = append(list, b.record(m, rec))
			}
		})
	}
	h.Records[m.Label()] = list
	return err
}

// each yields every record of the key, and adds the damage that is met.
func (h *KeyHistory) each(ctx context.Context, m *evidence.Member, damage bool, use func(*dumpdb.Salvaged)) error {
	for rec, err := range m.DB.Handle.SalvageRevisions(ctx) {
		var d *dumpdb.DamageError
		switch {
		case errors.As(err, &d):
			if damage {
				add(&h.Damage, m, d.Error())
			}
		case err != nil:
			return err
		case bytes.Equal(rec.KV.Key, h.Key):
			use(&rec)
		}
	}
	return ctx.Err()
}

func (b *historyBound) record(m *evidence.Member, rec *dumpdb.Salvaged) KeyRecord {
	values := len(rec.KV.Value) <= b.values
	if values {
		b.values -= len(rec.KV.Value)
	}
	return keyRecord(m, rec, values && b.shown)
}

func keyRecord(m *evidence.Member, rec *dumpdb.Salvaged, values bool) KeyRecord {
	out := KeyRecord{Revision: rec.Rev.String(), Tombstone: rec.Tombstone, Origin: rec.Origin, Page: rec.Page}
	if rec.Tombstone {
		return out
	}
	out.CreateRevision, out.Version = rec.KV.CreateRevision, rec.KV.Version
	out.Value = &Value{Len: len(rec.KV.Value), Digest: m.Digest(rec.KV.Value)}
	if k, ok := dumpdb.ParseKube(rec.KV.Value); ok {
		out.Object = evidence.ObjectOf(&k)
	}
	if values {
		b := check.Bytes(bytes.Clone(rec.KV.Value))
		out.Value.Bytes = &b
	}
	if rec.KV.Lease != 0 {
		out.Lease = fmt.Sprintf("%x", uint64(rec.KV.Lease))
	}
	return out
}
