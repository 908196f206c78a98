// Package redact takes keys and digests out of a dossier that leaves the house. Keys become hashes or prefixes, in
// columns of keys as well as inside of texts; digests of values become keyed ones, so that short values cannot be
// guessed from them. What is equal stays equal.
//
// Keys inside of texts are found by looking up every key of the sources, so the texts may spell them as they like.
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
	// Hashed shows a hash of each part of a key, parts ending with '/', so that keys of one prefix still stand
	// together.
	Hashed Mode = "hashed"
)

// ParseMode returns the mode of that name.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case Clear, Prefix, Hashed:
		return m, nil
	}
	return "", fmt.Errorf("%q is none of clear, prefix and hashed", s)
}

// Redactor redacts one dossier, and what else goes with it. Keys that Learn has not seen are not found in texts.
type Redactor struct {
	mode Mode
	salt []byte
	// words are the spellings of keys that texts hold, sorted.
	words []word
	// labels are the names of sources, which stay as they are.
	labels map[string]bool
}

// word is a piece of text and what stands for it. A name has no characters but those of names: it is replaced only
// where a text marks it as data, by quotes or an equals sign, since it can be a plain word as well.
type word struct {
	text, with string
	name       bool
}

// New returns a redactor. Without the salt nobody can check a guess of a key or value against the result.
func New(mode Mode, salt []byte) *Redactor {
	return &Redactor{mode: mode, salt: salt, labels: map[string]bool{}}
}

// hashLen is how many hex digits a hash of a key's part has: with a hundred thousand parts two of them are equal once
// in 200 reports.
const hashLen = 10

// hash is a keyed hash of text, for one use only.
func (r *Redactor) hash(use, text string, digits int) string {
	h := hmac.New(sha256.New, r.salt)
	_, _ = fmt.Fprintf(h, "%s\x00%s", use, text)
	return hex.EncodeToString(h.Sum(nil))[:digits]
}

// prefixParts is how many parts of a key mode Prefix shows.
const prefixParts = 2

// Key is what stands for a key. In mode Clear it is the key.
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

// shown is how many of the parts make prefixParts parts with a name: a leading slash is a part without one.
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

// KeyPrefix is what stands for the beginning of keys, which ends with a slash, or for a whole key.
func (r *Redactor) KeyPrefix(prefix string) string {
	if r.mode == Prefix && strings.HasSuffix(prefix, "/") &&
		strings.Count(strings.Trim(prefix, "/"), "/") < prefixParts {
		return prefix
	}
	return r.Key(prefix)
}

// Digest is what stands for the digest of a value.
func (r *Redactor) Digest(digest string) string {
	if digest == "" || digest == "=" {
		return digest
	}
	return r.hash("value", digest, 16)
}
