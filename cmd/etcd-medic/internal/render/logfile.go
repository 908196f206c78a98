package render

import (
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// LogDamage is a damaged place of a log or snapshot file, shown where it was found.
type LogDamage struct{ *dumplog.DamageError }

// Kind is "damage".
func (LogDamage) Kind() string { return "damage" }

// Line starts with !! so that it is visible and searchable.
func (d LogDamage) Line(dst []byte, o Options) []byte {
	dst = append(append(dst, "!! "...), d.DamageError.Kind...)
	dst = appendWord(append(dst, " at "...), d.Pos.String())
	return textLine(dst, o, d.facts)
}

// Fields are kind, place, what is lost and what etcd does about it.
func (d LogDamage) Fields(f Fields) {
	f.Str("damage", string(d.DamageError.Kind))
	f.Str("segment", d.Segment)
	f.Int("offset", d.Offset)
	d.facts(f)
}

func (d LogDamage) facts(f Fields) {
	num(f, "bytes", d.Len)
	if d.LostFrom != 0 {
		f.Uint("lostFromIndex", d.LostFrom)
	}
	if d.LostTo != 0 {
		f.Uint("lostToIndex", d.LostTo)
	}
	if d.Err != nil {
		f.Str("detail", d.Err.Error())
	}
	word(f, "server", d.Server)
}

// LogLeftOver is another file in the folder of the segments or snapshots.
type LogLeftOver struct{ dumplog.LeftOver }

// Kind is "left-over".
func (LogLeftOver) Kind() string { return "left-over" }

// Line names file and meaning.
func (l LogLeftOver) Line(dst []byte, o Options) []byte {
	return textLine(append(dst, "# left-over"...), o, l.Fields)
}

// Fields are name, size and meaning.
func (l LogLeftOver) Fields(f Fields) {
	f.Str("file", l.Name)
	f.Int("size", l.Size)
	f.Str("what", l.What)
}

// SnapFile is one raft snapshot file.
type SnapFile struct {
	*dumplog.SnapFile
	// Record compares the file with the log's snapshot record: agrees, confState-differs or absent; "" without a log.
	Record string
	// Note says what is unusual about the file, compared with log and database.
	Note string
}

// Kind is "snap-file".
func (SnapFile) Kind() string { return "snap-file" }

// Line shows file, position in the log, CRC and members.
func (s SnapFile) Line(dst []byte, o Options) []byte {
	dst = append(appendWord(dst, s.File), ' ')
	return textLine(appendTermIndex(dst, s.Term, s.Index), o, s.facts)
}

// Fields are the facts of the file.
func (s SnapFile) Fields(f Fields) {
	f.Str("file", s.File)
	f.Uint("term", s.Term)
	f.Uint("index", s.Index)
	s.facts(f)
}

func (s SnapFile) facts(f Fields) {
	f.Int("size", s.Size)
	f.Str("crc", hex32(s.StoredCRC))
	f.Str("computed", hex32(s.ComputedCRC))
	f.Obj("confState", func(f Fields) { writeConfState(f, &s.ConfState) })
	flag(f, "broken", s.Broken)
	word(f, "walRecord", s.Record)
	word(f, "note", s.Note)
	if s.V2 != nil {
		f.Obj("v2", func(f Fields) { writeV2Store(f, s.V2) })
	}
	if s.Damage != nil {
		f.Str("damage", s.Damage.Error())
	}
}

func writeV2Store(f Fields, v *dumplog.V2Store) {
	f.List("members", len(v.Members), func(i int, f Fields) {
		m := &v.Members[i]
		f.ID("id", uint64(m.ID))
		word(f, "name", m.Name)
		f.Strs("peerURLs", m.PeerURLs)
		f.Strs("clientURLs", m.ClientURLs)
		flag(f, "learner", m.IsLearner)
	})
	f.IDs("removed", len(v.Removed), func(i int) uint64 { return uint64(v.Removed[i]) })
	word(f, "version", v.Version)
	if len(v.UserKeys) > 0 {
		f.Strs("userKeys", v.UserKeys)
	}
	f.Int("bytes", int64(v.Bytes))
}

// SnapDB is a whole database received from a leader and not installed yet.
type SnapDB struct {
	dumplog.SnapDB
	// Use says whether etcd will install it; "" if there is no database to compare with.
	Use string
}

// Kind is "snap-db".
func (SnapDB) Kind() string { return "snap-db" }

// Line names file, index and size.
func (s SnapDB) Line(dst []byte, o Options) []byte {
	return textLine(append(dst, "# snap-db"...), o, s.Fields)
}

// Fields are file, index and size.
func (s SnapDB) Fields(f Fields) {
	f.Str("file", s.File)
	f.Uint("index", s.Index)
	f.Int("size", s.Size)
	word(f, "use", s.Use)
}

// SnapMissing is a snapshot record of the log newer than every snapshot file.
type SnapMissing struct{ *dumplog.SnapshotRecord }

// Kind is "snap-missing".
func (SnapMissing) Kind() string { return "snap-missing" }

// Line shows the content of the record and its position.
func (s SnapMissing) Line(dst []byte, o Options) []byte {
	return textLine(append(dst, "# snap-missing"...), o, s.Fields)
}

// Fields are the position in the raft log and that in the file.
func (s SnapMissing) Fields(f Fields) {
	f.Uint("term", s.Term)
	f.Uint("index", s.Index)
	f.Str("segment", s.Segment)
	f.Int("offset", s.Offset)
	f.Str("note", "the log has a snapshot record but there is no usable file for it: etcd starts from an older one, "+
		"or from none")
}
