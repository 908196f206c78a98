package render

import (
	"time"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// LogCount counts the entries of one kind, term, proposer, user or prefix.
type LogCount struct {
	// Of is the category of Name.
	Of, Name string
	dumplog.Count
}

// Kind is "count".
func (LogCount) Kind() string { return "count" }

// Line shows name and counts.
func (c LogCount) Line(dst []byte, o Options) []byte {
	dst = append(dst, c.Of...)
	if c.Name != "" {
		dst = appendWord(append(dst, ' '), c.Name)
	}
	return textLine(dst, o, c.counts)
}

// Fields are name and counts; bytes are those of payloads.
func (c LogCount) Fields(f Fields) {
	f.Str("of", c.Of)
	f.Str("name", c.Name)
	c.counts(f)
}

func (c LogCount) counts(f Fields) {
	f.Int("entries", c.Entries)
	f.Int("bytes", c.Bytes)
}

// LogSize counts the entries whose payload has a size of one class.
type LogSize struct {
	// Class i has payloads of less than 2^i and at least 2^(i-1) bytes.
	Class   int
	Entries int64
}

// Kind is "size".
func (LogSize) Kind() string { return "size" }

// Line shows the bound and the count.
func (c LogSize) Line(dst []byte, o Options) []byte {
	return textLine(append(dst, "size"...), o, c.Fields)
}

// Fields are the bound in bytes, exclusive, and the count.
func (c LogSize) Fields(f Fields) {
	f.Uint("below", 1<<min(c.Class, 63))
	f.Int("entries", c.Entries)
}

// LogLife is one process run of a proposing member.
type LogLife struct {
	dumplog.Life
	// Proposer names the member.
	Proposer string
	// After and Before bound the time of the requests, as in LogTimes.
	After, Before time.Time
}

// Kind is "life".
func (LogLife) Kind() string { return "life" }

// Line shows the member, its start and its requests.
func (l LogLife) Line(dst []byte, o Options) []byte {
	return textLine(append(dst, "life"...), o, l.Fields)
}

// Fields are the proposer, the start and the extent.
func (l LogLife) Fields(f Fields) {
	f.Str("proposer", l.Proposer)
	f.IDs("members", len(l.Members), func(i int) uint64 { return uint64(l.Members[i]) })
	f.Str("start", l.Start(NearTime).Format("2006-01-02T15:04:05.000Z"))
	f.Uint("firstIndex", l.First)
	f.Uint("lastIndex", l.Last)
	f.Int("requests", int64(l.Requests))
	if l.Publish != 0 {
		f.Uint("publishIndex", l.Publish)
	}
	word(f, "name", l.Name)
	flag(f, "inferred", l.Inferred)
	bounds(f, l.After, l.Before)
}

// LogUnlisted counts the requests of process runs beyond those that are listed.
type LogUnlisted struct {
	Requests int
}

// Kind is "unlisted".
func (LogUnlisted) Kind() string { return "unlisted" }

// Line shows the count.
func (u LogUnlisted) Line(dst []byte, o Options) []byte {
	return textLine(append(dst, "unlisted"...), o, u.Fields)
}

// Fields are the number of requests.
func (u LogUnlisted) Fields(f Fields) { f.Int("requests", int64(u.Requests)) }
