package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

var rootListsBuckets = described(Check{
	ID:  D06,
	Run: runRootListsBuckets,
})

func runRootListsBuckets(in *Input) Result {
	var fs []Finding
	seen := false
	for _, m := range in.Members {
		if m.DB == nil || m.DB.Handle == nil {
			continue
		}
		seen = true
		f := Finding{Kind: KindRootHoldsRevisions, Severity: Critical, Class: ClassTornCopy,
			Members: []string{m.Label()},
			Title:   fmt.Sprintf("%s: the root page of the database holds revisions instead of buckets", m.Label()),
			Explanation: "the page was used for bucket key when it was copied: meta page and root come from " +
				"different moments. Copy the file of the stopped member again"}
		for _, d := range m.DB.Damage {
			if inRoot(d) {
				f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: m.DB.File, Page: Uint64(d.Page),
					Offset: Int64(d.Offset), Field: "root",
					Observed: orText(d.Observed, d.Error()), Expected: "a bucket", Show: showDB(m, "--page", d.Page)})
			}
		}
		if len(f.Evidence) > 0 {
			fs = append(fs, in.cut(f))
		}
		if f := reusedPages(m); f != nil {
			fs = append(fs, in.cut(*f))
		}
	}
	if !seen {
		return Result{Reason: "no source brought a database that opens"}
	}
	return outcome(fs, "")
}

// reusedPages is the finding about pages of buckets that hold other rows, nil for none.
func reusedPages(m *evidence.Member) *Finding {
	f := Finding{Kind: KindPageReused, Severity: Critical, Class: ClassTornCopy, Members: []string{m.Label()},
		Explanation: "the page was used again before it was copied: it and the page that refers to it come from " +
			"different moments. Copy the file of the stopped member again"}
	for _, d := range m.DB.Damage {
		if d.Kind != dumpdb.DamageReused {
			continue
		}
		if f.Title == "" {
			f.Title = fmt.Sprintf("%s: page %d of bucket %s holds other rows", m.Label(), d.Page, d.Bucket)
		}
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: m.DB.File, Page: Uint64(d.Page),
			Offset: Int64(d.Offset), Bucket: d.Bucket, Field: string(d.Kind), Observed: d.Observed,
			Expected: d.Expected, Show: showDB(m, "--page", d.Page)})
	}
	if len(f.Evidence) == 0 {
		return nil
	}
	return &f
}

// inRoot reports whether a damaged row of the root bucket has a revision as its name.
func inRoot(d *dumpdb.DamageError) bool {
	from, _ := d.Revisions()
	return from != (dumpdb.Rev{}) && d.Kind == dumpdb.DamageRow && d.Bucket == ""
}

var compactionLeftNothing = described(Check{
	ID:    D07,
	Needs: NeedDB,
	Run:   runCompactionLeftNothing,
})

func runCompactionLeftNothing(in *Input) Result {
	var fs []Finding
	checked := 0
	for _, m := range in.Members {
		if !m.HasDB() || m.DB.KV == nil || m.DB.KVDamaged || m.DB.Meta.FinishedCompact == nil {
			continue
		}
		kv, done := m.DB.KV, m.DB.Meta.FinishedCompact.Main
		if done < kv.CompactRev {
			continue // not finished
		}
		checked++
		if kv.Superseded == 0 {
			continue
		}
		first := kv.FirstSuperseded
		fs = append(fs, Finding{Kind: KindSupersededLeft, Severity: Error, Class: ClassDBDamage,
			Members: []string{m.Label()},
			At:      At{Revision: &Rev{Main: first.Main, Sub: first.Sub}},
			Title: fmt.Sprintf("%s: %d superseded records are below the finished compaction at %d", m.Label(),
				kv.Superseded, done),
			Explanation: "a compaction that is finished has removed them: they came back from an older file",
			Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "key", Field: "revision " +
				first.String(), Observed: fmt.Sprintf("%d superseded records", kv.Superseded),
				Expected: "none at or below " + fmt.Sprint(done), Show: showRev(m, first.Main)}}})
	}
	if checked == 0 {
		return Result{Reason: "no database has finished a compaction"}
	}
	return outcome(fs, "")
}
