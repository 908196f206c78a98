package render

import (
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// LogCount counts the entries of one kind, term, proposer, user or prefix.
type LogCount struct {
	// Of is what Name is one of.
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

// LogLife is one process life of a proposing member.
type LogLife struct {
	dumplog.Life
	// Proposer names the member.
	Proposer string
}

// Kind is "life".
func (LogLife) Kind() string { return "life" }

// Line shows who lived from when, and what was proposed.
func (l LogLife) Line(dst []byte, o Options) []byte {
	return textLine(append(dst, "life"...), o, l.Fields)
}

// Fields are the proposer, the start and the extent.
func (l LogLife) Fields(f Fields) {
	f.Str("proposer", l.Proposer)
	f.IDs("members", len(l.Members), func(i int) uint64 { return uint64(l.Members[i]) })
	f.Str("start", l.Start(nearTime).Format("2006-01-02T15:04:05.000Z"))
	f.Uint("firstIndex", l.First)
	f.Uint("lastIndex", l.Last)
	f.Int("requests", int64(l.Requests))
	if l.Publish != 0 {
		f.Uint("publishIndex", l.Publish)
	}
	word(f, "name", l.Name)
	flag(f, "inferred", l.Inferred)
}
