package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/internal/plural"
)

var noStrayTombstones = described(Check{
	ID:    K11,
	Needs: NeedDB,
	Run:   runNoStrayTombstones,
})

func runNoStrayTombstones(in *Input) Result {
	var fs []Finding
	checked := 0
	for _, m := range in.Members {
		if !m.HasDB() || m.DB.KV == nil || m.DB.KVDamaged || m.DB.Meta.FinishedCompact == nil ||
			m.DB.Meta.FinishedCompact.Main < m.DB.KV.CompactRev {
			continue
		}
		checked++
		kv, done := m.DB.KV, m.DB.Meta.FinishedCompact.Main
		if kv.Strays == 0 {
			continue
		}
		at := kv.FirstStray
		fs = append(fs, Finding{Kind: KindTombstonesLeft, Severity: Info, Members: []string{m.Label()},
			At: At{Revision: &Rev{Main: at.Main, Sub: at.Sub}},
			Title: fmt.Sprintf("%s: %s left below the finished compaction at %d", m.Label(),
				plural.Of(kv.Strays, "tombstone is", "tombstones are"), done),
			Explanation: "they delete nothing that is left; a later compaction removes them",
			Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "key", Field: "revision " + at.String(),
				Observed: fmt.Sprintf("%d tombstones without a record to delete", kv.Strays),
				Expected: "none below " + fmt.Sprint(done), Show: showRev(m, at.Main)}}})
	}
	if checked == 0 {
		return Result{Reason: "no database has finished a compaction"}
	}
	return outcome(fs, "")
}
