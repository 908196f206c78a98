package shell

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Obeyed reports whether a terminal interprets a character, or a reader would mistake it for another. Line feed and tab
// are excluded: the caller escapes them in data.
func Obeyed(r rune) bool {
	switch {
	case r < ' ':
		return r != '\n' && r != '\t'
	case r < 0x7f:
		return false
	case r < 0xa0:
		return true
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// AppendSafe appends text and escapes everything that a terminal interprets: \u and hex digits as in JSON, \x for
// invalid UTF-8, or the replacement character if the text is JSON.
func AppendSafe(dst, s []byte, json bool) []byte {
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		switch {
		case r == utf8.RuneError && n == 1 && json:
			dst = append(dst, `\ufffd`...)
		case r == utf8.RuneError && n == 1:
			dst = fmt.Appendf(dst, `\x%02x`, s[0])
		case Obeyed(r) && r > 0xffff:
			r -= 0x10000
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		case Obeyed(r):
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = append(dst, s[:n]...)
		}
		s = s[n:]
	}
	return dst
}

// OneLine returns text as it may be shown within a line: as AppendSafe writes it, with line feeds and tabs escaped too.
// The result is always valid UTF-8, which labels of metrics must be, and holds no zero byte, which no environment
// takes.
func OneLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(string(AppendSafe(nil, []byte(s), false)))
}

// IsSafe reports whether AppendSafe leaves text unchanged.
func IsSafe(s []byte) bool {
	for i, c := range s {
		if c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return safeRunes(s[i:])
		}
	}
	return true
}

func safeRunes(s []byte) bool {
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		if r == utf8.RuneError && n == 1 || Obeyed(r) {
			return false
		}
		s = s[n:]
	}
	return true
}
