package check

import "fmt"

var lastLeafFilled = described(Check{
	ID:    D09,
	Needs: NeedDB,
	Run:   runLastLeafFilled,
})

func runLastLeafFilled(in *Input) Result {
	var fs []Finding
	for _, m := range in.Members {
		if !m.HasDB() {
			continue
		}
		f := Finding{Kind: KindLastPageEmpty, Severity: Info, Members: []string{m.Label()},
			Explanation: "there is no trace of rows on it, and a scan of the bucket finds those before it; a library " +
				"that looks at the last page only does not find the last of them"}
		for _, t := range m.DB.Handle.EmptyTails() {
			f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: m.DB.File, Page: Uint64(t.Page),
				Offset: Int64(t.Offset), Bucket: t.Bucket, Field: "empty last page",
				Observed: "a leaf without rows at the right edge",
				Expected: "rows, as a plain scan of the bucket finds them", Show: showDB(m, "--page", t.Page)})
		}
		if len(f.Evidence) > 0 {
			f.Title = fmt.Sprintf("%s: the last page of %d buckets is empty", m.Label(), len(f.Evidence))
			fs = append(fs, in.cut(f))
		}
	}
	return outcome(fs, in.Members.databases().unreadable())
}
