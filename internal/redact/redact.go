// Package redact shows values as digests that are of no use to whoever lacks the sources.
//
// The start of a plain hash gives short values away: whoever has a report hashes candidates until one fits. So digests
// are keyed. The key comes from the bytes of the sources and is never printed. Digests are equal where values are, and
// the same in every run on these sources.
package redact

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"sync"
)

// shown is how many bytes of a digest are printed: enough to compare values.
const shown = 8

// Key makes digests of values. It is safe for use by several goroutines. A nil Key stands for sources without a
// readable byte, and for facts that come from no source: its digests are equal where values are inside one process, and
// differ from run to run.
type Key struct{ macs sync.Pool }

// mac is one keyed hash with room for its sum.
type mac struct {
	hash.Hash
	sum [sha256.Size]byte
}

// New returns the key that a secret gives.
func New(secret []byte) *Key {
	secret = append([]byte(nil), secret...)
	k := &Key{}
	k.macs.New = func() any { return &mac{Hash: hmac.New(sha256.New, secret)} }
	return k
}

// ofProcess is what a nil Key uses.
var ofProcess = sync.OnceValue(func() *Key {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails: the program ends where the system has no randomness
	return New(secret)
})

// Append appends the digest of a value in hex.
func (k *Key) Append(dst, value []byte) []byte {
	if k == nil {
		k = ofProcess()
	}
	m, ok := k.macs.Get().(*mac)
	if !ok {
		return dst // the pool holds nothing else
	}
	m.Reset()
	m.Write(value)
	dst = hex.AppendEncode(dst, m.Sum(m.sum[:0])[:shown])
	k.macs.Put(m)
	return dst
}

// Digest returns the digest of a value in hex.
func (k *Key) Digest(value []byte) string { return string(k.Append(make([]byte, 0, 2*shown), value)) }
