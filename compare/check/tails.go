package check

import "fmt"

var lastLeafFilled = Check{
	ID: "D09", Title: "whether the last page of a bucket is empty is told, not judged",
	Doc: `bbolt may leave an empty leaf at the right edge of a bucket when the rows on it are deleted. Every walk passes over it, and the file is
sound. bbolt up to 1.3.6 (etcd up to 3.4.23 and 3.5.7) finds no last row in such a bucket, so that tools of that age that take the last key of
bucket key for the current revision report too low a number or none. All versions write it.`,
	Needs: NeedDB,
	Run:   runLastLeafFilled,
}

func runLastLeafFilled(in *Input) Result {
	var fs []Finding
	for _, m := range in.Members {
		if !m.HasDB() {
			continue
		}
		f := Finding{Severity: Info, Members: []string{m.Label()}, Explanation: "the rows are all there; a library " +
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
	return outcome(fs, in.unreadableDBs())
}
