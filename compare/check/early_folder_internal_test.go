package check

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// earlyFolder is a copy of a running member of which the snap folder was copied long before the log, which was purged
// meanwhile: the log begins at entry 30, has the record of a snapshot at 40, and the folder is from entry 20.
func earlyFolder(t *testing.T) *evidence.Member {
	m := withDB(withLog(withSnapDir(t, "n1"), 90), 20)
	m.Version.Minor = 4
	m.WAL.Summary.FirstIndex = 30
	m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Term: 2, Index: 40}}
	m.WAL.Summary.LeftOvers = []dumplog.LeftOver{{Name: "0.tmp"}}
	m.Snap.Files = []*dumplog.SnapFile{{File: "s.snap", Term: 2, Index: 20, NameTerm: 2, NameIndex: 20}}
	return m
}

// TestSnapshotFileNotCopied: the newest .snap file is missing from a copy that began before it was written. It is gone
// from a folder whose database is as new as its record, and where the server was stopped before the copy.
func TestSnapshotFileNotCopied(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *evidence.Member)
		want   Severity
		kind   Kind
	}{
		"copied early": {func(*evidence.Member) {}, Warning, KindSnapshotFileNotCopied},
		"a stopped server": {func(m *evidence.Member) { m.WAL.Summary.LeftOvers = nil }, Error,
			KindSnapshotFileNotCopied},
		"a database as new": {func(m *evidence.Member) { withDB(m, 40) }, Error, KindSnapshotFileNotCopied},
		"a database as new, of a stopped server": {func(m *evidence.Member) {
			withDB(m, 40)
			m.WAL.Summary.LeftOvers = nil
		}, Error, KindSnapshotFileGone},
		"a log that suffices": {func(m *evidence.Member) { m.WAL.Summary.FirstIndex = 1 }, Warning,
			KindSnapshotFileNotCopied},
	} {
		m := earlyFolder(t)
		c.change(m)
		in := &Input{Members: []*evidence.Member{m}}
		f := in.provenance().snapFileGone(m)
		if f == nil {
			t.Errorf("%s: nothing", name)
			continue
		}
		if f.Severity != c.want || f.Kind != c.kind || (f.Class != "") != (c.want == Error) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestRecordWithoutFile: a snapshot record and a file without each other, where the log still holds what followed the
// file.
func TestRecordWithoutFile(t *testing.T) {
	for first, want := range map[uint64]bool{1: true, 20: true, 21: true, 22: false, 30: false} {
		m := earlyFolder(t)
		m.WAL.Summary.FirstIndex = first
		if f := (Sources{m}).recordWithoutFile(m); (f != nil) != want {
			t.Errorf("a log from %d on: %+v", first, f)
		}
		for _, kind := range []dumplog.DamageKind{dumplog.DamageMixed, dumplog.DamageMissingSegment} {
			m.WAL.Summary.Damage = []*dumplog.DamageError{{Kind: kind}}
			if f := (Sources{m}).recordWithoutFile(m); f != nil {
				t.Errorf("with %s, which may hide the record: %+v", kind, f)
			}
		}
	}
}

// TestFoldersExchanged: two members of which each log has the records of the other's files. Where only one of them
// looks like that, the record was altered.
func TestFoldersExchanged(t *testing.T) {
	at := func(label string, id dumplog.ID, record, file uint64) *evidence.Member {
		m := withLog(withSnapDir(t, label), 30)
		m.MemberID = id
		m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: record, Term: 2}}
		m.Snap.Files = []*dumplog.SnapFile{{Index: file, Term: 2, File: "f.snap"}}
		return m
	}
	for name, c := range map[string]struct {
		other *evidence.Member
		want  Kind
	}{
		"exchanged":             {at("n2", 2, 9, 12), KindSnapshotsOfOther},
		"the other is sound":    {at("n2", 2, 9, 9), KindRecordIndexAltered},
		"of another index":      {at("n2", 2, 9, 11), KindRecordIndexAltered},
		"of other records":      {at("n2", 2, 8, 12), KindRecordIndexAltered},
		"a copy of one member":  {at("n2", 1, 9, 12), KindRecordIndexAltered},
		"the other has its own": {at("n2", 2, 12, 12), KindRecordIndexAltered},
	} {
		m := at("n1", 1, 12, 9)
		f := Sources{m, c.other}.recordWithoutFile(m)
		if f == nil || f.Kind != c.want || (f.Class == ClassMembership) != (c.want == KindSnapshotsOfOther) ||
			len(f.Members) != len(f.Evidence)+len(f.Remedy) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
