package verdict

import (
	"cmp"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/shell"
)

// MaxWrongRecords bounds the records of the kept member that a report lists as proven wrong. All are counted, and all
// are listed for the command that replaces them.
const MaxWrongRecords = 10_000

// keptRecords are the records of the kept member that differ from those of other members, in revision order.
type keptRecords struct {
	wrong LostRecords
	// open are records of which it is not proven who is right: their number, and the first ones.
	open  int
	named []diff.RecordRow
	// decided has the keys of the judged records: false where one of them is open.
	decided map[string]bool
	// counted are the records in wrong.
	counted map[recordAt]bool
}

type recordAt struct {
	key  string
	main int64
}

// keptRecords judges every record of a member that differs from that of another one. Where live keys differ, records
// were not compared: then it judges those of which a proof is possible, and keysUntold says what stays open.
func (rk *ranking) keptRecords(pos int) *keptRecords {
	k := &keptRecords{decided: map[string]bool{}}
	proofs := rk.RecordProofs(pos)
	defer rk.judgeBelow(k, proofs, pos)
	d := rk.Diff
	if d == nil {
		return k
	}
	judge := func(row *diff.RecordRow) { rk.judgeRecord(k, proofs, row, pos) }
	switch r := d.Records; {
	case r == nil:
		for _, rev := range rk.suspectRevisions(pos, proofs) {
			_ = d.EachRecord(rk.Context(), rev, judge) // what cannot be read stays undecided
		}
		k.open, k.named = rk.openApart(proofs, pos)
		rk.judgeKeys(k, proofs, pos)
	case !r.Equal.Excluded():
	case r.Differ == len(r.Rows):
		for i := range r.Rows {
			judge(&r.Rows[i])
		}
	default:
		seen := 0
		err := d.EachRecord(rk.Context(), 0, func(row *diff.RecordRow) { seen++; judge(row) })
		if err != nil {
			k.open += r.Differ - seen
		}
	}
	return k
}

// judgeKeys adds live keys that the member has without a reason, or lacks, and that were not compared as records.
func (rk *ranking) judgeKeys(k *keptRecords, proofs *check.RecordProofs, pos int) {
	b := rk.Diff.Find("key")
	if b == nil || !b.Equal.Excluded() {
		return
	}
	for i := range b.Rows {
		if wrong := proofs.JudgeKey(&b.Rows[i]); wrong != nil && !k.decided[string(b.Rows[i].Key)] {
			k.decided[string(b.Rows[i].Key)] = true
			rk.addWrong(k, wrong, pos)
		}
	}
	k.sort()
}

// judgeBelow adds keys that the log shows to be wrong, and that no comparison has shown: other members may hold the
// same. Keys that it shows to be wrong on another member only are decided, too.
func (rk *ranking) judgeBelow(k *keptRecords, proofs *check.RecordProofs, pos int) {
	below, _, _ := proofs.BelowCompaction()
	for i := range below {
		if row := below[i].Row; !k.counted[recordAt{string(row.Key), row.Rev.Main}] {
			k.decided[string(row.Key)] = true
			rk.addWrong(k, &below[i], pos)
		}
	}
	for key, right := range proofs.RightBelow() {
		if _, judged := k.decided[key]; right && !judged {
			k.decided[key] = true
		}
	}
	k.sort()
}

func (k *keptRecords) sort() {
	slices.SortStableFunc(k.wrong.Rows, func(a, b LostRecord) int {
		return cmp.Or(cmp.Compare(a.Revision.Main, b.Revision.Main), cmp.Compare(a.Revision.Sub, b.Revision.Sub))
	})
}

// openApart returns the records of which it is not proven who is right, where live keys differ for another reason:
// their number, and the first ones.
func (rk *ranking) openApart(proofs *check.RecordProofs, pos int) (open int, named []diff.RecordRow) {
	apart, err := rk.Diff.RecordsApart(rk.Context())
	if err != nil {
		return 0, nil // what cannot be read stays undecided
	}
	k := &keptRecords{decided: map[string]bool{}, open: apart.Differ - len(apart.Rows)}
	for i := range apart.Rows {
		rk.judgeRecord(k, proofs, &apart.Rows[i], pos)
	}
	return k.open, k.named
}

func (rk *ranking) judgeRecord(k *keptRecords, proofs *check.RecordProofs, row *diff.RecordRow, pos int) {
	wrong, open := proofs.Judge(row)
	if before, judged := k.decided[string(row.Key)]; before || !judged {
		k.decided[string(row.Key)] = !open
	}
	switch {
	case open:
		if k.open++; len(k.named) < maxRecords {
			k.named = append(k.named, *row)
		}
		return
	case wrong != nil:
		rk.addWrong(k, wrong, pos)
	}
}

func (rk *ranking) addWrong(k *keptRecords, wrong *check.WrongRecord, pos int) {
	k.wrong.Count++
	row := wrong.Row
	if k.counted == nil {
		k.counted = map[recordAt]bool{}
	}
	k.counted[recordAt{string(row.Key), row.Rev.Main}] = true
	l := LostRecord{Bucket: "key", Key: check.Bytes(row.Key), Revision: check.Rev{Main: row.Rev.Main, Sub: row.Rev.Sub},
		Kept: wrong.Kept, Expected: wrong.Expected, Why: wrong.Why, HeldBy: rk.labels(wrong.HeldBy)}
	l.Index = wrong.Index
	if wrong.Event != nil && counted(wrong.Event, pos) {
		k.wrong.OfEntries++
	}
	if len(l.HeldBy) > 0 {
		k.wrong.Mendable++
	}
	if len(k.wrong.Rows) < cmp.Or(rk.WrongRecords, MaxWrongRecords) {
		k.wrong.Rows = append(k.wrong.Rows, l)
	}
}

// suspectRevisions are the revisions at which a member may hold a record that is proven wrong although live keys
// differ: those of differing live keys that all members wrote last at one revision, and those that proofs name. Where
// the last transaction may have changed records, it is only 0, which stands for all.
func (rk *ranking) suspectRevisions(pos int, proofs *check.RecordProofs) []int64 {
	if proofs.KnowsBefore() {
		return []int64{0}
	}
	revs := proofs.Suspects()
	if b := rk.Diff.Find("key"); b != nil && b.Equal.Excluded() {
		for i := range b.Rows {
			if rev := b.Rows[i].LastWrite(); rev > 0 && b.Rows[i].Cells[pos] != nil {
				revs = append(revs, rev)
			}
		}
	}
	slices.Sort(revs)
	return slices.Compact(revs)
}

// counted reports whether an entry is among those that keeping a member loses.
func counted(e *replay.Event, pos int) bool {
	return slices.Contains(e.Lacking, pos) && (len(e.Holding) > 0 || onlyLogged(e.Outcomes[pos]))
}

// mendRecords sets the command that replaces the wrong records of a member by the right ones of others, if one of them
// holds any. It names all sources that can be named, since they are part of the proof.
func (rk *ranking) mendRecords(l *Lost, pos int) {
	label := rk.Members[pos].Label()
	if l.Records.Mendable == 0 || !inFiles(rk.Members[pos]) {
		return
	}
	cmd := shell.Format("etcd-medic repair db {} --rebuild --take-proven", shell.Source(label))
	for i, m := range rk.Members {
		if i != pos && inFiles(m) && m.HasDB() {
			cmd, l.with = cmd.With("--with", shell.Source(m.Label())), append(l.with, m.Label())
		}
	}
	l.Mend = cmd.Then(shell.Format("-o {}-mended", shell.FileName(label)))
}

// inFiles reports whether a source is a data dir or a database file.
func inFiles(m *evidence.Member) bool {
	k := m.Source.Kind
	return k == evidence.KindDataDir || k == evidence.KindDB || k == evidence.KindBackup
}
