package check

import (
	"fmt"

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
		return stretchFindings(in, func(r *replay.MemberResult) (out []replay.Stretch) {
			for _, s := range []*replay.Stretch{r.Ahead, r.AuthAhead} {
				if s != nil {
					out = append(out, *s)
				}
			}
			return out
		}, aheadFinding)
	},
})

func aheadFinding(ss Sources, m *evidence.Member, s *replay.Stretch) Finding {
	if s.First == 0 {
		return authAheadFinding(ss, m, s)
	}
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

func authAheadFinding(ss Sources, m *evidence.Member, s *replay.Stretch) Finding {
	return Finding{Kind: KindAuthAboveIndex, Severity: Critical, Class: ClassLatentDivergence,
		Members: []string{m.Label()},
		At:      At{Term: ss.logs().termAt(s.From), Index: s.From},
		Title: fmt.Sprintf("%s: the database holds the changes of auth by %s, its consistent index is %d",
			m.Label(), spanOf(s), m.ConsistentIndex()),
		Explanation: "the index was not stored with the data; the next start applies these entries a second time and " +
			"raises the auth revision above the other members'. Do not start the member on this log",
		Evidence: []Evidence{
			{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("consistent_index"), Field: "ahead",
				Observed: fmt.Sprint(m.ConsistentIndex()), Expected: fmt.Sprintf("%d or more", s.To),
				Show: showDB(m, "meta")},
			{Member: m.Label(), File: m.DB.File, Bucket: "auth", Key: Bytes("authRevision"),
				Observed: fmt.Sprintf("%d, as after entry %d", m.DB.Auth.Revision, s.To),
				Expected: fmt.Sprintf("that of entry %d", m.ConsistentIndex()), Show: showDB(m, "auth")}}}
}

var appliedOnce = described(Check{
	ID:    C04,
	Needs: NeedReplay,
	Run: func(in *Input) Result {
		return stretchFindings(in, func(r *replay.MemberResult) []replay.Stretch { return r.Reruns }, rerunFinding)
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

// stretchFindings makes findings of the spans of entries that the replay shows for each member.
func stretchFindings(in *Input, of func(*replay.MemberResult) []replay.Stretch,
	finding func(Sources, *evidence.Member, *replay.Stretch) Finding) Result {
	var fs []Finding
	why := ""
	for i, m := range in.Members {
		r := in.Replay.Members[i]
		if !r.Checked {
			if m.HasDB() && r.Why != "" {
				why += m.Label() + ": " + r.Why + "; "
			}
			continue
		}
		list := of(r)
		for j := range list {
			fs = append(fs, finding(in.Members, m, &list[j]))
		}
	}
	return outcome(fs, why)
}
