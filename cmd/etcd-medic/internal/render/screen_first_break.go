package render

import (
	"regexp"
	"strings"
)

// firstBreak writes the first break in two lines.
func (p reportScreen) firstBreak() {
	b := p.r.Verdict.FirstBreak
	if b == nil {
		return
	}
	p.line("")
	head, on := "FIRST BREAK  ", string(b.Check)+" on "+strings.Join(b.Member, ", ")
	at := on + placeText(breakPlace(b))
	if columns(clean(at)) > p.o.width()-len(head) && len(b.Key) > 0 { // the bucket stands for the word key
		short := *b
		short.Bucket, short.Key = "", nil
		at = on + placeText(append(breakPlace(&short), strings.TrimSpace(b.Bucket+" "+quoted(b.Key))))
	}
	p.line("%s", head+brief(clean(at), p.o.width()-len(head)))
	const from, to = "  observed ", "; expected "
	observed, expected := contrast(place.ReplaceAllString(clean(b.Observed), ""), clean(b.Expected),
		p.o.width()-len(from)-len(to))
	p.line("%s", from+observed+to+expected)
}

// placeText joins the parts of a place to the end of a sentence.
func placeText(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// place is where in a file something was observed, which takes a third of a line.
var place = regexp.MustCompile(`^\S+@0x[0-9a-f]+: `)

// contrastWords is how many words are shown before the first one in which two texts differ.
const contrastWords = 1

// contrast shortens two texts until both fit into a number of columns and their difference stays visible: they lose
// whole clauses at their ends, else their common beginning, then their ends.
func contrast(observed, expected string, room int) (string, string) {
	if o, e, ok := wholePair(observed, expected, room); ok {
		return o, e
	}
	a, b := strings.Fields(observed), strings.Fields(expected)
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	if drop := same - contrastWords; drop > 1 {
		observed, expected = "… "+strings.Join(a[drop:], " "), "… "+strings.Join(b[drop:], " ")
		if o, e, ok := wholePair(observed, expected, room); ok {
			return o, e
		}
	}
	if columns(observed)+columns(expected) > room {
		observed = briefWords(observed, max(room-columns(expected), room*3/5))
		expected = briefWords(expected, room-columns(observed))
	}
	return observed, expected
}

// wholePair leaves clauses out of the ends of two texts until both fit, as few as possible. ok is false if they do not
// fit, or if nothing would be left that differs: the beginning of a text does not differ from the text.
func wholePair(observed, expected string, room int) (o, e string, ok bool) {
	most := 0
	begins := beginsAlike(observed, expected)
	for _, a := range endings(observed, wordsEnd) {
		for _, b := range endings(expected, wordsEnd) {
			if n := columns(a) + columns(b); n <= room && n > most && (begins || !beginsAlike(a, b)) {
				o, e, most, ok = a, b, n, true
			}
		}
	}
	return o, e, ok
}

// beginsAlike reports whether one text is the beginning of the other.
func beginsAlike(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

// briefWords cuts text as brief does, but before the word that would be cut, if that leaves most of the text.
func briefWords(s string, width int) string {
	if columns(s) <= width {
		return s
	}
	if at := strings.LastIndexByte(fit(s, width-1), ' '); at > width*2/3 {
		return s[:at] + " …"
	}
	return brief(s, width)
}
