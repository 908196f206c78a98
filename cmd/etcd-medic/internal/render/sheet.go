package render

import (
	"io"
	"strings"

	"github.com/etcd-medic/etcd-medic/shell"
)

// Sheet is the readable document of a command without a judgment: what it did, in sections.
type Sheet struct{ Sections []Section }

// Section is one part of a sheet. Pairs without a value are left out. Lines are wrapped text, those that begin with
// "- " are items of a list; Commands are never wrapped.
type Section struct {
	// Title is "" for the first part.
	Title    string
	Pairs    [][2]string
	Lines    []string
	Head     []string
	Rows     [][]string
	Commands []Command
	// After is text below the commands.
	After []string
}

// Command is a command line of a sheet with its prefix, or only text.
type Command struct {
	Prefix string
	Run    shell.Command
}

// Prompts adds a prompt before each command.
func Prompts(commands ...shell.Command) []Command {
	out := make([]Command, len(commands))
	for i, c := range commands {
		out[i] = Command{"$ ", c}
	}
	return out
}

// Document writes doc in the machine formats and sheet as the table.
func Document(w io.Writer, f Format, doc any, sheet Sheet, o Options) error {
	return document(w, f, doc, o, func(p *page) { sheet.write(p) })
}

func (s Sheet) write(p *page) {
	for _, part := range s.Sections {
		part.write(p)
	}
}

func (s Section) write(p *page) {
	indent := ""
	if s.Title != "" {
		p.section(s.Title)
		indent = "  "
	}
	p.pairs(indent, s.Pairs...)
	for _, l := range s.Lines {
		if item, ok := strings.CutPrefix(l, "- "); ok {
			p.text(indent+"- ", item)
			continue
		}
		p.text(indent, l)
	}
	if len(s.Rows) > 0 {
		p.table(indent, s.Head, s.Rows)
	}
	for _, c := range s.Commands {
		if c.Run.IsZero() {
			p.line("%s%s", indent, clean(c.Prefix))
			continue
		}
		p.command(indent+c.Prefix, c.Run)
	}
	for _, l := range s.After {
		p.text(indent, l)
	}
}

// Quoted returns bytes as a name that can be copied.
func Quoted(b []byte) string { return quoted(b) }
