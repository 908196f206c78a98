package check

import (
	"fmt"
	"math/bits"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/shell"
)

// The fields of the first evidence of C05: the stored index differs from one that fits in a single bit, or in more.
const (
	FieldOneBit   = "consistent_index, one bit raised"
	FieldManyBits = "consistent_index"
)

var indexPossible = described(Check{
	ID:    C05,
	Needs: NeedDB | NeedLog,
	Run:   runIndexPossible,
})

func runIndexPossible(in *Input) Result {
	var fs []Finding
	checked := 0
	for _, m := range in.Members {
		if !m.HasDB() || !m.HasLog() || m.DB.Meta.ConsistentIndex == nil {
			continue
		}
		checked++
		switch {
		case !m.HasIndexOverride():
		case m.DatabaseOfAnotherCluster(in.Members):
			fs = append(fs, indexOfAnotherCluster(in.Members, m))
		default:
			fs = append(fs, impossibleIndex(in.Members, m))
		}
	}
	if checked == 0 {
		return Result{Reason: "no source has both a log and a consistent index"}
	}
	return outcome(fs, "")
}

// indexOfAnotherCluster is the finding of a database that another cluster wrote, whose index is beyond the log.
func indexOfAnotherCluster(ss Sources, m *evidence.Member) Finding {
	title, row, names := listsStrangers(m)
	return Finding{Kind: KindIndexForeign, Severity: Critical, Class: ClassMemberLostData, Members: []string{m.Label()},
		At: At{Term: ss.logs().termAt(m.LastIndex()), Index: m.LastIndex()}, Title: title,
		Explanation: fmt.Sprintf("no log, snapshot or other database at hand of this cluster names %s, and the "+
			"database does not list a member of this cluster as removed. Its consistent index %d is beyond the end of "+
			"the log (%d) and proves no entry of this cluster. Do not start the member on it: reseed it from another "+
			"one", names, m.StoredIndex(), m.LastIndex()),
		Evidence: []Evidence{row, {Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("consistent_index"),
			Observed: fmt.Sprint(m.StoredIndex()), Expected: fmt.Sprintf("at most %d, the last index of the log",
				m.LastIndex()), Show: showDB(m, "meta")}}}
}

func impossibleIndex(ss Sources, m *evidence.Member) Finding {
	stored, fits := m.StoredIndex(), m.ConsistentIndex()
	f := Finding{Kind: KindIndexAltered, Severity: Critical, Class: ClassDBDamage, Members: []string{m.Label()},
		At: At{Term: ss.logs().termAt(fits), Index: fits},
		Title: fmt.Sprintf("%s: the consistent index %d is impossible, the database ends with entry %d", m.Label(),
			stored, fits),
		Explanation: fmt.Sprintf("the log ends at %d and the database holds no effect of a later entry, so the "+
			"index was altered after it was stored. A server started on it "+
			"executes nothing up to entry %d and reports nothing: do not start the member on it", m.LastIndex(),
			stored),
		Remedy: []Remedy{{Text: "without another member: put the right index into a copy of the data dir, and start " +
			"that",
			Command: shell.Format("etcd-medic repair meta {} --set-consistent-index {} -o <NEW-DIR>",
				shell.Source(m.Label()), fits),
			Precondition: "there is no sound member to reseed this one from"}}}
	row := Evidence{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("consistent_index"),
		Field: "consistent_index", Observed: fmt.Sprintf("%d (0x%x)", stored, stored),
		Expected: fmt.Sprintf("%d (0x%x)", fits, fits), Show: showDB(m, "meta")}
	if d := stored ^ fits; bits.OnesCount64(d) == 1 {
		f.Kind, row.Field = KindIndexBitRaised, "consistent_index, one bit raised"
		f.Explanation = fmt.Sprintf("%d is %d with bit %d (0x%x) set; ", stored, fits, bits.TrailingZeros64(d),
			d) + f.Explanation
	}
	f.Evidence = []Evidence{row,
		{Member: m.Label(), Field: "last index of the log", Observed: fmt.Sprint(m.LastIndex()),
			Expected: fmt.Sprintf("%d or more, if the index were true", stored), Show: showLog(m, m.LastIndex())},
		{Member: m.Label(), File: m.DB.File, Bucket: "key", Field: "current revision",
			Observed: fmt.Sprintf("%d, as after entry %d", m.CurrentRevision(), fits),
			Expected: "a higher one, if entries after the log had been applied",
			Show:     showRev(m, m.CurrentRevision())}}
	for _, o := range ss {
		if o != m && o.HasLog() && o.ClusterID == m.ClusterID && o.LastIndex() < stored {
			f.Evidence = append(f.Evidence, Evidence{Member: o.Label(), Field: "last index of the log",
				Observed: fmt.Sprint(o.LastIndex()),
				Expected: fmt.Sprintf("%d or more on a majority, if the index were true", stored),
				Show:     showLog(o, o.LastIndex())})
		}
	}
	return f
}
