package surgery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// work is a change in progress: the open sources and the new path, which has the form of the source. finish copies the
// parts that the change does not make.
type work struct {
	o      *Options
	set    *evidence.Set
	parts  *evidence.Parts
	out    *datadir.Building
	report *Report
	// before is the diagnosis of the source and its peers.
	before *compare.Report
	// madeWAL and madeDB are set by the change that makes the part.
	madeWAL, madeDB bool
	// rebuiltDB is true if the database is a new file and not a changed copy.
	rebuiltDB bool
	// uncertified is true if bytes of the backup have changed since it was saved: the result has no trailer.
	uncertified bool
	// snaps are .snap files with new content, by name.
	snaps map[string][]byte
}

func newWork(ctx context.Context, o *Options) (*work, error) {
	if err := datadir.Outside(o.Out, append([]evidence.Spec{o.Source}, o.With...)...); err != nil {
		return nil, err
	}
	set, err := evidence.Open(ctx, append([]evidence.Spec{o.Source}, o.With...),
		evidence.Options{Deep: true, NoHashes: true, Progress: o.Compare.Progress, Access: o.Compare.Access})
	if err != nil {
		return nil, err
	}
	w := &work{o: o, set: set, snaps: map[string][]byte{}}
	for _, f := range set.Failed {
		w.abandon()
		return nil, fmt.Errorf("%s: %w", f.Spec.Where, f.Err)
	}
	if n := len(set.Members); n != 1+len(o.With) {
		w.abandon()
		return nil, refusef("name one member", "%s holds several members", o.Source.Where)
	}
	m := w.source()
	w.parts = m.Source.Parts()
	switch m.Source.Kind {
	case evidence.KindEndpoint, evidence.KindSnap:
		w.abandon()
		return nil, &evidence.SourceError{Where: o.Source.Where, Found: "a source of kind " + string(m.Source.Kind),
			Expected: "a data dir, WAL folder, db or backup"}
	}
	w.report = &Report{SchemaVersion: compare.SchemaVersion, Source: m.Label(), Kind: m.Source.Kind, Did: []string{},
		GivesUp: []string{}, Notes: []string{},
		Cured: []check.ID{}, New: []check.ID{}, Accepted: []string{}, Offers: []string{}}
	if w.out, err = datadir.Begin(o.Out); err != nil {
		w.abandon()
		if errors.Is(err, datadir.ErrExists) {
			return nil, refusef("name a new path", "%v", err)
		}
		return nil, err
	}
	return w, nil
}

func (w *work) source() *evidence.Member  { return w.set.Members[0] }
func (w *work) peers() []*evidence.Member { return w.set.Members[1:] }

func (w *work) did(format string, args ...any) {
	w.report.Did = append(w.report.Did, fmt.Sprintf(format, args...))
}

func (w *work) givesUp(format string, args ...any) {
	w.report.GivesUp = append(w.report.GivesUp, fmt.Sprintf(format, args...))
}

func (w *work) note(format string, args ...any) {
	w.report.Notes = append(w.report.Notes, fmt.Sprintf(format, args...))
}

// walPath, snapPath and dbPath are the paths of the parts below the new path. A source that is a single part keeps its
// form.
func (w *work) walPath() string {
	if w.source().Source.Kind == evidence.KindWAL {
		return w.out.Path
	}
	return filepath.Join(w.out.Path, "member", "wal")
}

func (w *work) snapPath() string { return filepath.Join(w.out.Path, "member", "snap") }

func (w *work) dbPath() string {
	if w.isFile() {
		return filepath.Join(w.out.Path, "db")
	}
	return filepath.Join(w.snapPath(), "db")
}

// isFile reports whether the result is a single file.
func (w *work) isFile() bool {
	k := w.source().Source.Kind
	return k == evidence.KindDB || k == evidence.KindBackup
}

// result returns the path for the second diagnosis.
func (w *work) result() string {
	switch {
	case w.isFile():
		return w.dbPath()
	case w.source().Source.Kind == evidence.KindWAL:
		return w.walPath()
	}
	return w.out.Path
}

// finish copies the unchanged parts. It omits files that a server would not read.
func (w *work) finish(ctx context.Context) error {
	if w.isFile() {
		return w.finishFile(ctx)
	}
	if !w.madeWAL && w.parts.WAL != "" {
		if err := w.copyWAL(ctx); err != nil {
			return err
		}
	}
	if w.source().Source.Kind == evidence.KindWAL {
		return nil
	}
	if w.parts.Snap != "" {
		if err := w.copySnaps(ctx); err != nil {
			return err
		}
	}
	if w.parts.DB != "" && !w.madeDB {
		return w.out.Copy(ctx, w.dbPath(), w.parts.DB)
	}
	return nil
}

// finishFile appends a new trailer to a backup, since its bytes are new. Where the trailer of the source does not prove
// its bytes, the result has none: a new one would certify values that may have changed since the backup was saved.
func (w *work) finishFile(ctx context.Context) error {
	if !w.madeDB {
		if err := w.out.Copy(ctx, w.dbPath(), w.parts.DB); err != nil {
			return err
		}
	}
	if w.source().Source.Kind != evidence.KindBackup {
		return nil
	}
	bare := w.dbPath() + ".bare"
	if err := os.Rename(w.dbPath(), bare); err != nil {
		return err
	}
	if err := w.trim(bare); err != nil {
		return err
	}
	if _, err := datadir.WriteBackup(ctx, w.dbPath(), bare); err != nil {
		return err
	}
	if err := os.Remove(bare); err != nil {
		return err
	}
	if t := w.source().DB.Trailer; t.State != "match" {
		return w.withoutTrailer(t.State == "mismatch")
	}
	w.note("the sha256 trailer is that of the new content")
	return nil
}

// trim cuts a rebuilt database to its content, which is all that snapshot save writes: bbolt makes files longer.
func (w *work) trim(path string) error {
	if !w.rebuiltDB {
		return nil
	}
	db, err := dumpdb.Open(path)
	if err != nil {
		return err
	}
	size := int64(db.Meta().HighWater) * int64(db.PageSize()) //nolint:gosec // made here, within the size of the file
	if err := db.Close(); err != nil {
		return err
	}
	return os.Truncate(path, size)
}

// withoutTrailer removes the trailer of the new backup and says what follows from that.
func (w *work) withoutTrailer(changed bool) error {
	if w.uncertified = changed; changed {
		w.givesUp("the proof that the content is what was saved: bytes of the backup have changed since then, and a " +
			"changed value shows nowhere else")
	}
	w.note("the result has no sha256 trailer, since nothing proves its content: compare it with another source " +
		"(verify --against); restore asks for --accept-unproven-content, etcdutl snapshot restore for " +
		"--skip-hash-check")
	return datadir.DropTrailer(w.dbPath())
}

// remains reports whether an error of the source is one of the result too, though no finding says so: without a trailer
// it is only not known any more which bytes are wrong.
func (w *work) remains(id check.ID) bool { return w.uncertified && id == check.B01 }

func (w *work) copyWAL(ctx context.Context) error {
	if err := w.out.Mkdir(w.walPath()); err != nil {
		return err
	}
	names, err := os.ReadDir(w.parts.WAL)
	if err != nil {
		return err
	}
	for _, n := range names {
		if strings.HasSuffix(n.Name(), ".wal") && n.Type().IsRegular() {
			if err := w.out.Copy(ctx, filepath.Join(w.walPath(), n.Name()),
				filepath.Join(w.parts.WAL, n.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *work) copySnaps(ctx context.Context) error {
	if err := w.out.Mkdir(w.snapPath()); err != nil {
		return err
	}
	names, err := os.ReadDir(w.parts.Snap)
	if err != nil {
		return err
	}
	for _, n := range names {
		if !n.Type().IsRegular() || !strings.HasSuffix(n.Name(), ".snap") && !strings.HasSuffix(n.Name(), ".snap.db") {
			continue
		}
		dst := filepath.Join(w.snapPath(), n.Name())
		if b, ok := w.snaps[n.Name()]; ok {
			err = w.out.Write(dst, b)
		} else {
			err = w.out.Copy(ctx, dst, filepath.Join(w.parts.Snap, n.Name()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// commit renames the result to its final name.
func (w *work) commit() error {
	var err error
	w.report.Bytes, err = w.out.Size()
	if err != nil {
		return err
	}
	if w.isFile() {
		return w.out.CommitFile(filepath.Base(w.dbPath()))
	}
	return w.out.Commit()
}

func (w *work) abandon() {
	if w.out != nil {
		w.out.Abandon()
	}
	_ = w.set.Close()
}
