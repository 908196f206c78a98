package datadir

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/etcd-medic/etcd-medic/release"
)

// The types of walpb.Record (server/storage/wal/wal.go, all versions).
const (
	recordMetadata = 1
	recordEntry    = 2
	recordState    = 3
	recordCRC      = 4
	recordSnapshot = 5
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// LogWriter writes the records of one WAL segment: frames, padding, and the CRC chain, which starts with the value
// given to NewLogWriter.
type LogWriter struct {
	w   *bufio.Writer
	crc uint32
	buf []byte
	err error
}

// NewLogWriter starts a segment with its crc record. chain is the CRC at the end of the previous segment, 0 for the
// first one.
func NewLogWriter(w io.Writer, chain uint32) *LogWriter {
	l := &LogWriter{w: bufio.NewWriterSize(w, 1<<17), crc: chain}
	l.record(recordCRC, nil)
	return l
}

// Record appends a record of any type except crc with the given payload.
func (l *LogWriter) Record(kind int64, data []byte) { l.record(uint64(kind), data) }

// Chain returns the CRC after the last record, for the next segment's crc record.
func (l *LogWriter) Chain() uint32 { return l.crc }

// Flush writes everything to the underlying writer and returns the first error.
func (l *LogWriter) Flush() error {
	if l.err == nil {
		l.err = l.w.Flush()
	}
	return l.err
}

func (l *LogWriter) record(kind uint64, data []byte) {
	if l.err != nil {
		return
	}
	l.crc = crc32.Update(l.crc, castagnoli, data)
	b := num(num(append(l.buf[:0], make([]byte, 8)...), 1, kind), 2, uint64(l.crc))
	if data != nil {
		b = raw(b, 3, data)
	}
	size := uint64(len(b) - 8)
	if pad := (8 - size%8) % 8; pad > 0 {
		b = append(b, make([]byte, pad)...)
		size |= (0x80 | pad) << 56
	}
	binary.LittleEndian.PutUint64(b, size)
	l.buf = b
	_, l.err = l.w.Write(b)
}

// Metadata appends etcdserverpb.Metadata {1 NodeID, 2 ClusterID}.
func (l *LogWriter) Metadata(member, cluster uint64) {
	l.record(recordMetadata, num(num(nil, 1, member), 2, cluster))
}

// State appends raftpb.HardState {1 term, 2 vote, 3 commit}.
func (l *LogWriter) State(term, vote, commit uint64) {
	l.record(recordState, StateData(term, vote, commit))
}

// StateData returns the payload of a state record.
func StateData(term, vote, commit uint64) []byte {
	return num(num(num(nil, 1, term), 2, vote), 3, commit)
}

// Snapshot appends walpb.Snapshot{1 index, 2 term, 3 conf_state (3.5+)}.
func (l *LogWriter) Snapshot(term, index uint64, conf []byte) {
	b := num(num(nil, 1, index), 2, term)
	if conf != nil {
		b = raw(b, 3, conf)
	}
	l.record(recordSnapshot, b)
}

// Entry appends raftpb.Entry {1 Type, 2 Term, 3 Index, 4 Data}.
func (l *LogWriter) Entry(e *Entry) {
	b := num(num(num(nil, 1, uint64(e.Type)), 2, e.Term), 3, e.Index)
	if len(e.Data) > 0 {
		b = raw(b, 4, e.Data)
	}
	l.record(recordEntry, b)
}

// writeLog writes the single segment of a new data dir.
func writeLog(w io.Writer, d *Dir) error {
	l := NewLogWriter(w, 0)
	l.Metadata(d.MemberID, d.ClusterID)
	l.Snapshot(0, 0, nil)
	behind := 0
	for behind < len(d.Entries) && d.Entries[behind].Index <= d.Index {
		l.Entry(&d.Entries[behind])
		behind++
	}
	l.State(d.HardTerm, d.Vote, d.Index)
	var conf []byte
	if release.AnyOf(d.Minor).Has(release.ConfStateInRecord).Possible() {
		conf = confState(d.Voters, d.Learners)
	}
	l.Snapshot(d.Term, d.Index, conf)
	for i := behind; i < len(d.Entries); i++ {
		l.Entry(&d.Entries[i])
	}
	if commit := max(d.Commit, d.Index); commit > d.Index {
		l.State(d.HardTerm, d.Vote, commit)
	}
	return l.Flush()
}

// check refuses content on which no server could start.
func (d *Dir) check() error {
	if d.MemberID == 0 || d.ClusterID == 0 {
		return fmt.Errorf("member ID %x in cluster %x: neither may be 0", d.MemberID, d.ClusterID)
	}
	if d.Index == 0 || d.Term == 0 {
		return fmt.Errorf("raft snapshot %d/%d: term and index must be above 0", d.Term, d.Index)
	}
	if len(d.Voters) == 0 {
		return fmt.Errorf("no voters: raft cannot run without them")
	}
	if !has(d.Voters, d.MemberID) && !has(d.Learners, d.MemberID) {
		return fmt.Errorf("member %x is neither voter nor learner", d.MemberID)
	}
	if has(d.Removed, d.MemberID) {
		return fmt.Errorf("member %x was removed from the cluster; its ID cannot be used again", d.MemberID)
	}
	return d.checkEntries()
}

func (d *Dir) checkEntries() error {
	last, term := d.Index, d.Term
	for i, e := range d.Entries {
		if i > 0 && e.Index != d.Entries[i-1].Index+1 {
			return fmt.Errorf("entry %d follows entry %d", e.Index, d.Entries[i-1].Index)
		}
		if i == 0 && e.Index > d.Index+1 {
			return fmt.Errorf("entries %d to %d are missing after the raft snapshot", d.Index+1, e.Index-1)
		}
		if e.Index > d.Index && e.Term < term {
			return fmt.Errorf("entry %d has term %d, below %d before it", e.Index, e.Term, term)
		}
		if e.Index > d.Index {
			last, term = e.Index, e.Term
		}
	}
	if d.Commit > last {
		return fmt.Errorf("commit index %d is beyond the last entry %d", d.Commit, last)
	}
	if d.HardTerm < term {
		return fmt.Errorf("HardState term %d is below the last entry's %d", d.HardTerm, term)
	}
	return nil
}

func has(ids []uint64, id uint64) bool {
	for _, x := range ids {
		if x == id {
			return true
		}
	}
	return false
}
