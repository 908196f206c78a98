package timeline

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxKey is the length of the longest key that is written in full. Of a longer one, keyHead bytes of its start and
// keyTail bytes of its end are written.
const (
	maxKey  = 512
	keyHead = 256
	keyTail = 128
)

// EscapeKey writes a key as printable text, with Go escapes for other bytes and for characters that change the
// direction of text. For a long key it returns the start, the end and the length. It has no digest of the rest: one
// that is a function of the key alone would let a reader check guesses.
func EscapeKey(key []byte) string {
	if len(key) <= maxKey {
		return escape(key)
	}
	head, tail := keyHead, len(key)-keyTail
	for head > 0 && !utf8.RuneStart(key[head]) {
		head--
	}
	for tail < len(key) && !utf8.RuneStart(key[tail]) {
		tail++
	}
	return fmt.Sprintf("%s…%s <len %d>", escape(key[:head]), escape(key[tail:]), len(key))
}

func escape(key []byte) string {
	q := strconv.Quote(string(key))
	return q[1 : len(q)-1]
}
