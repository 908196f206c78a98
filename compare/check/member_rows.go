package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

var memberRowsTrue = described(Check{
	ID:    M16,
	Needs: NeedDB | NeedLog,
	Run:   runMemberRows,
})

func runMemberRows(in *Input) Result {
	w := &rowFindings{in: in, by: map[string]*Finding{}}
	checked := false
	for _, m := range in.Members {
		if !m.HasDB() || !m.HasLog() || m.AppliedMin == 0 {
			continue
		}
		l := in.Membership().listOf(m)
		checked = w.missing(m) || checked
		checked = w.unnoted(m) || checked
		checked = w.neverRemoved(m) || checked
		checked = w.noted(m) || checked
		for i := range m.DB.Members {
			row := &m.DB.Members[i]
			checked = w.peers(m, l, row) || checked
			checked = w.attributes(m, row) || checked
		}
	}
	if !checked {
		return Result{Reason: "no log holds a change of a member that a database lists"}
	}
	return outcome(w.findings(), "")
}

// rowFindings makes one finding of all members that hold the same wrong value.
type rowFindings struct {
	in    *Input
	by    map[string]*Finding
	order []string
}

func (w *rowFindings) findings() []Finding {
	var out []Finding
	for _, k := range w.order {
		out = append(out, *w.by[k])
	}
	return out
}

func (w *rowFindings) add(m *evidence.Member, row *dumpdb.Member, field, observed, expected string, f Finding) {
	f.Title = fmt.Sprintf("bucket members gives %s the %s %s, the log %s", w.in.Members.MemberName(row.ID), field,
		observed,
		expected)
	w.file(m, field+" "+row.ID.String()+" "+observed, f, Evidence{Page: Uint64(row.Page), Offset: Int64(row.Offset),
		Key: Bytes(row.ID.String()), Field: field, Observed: observed,
		Expected: expected + ", of entry " + fmt.Sprint(f.At.Index)})
}

// file puts evidence of a member into the finding of that key, which is f where there is none yet.
func (w *rowFindings) file(m *evidence.Member, key string, f Finding, e Evidence) {
	have := w.by[key]
	if have == nil {
		have, w.order = &f, append(w.order, key)
		w.by[key] = have
	}
	e.Member, e.File = m.Label(), m.DB.File
	if e.Bucket == "" {
		e.Bucket, e.Show = "members", showDB(m, "members")
	}
	have.Members = append(have.Members, m.Label())
	have.Evidence = append(have.Evidence, e)
}

// peers judges the peer URLs of a row, false when the logs do not show them.
func (w *rowFindings) peers(m *evidence.Member, l *listByLog, row *dumpdb.Member) bool {
	id := dumplog.ID(row.ID)
	newest := l.newest[id]
	if newest == nil {
		return false
	}
	urls := newest.Change.Member.PeerURLs
	switch {
	case sameURLs(row.PeerURLs, urls), l.maybe(id, row.PeerURLs):
		return true
	case !m.Version.Follows(release.MembersFromDB) && (!l.whole || l.ever(id, row.PeerURLs)):
		return true
	case !l.whole && takenByOther(m, row, urls):
		return true // the update may have been refused
	}
	if at := l.laterIndex(id, row.PeerURLs); at > 0 && !l.ever(id, row.PeerURLs) {
		w.aboveIndex(m, row, "peer URLs", fmt.Sprint(row.PeerURLs), at)
		return true
	}
	f := Finding{Kind: KindMemberRowAgainstLog, Severity: Error, Class: ClassMembership,
		At: At{Term: newest.Term, Index: newest.Index},
		Explanation: fmt.Sprintf("%s gave it %v, and no later change that this member has applied gives another. The "+
			"row was edited or damaged: members that connect by it look for this one in the wrong place",
			what(newest), urls),
		Remedy: []Remedy{{Text: "with a majority up: set the peer URLs that the member really has",
			Command:      shell.Format("etcdctl member update {} --peer-urls={}", row.ID, joinURLs(urls)),
			Precondition: "the URLs of the log are those that the member listens on"}}}
	if l.ever(id, row.PeerURLs) {
		f.Severity, f.Class = Warning, ""
		f.Explanation = fmt.Sprintf("%s gave it %v; the row has kept an older value of the log", what(newest), urls)
	}
	w.add(m, row, "peer URLs", fmt.Sprint(row.PeerURLs), fmt.Sprint(urls), f)
	return true
}

// attributes judges name and client URLs, which a member publishes at its starts; an older value may remain.
func (w *rowFindings) attributes(m *evidence.Member, row *dumpdb.Member) bool {
	if w.in.Replay == nil || w.in.Replay.Survey == nil {
		return false
	}
	var name, urls bool
	newest := -1
	starts := w.in.Replay.Survey.StartsFor(slices.Index(w.in.Members, m), dumplog.ID(row.ID))
	later := func(same func(s *replay.Start) bool) uint64 {
		for i := range starts {
			if s := &starts[i]; s.Index > m.AppliedMax && same(s) {
				return s.Index
			}
		}
		return 0
	}
	for i, s := range starts {
		if s.Index > m.AppliedMax {
			break
		}
		name, urls = name || s.Name == row.Name, urls || sameURLs(s.ClientURLs, row.ClientURLs)
		if s.Index <= m.AppliedMin {
			newest = i
		}
	}
	whole := w.in.Membership().listOf(m).whole
	if newest < 0 || starts[newest].Index <= w.in.Membership().lastUnseen(m) {
		return false
	}
	name = name || w.in.Membership().foundedAs(m, dumplog.ID(row.ID), row.Name)
	s := starts[newest]
	f := Finding{Kind: KindMemberRowAgainstLog, Severity: Warning,
		At: At{Term: w.in.Members.logs().termAt(s.Index), Index: s.Index},
		Explanation: fmt.Sprintf("the member never published that in the logs at hand, last in entry %d: the row was "+
			"edited or damaged; its next start writes it again", s.Index)}
	switch {
	case whole: // no release can have left an older value
		f.Severity, f.Class = Error, ClassMembership
	case !m.Version.Follows(release.MembersFromDB):
		f.Severity = Info
		f.Explanation = fmt.Sprintf("the member never published that in the logs at hand, last in entry %d. 3.5.1 to "+
			"3.5.19 leave a row as it was, so this can be an older value; else the row was edited", s.Index)
	}
	if row.Name != "" && !name {
		at := later(func(s *replay.Start) bool { return s.Name == row.Name })
		w.rowOf(at, m, row, "name", fmt.Sprintf("%q", row.Name), fmt.Sprintf("%q", s.Name), f)
	}
	if len(row.ClientURLs) > 0 && !urls {
		at := later(func(s *replay.Start) bool { return sameURLs(s.ClientURLs, row.ClientURLs) })
		w.rowOf(at, m, row, "client URLs", fmt.Sprint(row.ClientURLs), fmt.Sprint(s.ClientURLs), f)
	}
	return true
}

// rowOf adds a finding about a field of a row: that it is of a later entry, or of none if that is 0.
func (w *rowFindings) rowOf(later uint64, m *evidence.Member, row *dumpdb.Member, field, observed, expected string,
	f Finding) {
	if later > 0 {
		w.aboveIndex(m, row, field, observed, later)
		return
	}
	w.add(m, row, field, observed, expected, f)
}

// aboveIndex adds that a row has what an entry above the consistent index gives it.
func (w *rowFindings) aboveIndex(m *evidence.Member, row *dumpdb.Member, field, observed string, index uint64) {
	f := Finding{Kind: KindMemberRowAboveIndex, Severity: Error, Class: ClassLatentDivergence,
		At: At{Term: w.in.Members.logs().termAt(index), Index: index},
		Title: fmt.Sprintf("%s: bucket members gives %s the %s of entry %d, the consistent index is %d", m.Label(),
			w.in.Members.MemberName(row.ID), field, index, m.ConsistentIndex()),
		Explanation: "the index was not stored with the data, or was lowered; the next start applies that entry and " +
			"those before it a second time"}
	w.file(m, fmt.Sprintf("%s %s %s %d", m.Label(), field, row.ID, index), f, Evidence{Page: Uint64(row.Page),
		Offset: Int64(row.Offset), Key: Bytes(row.ID.String()), Field: field, Observed: observed,
		Expected: fmt.Sprintf("that of an entry up to %d", m.AppliedMax)})
}

func what(c *evidence.ConfEntry) string {
	verb := "the addition"
	if c.Change.Type == dumplog.ConfChangeUpdateNode {
		verb = "the update"
	}
	return fmt.Sprintf("%s of member %s in entry %d/%d", verb, c.Change.NodeID, c.Term, c.Index)
}
