// Package serverlog knows what the panic, fatal and error lines of an etcd server say about its files: which state on
// disk makes a server of 3.3 to 3.8 write them, which causes lead there, and which checks show it.
//
// A pattern holds the core of a message as the sources have it, so that it matches the plain lines of 3.3, the JSON
// lines of later ones and what a person pastes. Numbers and names in it are returned as values.
package serverlog

import (
	"slices"
	"strings"
)

// Message is one thing that a server can say.
type Message struct {
	// ID is the name under which explain finds it.
	ID string
	// Patterns are regular expressions, matched without regard to case; one of them has to match. Named groups become
	// values.
	Patterns []string
	// Examples are lines as servers write them.
	Examples []string
	// Means says what happened, OnDisk which state of the files makes a server say it.
	Means, OnDisk string
	// Versions says which releases have the text.
	Versions string
	// Causes are IDs of the catalogue, Checks those of the checks and Rules those of preflight that show it.
	Causes, Checks, Rules []string
	// Do says what to do, in order; Type are the commands in it.
	Do, Type []string
}

// OfFiles reports whether the message says something about the member's files, not only about network, machine or
// flags.
func (m *Message) OfFiles() bool { return len(m.Causes)+len(m.Checks)+len(m.Rules) > 0 }

// Match is a message found in a text.
type Match struct {
	Message
	// Line is the line it was found in, Values what its named groups hold, Count how many lines said it.
	Line   string
	Values map[string]string
	Count  int
}

// All returns every known message, the more specific before the general. A new one is a section in a file of folder
// messages.
func All() []Message {
	out, _ := catalogue() // a test proves that all files parse
	return slices.Clone(out)
}

// Find returns the message of that ID.
func Find(id string) (Message, bool) {
	for _, m := range All() {
		if strings.EqualFold(m.ID, id) {
			return m, true
		}
	}
	return Message{}, false
}

// maxLine is how much of a line is looked at in one piece; stack traces in JSON lines can be long. Pieces of a longer
// line overlap, so that no message is cut apart.
const maxLine, overlap = 64 << 10, 4 << 10

// Scan looks for known messages in the lines of a text, in the order of their first appearance. One line can say
// several: the error that ended the server and what it led to.
func Scan(text string) []Match {
	var s Scanner
	for line := range strings.Lines(text) {
		s.Line(line)
	}
	return s.Matches()
}

// Scanner is Scan for a stream of lines, in memory that depends on the number of known messages alone. The zero value
// is ready.
type Scanner struct {
	order []*Match
	byID  map[string]*Match
	// last is the line that said a message last.
	last  map[string]int
	lines int
	// tail is the end of what was looked at of the current line.
	tail string
}

// Line looks at one line.
func (s *Scanner) Line(line string) {
	s.lines++
	if strings.HasPrefix(line, "{") {
		line, _ = carried(line)
	}
	s.pieces(line)
}

// More looks at a further part of the line that is too long to be given to Line at once.
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

// found files one match. Two patterns of a message in one line are one.
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

// Lines is how many lines were looked at.
func (s *Scanner) Lines() int { return s.lines }

// Matches returns what was found so far.
func (s *Scanner) Matches() []Match {
	out := make([]Match, 0, len(s.order))
	for _, m := range s.order {
		out = append(out, *m)
	}
	return out
}

var unescape = strings.NewReplacer(`\"`, `"`, `\n`, " ", `\t`, " ", `\u003c`, "<", `\u003e`, ">")

// plain undoes the escapes of JSON lines, as far as they stand in messages.
func plain(line string) string {
	if strings.IndexByte(line, '\\') >= 0 {
		line = unescape.Replace(line)
	}
	return strings.TrimSpace(line)
}
