package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/release"
)

// noFreelistStored is the freelist page number in a file without a stored freelist: all bits are set.
const noFreelistStored = ^uint64(0)

var noFreelistPage = described(Check{
	ID:    D08,
	Needs: NeedDB,
	Run:   runNoFreelistPage,
})

func runNoFreelistPage(in *Input) Result {
	var fs []Finding
	for _, m := range in.Members {
		if !m.HasDB() || !m.Version.Follows(release.FreelistNotStored) {
			continue
		}
		p := m.DB.Handle.Meta()
		if p.Freelist == noFreelistStored {
			continue
		}
		kind, field := KindFreelistStored, "freelist"
		if storesAlone(in.Members, m) {
			kind, field = KindFreelistStoredAlone, "freelist, unlike other members"
		}
		fs = append(fs, Finding{Kind: kind, Severity: Info, Members: []string{m.Label()},
			Title: fmt.Sprintf("%s: the database stores a freelist (page %d)", m.Label(), p.Freelist),
			Explanation: "normal for a server on Windows or macOS. On Linux a server of " + m.Version.Text +
				" stores none, and another program wrote to the file",
			Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Page: Uint64(p.Page), Offset: Int64(p.Offset),
				Field: field, Observed: fmt.Sprintf("page %d", p.Freelist),
				Expected: "none (all ones)", Show: showDB(m, "--pages")}}})
	}
	return outcome(fs, in.Members.databases().unreadable())
}

// storesAlone reports whether another member of the cluster does not store a freelist.
func storesAlone(ss Sources, m *evidence.Member) bool {
	return slices.ContainsFunc(ss, func(o *evidence.Member) bool {
		return o != m && o.HasDB() && o.ClusterID == m.ClusterID && o.ClusterID != 0 &&
			o.DB.Handle.Meta().Freelist == noFreelistStored
	})
}
