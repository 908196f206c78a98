package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

var receivedIsUsed = described(Check{
	ID:    S05,
	Needs: NeedDB | NeedLog,
	Run:   runReceivedIsUsed,
})

func runReceivedIsUsed(in *Input) Result {
	var fs []Finding
	for _, m := range in.Members {
		if !pristineReceived(m) || m.Commit <= m.ConsistentIndex() {
			continue
		}
		fs = append(fs, Finding{Kind: KindReceivedUnused, Severity: Info, Members: []string{m.Label()},
			At: At{Index: m.ConsistentIndex() + 1, Term: in.Members.logs().termAt(m.ConsistentIndex() + 1)},
			Title: fmt.Sprintf("%s: the database is as the leader sent it for index %d, the log has committed %d",
				m.Label(), m.ConsistentIndex(), m.Commit),
			Explanation: "no server has committed to it since it was installed",
			Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Page: Uint64(0), Offset: Int64(0),
				Field: "meta pages", Observed: "equal but for their transaction IDs, as a copy is written",
				Expected: "two transactions", Show: showDB(m, "--pages")}}})
	}
	return outcome(fs, "")
}

// pristineReceived reports whether the database is as a leader sent it: it has the meta pages of a copy, no trailer,
// and the index of a snapshot that the log received.
func pristineReceived(m *evidence.Member) bool {
	if !m.HasDB() || !m.HasWAL() || !neverCommitted(m) || m.DB.Trailer.State == "match" ||
		m.DB.Trailer.State == "mismatch" {
		return false
	}
	for _, s := range m.WAL.Summary.Snapshots {
		if s.Index > 0 && s.Index == m.ConsistentIndex() && Received(m, s.Index) {
			return true
		}
	}
	return false
}

// neverCommitted reports whether bbolt wrote the file as a copy, and no transaction was committed to it since.
func neverCommitted(m *evidence.Member) bool { return m.DB.Handle.Written() == dumpdb.WrittenAsCopy }
