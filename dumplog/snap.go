package dumplog

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/internal/regular"
	"github.com/etcd-medic/etcd-medic/internal/wire"
)

// MaxSnapFile bounds the size of a .snap file in bytes; a larger one is not examined. The v2 store inside contains
// members and, up to 3.5, v2 keys.
const MaxSnapFile = 256 << 20

// SnapFile is the result of reading one raft snapshot file (<term>-<index>.snap).
type SnapFile struct {
	File string `json:"file"`
	Size int64  `json:"size"`
	// NameTerm and NameIndex are the two numbers of the file name.
	NameTerm  uint64 `json:"nameTerm"`
	NameIndex uint64 `json:"nameIndex"`
	// Term, Index and ConfState are raftpb.SnapshotMetadata.
	Term      uint64    `json:"term"`
	Index     uint64    `json:"index"`
	ConfState ConfState `json:"confState"`
	StoredCRC uint32    `json:"-"`
	// ComputedCRC is the CRC-32C of the data.
	ComputedCRC uint32   `json:"-"`
	V2          *V2Store `json:"v2,omitempty"`
	// Damage is nil if CRC, protobuf, JSON and name agree.
	Damage *DamageError `json:"-"`
	// Broken is true for *.snap.broken files, which a server renamed because it could not read them.
	Broken bool `json:"broken,omitempty"`
	// Cut is true if the file ends before its content does, or is empty, as a server that is killed while it writes
	// leaves it.
	Cut bool `json:"cut,omitempty"`
}

// V2Store is the part of the v2 store JSON in a .snap file that etcd v3 uses.
type V2Store struct {
	Members []V2Member `json:"members"`
	Removed []ID       `json:"removed,omitempty"`
	// Version is the cluster version, "" if absent.
	Version string `json:"version,omitempty"`
	// UserKeys are the paths of user content under /1. etcd 3.6 refuses to start if there is any.
	UserKeys []string `json:"userKeys,omitempty"`
	Bytes    int      `json:"bytes"`
	// InHistory counts the nodes of members and version whose write is in the history of the store's watchers, Altered
	// are those of them that hold another value than was written.
	InHistory int         `json:"-"`
	Altered   []V2Altered `json:"-"`
}

// V2Altered is a node of the v2 store that holds another value than the event has which wrote it. Index is the store's
// own index of that event, not a raft index.
type V2Altered struct {
	Path           string
	Index          uint64
	Value, Written string
}

// V2Member is one member in the v2 store. Name and ClientURLs are empty until the member has started.
type V2Member struct {
	ID         ID       `json:"id"`
	Name       string   `json:"name,omitempty"`
	PeerURLs   []string `json:"peerURLs"`
	ClientURLs []string `json:"clientURLs,omitempty"`
	IsLearner  bool     `json:"isLearner,omitempty"`
}

// SnapDir lists the files of a snap folder except the db.
type SnapDir struct {
	// Files are the .snap and .snap.broken files, by index then term.
	Files []*SnapFile
	// SnapDBs are <index>.snap.db files: complete databases received from a leader and not installed yet.
	SnapDBs []SnapDB
	// LeftOvers are tmp*, db.tmp* and foreign files.
	LeftOvers []LeftOver
}

// SnapDB is a <index>.snap.db file: a database received from a leader and not installed yet.
type SnapDB struct {
	File  string `json:"file"`
	Index uint64 `json:"index"`
	Size  int64  `json:"size"`
}

// ReadSnapFile reads one .snap file (server/etcdserver/api/snap/snapshotter.go, etcd 3.0 to 3.8). It returns an error
// only if the file cannot be read; damage is in the SnapFile.
func ReadSnapFile(path string) (*SnapFile, error) {
	return readSnapFile(path, newV2Room(MaxV2Nodes))
}

func readSnapFile(path string, room *v2Room) (*SnapFile, error) {
	b, err := regular.ReadFile(path, MaxSnapFile)
	if err != nil {
		return nil, err
	}
	return decodeSnapFile(filepath.Base(path), b, room), nil
}

// DecodeSnapFile reads the bytes of a .snap file. The file name says which term and index it should contain.
func DecodeSnapFile(name string, b []byte) *SnapFile {
	return decodeSnapFile(name, b, newV2Room(MaxV2Nodes))
}

func decodeSnapFile(name string, b []byte, room *v2Room) *SnapFile {
	s := &SnapFile{File: name, Size: int64(len(b))}
	base, broken := strings.CutSuffix(name, ".broken")
	s.Broken = broken
	var named bool
	s.NameTerm, s.NameIndex, named = twoNumbers(strings.TrimSuffix(base, ".snap"))
	s.Cut = cutShort(b)
	if d := s.decode(b, room); d != nil {
		s.damaged(d)
	} else if named && (s.NameTerm != s.Term || s.NameIndex != s.Index) {
		s.damaged(&DamageError{Kind: DamageMixed, Err: fmt.Errorf("the content is a snapshot at %d/%d", s.Term,
			s.Index)})
	}
	return s
}

func (s *SnapFile) damaged(d *DamageError) {
	d.Segment = s.File
	d.Server = "3.3 to 3.6 rename the file to .broken and use an older snapshot or none; 3.7 does not read it"
	if d.Kind == DamageMixed {
		d.Server = "3.3.21, 3.4.8 and later use it only if the WAL has a snapshot record for its content"
	}
	s.Damage = d
}

// cutShort reports whether the bytes end before the data of snappb.Snapshot {1 crc, 2 data} does. They do not if what
// is there has the stored CRC: then the size of the data was altered.
func cutShort(b []byte) bool {
	size, crc := uint64(0), uint64(0)
	for _, tag := range []byte{1<<3 | byte(wire.Varint), 2<<3 | byte(wire.Bytes)} {
		if len(b) == 0 {
			return true
		}
		v, n := binary.Uvarint(b[1:])
		if b[0] != tag || n <= 0 {
			return b[0] == tag && n == 0
		}
		b, crc, size = b[1+n:], size, v
	}
	return size > uint64(len(b)) && uint64(nextCRC(0, b)) != crc
}

// decode reads snappb.Snapshot {1 crc, 2 data} with raftpb.Snapshot {1 data, 2 metadata} inside. It fills in what
// decodes, even if the CRC does not match.
func (s *SnapFile) decode(b []byte, room *v2Room) *DamageError {
	if len(b) == 0 {
		return &DamageError{Kind: DamageUnreadable, Err: errors.New("empty file")}
	}
	var data []byte
	err := eachField(b, func(f *field) bool {
		switch {
		case f.Num == 1 && f.Type == wire.Varint:
			s.StoredCRC = uint32(f.V)
		case f.Num == 2 && f.Type == wire.Bytes:
			data = f.B
		default:
			return false
		}
		return true
	})
	if err != nil {
		return &DamageError{Kind: DamagePayload, Len: s.Size, Err: wrap("snappb.Snapshot", err)}
	}
	s.ComputedCRC = nextCRC(0, data)
	inner := s.decodeRaft(data, room)
	switch {
	case len(data) == 0 || s.StoredCRC == 0:
		return &DamageError{Kind: DamagePayload, Err: errors.New("no data or no CRC")}
	case s.StoredCRC != s.ComputedCRC:
		return &DamageError{Kind: DamageCRC, Len: s.Size, Err: fmt.Errorf("stored CRC %08x, computed %08x", s.StoredCRC,
			s.ComputedCRC)}
	case errors.Is(inner, errV2Large):
		return &DamageError{Kind: DamageUnreadable, Len: s.Size, Err: inner}
	case inner != nil:
		return &DamageError{Kind: DamagePayload, Len: s.Size, Err: inner}
	}
	return nil
}

// decodeRaft reads raftpb.Snapshot {1 data, 2 metadata {1 conf_state, 2 index, 3 term}}.
func (s *SnapFile) decodeRaft(b []byte, room *v2Room) error {
	var store, meta []byte
	err := eachField(b, func(f *field) bool {
		switch f.Num {
		case 1:
			return raw(f, &store)
		case 2:
			return raw(f, &meta)
		}
		return false
	})
	if err != nil {
		return wrap("raftpb.Snapshot", err)
	}
	var conf []byte
	err = eachField(meta, func(f *field) bool {
		switch f.Num {
		case 1:
			return raw(f, &conf)
		case 2:
			return num(f, &s.Index)
		case 3:
			return num(f, &s.Term)
		}
		return false
	})
	if err != nil {
		return wrap("raftpb.SnapshotMetadata", err)
	}
	if s.ConfState, err = decodeConfState(conf); err != nil {
		return err
	}
	if s.V2, err = decodeV2Store(store, room); err != nil {
		return wrap("v2 store", err)
	}
	return nil
}

// ReadSnapDir lists and reads a snap folder. It returns an error only if the folder cannot be listed. A .snap file that
// cannot be read is in Files with its Damage.
func ReadSnapDir(dir string) (*SnapDir, error) { return ReadSnapDirBound(dir, MaxV2Nodes) }

// ReadSnapDirBound is ReadSnapDir with another bound than MaxV2Nodes, for callers that read many folders at once. The
// newest files count first.
func ReadSnapDirBound(dir string, nodes int) (*SnapDir, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	d, room := &SnapDir{}, newV2Room(nodes)
	for _, de := range slices.Backward(names) {
		name := de.Name()
		size, special := sizeOf(filepath.Join(dir, name))
		switch index, isDB := snapDBName(name); {
		case name == "db":
		case special != "":
			d.LeftOvers = append(d.LeftOvers, LeftOver{Name: name, Size: size, What: special})
		case isDB:
			d.SnapDBs = append(d.SnapDBs, SnapDB{File: name, Index: index, Size: size})
		case isSnapName(name):
			d.Files = append(d.Files, readOrReport(filepath.Join(dir, name), room))
		default:
			d.LeftOvers = append(d.LeftOvers, LeftOver{Name: name, Size: size, What: leftOverInSnap(name)})
		}
	}
	slices.Reverse(d.Files)
	slices.Reverse(d.SnapDBs)
	slices.Reverse(d.LeftOvers)
	slices.SortStableFunc(d.Files, func(a, b *SnapFile) int {
		return cmp.Or(cmp.Compare(a.NameIndex, b.NameIndex), cmp.Compare(a.NameTerm, b.NameTerm))
	})
	slices.SortStableFunc(d.SnapDBs, func(a, b SnapDB) int { return cmp.Compare(a.Index, b.Index) })
	return d, nil
}

func readOrReport(path string, room *v2Room) *SnapFile {
	s, err := readSnapFile(path, room)
	if err != nil {
		s = &SnapFile{File: filepath.Base(path)}
		base, broken := strings.CutSuffix(s.File, ".broken")
		s.Broken = broken
		s.NameTerm, s.NameIndex, _ = twoNumbers(strings.TrimSuffix(base, ".snap"))
		s.damaged(&DamageError{Kind: DamageUnreadable, Err: err})
	}
	return s
}

// NotExamined returns why a file that a server uses was not examined here: this process may not read it, or it is
// larger than the bounds of this package. That says nothing about its content. Otherwise it returns nil.
func (s *SnapFile) NotExamined() error {
	var large *regular.TooLargeError
	if d := s.Damage; d != nil && !s.Broken && (errors.Is(d.Err, fs.ErrPermission) || errors.As(d.Err, &large) ||
		d.Kind == DamageUnreadable && errors.Is(d.Err, errV2Large)) {
		return d.Err
	}
	return nil
}

func isSnapName(name string) bool {
	_, _, ok := twoNumbers(strings.TrimSuffix(strings.TrimSuffix(name, ".broken"), ".snap"))
	return ok && (strings.HasSuffix(name, ".snap") || strings.HasSuffix(name, ".snap.broken"))
}

// snapDBName reads %016x.snap.db.
func snapDBName(name string) (uint64, bool) {
	base, ok := strings.CutSuffix(name, ".snap.db")
	id, err := ParseID(base)
	return uint64(id), ok && len(base) == 16 && err == nil
}

func leftOverInSnap(name string) string {
	switch {
	case strings.HasPrefix(name, "db.tmp"):
		return "unfinished copy from a defragmentation"
	case strings.HasPrefix(name, "tmp"):
		return "unfinished database received from a leader"
	}
	return "not an etcd file"
}

// Equal reports whether both have the same members in the same roles, in any order.
func (c *ConfState) Equal(o *ConfState) bool {
	same := func(a, b []ID) bool {
		return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
	}
	return same(c.Voters, o.Voters) && same(c.Learners, o.Learners) && same(c.VotersOutgoing, o.VotersOutgoing) &&
		same(c.LearnersNext, o.LearnersNext) && c.AutoLeave == o.AutoLeave
}
