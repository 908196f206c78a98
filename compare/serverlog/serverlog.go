// Package serverlog knows what the panic, fatal and error lines of an etcd server say about its files: which state on disk makes a server
// of 3.3 to 3.8 write them, which causes lead there, and which checks show it.
//
// A pattern holds the core of a message as the sources have it, so that it matches the plain lines of 3.3, the JSON lines of later ones and
// what a person pastes. Numbers and names in it are returned as values.
package serverlog

import (
	"regexp"
	"strings"
	"sync"
)

// Message is one thing that a server can say.
type Message struct {
	// ID is the name under which explain finds it.
	ID string
	// Pattern is a regular expression, matched without regard to case; its named groups become values.
	Pattern string
	// Means says what happened, OnDisk which state of the files makes a server say it.
	Means, OnDisk string
	// Versions says which lines have the text.
	Versions string
	// Causes are IDs of the catalogue, Checks those of the checks and Rules those of preflight that show it.
	Causes, Checks, Rules []string
	// Do says what to do, in order.
	Do []string
}

// Match is a message found in a text.
type Match struct {
	Message
	// Line is the line it was found in, Values what its named groups hold, Count how many lines said it.
	Line   string
	Values map[string]string
	Count  int
}

// All returns every known message, the more specific before the general. A new one is one value in a file of its topic.
func All() []Message {
	var out []Message
	for _, topic := range [][]Message{raftMessages, logMessages, snapMessages, databaseMessages, versionMessages, memberMessages, runMessages} {
		out = append(out, topic...)
	}
	return out
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

type compiled struct {
	Message
	re *regexp.Regexp
}

var patterns = sync.OnceValue(func() []compiled {
	var out []compiled
	for _, m := range All() {
		out = append(out, compiled{m, regexp.MustCompile("(?i)" + m.Pattern)})
	}
	return out
})

// maxLine bounds what is looked at of one line; stack traces in JSON lines can be long.
const maxLine = 64 << 10

// Scan looks for known messages in the lines of a text, in the order of their first appearance. One line can say several: the error that
// ended the server and what it led to.
func Scan(text string) []Match {
	var s Scanner
	for line := range strings.Lines(text) {
		s.Line(line)
	}
	return s.Matches()
}

// Scanner is Scan for a stream of lines, in memory that depends on the number of known messages alone. The zero value is ready.
type Scanner struct {
	order []*Match
	byID  map[string]*Match
	lines int
}

// Line looks at one line.
func (s *Scanner) Line(line string) {
	s.lines++
	line = plain(line[:min(len(line), maxLine)])
	for _, p := range patterns() {
		m := p.re.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if s.byID == nil {
			s.byID = map[string]*Match{}
		}
		if known := s.byID[p.ID]; known != nil {
			known.Count++
			continue
		}
		x := &Match{Message: p.Message, Line: strings.Clone(line), Values: map[string]string{}, Count: 1}
		for i, name := range p.re.SubexpNames() {
			if name != "" && m[i] != "" {
				x.Values[name] = strings.Clone(m[i])
			}
		}
		s.byID[p.ID], s.order = x, append(s.order, x)
	}
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

// plain undoes the escapes of JSON lines, as far as they stand in messages.
func plain(line string) string {
	return strings.TrimSpace(strings.NewReplacer(`\"`, `"`, `\n`, " ", `\t`, " ", `\u003c`, "<", `\u003e`, ">").Replace(line))
}
