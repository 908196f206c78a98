// Package redact shows values as digests that reveal nothing without the sources.
//
// A plain hash reveals short values, since a reader can hash candidates until one fits. So the digests are keyed. The
// key is derived from the bytes of the sources and never printed. Equal values have equal digests, also in other runs
// on the same sources.
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

// Key computes digests of values. It is safe for concurrent use. A nil Key is for sources without a readable byte and
// for facts without a source. Its digests are comparable only within one process.
type Key struct{ macs sync.Pool }

// mac is one keyed hash with room for its sum.
type mac struct {
	hash.Hash
	sum [sha256.Size]byte
}

// New returns the key derived from a secret.
func New(secret []byte) *Key {
	secret = append([]byte(nil), secret...)
	k := &Key{}
	k.macs.New = func() any { return &mac{Hash: hmac.New(sha256.New, secret)} }
	return k
}

// ofProcess returns the key used by a nil Key.
var ofProcess = sync.OnceValue(func() *Key {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails: Go ends the program if the system has no randomness
	return New(secret)
})

// Append appends the digest of a value in hex.
func (k *Key) Append(dst, value []byte) []byte {
	if k == nil {
		k = ofProcess()
	}
	m, ok := k.macs.Get().(*mac)
	if !ok {
		return dst // the pool contains nothing else
	}
	m.Reset()
	m.Write(value)
	dst = hex.AppendEncode(dst, m.Sum(m.sum[:0])[:shown])
	k.macs.Put(m)
	return dst
}

// Digest returns the digest of a value in hex.
func (k *Key) Digest(value []byte) string { return string(k.Append(make([]byte, 0, 2*shown), value)) }
