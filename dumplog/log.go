package dumplog

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/internal/regular"
)

// Log is an open WAL folder. It never writes, renames or locks.
type Log struct {
	dir  string
	segs []*segFile
	left []LeftOver
	meta *Metadata // the identity most segments carry
	// maxMarks bounds what a Summary lists; 0 stands for MaxMarks.
	maxMarks int
	// lenient is set by GoWithoutMarks.
	lenient bool
}

// Segment is the result of reading one segment file.
type Segment struct {
	Name string `json:"name"`
	// Seq and First are the two numbers in the file name: the sequence number and the first raft index the file may
	// contain.
	Seq   uint64 `json:"seq"`
	First uint64 `json:"first"`
	Size  int64  `json:"size"`
	// DataEnd is the offset after the last good frame, Records the number of good frames.
	DataEnd int64 `json:"dataEnd"`
	Records int   `json:"records"`
	// FirstEntry and LastEntry are the lowest and the last entry index in the file, 0 if none.
	FirstEntry uint64 `json:"firstEntry"`
	LastEntry  uint64 `json:"lastEntry"`
	// End names how the segment ends: "zero" (preallocated tail), "eof" (at a frame border) or a DamageKind.
	End string `json:"end"`
}

// LeftOver is a file in the WAL folder that is not a segment: 0.tmp, *.broken, foreign files.
type LeftOver struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	// What describes the file in words.
	What string `json:"what"`
}

// Overwrite is one append that replaced the tail of the log. The record at Pos has Index and Term. The entries
// Index..OldLast, the last of them in OldTerm, are no longer part of the log. If the record at Pos is that of a
// received snapshot, the term is the snapshot's, and what the log continues with comes after it.
type Overwrite struct {
	Pos
	Term, Index      uint64
	OldLast, OldTerm uint64
	// Commit is the highest HardState commit written before. If it is at or above Index, raft was violated: raft never
	// replaces a committed entry.
	Commit uint64
}

// Jump is a place where the log continues after a snapshot from a leader. The entries From..To are not in this log.
// If it held some before, those are an Overwrite.
type Jump struct {
	Pos
	From, To uint64
	// State is the highest term of a HardState before the entry after To, 0 if there is none.
	State uint64
}

// TermRange says that the entries First..Last of the effective log have term Term.
type TermRange struct {
	Term, First, Last uint64
}

// StartKind says how the member was created, according to the first records of its WAL.
type StartKind string

// The ways a WAL starts; the package comment has their marks.
const (
	StartUnknown   StartKind = "unknown"
	StartBootstrap StartKind = "bootstrap"
	StartJoin      StartKind = "join"
	StartRestore   StartKind = "restore"
	StartPurged    StartKind = "purged" // the first segment is not segment 0
)

// Summary is the result of one pass over the log. Memory does not grow with the number of entries.
type Summary struct {
	// Metadata is the identity of most segments; nil if no segment has one with a valid CRC.
	Metadata  *Metadata
	Segments  []Segment
	LeftOvers []LeftOver
	// Records counts the good records by type.
	Records map[RecordType]int
	// First and Last are the first and last entry of the effective log; zero if there is none.
	FirstIndex, FirstTerm, LastIndex, LastTerm uint64
	// HardState is the last one written; nil if there is none.
	HardState    *HardState
	HardStatePos Pos
	Snapshots    []SnapshotRecord
	Overwrites   []Overwrite
	// Jumps are the index gaps that a snapshot record explains.
	Jumps []Jump
	// Terms is the effective log as ranges of one term each, in index order.
	Terms []TermRange
	// MaxCommit is the highest commit index of any HardState.
	MaxCommit uint64
	// Votes are the candidates in the HardStates, one per term unless raft was violated. CommitFalls are HardStates
	// with a lower commit index than an earlier one.
	Votes       []Vote
	CommitFalls []CommitFall
	// CommitAheads are the first HardStates that commit entries which the log only holds after them.
	CommitAheads []CommitAhead
	// OddVotes are HardStates whose vote differs from the earlier ones of the same term, and from the later ones if
	// there are any. A member never takes a vote back.
	OddVotes []Vote
	// StateTerms are the terms of the HardStates, in physical order without repetition. Only for these terms does the
	// log show whether the member voted.
	StateTerms []uint64
	// Damage is sorted by position.
	Damage []*DamageError
	Start  StartKind
	// Unmarked is true if the log has more marks than are listed (see GoWithoutMarks). Snapshots, Overwrites, Jumps,
	// Terms and ForceNewCluster are then empty although the log may have some, and FirstIndex and LastIndex are those
	// of the first and the last entry in the files.
	Unmarked bool
	// ForceNewCluster is the position of the first entry written by --force-new-cluster, if any.
	ForceNewCluster []Pos
	// LargestRecord is the size in bytes of the largest good record, without length word and padding, and LargestPos
	// its position.
	LargestRecord int64
	LargestPos    Pos
}

// Open lists the segments of a WAL folder and reads their heads. It fails only if the folder cannot be listed or
// contains no segment. Later reading stops at the sizes found here, so data that a running server appends afterwards is
// not read.
func Open(dir string) (*Log, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	l := &Log{dir: dir}
	for _, de := range names {
		size, special := sizeOf(filepath.Join(dir, de.Name()))
		seq, first, ok := segmentName(de.Name())
		if !ok || special != "" {
			l.left = append(l.left, LeftOver{Name: de.Name(), Size: size,
				What: cmp.Or(special, leftOverInWAL(de.Name()))})
			continue
		}
		l.segs = append(l.segs, &segFile{path: filepath.Join(dir, de.Name()), name: de.Name(), seq: seq, first: first,
			size: size})
	}
	if err := l.arrange(); err != nil {
		return nil, err
	}
	return l, nil
}

// SegmentFile is a segment that is already open.
type SegmentFile struct {
	Name string
	// File is not closed by the Log. Size bounds what is read of it.
	File *os.File
	Size int64
}

// OpenFiles is Open for segments that are already open, so that a segment which the server purges meanwhile stays
// readable. Files that are not named like segments become LeftOvers.
func OpenFiles(dir string, files []SegmentFile) (*Log, error) {
	l := &Log{dir: dir}
	for _, f := range files {
		seq, first, ok := segmentName(f.Name)
		if !ok {
			l.left = append(l.left, LeftOver{Name: f.Name, Size: f.Size, What: leftOverInWAL(f.Name)})
			continue
		}
		l.segs = append(l.segs, &segFile{path: filepath.Join(dir, f.Name), name: f.Name, seq: seq, first: first,
			size: f.Size, file: f.File})
	}
	if err := l.arrange(); err != nil {
		return nil, err
	}
	return l, nil
}

// arrange sorts the segments and reads their heads.
func (l *Log) arrange() error {
	if len(l.segs) == 0 {
		return fmt.Errorf("%s contains no WAL segment", l.dir)
	}
	slices.SortFunc(l.segs, func(a, b *segFile) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq),
			cmp.Compare(a.first, b.first))
	})
	l.segs[len(l.segs)-1].last = true
	for _, s := range l.segs {
		s.probe()
	}
	l.identify()
	return nil
}

// sizeOf returns the size of a file. special says what the path is if it is not a regular file; such paths are not
// read.
func sizeOf(path string) (size int64, special string) {
	fi, err := os.Stat(path)
	switch {
	case err != nil:
		return 0, ""
	case fi.Mode().IsRegular():
		return fi.Size(), ""
	case fi.IsDir():
		return 0, "a folder, not an etcd file"
	}
	return 0, regular.What(fi.Mode()) + ", not a regular file: skipped"
}

// Close does nothing. Files are open only while an iterator runs.
func (l *Log) Close() error { return nil }

// Identity returns the member and cluster that the heads of most segments name, nil if none does.
func (l *Log) Identity() *Metadata { return l.meta }

// Dir returns the folder the log was opened from.
func (l *Log) Dir() string { return l.dir }

// segmentName reads %016x-%016x.wal (server/storage/wal/util.go).
func segmentName(name string) (seq, first uint64, ok bool) {
	base, isWAL := strings.CutSuffix(name, ".wal")
	if !isWAL {
		return 0, 0, false
	}
	return twoNumbers(base)
}

// twoNumbers reads two hex numbers of 16 digits with a dash between them.
func twoNumbers(s string) (a, b uint64, ok bool) {
	x, y, dash := strings.Cut(s, "-")
	if !dash || len(x) != 16 || len(y) != 16 {
		return 0, 0, false
	}
	i, err := ParseID(x)
	j, err2 := ParseID(y)
	return uint64(i), uint64(j), errors.Join(err, err2) == nil
}

func leftOverInWAL(name string) string {
	switch {
	case strings.HasSuffix(name, ".tmp"):
		return "the next segment, preallocated with zeros"
	case strings.HasSuffix(name, ".broken"):
		return "copy of a segment from before etcd cut off a torn tail"
	}
	return "not an etcd file"
}

// open returns the file of a segment. release closes it if open has opened it.
func (s *segFile) open() (*os.File, error) {
	if s.file != nil {
		return s.file, nil
	}
	f, _, err := regular.Open(s.path)
	return f, err
}

func (s *segFile) release(f *os.File) {
	if s.file == nil {
		f.Close()
	}
}

// probe reads the CRC and metadata records at the head of a segment, as far as they are intact.
func (s *segFile) probe() {
	f, err := s.open()
	if err != nil {
		s.err = err
		return
	}
	defer s.release(f)
	b := make([]byte, sector)
	n, _ := f.ReadAt(b, 0)
	b = b[:n]
	for i := 0; i < 2; i++ {
		if len(b) < wordSize {
			return
		}
		fr, err := parseWord(word(b))
		if err != nil && word(b) < sector {
			fr, err = frame{rec: int64(word(b))}, nil // without padding
		}
		if err != nil || fr.rec < 2 || fr.len() > int64(len(b)) {
			return
		}
		t, crc, data, err := parseRecord(b[wordSize : wordSize+fr.rec])
		switch {
		case err != nil:
		case i == 0 && t == RecordCRC && len(data) == 0:
			s.seed, s.seeded = crc, true
		case i == 1 && t == RecordMetadata:
			whole := s.seeded && nextCRC(s.seed, data) == crc || s.seq == 0 && nextCRC(0, data) == crc
			if m, err := DecodeMetadata(data); err == nil && whole {
				s.meta = &m
			}
		}
		b = b[fr.len():]
	}
}

// identify finds the identity that most segments have, the first of equals, and marks the segments with another one.
func (l *Log) identify() {
	count := map[Metadata]int{}
	for _, s := range l.segs {
		if s.meta == nil {
			continue
		}
		count[*s.meta]++
		if l.meta == nil || count[*s.meta] > count[*l.meta] {
			l.meta = s.meta
		}
	}
	for i := len(l.segs) - 1; i >= 0; i-- { // the first of equals wins
		if m := l.segs[i].meta; m != nil && count[*m] >= count[*l.meta] {
			l.meta = m
		}
	}
	for _, s := range l.segs {
		s.want, s.foreign = l.meta, s.meta != nil && *s.meta != *l.meta
	}
}
