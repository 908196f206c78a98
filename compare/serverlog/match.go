package serverlog

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
)

// finder searches for many patterns at once. Each pattern has words of which at least one must be in the line. One pass
// over the line searches for all words, and only patterns with a found word are tried. So an ordinary line costs one
// pass, whatever the number of patterns.
type finder struct {
	patterns []compiled
	// always are the patterns without such a word.
	always []int
	words  automaton
}

type compiled struct {
	Message
	re *regexp.Regexp
}

// newFinder prepares patterns. Words are folded to lower case. The pattern itself is tried on the unchanged line.
func newFinder(patterns []compiled) *finder {
	f := &finder{patterns: patterns}
	for i, p := range patterns {
		words := needs(p.re.String())
		if len(words) == 0 {
			f.always = append(f.always, i)
		}
		for _, w := range words {
			f.words.add(w, i)
		}
	}
	f.words.link()
	return f
}

// in calls found for every pattern that matches the line, in the order of the patterns, until it returns false.
func (f *finder) in(line string, found func(compiled, []string) bool) {
	var buf [16]int
	candidates := f.words.scan(line, append(buf[:0], f.always...))
	for {
		least := -1 // few at most, so they are not sorted
		for _, c := range candidates {
			if c >= 0 && (least < 0 || c < least) {
				least = c
			}
		}
		if least < 0 {
			return
		}
		for i, c := range candidates {
			if c == least {
				candidates[i] = -1
			}
		}
		if m := f.patterns[least].re.FindStringSubmatch(line); m != nil && !found(f.patterns[least], m) {
			return
		}
	}
}

// shortest is the minimum length of a useful word.
const shortest = 4

// needs returns lower-case words of which at least one is in every text that the pattern matches; none if there are no
// such words.
func needs(pattern string) []string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	return wordsOf(re.Simplify())
}

func wordsOf(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		w := strings.ToLower(string(re.Rune))
		if len(w) < shortest || strings.ContainsFunc(w, func(r rune) bool { return r >= 0x80 }) {
			return nil
		}
		return []string{w}
	case syntax.OpCapture, syntax.OpPlus:
		return wordsOf(re.Sub[0])
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if w := wordsOf(sub); len(w) > 0 && (best == nil || shortestOf(w) > shortestOf(best)) {
				best = w
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			w := wordsOf(sub)
			if len(w) == 0 {
				return nil
			}
			all = append(all, w...)
		}
		return all
	}
	return nil
}

func shortestOf(words []string) int {
	n := len(words[0])
	for _, w := range words {
		n = min(n, len(w))
	}
	return n
}

// automaton finds any of many words in one pass (Aho and Corasick).
type automaton struct {
	nodes []wordNode
}

type wordNode struct {
	// next is the node after each byte. After link it is complete, so that the pass never goes back.
	next [128]int32
	fail int32
	// out are the patterns whose word ends here.
	out []int
}

func (a *automaton) add(word string, pattern int) {
	if len(a.nodes) == 0 {
		a.nodes = append(a.nodes, wordNode{})
	}
	at := int32(0)
	for i := range len(word) {
		c := word[i] & 0x7f
		if a.nodes[at].next[c] == 0 {
			a.nodes[at].next[c] = int32(len(a.nodes))
			a.nodes = append(a.nodes, wordNode{})
		}
		at = a.nodes[at].next[c]
	}
	a.nodes[at].out = append(a.nodes[at].out, pattern)
}

// link completes the nodes, nearest to the root first.
func (a *automaton) link() {
	var queue []int32
	if len(a.nodes) == 0 {
		return
	}
	for _, n := range a.nodes[0].next {
		if n != 0 {
			queue = append(queue, n)
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		fail := a.nodes[at].fail
		a.nodes[at].out = append(a.nodes[at].out, a.nodes[fail].out...)
		for c, n := range a.nodes[at].next {
			if n == 0 {
				a.nodes[at].next[c] = a.nodes[fail].next[c]
				continue
			}
			a.nodes[n].fail = a.nodes[fail].next[c]
			queue = append(queue, n)
		}
	}
}

// scan appends the patterns of all words in the text, each once.
func (a *automaton) scan(text string, out []int) []int {
	if len(a.nodes) == 0 {
		return out
	}
	at := int32(0)
	for i := range len(text) {
		c := text[i]
		if c >= 0x80 {
			at = 0
			continue
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		at = a.nodes[at].next[c]
		for _, p := range a.nodes[at].out {
			if !has(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

func has(list []int, x int) bool {
	for _, v := range list {
		if v == x {
			return true
		}
	}
	return false
}

var problemFinder = sync.OnceValue(func() *finder {
	var out []compiled
	for _, m := range All() {
		for _, p := range m.Patterns {
			if re, err := regexp.Compile("(?i)" + p); err == nil { // a test proves that all do
				out = append(out, compiled{m, re})
			}
		}
	}
	return newFinder(out)
})
