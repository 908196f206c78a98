package render

import (
	"strconv"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// LogSegment is the row before the records of a segment.
type LogSegment struct{ dumplog.Segment }

// Kind is "segment".
func (LogSegment) Kind() string { return "segment" }

// Line names the segment and its extent.
func (s LogSegment) Line(dst []byte, o Options) []byte {
	return textLine(appendWord(append(dst, "# segment "...), s.Name), o, func(f Fields) {
		f.Int("size", s.Size)
		f.Int("dataEnd", s.DataEnd)
		f.Int("records", int64(s.Records))
		f.Uint("firstEntry", s.FirstEntry)
		f.Uint("lastEntry", s.LastEntry)
		f.Str("end", s.End)
	})
}

// Fields are those of dumplog.Segment.
func (s LogSegment) Fields(f Fields) {
	f.Str("segment", s.Name)
	f.Uint("seq", s.Seq)
	f.Uint("first", s.First)
	f.Int("size", s.Size)
	f.Int("dataEnd", s.DataEnd)
	f.Int("records", int64(s.Records))
	f.Uint("firstEntry", s.FirstEntry)
	f.Uint("lastEntry", s.LastEntry)
	f.Str("end", s.End)
}

// LogEntry is one raft entry, decoded.
type LogEntry struct {
	*dumplog.Entry
	Request *dumplog.Request
	// DecodeErr says why the request is of kind unknown.
	DecodeErr error
	// Proposer names the member whose ID matches the request ID; "" if the request has none.
	Proposer string
	// Uncommitted is true above the highest index that the source proves committed.
	Uncommitted bool
	// ReplacedTo is the last index that this entry removed from the log, 0 if none; known only while a log is followed.
	ReplacedTo uint64
	// Decoded is the answer of the stream decoder, nil without one.
	Decoded *Decoded
}

// Decoded is the answer of a stream decoder for one entry.
type Decoded struct{ Status, Data string }

// Kind is "entry".
func (*LogEntry) Kind() string { return "entry" }

// Line is the greppable form: place, term/index, kind of request, its content, who proposed it.
func (e *LogEntry) Line(dst []byte, o Options) []byte {
	dst = appendPlace(dst, e.Offset, e.Len)
	dst = append(dst, "entry "...)
	dst = appendTermIndex(dst, e.Term, e.Index)
	dst = append(append(dst, ' '), entryTypeName(e.Entry.Type)...)
	dst = append(append(dst, ' '), e.Request.Kind...)
	t := textFields{buf: dst, o: o}
	writeRequest(&t, e.Request)
	if e.DecodeErr != nil {
		t.Str("error", e.DecodeErr.Error())
		t.Raw("data", e.Data)
	}
	dst = e.appendOrigin(t.buf)
	if e.Uncommitted {
		dst = append(dst, " [uncommitted]"...)
	}
	if e.Overwritten {
		dst = append(dst, " [overwritten]"...)
	}
	if e.ReplacedTo > 0 {
		dst = append(strconv.AppendUint(append(dst, " [replaces up to "...), e.ReplacedTo, 10), ']')
	}
	if e.Decoded != nil {
		dst = textLine(dst, o, e.decoded)
	}
	return dst
}

func (e *LogEntry) decoded(f Fields) {
	if e.Decoded != nil {
		f.Obj("decoder", func(f Fields) {
			f.Str("status", e.Decoded.Status)
			f.Str("data", e.Decoded.Data)
		})
	}
}

func (e *LogEntry) appendOrigin(dst []byte) []byte {
	h := &e.Request.Header
	if id := e.Request.ProposerID(); id != 0 {
		dst = append(append(dst, "  by "...), e.Proposer...)
		dst = append(dst, " life "...)
		dst = id.StartTime(NearTime).AppendFormat(dst, "2006-01-02T15:04:05Z")
	}
	if h.Username != "" {
		dst = appendWord(append(dst, " user="...), h.Username)
	}
	if h.AuthRevision != 0 {
		dst = strconv.AppendUint(append(dst, " authrev="...), h.AuthRevision, 10)
	}
	return dst
}

// Fields are the entry, its origin and the content of its request.
func (e *LogEntry) Fields(f Fields) {
	writePos(f, e.Pos, e.Len)
	f.Uint("term", e.Term)
	f.Uint("index", e.Index)
	f.Str("type", entryTypeName(e.Entry.Type))
	f.Bool("committed", !e.Uncommitted && !e.Overwritten)
	f.Bool("overwritten", e.Overwritten)
	f.Str("request", string(e.Request.Kind))
	if id := e.Request.ProposerID(); id != 0 {
		f.ID("id", uint64(id))
		f.Str("proposer", e.Proposer)
		f.Str("life", id.StartTime(NearTime).Format("2006-01-02T15:04:05.000Z"))
	}
	if h := &e.Request.Header; h.ID != 0 {
		word(f, "user", h.Username)
		f.Uint("authRevision", h.AuthRevision)
	}
	f.Obj("content", func(f Fields) { writeRequest(f, e.Request) })
	if e.DecodeErr != nil {
		f.Str("error", e.DecodeErr.Error())
		f.Raw("data", e.Data)
	}
	if e.ReplacedTo > 0 {
		f.Uint("replacedTo", e.ReplacedTo)
	}
	e.decoded(f)
}

// LogRecord is a record that is not an entry, or the undecoded record of an entry.
type LogRecord struct {
	*dumplog.Record
	// Raw adds the CRCs and padding, and shows entries as records.
	Raw bool
	// What is the decoded payload: *dumplog.Metadata, *dumplog.HardState, *dumplog.SnapshotRecord, or nil.
	What any
	// Err says why the payload does not decode.
	Err error
}

// Kind is the record type's name, "record" in raw listings.
func (r *LogRecord) Kind() string {
	if r.Raw {
		return "record"
	}
	return r.Type.String()
}

// Line is the greppable form.
func (r *LogRecord) Line(dst []byte, o Options) []byte {
	dst = appendPlace(dst, r.Offset, r.Len)
	dst = append(dst, r.Type.String()...)
	switch w := r.What.(type) {
	case *dumplog.SnapshotRecord:
		dst = appendTermIndex(append(dst, ' '), w.Term, w.Index)
	case *dumplog.Entry:
		dst = appendTermIndex(append(dst, ' '), w.Term, w.Index)
	}
	t := textFields{buf: dst, o: o}
	r.payload(&t, false)
	if r.Raw {
		r.raw(&t)
	}
	return t.buf
}

// Fields are place, payload and, in raw listings, the CRCs.
func (r *LogRecord) Fields(f Fields) {
	writePos(f, r.Pos, r.Len)
	if r.Raw {
		f.Str("type", r.Type.String())
	}
	r.payload(f, true)
	if r.Raw {
		r.raw(f)
	}
}

func (r *LogRecord) payload(f Fields, terms bool) {
	switch w := r.What.(type) {
	case *dumplog.Metadata:
		f.ID("memberID", uint64(w.MemberID))
		f.ID("clusterID", uint64(w.ClusterID))
	case *dumplog.HardState:
		f.Uint("term", w.Term)
		f.ID("vote", uint64(w.Vote))
		f.Uint("commit", w.Commit)
	case *dumplog.SnapshotRecord:
		if terms {
			f.Uint("term", w.Term)
			f.Uint("index", w.Index)
		}
		if w.ConfState != nil {
			f.Obj("confState", func(f Fields) { writeConfState(f, w.ConfState) })
		}
	case *dumplog.Entry:
		if terms {
			f.Uint("term", w.Term)
			f.Uint("index", w.Index)
		}
	}
	if r.Type == dumplog.RecordCRC && !r.Raw {
		f.Str("crc", hex32(r.StoredCRC))
	}
	if r.Err != nil {
		f.Str("error", r.Err.Error())
		f.Raw("data", r.Data)
	}
}

func (r *LogRecord) raw(f Fields) {
	f.Int("data", int64(len(r.Data)))
	f.Int("pad", int64(r.Pad))
	f.Str("crc", hex32(r.StoredCRC))
	f.Str("computed", hex32(r.ComputedCRC))
	f.Str("check", [...]string{"unchecked", "match", "mismatch"}[min(r.CRC, 2)])
}

func writeConfState(f Fields, c *dumplog.ConfState) {
	writeIDs(f, "voters", c.Voters)
	if len(c.Learners) > 0 {
		writeIDs(f, "learners", c.Learners)
	}
	if len(c.VotersOutgoing) > 0 {
		writeIDs(f, "votersOutgoing", c.VotersOutgoing)
	}
	if len(c.LearnersNext) > 0 {
		writeIDs(f, "learnersNext", c.LearnersNext)
	}
	flag(f, "autoLeave", c.AutoLeave)
}

func writeIDs(f Fields, name string, ids []dumplog.ID) {
	f.IDs(name, len(ids), func(i int) uint64 { return uint64(ids[i]) })
}

func entryTypeName(t dumplog.EntryType) string {
	return nameOf(int32(t), "normal", "conf-change", "conf-change-v2")
}

func writePos(f Fields, p dumplog.Pos, length int64) {
	f.Str("segment", p.Segment)
	f.Int("offset", p.Offset)
	f.Int("length", length)
}

// appendPlace writes 0x01a0(88) and two spaces.
func appendPlace(dst []byte, off, length int64) []byte {
	dst = append(dst, "0x"...)
	for w := int64(1) << 12; w > 1 && off < w; w >>= 4 {
		dst = append(dst, '0')
	}
	dst = strconv.AppendInt(dst, off, 16)
	dst = strconv.AppendInt(append(dst, '('), length, 10)
	return append(dst, ")  "...)
}

func appendTermIndex(dst []byte, term, index uint64) []byte {
	dst = strconv.AppendUint(dst, term, 10)
	return strconv.AppendUint(append(dst, '/'), index, 10)
}

func hex32(v uint32) string {
	s := strconv.FormatUint(uint64(v), 16)
	return "00000000"[len(s):] + s
}

func textLine(dst []byte, o Options, fn func(Fields)) []byte {
	t := textFields{buf: dst, o: o}
	fn(&t)
	return t.buf
}
