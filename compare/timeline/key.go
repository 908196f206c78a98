package timeline

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxKey is the length of the longest key that is written in full.
const maxKey = 512

// EscapeKey writes a key as printable text, with Go escapes for other bytes and for characters that change the
// direction of text. For a long key it returns the start, the length and a digest.
func EscapeKey(key []byte) string {
	if len(key) <= maxKey {
		return escape(key)
	}
	n := maxKey / 2
	for n > 0 && !utf8.RuneStart(key[n]) {
		n--
	}
	sum := sha256.Sum256(key)
	return escape(key[:n]) + fmt.Sprintf("… <len %d sha256 %s>", len(key), hex.EncodeToString(sum[:8]))
}

func escape(key []byte) string {
	q := strconv.Quote(string(key))
	return q[1 : len(q)-1]
}
