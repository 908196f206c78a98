package check

import "fmt"

// noFreelistStored is the freelist page of a file that keeps none: all ones.
const noFreelistStored = ^uint64(0)

var noFreelistPage = Check{
	ID: "D08", Title: "whether the database stores a freelist is told, not judged",
	Doc: `Servers of 3.3 and later keep no freelist on disk on Linux (backend option NoFreelistSync), so the newest meta page names none. A freelist page
in their data was written by a server on another system, or by another program that opened the file for writing. Neither does harm.
Normal: a freelist page in data of 3.2 and older.`,
	Needs: NeedDB,
	Run:   runNoFreelistPage,
}

func runNoFreelistPage(in *Input) Result {
	var fs []Finding
	for _, m := range in.Members {
		if !m.HasDB() || m.Version.Minor < 3 {
			continue
		}
		p := m.DB.Handle.Meta()
		if p.Freelist == noFreelistStored {
			continue
		}
		fs = append(fs, Finding{Severity: Info, Members: []string{m.Label()}, Title: fmt.Sprintf("%s: the database stores a freelist (page %d)", m.Label(), p.Freelist),
			Explanation: "a server of " + m.Version.Text + " stores none on Linux; another program wrote to the file",
			Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Page: Uint64(p.Page), Offset: Int64(p.Offset), Field: "freelist", Observed: fmt.Sprintf("page %d", p.Freelist),
				Expected: "none (all ones)", Show: showDB(m, "--pages")}}})
	}
	return outcome(fs, in.unreadableDBs())
}
