package dumplog

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// DescribeOptions selects what Describe shows.
type DescribeOptions struct {
	// Values shows the values of keys. Otherwise only their length is shown.
	Values bool
	// Digest, if set, adds a digest to the length of a hidden value, so that values can be compared. Use a keyed
	// digest: a plain hash reveals short values.
	Digest func(value []byte) string
	// Secrets shows passwords, password hashes and tokens.
	Secrets bool
}

// Describe returns the request on one line in the words of its protobuf fields. The kind comes first, then the
// arguments, transactions with their operations, and fields without a known name last.
func (r *Request) Describe(opt DescribeOptions) string {
	w := &describer{opt: opt}
	w.b = append(w.b, r.Kind...)
	w.request(r)
	for i := range r.Unknown {
		w.unknown(&r.Unknown[i])
	}
	return string(w.b)
}

// String returns the header as id, user and auth revision. Unset fields are left out.
func (h Header) String() string {
	w := &describer{}
	if h.ID != 0 {
		w.add(" id=", strconv.FormatUint(uint64(h.ID), 16))
	}
	if h.Username != "" {
		w.quoted("user", h.Username)
	}
	if h.AuthRevision != 0 {
		w.add(" auth_revision=", strconv.FormatUint(h.AuthRevision, 10))
	}
	return strings.TrimPrefix(string(w.b), " ")
}

type describer struct {
	b   []byte
	opt DescribeOptions
}

func (w *describer) add(s ...string) {
	for _, x := range s {
		w.b = append(w.b, x...)
	}
}

func (w *describer) int(name string, v int64) {
	if v != 0 {
		w.b = append(append(append(w.b, ' '), name...), '=')
		w.b = strconv.AppendInt(w.b, v, 10)
	}
}

func (w *describer) flag(name string, v bool) {
	if v {
		w.add(" ", name)
	}
}

func (w *describer) quoted(name, v string) {
	w.b = append(append(append(w.b, ' '), name...), '=')
	w.b = strconv.AppendQuote(w.b, v)
}

func (w *describer) bytes(v []byte) { w.b = strconv.AppendQuote(w.b, string(v)) }

func (w *describer) lease(id int64) {
	if id != 0 {
		w.add(" lease=", strconv.FormatUint(uint64(id), 16))
	}
}

// value writes a value, or its length and digest if values are hidden.
func (w *describer) value(v []byte) {
	if w.opt.Values {
		w.bytes(v)
		return
	}
	w.digest(v)
}

// digest writes the length and the digest of a hidden value.
func (w *describer) digest(v []byte) {
	w.b = append(w.b, "<len "...)
	w.b = strconv.AppendInt(w.b, int64(len(v)), 10)
	if w.opt.Digest != nil {
		w.add(" digest ", w.opt.Digest(v))
	}
	w.b = append(w.b, '>')
}

// secret writes a secret as "redacted". It writes no digest, because passwords can be guessed.
func (w *describer) secret(name, v string) {
	switch {
	case v == "":
	case w.opt.Secrets:
		w.quoted(name, v)
	default:
		w.add(" ", name, "=<redacted>")
	}
}

// keys writes a key range in words: one key, a prefix, everything, from a key to the end, or an interval.
func (w *describer) keys(key, end []byte) {
	switch {
	case len(end) == 0:
		w.add(" key=")
		w.bytes(key)
	case len(end) == 1 && end[0] == 0 && (len(key) == 0 || len(key) == 1 && key[0] == 0):
		w.add(" all keys")
	case len(end) == 1 && end[0] == 0:
		w.add(" keys from ")
		w.bytes(key)
	case bytes.Equal(end, prefixEnd(key)):
		w.add(" prefix=")
		w.bytes(key)
	default:
		w.add(" keys [")
		w.bytes(key)
		w.add(", ")
		w.bytes(end)
		w.add(")")
	}
}

// prefixEnd returns the range end that clients use for a prefix: the prefix with its last byte below 0xff incremented.
func prefixEnd(p []byte) []byte {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] < 0xff {
			end := bytes.Clone(p[:i+1])
			end[i]++
			return end
		}
	}
	return []byte{0}
}

func (w *describer) unknown(u *UnknownField) {
	path := u.Path
	if path != "" {
		path += "."
	}
	w.add(fmt.Sprintf(" unknown %s%d(wire %d)=", path, u.Num, u.Wire))
	if w.opt.Values {
		w.b = hex.AppendEncode(w.b, u.Raw)
		return
	}
	w.digest(u.Raw)
}
