// Package redact removes keys and digests from a dossier that is shared. Keys become hashes or prefixes, in columns of
// keys and inside texts. Digests of values become keyed ones, so that short values cannot be guessed. Equal texts stay
// equal.
//
// It finds keys inside texts by searching for every key of the sources, in every spelling.
package redact

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Mode says how keys are shown.
type Mode string

// The modes.
const (
	// Clear shows keys.
	Clear Mode = "clear"
	// Prefix shows at most the first two parts of a key, and never all of it.
	Prefix Mode = "prefix"
	// Hashed shows a hash of each part of a key. Parts end with '/', so keys with one prefix still sort together.
	Hashed Mode = "hashed"
)

// ParseMode returns the mode with a name.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case Clear, Prefix, Hashed:
		return m, nil
	}
	return "", fmt.Errorf("%q is not one of clear, prefix and hashed", s)
}

// Redactor redacts one dossier and related texts. It finds only keys that Learn has read.
type Redactor struct {
	mode Mode
	salt []byte
	// words are the spellings of keys in texts, sorted.
	words []word
	// labels are the names of sources, which are kept.
	labels map[string]bool
}

// word is a text and its replacement. If it has only characters of names, it may also be an ordinary word. Then it is
// replaced only where quotes or an equals sign mark it as data.
type word struct {
	text, with string
	name       bool
}

// New returns a redactor. Without the salt, a guess of a key or value cannot be checked against the result.
func New(mode Mode, salt []byte) *Redactor {
	return &Redactor{mode: mode, salt: salt, labels: map[string]bool{}}
}

// hashLen is the number of hex digits of a hash of a key's part. With a hundred thousand parts, two are equal in one of
// 200 reports.
const hashLen = 10

// hash returns a keyed hash of text, separate for each use.
func (r *Redactor) hash(use, text string, digits int) string {
	h := hmac.New(sha256.New, r.salt)
	_, _ = fmt.Fprintf(h, "%s\x00%s", use, text)
	return hex.EncodeToString(h.Sum(nil))[:digits]
}

// prefixParts is how many parts of a key mode Prefix shows.
const prefixParts = 2

// Key returns the replacement of a key. In mode Clear it is the key.
func (r *Redactor) Key(key string) string {
	switch r.mode {
	case Prefix:
		parts := strings.SplitAfter(key, "/")
		last := len(parts) - 1
		for last > 0 && parts[last] == "" {
			last-- // the key ends with a slash
		}
		n := min(shown(parts), last)
		return strings.Join(parts[:n], "") + "~" + r.hash("key", strings.Join(parts[n:], ""), hashLen)
	case Hashed:
		return r.hashParts(key)
	}
	return key
}

// shown returns how many of the parts are prefixParts named parts: a leading slash is a part without a name.
func shown(parts []string) int {
	n, named := 0, 0
	for n < len(parts) && named < prefixParts {
		if parts[n] != "/" {
			named++
		}
		n++
	}
	return n
}

func (r *Redactor) hashParts(key string) string {
	var b strings.Builder
	for part := range strings.SplitAfterSeq(key, "/") {
		name := strings.TrimSuffix(part, "/")
		if name != "" {
			b.WriteString("~" + r.hash("part", name, hashLen))
		}
		if len(name) < len(part) {
			b.WriteByte('/')
		}
	}
	return b.String()
}

// KeyPrefix returns the replacement of a key prefix, which ends with a slash, or of a whole key.
func (r *Redactor) KeyPrefix(prefix string) string {
	if r.mode == Prefix && strings.HasSuffix(prefix, "/") &&
		strings.Count(strings.Trim(prefix, "/"), "/") < prefixParts {
		return prefix
	}
	return r.Key(prefix)
}

// Digest returns the replacement of the digest of a value.
func (r *Redactor) Digest(digest string) string {
	if digest == "" || digest == "=" {
		return digest
	}
	return r.hash("value", digest, 16)
}
