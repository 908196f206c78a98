package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/shell"
)

var dbMetas = described(Check{
	ID:    D01,
	Needs: 0,
	Run:   runDBMetas,
})

func runDBMetas(in *Input) Result {
	var fs []Finding
	seen := false
	for _, m := range in.Members {
		if m.DB == nil || m.DB.Handle == nil {
			continue
		}
		seen = true
		for _, p := range m.DB.Handle.Metas() {
			if p.HeaderProblem != "" {
				fs = append(fs, metaHeaderFinding(m, &p))
			}
			if p.Valid || m.DB.Handle.Size() <= int64(p.Page)*int64(m.DB.Handle.PageSize()) &&
				slices.ContainsFunc(m.DB.Damage, cutShort) {
				continue // D02 reports that the file ends before it
			}
			fs = append(fs, Finding{Kind: KindMetaPageInvalid, Severity: Critical, Class: ClassDBDamage,
				Members:     []string{m.Label()},
				Title:       fmt.Sprintf("%s: meta page %d of the database is invalid", m.Label(), p.Page),
				Explanation: p.Problem + "; a server would open the file at the other meta page, an older transaction",
				Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Page: Uint64(p.Page),
					Offset: Int64(int64(p.Page) * int64(m.DB.Handle.PageSize())), Field: "meta",
					Observed: p.Problem, Expected: "magic, version and checksum of a bbolt meta page",
					Show: showDB(m, "--pages")}}})
		}
	}
	if !seen {
		return Result{Reason: "no source brought a database that opens"}
	}
	return outcome(fs, "")
}

// metaHeaderFinding is about a changed byte through which nothing is read. It costs nothing: the next commits write
// both page headers again.
func metaHeaderFinding(m *evidence.Member, p *dumpdb.Meta) Finding {
	return Finding{Kind: KindMetaHeaderWrong, Severity: Warning, Members: []string{m.Label()},
		Title: fmt.Sprintf("%s: the page header of meta page %d was changed", m.Label(), p.Page),
		Explanation: "a server does not read it, opens the file with all content and writes it again; bbolt check " +
			"and etcdutl snapshot status stop at it. A server writes no such header: a byte of the file was changed",
		Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Page: Uint64(p.Page), Offset: Int64(p.Offset),
			Field: "page header", Observed: p.HeaderProblem,
			Expected: fmt.Sprintf("the page header says page %d of type meta", p.Page), Show: showDB(m, "--pages")}}}
}

var dbPages = described(Check{
	ID:  D02,
	Run: runDBPages,
})

func runDBPages(in *Input) Result {
	var fs []Finding
	seen, notDatabases := false, ""
	for _, m := range in.Members {
		if m.DB == nil {
			continue
		}
		if m.DB.Foreign {
			notDatabases += m.Label() + " holds no page of a database; see B02. "
			continue
		}
		seen = true
		var ds []*dumpdb.DamageError
		for _, d := range m.DB.Damage {
			switch d.Kind {
			case dumpdb.DamageRow, dumpdb.DamageMeta, dumpdb.DamageMetaHeader, dumpdb.DamageReused: // D03, D01, D06
				if m.DB.Handle != nil {
					continue
				}
			}
			ds = append(ds, d)
		}
		fs = append(fs, placeFindings(ds, kindAndBucket,
			func(d *dumpdb.DamageError) Finding { return dbDamageFinding(m, d) }, pageRanges)...)
	}
	slices.SortStableFunc(fs, func(a, b Finding) int { return cutFirst(a) - cutFirst(b) })
	if !seen {
		return Result{Reason: cmp.Or(strings.TrimSpace(notDatabases), "no source brought a database")}
	}
	return outcome(fs, strings.TrimSpace(notDatabases+in.Members.databases().unreadable()))
}

// cutFirst orders the damage of a file that lost its end: lost parts come before the pages that refer to them.
func cutFirst(f Finding) int {
	if f.Facts.DBDamage == dumpdb.DamageTruncated {
		return 0
	}
	return 1
}

// tellCut says which pages a file without its end has lost, and whether anything can be reached in the rest.
func tellCut(f *Finding, m *evidence.Member) {
	size, page, pages := m.DB.Handle.Size(), int64(m.DB.Handle.PageSize()), int64(m.DB.Handle.Meta().HighWater)
	whole := size / page
	if whole >= pages {
		return
	}
	f.Title = fmt.Sprintf("%s: the database file ends after %s", m.Label(), plural.SizeOf(size, pages*page))
	f.Explanation = fmt.Sprintf("pages %d..%d of %d are lost", whole, pages-1, pages)
	switch {
	case m.RootUnreadable() && whole <= 2:
		f.Explanation += ": only meta pages are left. Not a single key, user or lease can be read from this file"
	case m.RootUnreadable():
		f.Explanation += fmt.Sprintf(", the root page %d among them: no bucket can be reached any more. Pages 2..%d "+
			"can still hold records, but nothing shows which of them are current", m.DB.Handle.Meta().Root, whole-1)
	default:
		f.Explanation += "; the buckets that can still be reached are read as far as their pages exist"
	}
}

func dbDamageFinding(m *evidence.Member, d *dumpdb.DamageError) Finding {
	f := Finding{Kind: KindPageDamaged, Severity: Critical, Class: ClassDBDamage, Members: []string{m.Label()},
		Facts: Facts{DBDamage: d.Kind, Page: Uint64(d.Page), Bucket: d.Bucket},
		Title: fmt.Sprintf("%s: database page %d is damaged (%s)", m.Label(), d.Page, d.Kind), Explanation: d.Error()}
	if from, to := d.Revisions(); from != (dumpdb.Rev{}) && d.Bucket == "key" {
		f.At.Revision = &Rev{Main: from.Main, Sub: from.Sub}
		span := fmt.Sprintf(". Revisions from %s", from)
		if to != (dumpdb.Rev{}) {
			span += " up to before " + to.String()
		}
		f.Explanation += span + " are below it"
	}
	f.Evidence = []Evidence{{Member: m.Label(), File: m.DB.File, Page: Uint64(d.Page), Offset: Int64(d.Offset),
		Bucket: d.Bucket, Field: string(d.Kind),
		Observed: orText(d.Observed, d.Error()), Expected: orText(d.Expected, "a sound page"),
		Show: showDB(m, "--page", d.Page)}}
	switch {
	case d.Kind == dumpdb.DamageTruncated && m.DB.Handle != nil:
		tellCut(&f, m)
		f.Evidence[0].Show = showDB(m, "--pages")
	case d.Kind == dumpdb.DamageTruncated:
		f.Title, f.Explanation = explainNoMeta(m)
		f.Evidence[0].Show = shell.Command{}
	}
	return f
}

// explainNoMeta describes a file that is too short for a meta page. bbolt initialises a file of 0 bytes as a new
// database (bbolt db.go, Open); etcd then looks for the database of the snapshot that its log names
// (etcdserver/backend.go, RecoverSnapshotBackend) and refuses to start without it.
func explainNoMeta(m *evidence.Member) (title, explanation string) {
	if m.DB.Size > 0 {
		return fmt.Sprintf("%s: the database file has %s, its content is lost", m.Label(), plural.Size(m.DB.Size)),
			"not even the first meta page is there; a server refuses to open the file"
	}
	explanation = "bbolt takes an empty file for a new database, so a server would start with an empty key space"
	switch {
	case !m.HasWAL():
	case m.NewestRecord().Index > 0:
		explanation += fmt.Sprintf(". The log names a snapshot at index %d: while its .snap file is there, the "+
			"server looks for that snapshot's database and refuses to start. Do not remove the .snap files to get it "+
			"to start",
			m.NewestRecord().Index)
	case m.WAL.Summary.FirstIndex == 1:
		explanation += " and apply the log again from entry 1"
	}
	return m.Label() + ": the database file is empty (0 bytes), its content is lost", explanation
}

func orText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

var dbRows = described(Check{
	ID:    D03,
	Needs: NeedDB,
	Run: func(in *Input) Result {
		var fs []Finding
		for _, m := range in.Members {
			if m.DB == nil {
				continue
			}
			var ds []*dumpdb.DamageError
			for _, d := range m.DB.Damage {
				if d.Kind == dumpdb.DamageRow && !inRoot(d) {
					ds = append(ds, d)
				}
			}
			fs = append(fs, placeFindings(ds, kindAndBucket,
				func(d *dumpdb.DamageError) Finding { return rowFinding(m, d) }, pageRanges)...)
		}
		return outcome(fs, "")
	},
})

// rowFinding is a row that does not decode.
func rowFinding(m *evidence.Member, d *dumpdb.DamageError) Finding {
	f := dbDamageFinding(m, d)
	f.Title = fmt.Sprintf("%s: a row of bucket %s does not decode", m.Label(), d.Bucket)
	f.Explanation = "the page around it is in order, so bbolt reads it and the server meets the bytes: it panics on " +
		"them or takes the row for another"
	e := &f.Evidence[0]
	e.Key, e.Expected, e.Show = Bytes(d.FirstKey), "a row as servers write it", showDB(m, "--page", d.Page)
	if d.Err != nil {
		e.Observed = d.Err.Error()
	}
	return f
}

// kindAndBucket groups damaged places of a database.
func kindAndBucket(d *dumpdb.DamageError) string { return string(d.Kind) + " " + d.Bucket }

var dbNotAheadOfLog = described(Check{
	ID:    D04,
	Needs: NeedDB | NeedLog,
	Run:   runDBNotAhead,
})

func runDBNotAhead(in *Input) Result {
	var fs []Finding
	checked := 0
	for _, m := range in.Members {
		if !m.HasDB() || !m.HasWAL() || m.DB.Meta.ConsistentIndex == nil {
			continue
		}
		checked++
		last, ci := m.LastIndex(), m.ConsistentIndex()
		if ci <= last || justInstalled(m) || in.provenance().tornCopy(m) != nil {
			continue
		}
		fs = append(fs, Finding{Kind: KindDBBeyondLog, Severity: Error, Class: ClassWALDamage,
			Members: []string{m.Label()},
			At:      At{Index: last + 1},
			Title:   fmt.Sprintf("%s: the database has applied entry %d, the log ends at %d", m.Label(), ci, last),
			Explanation: "the log lost entries that were applied already, or database and log come from different " +
				"times",
			Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("consistent_index"),
				Observed: fmt.Sprint(ci),
				Expected: fmt.Sprintf("at most %d, the last index of the log", last), Show: showDB(m, "meta")}}})
	}
	if checked == 0 {
		return Result{Reason: "no source has both a log and a consistent index"}
	}
	return outcome(fs, "")
}

// installSlack is how many entries a database that a leader sent may hold beyond the snapshot record: those applied
// while it was streamed.
const installSlack = 1000

// justInstalled reports whether the database is as a leader sent it, a little ahead of the received snapshot at the end
// of the log.
func justInstalled(m *evidence.Member) bool {
	snap := m.NewestRecord().Index
	return m.DB.Handle.MayBeCopy() && m.DB.Trailer.State != "match" && m.DB.Trailer.State != "mismatch" &&
		snap == m.LastIndex() && snap > 0 &&
		Received(m, snap) && m.ConsistentIndex() <= snap+installSlack
}

var compactionProgress = described(Check{
	ID:    K05,
	Needs: NeedDB,
	Run:   runCompactionProgress,
})

func runCompactionProgress(in *Input) Result {
	var fs []Finding
	sizes := map[int64]bool{}
	size := Finding{Kind: KindDBSizesDiffer, Severity: Info, Title: "database files differ in size",
		Explanation: "defragmentation and page layout are each member's own"}
	for _, m := range in.Members {
		if !m.HasDB() {
			continue
		}
		meta := m.DB.Meta
		sizes[m.DB.Handle.Size()] = true
		size.Members = append(size.Members, m.Label())
		size.Evidence = append(size.Evidence, Evidence{Member: m.Label(), File: m.DB.File, Field: "size",
			Observed: fmt.Sprint(m.DB.Handle.Size())})
		if meta.ScheduledCompact == nil || meta.FinishedCompact != nil &&
			meta.FinishedCompact.Main >= meta.ScheduledCompact.Main {
			continue
		}
		finished := "none"
		if meta.FinishedCompact != nil {
			finished = meta.FinishedCompact.String()
		}
		fs = append(fs, Finding{Kind: KindCompactionUnfinished, Severity: Info, Members: []string{m.Label()},
			At: At{Revision: &Rev{Main: meta.ScheduledCompact.Main}},
			Title: fmt.Sprintf("%s: the compaction at revision %d is not finished", m.Label(),
				meta.ScheduledCompact.Main),
			Explanation: "the member stopped in the middle; it resumes at the next start. Superseded records below " +
				"that revision are left out of every comparison.",
			Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("finishedCompactRev"),
				Observed: finished,
				Expected: meta.ScheduledCompact.String() + " once it is finished", Show: showDB(m, "meta")}}})
	}
	if len(sizes) > 1 {
		fs = append(fs, size)
	}
	return outcome(fs, "")
}
