package serverlog

import (
	"bufio"
	"context"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Journal is the content of a whole log of one server: its time, its known lines with the indexes they name, and the
// member.
type Journal struct {
	// Lines counts all lines. First and Last are the times of the first and last line with a time.
	Lines       int
	First, Last time.Time
	// Events are the known lines in the order of the log, bounded; LeftOut counts the rest.
	Events  []Event
	LeftOut int
	// Members are the member IDs under which the server started, in order, without repetition in a row.
	Members []string
}

// Event is one line of a log that says something about the member's files.
type Event struct {
	// Line is its number, counted from 1. Time is zero if the log has none.
	Line int
	Time time.Time
	// ID names its meaning: the ID of a Message, or of one of the ordinary lines below.
	ID   string
	Text string
	// Index is the raft index, Revision the revision, Term the term that it names; 0 for none.
	Index, Term uint64
	Revision    int64
	// Problem is true for a known message, false for a line that a healthy server also writes.
	Problem bool
	// Checks are the checks that show a problem.
	Checks []string
}

// The ordinary lines that a journal keeps.
const (
	EventRestart    = "server-restarts"
	EventStart      = "server-starts"
	EventLeader     = "becomes-leader"
	EventSnapshot   = "saves-snapshot"
	EventReceived   = "applies-received-snapshot"
	EventCompaction = "finishes-compaction"
	EventShutdown   = "shuts-down"
)

// ordinary are the ordinary lines, as 3.3 (plain) and 3.4 to 3.8 (JSON) write them.
var ordinary = []struct{ id, pattern string }{
	{EventRestart, `restarting member (?P<member>[0-9a-f]+) in cluster [0-9a-f]+ at commit index (?P<index>\d+)`},
	{EventRestart, `"msg":"restarting local member".*` +
		`"local-member-id":"(?P<member>[0-9a-f]+)".*"commit-index":(?P<index>\d+)`},
	{EventStart, `starting member (?P<member>[0-9a-f]+) in cluster`},
	{EventStart, `"msg":"starting local member","local-member-id":"(?P<member>[0-9a-f]+)"`},
	{EventLeader, `[0-9a-f]+ became leader at term (?P<term>\d+)`},
	{EventSnapshot, `saved snapshot at index (?P<index>\d+)`},
	{EventSnapshot, `"msg":"saved snapshot(?: to disk)?".*"snapshot-index":(?P<index>\d+)`},
	{EventReceived, `finished applying incoming snapshot at index (?P<index>\d+)`},
	{EventReceived, `"msg":"applied snapshot".*"incoming-leader-snapshot-index":(?P<index>\d+)`},
	{EventCompaction, `finished scheduled compaction at (?P<revision>\d+)`},
	{EventCompaction, `"msg":"finished scheduled compaction","compact-revision":(?P<revision>\d+)`},
	{EventShutdown, `received (?:terminated|interrupt) signal, shutting down|"msg":"received signal; shutting down"`},
}

var ordinaryFinder = sync.OnceValue(func() *finder {
	var out []compiled
	for _, o := range ordinary {
		out = append(out, compiled{Message{ID: o.id}, regexp.MustCompile(o.pattern)})
	}
	return newFinder(out)
})

// maxEvents bounds the events of a journal. For a line that is repeated in a row, it keeps the first and counts the
// others.
const maxEvents = 2000

// Read reads a log of one server: plain lines of 3.3, JSON lines, an export or JSON of journald, or the output of
// kubectl logs, with or without its time stamps.
func Read(ctx context.Context, r io.Reader) (*Journal, error) {
	j := &Journal{}
	br := bufio.NewReaderSize(r, maxLine)
	var block journaldBlock
	for whole := true; ; {
		raw, err := br.ReadSlice('\n')
		if len(raw) > 0 && whole {
			j.Lines++
			line, at := block.unwrap(strings.TrimRight(string(raw), "\r\n"))
			j.add(line, at)
		}
		whole = !errors.Is(err, bufio.ErrBufferFull) // the rest of a longer line is ignored
		if j.Lines%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, io.EOF) {
			return j, nil
		}
		if err != nil && whole {
			return nil, err
		}
	}
}

// add handles one line.
func (j *Journal) add(line string, at time.Time) {
	if line == "" {
		return
	}
	if t, ok := timeOf(line); ok {
		at = t
	}
	if !at.IsZero() {
		if j.First.IsZero() {
			j.First = at
		}
		j.Last = at
	}
	known := false
	ordinaryFinder().in(line, func(p compiled, m []string) bool {
		e := Event{Line: j.Lines, Time: at, ID: p.ID, Text: line}
		e.fill(p.re, m)
		if k := p.re.SubexpIndex("member"); k > 0 && (len(j.Members) == 0 || j.Members[len(j.Members)-1] != m[k]) &&
			len(j.Members) < maxEvents {
			j.Members = append(j.Members, m[k])
		}
		j.keep(e)
		known = true
		return false
	})
	if known {
		return
	}
	text, last := plain(line), ""
	problemFinder().in(text, func(p compiled, m []string) bool {
		if p.ID != last && p.OfFiles() {
			e := Event{Line: j.Lines, Time: at, ID: p.ID, Text: text, Problem: true, Checks: p.Checks}
			e.fill(p.re, m)
			j.keep(e)
		}
		last = p.ID
		return true
	})
}

// keep adds an event, unless it equals the previous one.
func (j *Journal) keep(e Event) {
	if n := len(j.Events); n > 0 {
		if last := &j.Events[n-1]; last.ID == e.ID && last.Index == e.Index && last.Revision == e.Revision &&
			last.Term == e.Term {
			j.LeftOut++
			return
		}
	}
	if len(j.Events) >= maxEvents {
		j.LeftOut++
		return
	}
	e.Text = strings.Clone(e.Text[:min(len(e.Text), 400)])
	j.Events = append(j.Events, e)
}

// fill reads the numbers from the named groups.
func (e *Event) fill(re *regexp.Regexp, m []string) {
	number := func(names ...string) uint64 {
		for _, name := range names {
			if k := re.SubexpIndex(name); k > 0 && m[k] != "" {
				if v, err := strconv.ParseUint(m[k], 10, 63); err == nil {
					return v
				}
			}
		}
		return 0
	}
	e.Index, e.Term, e.Revision = number("index", "commit", "snapshot"), number("term"), int64(number("revision"))
}
