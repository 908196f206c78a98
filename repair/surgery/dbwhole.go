package surgery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

const cloneInstead = "clone the member from another one: etcd-medic repair plan"

// placed reports whether the database, or its previous transaction, shows which entries it contains. Otherwise its rows
// are useless.
func placed(ctx context.Context, path string) bool {
	if path == "" {
		return false
	}
	src, err := dumpdb.OpenSalvage(ctx, path)
	if err != nil {
		return false
	}
	defer func() { _ = src.Close() }() // only read
	if indexOf(src) > 0 {
		return true
	}
	prev, err := src.PreviousView()
	return err == nil && indexOf(prev) > 0
}

// makeWhole builds the database of a data dir whose database is unreadable. It executes the log up to the last entry
// that the member knew to be committed. Or it copies the database of another member that is at an index within the
// member's own log. A database follows from its entries, so both are equivalent to the member's own.
func makeWhole(ctx context.Context, w *work, c DB) error {
	m := w.source()
	switch {
	case m.Source.Kind != evidence.KindDataDir || !m.HasWAL():
		return refusef(cloneInstead, "the consistent index of %s cannot be read, so it is unknown which entries its "+
			"database has", w.report.Source)
	case len(m.WAL.Summary.Damage) > 0:
		return refusef("mend the log first: etcd-medic repair wal", "%s has no readable database, and its log, from "+
			"which one could be made, is damaged", w.report.Source)
	}
	from, to := newestUsable(m), min(m.WAL.Summary.MaxCommit, m.WAL.Summary.LastIndex)
	if to < from {
		to = from
	}
	err := c.executed(ctx, w, to)
	var refused interface{ Refused() bool }
	if err == nil || !errors.As(err, &refused) {
		return err
	}
	for _, p := range w.peers() {
		index := p.ConsistentIndex()
		if !p.HasDB() || p.DB.KVDamaged || p.ClusterID != m.ClusterID || index < max(from, 1) ||
			index > m.WAL.Summary.LastIndex {
			continue
		}
		if err := w.out.CopyDB(ctx, w.dbPath(), p.Source.Parts().DB); err != nil {
			return err
		}
		w.did("the database is that of %s, which is at entry %d of the log of %s; the server executes the later "+
			"entries",
			p.Label(), index, w.report.Source)
		return nil
	}
	return refusef("name other members with --with or a backup with --base, or "+cloneInstead,
		"%s has no readable database; executing its log does not give one (%v), and no other member's database "+
			"is between entries %d and %d", w.report.Source, err, max(from, 1), m.WAL.Summary.LastIndex)
}

// executed builds the database from the base, or from nothing, by executing the log.
func (c DB) executed(ctx context.Context, w *work, to uint64) error {
	if to == 0 {
		return refusef("", "the log does not show what was committed")
	}
	scratch := filepath.Join(w.out.Path, ".executed")
	if err := os.Mkdir(scratch, 0o700); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // the result was moved out
	db := filepath.Join(scratch, "db")
	r, err := rebuild.Run(ctx, rebuild.Options{Base: c.Base, Logs: w.logs(), To: rebuild.Target{Index: to},
		Out: filepath.Join(scratch, "backup"), DBOut: db,
		Version: w.source().Version.Release(), Access: w.o.Compare.Access, Progress: w.o.Compare.Progress})
	if err != nil {
		return err
	}
	if n := r.DoubtfulCount; n > 0 && len(w.peers()) == 0 {
		return refusef("", "the outcome of %s depends on more than the log shows", plural.Of(n, "entry", "entries"))
	}
	begin := "from the first entry"
	if r.Base != "" {
		begin = fmt.Sprintf("on %s from entry %d", r.Base, r.From.Index+1)
	}
	w.did("the database is what executing the log gives, %s to entry %d: revision %d, %s", begin, to,
		r.To.Revision, plural.Of(r.Keys, "key", "keys"))
	return os.Rename(db, w.dbPath())
}

// logs returns the WAL folders of the source and its peers.
func (w *work) logs() (out []evidence.Spec) {
	for _, m := range w.set.Members {
		if p := m.Source.Parts(); p.WAL != "" && m.HasLog() {
			out = append(out, evidence.Spec{Name: m.Label(), Where: p.WAL})
		}
	}
	return out
}
