package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/release"
)

// noFreelistStored is the freelist page of a file that keeps none: all ones.
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
		fs = append(fs, Finding{Severity: Info, Members: []string{m.Label()},
			Title: fmt.Sprintf("%s: the database stores a freelist (page %d)", m.Label(), p.Freelist),
			Explanation: "normal for a server on Windows or macOS. On Linux a server of " + m.Version.Text +
				" stores none, and another program wrote to the file",
			Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Page: Uint64(p.Page), Offset: Int64(p.Offset),
				Field: in.freelistField(m), Observed: fmt.Sprintf("page %d", p.Freelist),
				Expected: "none (all ones)", Show: showDB(m, "--pages")}}})
	}
	return outcome(fs, in.unreadableDBs())
}

// The fields of the evidence of D08: whether other members of the cluster store no freelist.
const (
	FieldFreelist      = "freelist"
	FieldFreelistAlone = "freelist, unlike other members"
)

func (in *Input) freelistField(m *evidence.Member) string {
	for _, o := range in.Members {
		if o != m && o.HasDB() && o.ClusterID == m.ClusterID && o.ClusterID != 0 &&
			o.DB.Handle.Meta().Freelist == noFreelistStored {
			return FieldFreelistAlone
		}
	}
	return FieldFreelist
}
