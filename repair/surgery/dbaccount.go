package surgery

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

func dirOf(path string) string { return filepath.Dir(path) }

// account reports the content of the new file. It refuses if records are lost, or if nothing shows that they are
// complete.
func (b *rebuilder) account() error {
	w := b.w
	w.did("a new database of %s was built from the pages that can be read",
		plural.Of(b.records, "record", "records"))
	if b.salvaged > 0 {
		w.did("%d of the records come from pages that the tree no longer reaches", b.salvaged)
	}
	if len(b.filled) > 0 {
		w.did("the records of revisions %s were taken from %s", spans(b.filled), b.from)
	}
	if b.conflicts > 0 {
		w.note("of %s several versions were found, and one was taken", plural.Of(b.conflicts, "record", "records"))
		if len(b.witnesses(0, false)) == 0 {
			if err := w.need(AcceptLostRevisions, "name other members with --with: their content proves it",
				fmt.Sprintf("%d records were found in several versions, and it is unknown which is right",
					b.conflicts)); err != nil {
				return err
			}
		}
	}
	if err := b.lost(); err != nil {
		return err
	}
	return b.proveDamage()
}

// lost reports the records that are known to be lost, and asks for consent.
func (b *rebuilder) lost() error {
	w := b.w
	var lost []string
	if len(b.holes) > 0 && !b.bumped() {
		lost = append(lost, "the records of revisions "+spans(b.holes))
	}
	if b.emptied {
		lost = append(lost, "all records of bucket key")
	}
	if len(b.parts) > 0 {
		lost = append(lost, fmt.Sprintf("the records %s of transactions with several writes", partsText(b.parts)))
	}
	if len(lost) > 0 && b.log.why != nil {
		w.note("the log could not be replayed: %v", b.log.why)
	}
	why := ""
	for _, x := range lost {
		w.givesUp("%s", x)
	}
	if len(lost) > 0 {
		why = lost[0] + " are in no page" + b.noReplay()
	}
	if b.undecodable > 0 {
		w.givesUp("%s not decode", plural.Of(b.undecodable, "record of bucket key that does",
			"records of bucket key that do"))
		if why == "" {
			why = plural.Of(b.undecodable, "record of bucket key does", "records of bucket key do") + " not decode"
		}
	}
	if why == "" {
		return nil
	}
	return w.need(AcceptLostRevisions, b.advice(), why)
}

// proveDamage asks for consent to damage of which nothing shows that it took no record. That every revision there was
// found does not prove it: one of several writes may lack its last records.
func (b *rebuilder) proveDamage() error {
	var open []*dumpdb.DamageError
	for _, d := range b.damage {
		if !b.shown[d] {
			open = append(open, d)
		}
	}
	if len(open) == 0 {
		return nil
	}
	for _, d := range open {
		b.w.note("there is damage %s: the file cannot show that nothing is missing there", place(d))
	}
	if b.asReplayed() {
		b.w.note("a replay of the log gives the same keys: nothing is missing")
		return nil
	}
	var by []string
	for _, d := range open {
		_, last, known := d.LostRevisions()
		names := b.witnesses(last, known)
		if len(names) == 0 {
			return b.unproven(d)
		}
		by = append(by, names...)
	}
	slices.Sort(by)
	b.w.note("the result was compared with %s", strings.Join(slices.Compact(by), ", "))
	return nil
}

// asReplayed reports whether a replay of the log gives the same keys at the same revision.
func (b *rebuilder) asReplayed() bool {
	log := b.fromLog()
	if log == nil {
		return false
	}
	made, err := dumpdb.Open(b.w.dbPath())
	if err != nil {
		return false
	}
	defer func() { _ = made.Close() }() // only read
	got, err := made.HashKV(b.ctx, 0)
	if err != nil {
		return false
	}
	want, err := log.HashKV(b.ctx, 0)
	return err == nil && got == want
}

// unproven asks for consent to damage in a place where the file cannot prove that it is complete, and where the second
// diagnosis cannot compare it with another member.
func (b *rebuilder) unproven(d *dumpdb.DamageError) error {
	hint := "name other members with --with: their content proves it"
	if len(b.w.peers()) > 0 {
		hint = "name a member with --with whose database reaches at least as far: its content proves it"
	}
	return b.w.need(AcceptLostRevisions, hint,
		fmt.Sprintf("records may be missing %s, and the file cannot show it", place(d)))
}

// place says which records damage may have taken.
func place(d *dumpdb.DamageError) string {
	first, last, ok := d.LostRevisions()
	if !ok {
		return "somewhere in bucket key"
	}
	return fmt.Sprintf("between revisions %d and %s", first, orEnd(last))
}

func orEnd(rev int64) string {
	if rev == 0 {
		return "the end"
	}
	return fmt.Sprint(rev)
}

// bumped reports whether the only gap is right before the last record, which is empty. restore --bump-revision leaves
// such a gap.
func (b *rebuilder) bumped() bool {
	return len(b.holes) == 1 && int64(b.holes[0].to)+1 == b.last && b.compact == b.last
}

// noReplay says why the log did not restore records.
func (b *rebuilder) noReplay() string {
	if b.log.why == nil {
		return ""
	}
	return fmt.Sprintf(", and the log cannot be replayed (%v)", b.log.why)
}

func (b *rebuilder) advice() string {
	return "name other members with --with or a backup with --base, or clone the member from another one"
}

// previous copies the file and makes the older meta page the used one.
func previous(ctx context.Context, w *work) error {
	src, err := dumpdb.OpenSalvage(ctx, w.parts.DB)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // only read
	prev, err := previousView(src)
	if err != nil {
		return refusef("rebuild it from its readable pages instead",
			"the previous transaction of %s cannot be opened: %v", w.report.Source, err)
	}
	r, err := prev.Check(ctx)
	if err != nil {
		return err
	}
	for _, d := range r.Damage {
		// The other meta page will be overwritten, and nothing is read through a page header.
		if d.Kind != dumpdb.DamageMeta && d.Kind != dumpdb.DamageMetaHeader {
			return refusef("rebuild it from its readable pages instead", "pages of the previous transaction were "+
				"used again since: %v", d)
		}
	}
	now, was := indexOf(src), indexOf(prev)
	if prev == src {
		now = 0
	}
	if err := w.out.CopyDB(ctx, w.dbPath(), w.parts.DB); err != nil {
		return err
	}
	for _, m := range src.Metas() {
		if m.Page != prev.Meta().Page {
			if err := datadir.RollBack(w.dbPath(), prev.Meta().Offset, m.Offset); err != nil {
				return err
			}
		}
	}
	w.did("the previous transaction, %d, is the newest one now", prev.Meta().Txid)
	return previousLoss(w, was, now)
}

// previousView returns the transaction to go back to. If the newest meta page is damaged, bbolt already uses
// it.
func previousView(src *dumpdb.DB) (*dumpdb.DB, error) {
	for _, m := range src.Metas() {
		if !m.Valid && src.Meta().Valid {
			return src, nil
		}
	}
	return src.PreviousView()
}

func indexOf(db *dumpdb.DB) uint64 {
	m, err := db.MetaBucket()
	if err != nil || m.ConsistentIndex == nil {
		return 0
	}
	return *m.ConsistentIndex
}

// previousLoss asks for consent to losing the last transaction. At the next start its effects return if the log has
// them. Up to 3.4, entries that do not move the consistent index would take effect a second time.
func previousLoss(w *work, was, now uint64) error {
	m := w.source()
	switch {
	case was == 0:
		return refusef("", "the previous transaction has no consistent index: it is older than the first applied entry")
	case now > was:
		w.givesUp("the effect of %s, until the server applies it again from its log", entries(span{was + 1, now}))
	case now == 0:
		w.note("the newest transaction cannot be read: entries after %d are applied from the log at the next start",
			was)
	}
	if m.HasLog() && m.WAL.Summary.FirstIndex > was+1 && newestUsable(m) > was {
		return refusef("clone the member from another one: etcd-medic repair plan", "the log begins at %d, the "+
			"previous transaction ends at %d: the server could not catch up", m.WAL.Summary.FirstIndex, was)
	}
	if m.Version.MayLack(release.IndexWithEveryEntry) {
		return w.need(AcceptDivergence, "", "up to etcd 3.4 auth, lease and alarm entries after the consistent "+
			"index are applied again, even if they took effect before")
	}
	return nil
}
