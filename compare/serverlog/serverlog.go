// Package serverlog explains the panic, fatal and error lines of an etcd server about its files. It knows which state
// on disk makes a server of 3.3 to 3.8 write them, which causes lead to it, and which checks show it.
//
// A pattern is the core of a message as in the sources. So it matches the plain lines of 3.3, the JSON lines of later
// releases and text pasted by a user. Numbers and names in it are returned as values.
package serverlog

import (
	"slices"
	"strings"
)

// Message is one message of a server.
type Message struct {
	// ID is the name of the message for explain.
	ID string
	// Patterns are regular expressions, matched without regard to case; one of them must match. Named groups become
	// values.
	Patterns []string
	// Examples are lines as servers write them.
	Examples []string
	// Means says what happened, OnDisk which state of the files leads to the message.
	Means, OnDisk string
	// Versions says which releases have the text.
	Versions string
	// Causes are IDs of causes, Checks of checks and Rules of preflight rules that belong to it.
	Causes, Checks, Rules []string
	// Do says what to do, in order; Type are the commands in it.
	Do, Type []string
}

// OfFiles reports whether the message is about the member's files, and not only about network, machine or flags.
func (m *Message) OfFiles() bool { return len(m.Causes)+len(m.Checks)+len(m.Rules) > 0 }

// Match is a message found in a text.
type Match struct {
	Message
	// Line is the matching line, Values the content of its named groups, Count the number of such lines.
	Line   string
	Values map[string]string
	Count  int
}

// All returns every known message, the more specific before the general. To add one, add a section in a file of folder
// messages.
func All() []Message {
	out, _ := catalogue() // a test verifies that all files parse
	return slices.Clone(out)
}

// Find returns the message with an ID.
func Find(id string) (Message, bool) {
	for _, m := range All() {
		if strings.EqualFold(m.ID, id) {
			return m, true
		}
	}
	return Message{}, false
}

// maxLine is how much of a line is searched at once; stack traces in JSON lines can be long. Pieces of a longer line
// overlap, so that no message is split.
const maxLine, overlap = 64 << 10, 4 << 10

// Scan searches the lines of a text for known messages, in the order of their first appearance. One line can contain
// several: the error that ended the server and its consequence.
func Scan(text string) []Match {
	var s Scanner
	for line := range strings.Lines(text) {
		s.Line(line)
	}
	return s.Matches()
}

// Scanner is Scan for a stream of lines. Its memory depends only on the number of known messages. The zero value is
// ready.
type Scanner struct {
	order []*Match
	byID  map[string]*Match
	// last is the number of the last line with a message.
	last  map[string]int
	lines int
	// tail is the end of the searched part of the current line.
	tail string
}

// Line handles one line.
func (s *Scanner) Line(line string) {
	s.lines++
	if strings.HasPrefix(line, "{") {
		line, _ = carried(line)
	}
	s.pieces(line)
}

// More handles a further part of a line that is too long for Line.
func (s *Scanner) More(part string) { s.pieces(s.tail + part) }

func (s *Scanner) pieces(text string) {
	for len(text) > maxLine {
		s.piece(text[:maxLine])
		text = text[maxLine-overlap:]
	}
	s.piece(text)
	s.tail = text[max(0, len(text)-overlap):]
}

func (s *Scanner) piece(line string) {
	line = plain(line)
	problemFinder().in(line, func(p compiled, m []string) bool {
		s.found(line, p, m)
		return true
	})
}

// found adds one match. Two patterns of a message in one line count as one.
func (s *Scanner) found(line string, p compiled, m []string) {
	if s.byID == nil {
		s.byID, s.last = map[string]*Match{}, map[string]int{}
	}
	if s.last[p.ID] == s.lines {
		return
	}
	s.last[p.ID] = s.lines
	if known := s.byID[p.ID]; known != nil {
		known.Count++
		return
	}
	x := &Match{Message: p.Message, Line: strings.Clone(line), Values: map[string]string{}, Count: 1}
	for i, name := range p.re.SubexpNames() {
		if name != "" && m[i] != "" {
			x.Values[name] = strings.Clone(m[i])
		}
	}
	s.byID[p.ID], s.order = x, append(s.order, x)
}

// Lines returns how many lines were searched.
func (s *Scanner) Lines() int { return s.lines }

// Matches returns the matches so far.
func (s *Scanner) Matches() []Match {
	out := make([]Match, 0, len(s.order))
	for _, m := range s.order {
		out = append(out, *m)
	}
	return out
}

var unescape = strings.NewReplacer(`\"`, `"`, `\n`, " ", `\t`, " ", `\u003c`, "<", `\u003e`, ">")

// plain removes the escapes of JSON lines that occur in messages.
func plain(line string) string {
	if strings.IndexByte(line, '\\') >= 0 {
		line = unescape.Replace(line)
	}
	return strings.TrimSpace(line)
}
