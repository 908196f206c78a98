package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

var indexCanMove = described(Check{
	ID:    C01,
	Needs: NeedDB | NeedLog,
	Run:   runIndexCanMove,
})

func runIndexCanMove(in *Input) Result {
	var fs []Finding
	checked := 0
	for _, m := range in.Members {
		if !m.HasDB() || !m.HasLog() || m.DB.Meta.Term == nil {
			continue
		}
		checked++
		if !m.IndexFrozen() {
			continue
		}
		top := m.HighestTerm()
		fs = append(fs, Finding{Kind: KindIndexCannotMove, Severity: Critical, Class: ClassLatentDivergence,
			Members: []string{m.Label()},
			At:      At{Term: in.Members.logs().termAt(m.ConsistentIndex() + 1), Index: m.ConsistentIndex() + 1},
			Title: fmt.Sprintf("%s: the consistent index is %d and cannot move", m.Label(),
				m.ConsistentIndex()),
			Explanation: fmt.Sprintf("meta/term is %d, the highest term of the log is %d: a server of 3.5.0 to 3.5.2 "+
				"stores no index of a lower term. At every start it executes %s again",
				*m.DB.Meta.Term, top, plural.Span(m.ConsistentIndex()+1, m.Commit, "entry", "entries")),
			Evidence: []Evidence{
				{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("term"), Field: "term",
					Observed: fmt.Sprint(*m.DB.Meta.Term), Expected: fmt.Sprintf("at most %d", top),
					Show: showDB(m, "meta")},
				{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("consistent_index"),
					Observed: fmt.Sprint(m.ConsistentIndex()),
					Expected: fmt.Sprintf("about %d, which is committed", m.Commit), Show: showDB(m, "meta")},
			}})
	}
	if checked == 0 {
		return Result{Reason: "no source has a log and a database that stores a term (3.5 and later)"}
	}
	return outcome(fs, "")
}

var indexPresent = described(Check{
	ID:    C02,
	Needs: NeedDB,
	Run:   runIndexPresent,
})

func runIndexPresent(in *Input) Result {
	var fs []Finding
	checked := 0
	for _, m := range in.Members {
		if !m.HasDB() || m.DB.KV == nil || m.DB.KVDamaged || m.Source.Kind == evidence.KindBackup {
			continue
		}
		checked++
		if m.ConsistentIndex() > 0 || m.DB.KV.Revisions == 0 || !m.HasLog() {
			continue
		}
		observed := "absent"
		if m.DB.Meta.ConsistentIndex != nil {
			observed = "0"
		}
		fs = append(fs, Finding{Kind: KindIndexMissing, Severity: Critical, Class: ClassLatentDivergence,
			Members: []string{m.Label()},
			At:      At{Index: m.WAL.Summary.FirstIndex, Term: m.WAL.Summary.FirstTerm},
			Title: fmt.Sprintf("%s: the database holds %s and no consistent index", m.Label(),
				plural.Of(m.DB.KV.Revisions, "record", "records")),
			Explanation: fmt.Sprintf("the next start executes all %d entries of the log on top of them", m.Commit),
			Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("consistent_index"),
				Observed: observed,
				Expected: "the index of the last applied entry", Show: showDB(m, "meta")}}})
	}
	if checked == 0 {
		return Result{Reason: "no source brought a database whose keys can be read"}
	}
	return outcome(fs, "")
}

var nothingAboveIndex = described(Check{
	ID:    C03,
	Needs: NeedReplay,
	Run: func(in *Input) Result {
		return memberFindings(in, func(m *evidence.Member, r *replay.MemberResult) (fs []Finding) {
			if r.Ahead != nil {
				fs = append(fs, aheadFinding(in.Members, m, r.Ahead))
			}
			if r.RowsAhead != nil {
				fs = append(fs, rowsAheadFinding(in, m, r.RowsAhead))
			}
			return fs
		})
	},
})

func aheadFinding(ss Sources, m *evidence.Member, s *replay.Stretch) Finding {
	return Finding{Kind: KindEffectsAboveIndex, Severity: Critical, Class: ClassLatentDivergence,
		Members: []string{m.Label()},
		At:      At{Term: ss.logs().termAt(s.From), Index: s.From, Revision: &Rev{Main: s.First}},
		Title: fmt.Sprintf("%s: the database holds the effects of %s, its consistent index is %d",
			m.Label(), spanOf(s), m.ConsistentIndex()),
		Explanation: "the index was not stored with the data; the next start applies these entries a second time. Do " +
			"not start the member on this log",
		Evidence: []Evidence{
			{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("consistent_index"), Field: "ahead",
				Observed: fmt.Sprint(m.ConsistentIndex()), Expected: fmt.Sprintf("%d or more", s.To),
				Show: showDB(m, "meta")},
			{Member: m.Label(), File: m.DB.File, Bucket: "key", Field: fmt.Sprintf("revisions %d..%d", s.First, s.Last),
				Observed: "what comes from " + spanOf(s),
				Expected: "no record of an entry above the index", Show: showRev(m, s.First)}}}
}

// spanOf are the entries of a stretch.
func spanOf(s *replay.Stretch) string { return plural.Span(s.From, s.To, "entry", "entries") }

func rowsAheadFinding(in *Input, m *evidence.Member, s *replay.RowsAhead) Finding {
	more := ""
	if slices.ContainsFunc(s.Rows, func(d replay.StateDiff) bool { return d.Bucket == "auth" }) {
		more = ", and the auth revision may rise above the other members'"
	}
	f := Finding{Kind: KindRowsAboveIndex, Severity: Critical, Class: ClassLatentDivergence,
		Members: []string{m.Label()},
		At:      At{Term: in.Members.logs().termAt(s.From), Index: s.From},
		Title: fmt.Sprintf("%s: %s of small buckets %s from %s, the consistent index is %d", m.Label(),
			plural.Of(len(s.Rows), "row", "rows"), plural.Form(len(s.Rows), "comes", "come"),
			plural.Span(s.From, s.To, "entry", "entries"), m.ConsistentIndex()),
		Explanation: "the index was not stored with the data, or it was set back; the next start applies these " +
			"entries a second time" + more + ". Do not start the member on this log",
		Evidence: []Evidence{
			{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("consistent_index"), Field: "ahead",
				Observed: fmt.Sprint(m.ConsistentIndex()), Expected: fmt.Sprintf("%d or more", s.To),
				Show: showDB(m, "meta")}}}
	for _, d := range s.Rows {
		in.add(&f, func() Evidence {
			return Evidence{Member: m.Label(), File: m.DB.File, Bucket: d.Bucket, Key: Bytes(d.Key),
				Observed: fmt.Sprintf("%s, as after entry %d", d.Observed, s.To),
				Expected: fmt.Sprintf("%s, as after entry %d", d.Expected, m.ConsistentIndex()),
				Show:     showDB(m, d.Bucket)}
		})
	}
	return f
}

var appliedOnce = described(Check{
	ID:    C04,
	Needs: NeedReplay,
	Run: func(in *Input) Result {
		return memberFindings(in, func(m *evidence.Member, r *replay.MemberResult) (fs []Finding) {
			for i := range r.Reruns {
				fs = append(fs, rerunFinding(in.Members, m, &r.Reruns[i]))
			}
			return fs
		})
	},
})

func rerunFinding(ss Sources, m *evidence.Member, s *replay.Stretch) Finding {
	at := s.Before
	if at == 0 {
		at = s.To + 1
	}
	f := Finding{Kind: KindEntriesAppliedTwice, Severity: Critical, Class: ClassDataDivergence,
		Members: []string{m.Label()},
		At:      At{Term: ss.logs().termAt(at), Index: at, Revision: &Rev{Main: s.First}},
		Title: fmt.Sprintf("%s applied %s a second time (%s)", m.Label(), spanOf(s),
			plural.Of(s.Revisions(), "revision", "revisions")),
		Explanation: "a restart executed them again, because the consistent index in the database was too low; its " +
			"revisions are higher by that number from there on"}
	f.Evidence = []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "key",
		Field:    fmt.Sprintf("revisions %d..%d", s.First, s.Last),
		Observed: "once more what comes from " + spanOf(s),
		Expected: "every entry applied once", Show: showRev(m, s.First)}}
	if s.Restart > 0 {
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), Field: fmt.Sprintf("entry %d", s.Restart),
			Observed: "the member published itself after a restart", Show: showLog(m, s.Restart)})
	}
	return f
}

// memberFindings makes findings of what the replay shows of each member.
func memberFindings(in *Input, of func(*evidence.Member, *replay.MemberResult) []Finding) Result {
	var fs []Finding
	var why []string
	for i, m := range in.Members {
		r := in.Replay.Members[i]
		if !r.Checked {
			if m.HasDB() && r.Why != "" {
				why = append(why, m.Label()+": "+r.Why)
			}
			continue
		}
		fs = append(fs, of(m, r)...)
	}
	return outcome(fs, strings.Join(why, "; "))
}
