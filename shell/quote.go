package shell

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// bare are the characters without a special meaning in any POSIX shell and in zsh.
const bare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-"

// MaxArg is the longest argument in a printed command, in bytes. Linux allows up to 128 KiB.
const MaxArg = 4096

// CanPass reports whether bytes can be an argument of a printed command: they have no zero byte and are at most MaxArg
// long.
func CanPass(b []byte) bool { return len(b) <= MaxArg && bytes.IndexByte(b, 0) < 0 }

// Quote writes a string as one word of a POSIX shell. It quotes words with special characters, and words in capitals,
// since unquoted ones are placeholders. It writes control characters, characters that reorder or hide text, and invalid
// UTF-8 in octal. A shell drops newlines at the end of such a word; Command.String and Script keep them.
func Quote(s string) string {
	switch {
	case s == "":
		return "''"
	case isBare(s):
		return s
	case printable(s):
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return `"$(printf '` + string(AppendPrintf(nil, []byte(s))) + `')"`
}

// isBare reports whether a word needs no quotes. zsh expands a leading "=", and two capitals in a row look like a
// placeholder.
func isBare(s string) bool {
	if s == "" || s[0] == '=' {
		return false
	}
	for i := range len(s) {
		switch {
		case strings.IndexByte(bare, s[i]) < 0:
			return false
		case i > 0 && isCapital(s[i]) && isCapital(s[i-1]):
			return false
		}
	}
	return true
}

func isCapital(c byte) bool { return c >= 'A' && c <= 'Z' || c == '_' }

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// AppendPrintf writes bytes as the format of the shell's printf, for use inside single quotes. POSIX supports octal
// escapes. A leading dash is escaped, since printf would read it as an option.
func AppendPrintf(b, v []byte) []byte {
	for i, c := range v {
		switch {
		case c == '%':
			b = append(b, '%', '%')
		case c < ' ' || c >= 0x7f || c == '\\' || c == '\'' || c == '-' && i == 0:
			b = append(b, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		default:
			b = append(b, c)
		}
	}
	return b
}

// Script returns an argument as a word for a script, and the line that must come before it, "" for none. A word that
// ends in newlines goes through the variable key.
func Script(arg []byte) (before, word string) {
	switch {
	case isBare(string(arg)):
		return "", "'" + string(arg) + "'" // always quoted, so that searching scripts for words is simple
	case !bytes.HasSuffix(arg, []byte("\n")):
		return "", Quote(string(arg))
	}
	return "key=$(printf '" + string(AppendPrintf(nil, arg)) + "_'); key=${key%_}\n", `"$key"`
}

// Operand returns a path as an argument that no program reads as a flag.
func Operand(path string) string {
	if strings.HasPrefix(path, "-") {
		return "./" + path
	}
	return path
}

// FileName returns a valid file name that no tool reads as an option: no separators, no leading dash or dot.
func FileName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, s)
	if s == "" || s[0] == '-' || s[0] == '.' {
		return "_" + s
	}
	return s
}

// Comment makes text safe for a comment in a script or another file of lines: it stays on one line and has no control
// characters.
func Comment(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, s)
}
