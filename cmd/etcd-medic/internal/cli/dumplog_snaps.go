package cli

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// listSnaps writes the raft snapshot files, how they agree with log and database, and other files in the folder. It
// returns the number of damaged ones and of contradictions that stop etcd.
func listSnaps(s *render.Stream, m *evidence.Member) (bad int, err error) {
	a := newAgreement(m)
	var rows []render.Row
	for _, f := range m.Snap.Files {
		row := render.SnapFile{SnapFile: f, Record: a.record(f), Note: a.note(f)}
		rows = append(rows, row)
		if f.Damage != nil {
			bad++
			rows = append(rows, render.LogDamage{DamageError: f.Damage})
		}
		if row.Record == recordDiffers {
			bad++
		}
	}
	for _, f := range m.Snap.SnapDBs {
		rows = append(rows, render.SnapDB{SnapDB: f, Use: a.use(f)})
	}
	rows = append(rows, a.missing()...)
	if d := a.contradiction(); d != nil {
		bad++
		rows = append(rows, render.LogDamage{DamageError: d})
	}
	for _, f := range m.Snap.LeftOvers {
		rows = append(rows, render.LogLeftOver{LeftOver: f})
	}
	return bad, writeAll(s, rows)
}

// What the log says of a snapshot file.
const (
	recordAgrees  = "agrees"
	recordDiffers = "confState-differs"
	recordAbsent  = "absent"
)

// agreementOf compares snapshot files with the snapshot records of the log and the consistent index of the database.
type agreementOf struct {
	log    *dumplog.Summary // nil without a log
	files  *dumplog.SnapDir
	db     bool
	cindex uint64
}

func newAgreement(m *evidence.Member) agreementOf {
	a := agreementOf{files: &m.Snap, db: m.HasDB() && m.DB.Meta.ConsistentIndex != nil, cindex: m.ConsistentIndex()}
	if m.HasWAL() {
		a.log = &m.WAL.Summary
	}
	return a
}

// record reports whether the log has a snapshot record for a file; "" if there is no log.
func (a *agreementOf) record(f *dumplog.SnapFile) string {
	if a.log == nil {
		return ""
	}
	r := a.log.SnapshotAt(f.Term, f.Index)
	switch {
	case r == nil:
		return recordAbsent
	case r.ConfState != nil && !r.ConfState.Equal(&f.ConfState):
		return recordDiffers
	}
	return recordAgrees
}

// note describes how a file relates to log and database; "" if nothing is unusual.
func (a *agreementOf) note(f *dumplog.SnapFile) string {
	switch r := a.record(f); {
	case f.Broken:
		return "a server could not read it and renamed it"
	case r == recordAbsent && a.purged(f.Index):
		return "older than the log that is left"
	case r == recordAbsent:
		return "orphan: the log has no snapshot record for it; 3.3.21, 3.4.8 and later do not use it"
	case r == recordDiffers:
		return "the snapshot record of the log has another ConfState"
	case a.db && f.Index > a.cindex:
		return fmt.Sprintf("newer than the database, which is at index %d", a.cindex)
	}
	return ""
}

// purged reports whether the remaining log starts after an index.
func (a *agreementOf) purged(index uint64) bool {
	return a.log.Start == dumplog.StartPurged && a.log.FirstIndex > index
}

// use says whether etcd can use a database received from a leader.
func (a *agreementOf) use(f dumplog.SnapDB) string {
	switch {
	case !a.db:
		return ""
	case f.Index <= a.cindex:
		return fmt.Sprintf("stale: the database is at index %d already", a.cindex)
	case a.newest() == f.Index:
		return "not installed yet: etcd makes it the database at its next start"
	}
	return "not installed: the newest snapshot that etcd uses is of another index"
}

// newest returns the index of the snapshot from which etcd starts: the newest intact file with a record in the log.
func (a *agreementOf) newest() (index uint64) {
	for _, f := range a.files.Files {
		if r := a.record(f); f.Damage == nil && !f.Broken && (r == "" || r == recordAgrees || r == recordDiffers) {
			index = max(index, f.Index)
		}
	}
	return index
}

// missing returns the snapshot records of the log that are newer than every file.
func (a *agreementOf) missing() (rows []render.Row) {
	if a.log == nil {
		return nil
	}
	newest := a.newest()
	for i := range a.log.Snapshots {
		if r := &a.log.Snapshots[i]; r.Index > newest {
			rows = append(rows, render.SnapMissing{SnapshotRecord: r})
		}
	}
	return rows
}

// contradiction returns damage if the database is older than the snapshot: etcd then needs the .snap.db file of that
// index.
func (a *agreementOf) contradiction() *dumplog.DamageError {
	newest := a.newest()
	if !a.db || newest <= a.cindex {
		return nil
	}
	for _, f := range a.files.SnapDBs {
		if f.Index == newest {
			return nil
		}
	}
	d := &dumplog.DamageError{Kind: dumplog.DamageMissingSnapDB, LostFrom: a.cindex + 1, LostTo: newest,
		Server: "refuses to start: failed to find database snapshot file",
		Err: fmt.Errorf("the newest snapshot is of index %d, the database of index %d, and no .snap.db file leads "+
			"from one to the other", newest, a.cindex)}
	for _, f := range a.files.Files {
		if f.Index == newest {
			d.Segment = f.File
		}
	}
	return d
}
