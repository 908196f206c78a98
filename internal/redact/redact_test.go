package redact_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"testing"

	"github.com/etcd-medic/etcd-medic/internal/redact"
)

// TestDigest: equal values have one digest under one key, other values and other keys another, and none is that of a
// plain hash.
func TestDigest(t *testing.T) {
	a, again, other := redact.New([]byte("one")), redact.New([]byte("one")), redact.New([]byte("two"))
	d := a.Digest([]byte("secret"))
	if len(d) != 16 || d != again.Digest([]byte("secret")) || d != string(a.Append(nil, []byte("secret"))) {
		t.Errorf("digest %q, then %q", d, again.Digest([]byte("secret")))
	}
	if d == a.Digest([]byte("secreT")) || d == other.Digest([]byte("secret")) || d == a.Digest(nil) {
		t.Error("another value or another key gives the same digest")
	}
	plain := sha256.Sum256([]byte("secret"))
	if strings.HasPrefix(hex.EncodeToString(plain[:]), d) {
		t.Error("the digest is that of a plain hash")
	}
}

// TestNilKey: without sources digests still tell values apart, and give nothing away.
func TestNilKey(t *testing.T) {
	var k *redact.Key
	plain := sha256.Sum256([]byte("v"))
	if d := k.Digest([]byte("v")); d != k.Digest([]byte("v")) || d == k.Digest([]byte("w")) ||
		strings.HasPrefix(hex.EncodeToString(plain[:]), d) {
		t.Errorf("digest %q", d)
	}
}

// TestSecretIsCopied: who gave the secret may use its bytes for something else.
func TestSecretIsCopied(t *testing.T) {
	secret := []byte("one")
	k := redact.New(secret)
	want := redact.New([]byte("one")).Digest([]byte("v"))
	secret[0] = 'x'
	if got := k.Digest([]byte("v")); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

// TestManyAtOnce: goroutines share a key.
func TestManyAtOnce(t *testing.T) {
	k := redact.New([]byte("one"))
	want := k.Digest([]byte("v"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				if got := k.Digest([]byte("v")); got != want {
					t.Errorf("digest %s, want %s", got, want)
					return
				}
			}
		})
	}
	wg.Wait()
}
