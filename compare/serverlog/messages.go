package serverlog

import (
	"embed"
	"fmt"
	"path"
	"strings"
	"sync"
)

// texts are the messages: a file per topic, a section per message. README.md next to them describes the format.
//
//go:embed messages/*.md
var texts embed.FS

// topics are the files, in the order in which their messages are searched: special messages before general ones.
var topics = []string{"raft", "log", "snap", "database", "version", "member", "running"}

var catalogue = sync.OnceValues(func() ([]Message, error) {
	var out []Message
	for _, topic := range topics {
		b, err := texts.ReadFile(path.Join("messages", topic+".md"))
		if err != nil {
			return out, err
		}
		found, err := parse(string(b))
		out = append(out, found...)
		if err != nil {
			return out, fmt.Errorf("%s.md: %w", topic, err)
		}
	}
	return out, nil
})

// section reads one message, line by line.
type section struct {
	Message
	block string // the kind of fenced block that is open
}

// parse reads the sections of one file.
func parse(text string) ([]Message, error) {
	var out []Message
	var s *section
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\n")
		if id, ok := strings.CutPrefix(line, "## "); ok && (s == nil || s.block == "") {
			if s != nil {
				out = append(out, s.Message)
			}
			s = &section{Message: Message{ID: id}}
			continue
		}
		if s == nil {
			continue // the file's own heading
		}
		if err := s.line(line); err != nil {
			return out, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if s != nil {
		out = append(out, s.Message)
	}
	return out, nil
}

func (s *section) line(line string) error {
	if kind, ok := strings.CutPrefix(line, "```"); ok {
		s.block = kind
		return nil
	}
	switch s.block {
	case "match":
		s.Patterns = append(s.Patterns, line)
		return nil
	case "log":
		s.Examples = append(s.Examples, line)
		return nil
	case "":
		return s.prose(line)
	}
	return fmt.Errorf("a block %q, want match or log", s.block)
}

// prose handles a line outside of blocks: the meaning, the state on disk, a step, or a property.
func (s *section) prose(line string) error {
	if line == "" {
		return nil
	}
	if rest, ok := strings.CutPrefix(line, "On disk: "); ok {
		s.OnDisk = rest
		return nil
	}
	if property, ok := strings.CutPrefix(line, "- "); ok {
		return s.property(property)
	}
	if n, step, ok := strings.Cut(line, ". "); ok && strings.Trim(n, "0123456789") == "" {
		s.Do = append(s.Do, strings.ReplaceAll(step, "`", ""))
		s.Type = append(s.Type, quoted(step)...)
		return nil
	}
	if s.Means != "" {
		return fmt.Errorf("a second paragraph: %q", line)
	}
	s.Means = line
	return nil
}

func (s *section) property(line string) error {
	name, value, ok := strings.Cut(line, ": ")
	if !ok {
		return fmt.Errorf("a property without a value: %q", line)
	}
	switch name {
	case "versions":
		s.Versions = value
	case "causes":
		s.Causes = strings.Split(value, ", ")
	case "checks":
		s.Checks = strings.Split(value, ", ")
	case "rules":
		s.Rules = strings.Split(value, ", ")
	default:
		return fmt.Errorf("unknown property %q", name)
	}
	return nil
}

// quoted returns the commands in a step: the texts between backquotes.
func quoted(step string) []string {
	var out []string
	for i, part := range strings.Split(step, "`") {
		if i%2 == 1 {
			out = append(out, part)
		}
	}
	return out
}
