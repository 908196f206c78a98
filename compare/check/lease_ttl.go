package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

var leaseTTLs = described(Check{
	ID:    L04,
	Needs: NeedDB,
	Run:   runLeaseTTLs,
})

func runLeaseTTLs(in *Input) Result {
	var fs []Finding
	checked := 0
	if in.Replay != nil {
		for i, r := range in.Replay.Members {
			checked += len(r.Leases)
			fs = append(fs, in.storedTTLs().findings(in.Members[i], r.Leases)...)
		}
		if f := in.storedTTLs().clampFinding(); f != nil {
			fs = append(fs, *f)
		}
	}
	fs = append(fs, in.storedTTLs().impossible()...)
	lower := slices.ContainsFunc(fs, func(f Finding) bool { return f.Severity == Error })
	r := Result{Outcome: NotChecked}
	if in.Diff != nil && len(in.Members) > 1 {
		r = in.contents().stateEqual(ClassLatentDivergence,
			func(row *diff.Row) bool { return row.Kind == diff.TTLRow }, "lease")
	}
	if !lower { // the log has already shown which member is wrong
		fs = append(fs, in.storedTTLs().differences(r.Findings)...)
	}
	if checked == 0 && r.Outcome == NotChecked && len(fs) == 0 {
		return Result{Reason: "no database holds a lease whose grant is in the log"}
	}
	return outcome(fs, "")
}

// storedTTLs compares the TTLs of leases with the log, with each other and with what a server can store.
type storedTTLs struct{ *Input }

func (in *Input) storedTTLs() storedTTLs { return storedTTLs{in} }

// findings: TTLs of one member that no minimum explains.
func (in storedTTLs) findings(m *evidence.Member, leases []replay.LeaseFact) []Finding {
	low := Finding{Kind: KindTTLBelowGrant, Severity: Error, Class: ClassLatentDivergence, Members: []string{m.Label()}}
	high := Finding{Kind: KindTTLAboveGrant, Severity: Error, Class: ClassLatentDivergence,
		Members: []string{m.Label()}}
	odd := Finding{Kind: KindTTLMinimumsMixed, Severity: Warning, Members: []string{m.Label()}}
	lowest, _ := minimumTTL(leases)
	for _, l := range leases {
		switch {
		case l.Stored < l.Asked:
			low.add(leaseEvidence(m, l, "TTL", l.Stored, fmt.Sprintf("at least %d s, as the grant asks", l.Asked)),
				l.Term, l.Index)
		case l.Stored > l.Asked && l.Stored > diff.MaxMinimumTTL:
			high.add(leaseEvidence(m, l, "TTL", l.Stored,
				fmt.Sprintf("%d s, as the grant asks; no minimum is above %d s", l.Asked, diff.MaxMinimumTTL)), l.Term,
				l.Index)
		case l.Stored > l.Asked && l.Stored != lowest || l.Stored == l.Asked && l.Stored < lowest:
			odd.add(leaseEvidence(m, l, "TTL", l.Stored,
				fmt.Sprintf("%d s, the larger of %d s (asked) and %d s (minimum)", max(l.Asked, lowest), l.Asked,
					lowest)), l.Term, l.Index)
		}
	}
	var fs []Finding
	if n := len(low.Evidence); n > 0 {
		low.Title = fmt.Sprintf("%s: %s a lower TTL than was asked for", m.Label(),
			plural.Of(n, "lease has", "leases have"))
		low.Explanation = "no server stores a TTL below the one in the log: the lease rows were changed by other " +
			"means; these leases expire early when this member leads"
		fs = append(fs, in.cut(low))
	}
	if n := len(high.Evidence); n > 0 {
		high.Title = fmt.Sprintf("%s: %s a higher TTL than was asked for", m.Label(),
			plural.Of(n, "lease has", "leases have"))
		high.Explanation = "no election timeout that a server accepts gives such a minimum: the lease rows were " +
			"changed by other means; these leases expire late when this member leads"
		fs = append(fs, in.cut(high))
	}
	if n := len(odd.Evidence); n > 0 {
		odd.Title = fmt.Sprintf("%s: TTLs were raised to more than one minimum", m.Label())
		odd.Explanation = "the election timeout of the member was changed between two starts, or its lease rows were"
		fs = append(fs, in.cut(odd))
	}
	return fs
}

// impossible: TTLs that no server stores, whatever the grant asked for. It raises short ones to its minimum, which
// is at least 1 s.
func (in storedTTLs) impossible() []Finding {
	var fs []Finding
	for _, m := range in.Members {
		if !m.HasDB() {
			continue
		}
		f := Finding{Kind: KindTTLImpossible, Severity: Error, Class: ClassLatentDivergence,
			Members: []string{m.Label()},
			At:      At{Index: m.AppliedMin}}
		for i := range m.DB.Leases {
			l := &m.DB.Leases[i]
			if l.TTL >= 1 {
				continue
			}
			f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: m.DB.File, Page: Uint64(l.Page),
				Offset: Int64(l.Offset), Bucket: "lease", Key: Bytes(l.ID.String()),
				Field: "TTL", Observed: fmt.Sprintf("%d s", l.TTL), Expected: "at least 1 s", Show: showDB(m, "lease")})
		}
		if n := len(f.Evidence); n > 0 {
			f.Title = fmt.Sprintf("%s: %s a TTL below 1 s, which no server stores", m.Label(),
				plural.Of(n, "lease has", "leases have"))
			f.Explanation = "the lease rows were edited or damaged; these leases expire as soon as this member leads"
			fs = append(fs, in.cut(f))
		}
	}
	return fs
}

// differences lowers the findings of the comparison to a warning if settings could explain them too, and nothing
// shows which member is wrong. All TTLs are then equal or within the range of possible minimums. What differs besides
// is the remaining TTL: a checkpoint that was purged from the log is stored by members with the persist option only.
func (in storedTTLs) differences(fs []Finding) []Finding {
	if len(fs) == 0 {
		return nil
	}
	b, sameTTLs := in.Diff.Find("lease"), true
	for i := range b.Rows {
		row := &b.Rows[i]
		if row.Kind != diff.TTLRow {
			continue
		}
		at := in.Diff.Compared(row)
		if len(in.rowWitnesses().witnesses(b.Name, row, at)) > 0 {
			return fs
		}
		ttls := map[int64]bool{}
		for _, pos := range at {
			l := in.Members.databases().leaseRow(pos, string(row.Key))
			if l == nil {
				return fs
			}
			ttls[l.TTL] = true
		}
		for ttl := range ttls {
			if len(ttls) > 1 && ttl > diff.MaxMinimumTTL {
				return fs
			}
		}
		sameTTLs = sameTTLs && len(ttls) == 1
	}
	for i := range fs {
		fs[i].Severity, fs[i].Class = Warning, ""
		what := "a member's election timeout, or its storing of remaining TTLs,"
		if sameTTLs {
			fs[i].Kind, what = KindRemainingDiffers, "a member's storing of remaining TTLs"
		}
		fs[i].Explanation += ". Either " + what + " was changed between two starts, or lease rows were"
	}
	return fs
}

func (f *Finding) add(e Evidence, term, index uint64) {
	if f.At.Index == 0 || index < f.At.Index {
		f.At = At{Term: term, Index: index}
	}
	f.Evidence = append(f.Evidence, e)
}

// minimumTTL is the TTL to which the member raises shorter ones, as far as its leases show; false when no TTL was
// raised.
func minimumTTL(leases []replay.LeaseFact) (int64, bool) {
	count := map[int64]int{}
	for _, l := range leases {
		if l.Stored > l.Asked && l.Stored <= diff.MaxMinimumTTL {
			count[l.Stored]++
		}
	}
	best := int64(0)
	for ttl, n := range count {
		if n > count[best] || n == count[best] && ttl < best {
			best = ttl
		}
	}
	return best, best > 0
}

// clampFinding: one lease, different TTLs on different members, each explained by the member's minimum.
func (in storedTTLs) clampFinding() *Finding {
	byID := map[int64]map[int]replay.LeaseFact{}
	var order []int64
	for i, r := range in.Replay.Members {
		for _, l := range r.Leases {
			if byID[l.ID] == nil {
				byID[l.ID] = map[int]replay.LeaseFact{}
				order = append(order, l.ID)
			}
			byID[l.ID][i] = l
		}
	}
	f := Finding{Kind: KindTTLMinimumsDiffer, Severity: Warning}
	for _, id := range order {
		if len(f.Evidence) > 0 {
			break // one lease shows it
		}
		in.clampOf(&f, byID[id])
	}
	if len(f.Evidence) == 0 {
		return nil
	}
	var parts []string
	for _, e := range f.Evidence {
		f.Members = append(f.Members, e.Member)
		parts = append(parts, e.Member+" "+e.Observed)
	}
	f.Title = "the members raise short lease TTLs to different minimums"
	f.Explanation = "lease " + string(f.Evidence[0].Key) + ": " + strings.Join(parts, ", ") +
		"; a minimum is 1.5 times the member's election timeout, so the members run with different ones"
	if once := in.raisedOnce(f.Members); len(once) > 0 {
		f.Explanation += ". Only this lease shows the minimum of " + plural.List(once) +
			": a row of it may have been changed instead"
	}
	return &f
}

// raisedOnce lists those of these members that raised the TTL of one lease only, as far as the logs hold the grants.
func (in storedTTLs) raisedOnce(members []string) (once []string) {
	for i, r := range in.Replay.Members {
		n := 0
		for _, l := range r.Leases {
			if l.Stored > l.Asked {
				n++
			}
		}
		if label := in.Members[i].Label(); n == 1 && slices.Contains(members, label) {
			once = append(once, label)
		}
	}
	return once
}

func (in storedTTLs) clampOf(f *Finding, facts map[int]replay.LeaseFact) {
	ttls := map[int64]bool{}
	for i, l := range facts {
		if lowest, raised := minimumTTL(in.Replay.Members[i].Leases); l.Stored != l.Asked &&
			(!raised || l.Stored != lowest) {
			return
		}
		ttls[l.Stored] = true
	}
	if len(ttls) < 2 {
		return
	}
	for i, m := range in.Members {
		if l, ok := facts[i]; ok {
			f.add(leaseEvidence(m, l, "TTL", l.Stored,
				fmt.Sprintf("%d s asked for by the grant; the same on all members", l.Asked)), l.Term, l.Index)
		}
	}
}

func leaseEvidence(m *evidence.Member, l replay.LeaseFact, field string, stored int64, expected string) Evidence {
	e := Evidence{Member: m.Label(), Bucket: "lease", Key: Bytes(dumplog.ID(uint64(l.ID)).String()), Field: field,
		Observed: fmt.Sprintf("%d s", stored), Expected: expected, Show: showDB(m, "lease")}
	if row := findLease(m, l.ID); row != nil {
		e.File, e.Page, e.Offset = m.DB.File, Uint64(row.Page), Int64(row.Offset)
	}
	return e
}
