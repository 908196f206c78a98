// Package shell prints external text safely for shells and terminals. Command is a command for users to paste: a list
// of arguments that is written as text in this one place. AppendSafe makes any text safe to show.
//
// Format makes a command from a constant template and data. The template's type is not exported, so only constants of
// the program are templates. Text from a member, a file or a key can become an argument, but never syntax or a
// placeholder. The output is for POSIX shells. A shell passes exactly the bytes of each argument to the program.
package shell

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// template is a command in the program's source: words, "{}" for an argument, "<NAME>" for a placeholder, and operators
// as separate words.
type template string

// operators are the shell operators that a template may contain. Data never becomes one.
var operators = map[string]bool{"|": true, "&&": true, ";": true, ">": true, "while": true, "do": true, "done": true}

// part is a piece of a word: literal bytes, the name of a placeholder, or the label of a source.
type part struct {
	text string
	kind partKind
}

type partKind uint8

const (
	data partKind = iota
	fill
	source
)

// Word is one argument.
type Word struct{ parts []part }

// item is one word or one operator of a command.
type item struct {
	op string
	Word
}

// Command is a command line: words and operators. The zero Command is empty.
type Command struct{ items []item }

// Source is an argument that names a source by its label. If the source's path is known, that is printed (Command.At).
func Source(label string) Word { return Word{[]part{{label, source}}} }

// Text is a literal argument.
func Text(s string) Word { return Word{[]part{{text: s}}} }

// ToFill is a placeholder that the user fills in; its name is in capitals.
func ToFill(name template) Word { return Word{[]part{{string(name), fill}}} }

// FillFor is a placeholder whose name ends with name, in capitals.
func FillFor(what template, name string) Word {
	return Word{[]part{{string(what) + "_" + strings.Map(capital, name), fill}}}
}

// capital maps a character to one allowed in a placeholder.
func capital(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z':
		return r - 'a' + 'A'
	case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return r
	}
	return '_'
}

// Format makes a command from a template. Every "{}" takes one argument: a string or bytes, a number, a value with a
// String method, or a Word. A missing argument becomes a placeholder.
func Format(format template, args ...any) Command {
	var c Command
	for _, token := range strings.Fields(string(format)) {
		if operators[token] {
			c.items = append(c.items, item{op: token})
			continue
		}
		var w Word
		w, args = parse(token, args)
		c.items = append(c.items, item{Word: w})
	}
	return c
}

// parse parses one word of a template.
func parse(token string, args []any) (Word, []any) {
	var w Word
	for token != "" {
		at := strings.IndexAny(token, "{<")
		if at < 0 {
			at = len(token)
		}
		if at > 0 {
			w.parts = append(w.parts, part{text: token[:at]})
			token = token[at:]
			continue
		}
		if name, rest, ok := strings.Cut(token[1:], ">"); ok && token[0] == '<' {
			w.parts = append(w.parts, part{name, fill})
			token = rest
			continue
		}
		token = strings.TrimPrefix(token[1:], "}")
		if len(args) == 0 {
			w.parts = append(w.parts, part{"MISSING", fill})
			continue
		}
		w.parts = append(w.parts, word(args[0]).parts...)
		args = args[1:]
	}
	return w.merged(), args
}

// merged joins neighboring data.
func (w Word) merged() Word {
	var out []part
	for _, p := range w.parts {
		if n := len(out); n > 0 && p.kind == data && out[n-1].kind == data {
			out[n-1].text += p.text
			continue
		}
		out = append(out, p)
	}
	return Word{out}
}

func word(arg any) Word {
	switch x := arg.(type) {
	case Word:
		return x
	case string:
		return Word{[]part{{text: x}}}
	case int64:
		return Word{[]part{{text: strconv.FormatInt(x, 10)}}}
	}
	if v := reflect.ValueOf(arg); v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		return Word{[]part{{text: string(v.Bytes())}}}
	}
	return Word{[]part{{text: fmt.Sprint(arg)}}}
}

// With returns the command with more arguments.
func (c Command) With(args ...any) Command {
	c.items = slices.Clone(c.items)
	for _, a := range args {
		c.items = append(c.items, item{Word: word(a)})
	}
	return c
}

// Sources returns the command with sources as further arguments.
func (c Command) Sources(labels ...string) Command {
	for _, l := range labels {
		c = c.With(Source(l))
	}
	return c
}

// Then returns the command followed by next.
func (c Command) Then(next Command) Command {
	return Command{append(slices.Clone(c.items), next.items...)}
}

// AfterProgram returns the command with flags directly after the name of its program.
func (c Command) AfterProgram(flags Command) Command {
	if c.IsZero() {
		return c
	}
	return Command{slices.Concat(c.items[:1], flags.items, c.items[1:])}
}

// Fill returns the command with placeholders filled in.
func (c Command) Fill(values map[string]string) Command {
	return c.replaced(func(p part) part {
		if v, ok := values[p.text]; ok && p.kind == fill {
			return part{text: v}
		}
		return p
	})
}

// At returns the command with the paths of sources instead of their labels. Labels without a path stay.
func (c Command) At(places map[string]string) Command {
	return c.replaced(func(p part) part {
		if at := places[p.text]; at != "" && p.kind == source {
			return part{text: at}
		}
		return p
	})
}

// AtOnce returns the command with args, such as one folder or archive, instead of a run of words that names exactly
// these labels.
func (c Command) AtOnce(labels, args []string) Command {
	if len(args) == 0 {
		return c
	}
	for i := range c.items {
		n := 0
		for n < len(labels) && i+n < len(c.items) && c.items[i+n].isSource(labels[n]) {
			n++
		}
		if n == 0 || n < len(labels) {
			continue
		}
		out := Command{slices.Clone(c.items[:i])}
		for _, a := range args {
			out = out.With(a)
		}
		return Command{append(out.items, c.items[i+n:]...)}
	}
	return c
}

func (w Word) isSource(label string) bool {
	return len(w.parts) == 1 && w.parts[0].kind == source && w.parts[0].text == label
}

// Program returns the first literal words of the command: the program and its sub-commands.
func (c Command) Program() (words []string) {
	for _, it := range c.items {
		if it.op != "" || len(it.parts) != 1 || it.parts[0].kind != data {
			break
		}
		words = append(words, it.parts[0].text)
	}
	return words
}

func (c Command) replaced(f func(part) part) Command {
	out := Command{make([]item, len(c.items))}
	for i, it := range c.items {
		w := Word{make([]part, len(it.parts))}
		for j, p := range it.parts {
			w.parts[j] = f(p)
		}
		out.items[i] = item{it.op, w.merged()}
	}
	return out
}

// Rewrite returns the command with f applied to the text of its arguments. Labels of sources and placeholders stay.
func (c Command) Rewrite(f func(string) string) Command {
	return c.replaced(func(p part) part {
		if p.kind == data {
			p.text = f(p.text)
		}
		return p
	})
}

// Texts are commands as text.
func Texts(commands []Command) []string {
	out := make([]string, len(commands))
	for i, c := range commands {
		out[i] = c.String()
	}
	return out
}

// IsZero reports whether there is no command.
func (c Command) IsZero() bool { return len(c.items) == 0 }

// Equal reports whether two commands are the same.
func (c Command) Equal(d Command) bool {
	return slices.EqualFunc(c.items, d.items,
		func(a, b item) bool { return a.op == b.op && slices.Equal(a.parts, b.parts) })
}

// String returns the command for a POSIX shell, on one line without control characters.
func (c Command) String() string {
	var b, before strings.Builder
	guards := 0
	for i, it := range c.items {
		if i > 0 && it.op != ";" {
			b.WriteByte(' ')
		}
		b.WriteString(it.op)
		for _, p := range it.parts {
			switch {
			case p.kind == fill:
				b.WriteString(p.text)
			case strings.HasSuffix(p.text, "\n"):
				// Command substitution drops trailing newlines. A variable whose last character is removed again keeps
				// them.
				guards++
				fmt.Fprintf(&before, "k%d=$(printf '%s.'); ", guards, AppendPrintf(nil, []byte(p.text)))
				fmt.Fprintf(&b, `"${k%d%%.}"`, guards)
			default:
				b.WriteString(Quote(p.text))
			}
		}
		if it.op == "" && len(it.parts) == 0 {
			b.WriteString("''")
		}
	}
	return before.String() + b.String()
}
