// Package sshsig signs bytes with SSH keys and verifies such signatures, in the format of ssh-keygen -Y sign and -Y
// verify (PROTOCOL.sshsig of OpenSSH).
package sshsig

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/etcd-medic/etcd-medic/internal/regular"
)

const (
	magic   = "SSHSIG"
	version = 1
	block   = "SSH SIGNATURE"
	// maxFile bounds files of keys and signatures; keys have some kilobytes.
	maxFile = 1 << 20
)

// hashes are the hash algorithms of the format. Signatures are made with the first.
var hashes = map[string]func([]byte) []byte{
	"sha512": func(b []byte) []byte { s := sha512.Sum512(b); return s[:] },
	"sha256": func(b []byte) []byte { s := sha256.Sum256(b); return s[:] },
}

// ErrPassphrase is the error of a private key that is encrypted.
var ErrPassphrase = errors.New("the key has a passphrase")

// blob is the content between the lines of the armor, after the magic.
type blob struct {
	Version   uint32
	PublicKey []byte
	Namespace string
	Reserved  string
	Hash      string
	Signature []byte
}

// signed is what a signature covers, after the magic.
type signed struct {
	Namespace string
	Reserved  string
	Hash      string
	Sum       []byte
}

// Signer signs with one private key.
type Signer struct{ key ssh.Signer }

// ReadSigner reads an unencrypted private key from a file.
func ReadSigner(path string) (*Signer, error) {
	b, err := regular.ReadFile(path, maxFile)
	if err != nil {
		return nil, err
	}
	defer clear(b)
	key, err := ssh.ParsePrivateKey(b)
	if missing := new(ssh.PassphraseMissingError); errors.As(err, &missing) {
		return nil, ErrPassphrase
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not the private key of an SSH key: %w", path, err)
	}
	return &Signer{key}, nil
}

// Fingerprint names the key as ssh-keygen -l does.
func (s *Signer) Fingerprint() string { return ssh.FingerprintSHA256(s.key.PublicKey()) }

// Sign signs a message for one namespace, which keeps signatures of one purpose from being used for another.
func (s *Signer) Sign(namespace string, message []byte) ([]byte, error) {
	over := append([]byte(magic), ssh.Marshal(signed{Namespace: namespace, Hash: "sha512",
		Sum: hashes["sha512"](message)})...)
	sig, err := s.sign(over)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: block, Bytes: append([]byte(magic), ssh.Marshal(blob{Version: version,
		PublicKey: s.key.PublicKey().Marshal(), Namespace: namespace, Hash: "sha512",
		Signature: ssh.Marshal(sig)})...)}), nil
}

// sign never uses SHA-1, which RSA keys do by default and the format forbids.
func (s *Signer) sign(over []byte) (*ssh.Signature, error) {
	if with, ok := s.key.(ssh.AlgorithmSigner); ok && s.key.PublicKey().Type() == ssh.KeyAlgoRSA {
		return with.SignWithAlgorithm(rand.Reader, over, ssh.KeyAlgoRSASHA512)
	}
	return s.key.Sign(rand.Reader, over)
}

// Keys are public keys that are trusted.
type Keys []ssh.PublicKey

// ReadKeys reads public keys from a file: lines as in id_ed25519.pub, authorized_keys or allowed_signers. A line with
// options is refused, because they are not applied here.
func ReadKeys(path string) (Keys, error) {
	b, err := regular.ReadFile(path, maxFile)
	if err != nil {
		return nil, err
	}
	var keys Keys
	n := 0
	for line := range bytes.Lines(b) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		key, _, options, _, err := ssh.ParseAuthorizedKey(line)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: not a public key: %w", path, n, err)
		}
		// allowed_signers has principals where authorized_keys has options; a name or an address is not an option.
		if i := slices.IndexFunc(options, isOption); i >= 0 {
			return nil, fmt.Errorf("%s, line %d: options of keys are not applied here; name a file of keys without "+
				"them", path, n)
		}
		if _, ok := key.(*ssh.Certificate); ok {
			return nil, fmt.Errorf("%s, line %d: a certificate; a public key is wanted", path, n)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s has no public key", path)
	}
	return keys, nil
}

// isOption reports whether a word is an option of a key. A principal is an address, a pattern or a bare name.
func isOption(s string) bool {
	name := strings.ToLower(s)
	return strings.ContainsAny(s, "=\"") || strings.HasPrefix(name, "no-") ||
		slices.Contains([]string{"cert-authority", "restrict", "pty", "agent-forwarding", "port-forwarding",
			"x11-forwarding", "user-rc", "touch-required", "verify-required"}, name)
}

// Verify checks that one of the keys signed the message for the namespace, and returns that key's fingerprint.
func (k Keys) Verify(namespace string, message, armored []byte) (fingerprint string, err error) {
	p, _ := pem.Decode(armored)
	if p == nil || p.Type != block || !bytes.HasPrefix(p.Bytes, []byte(magic)) {
		return "", errors.New("not an SSH signature")
	}
	var s blob
	if err := ssh.Unmarshal(p.Bytes[len(magic):], &s); err != nil || s.Version != version {
		return "", errors.New("not an SSH signature of version 1")
	}
	hash := hashes[s.Hash]
	if hash == nil || s.Namespace != namespace {
		return "", fmt.Errorf("the signature is for %q with hash %q, not for %q", s.Namespace, s.Hash, namespace)
	}
	key, err := ssh.ParsePublicKey(s.PublicKey)
	if err != nil {
		return "", fmt.Errorf("the key of the signature: %w", err)
	}
	fingerprint = ssh.FingerprintSHA256(key)
	if !slices.ContainsFunc(k, func(o ssh.PublicKey) bool { return bytes.Equal(o.Marshal(), s.PublicKey) }) {
		return "", fmt.Errorf("the signature is of the key %s, which is not among those that are trusted", fingerprint)
	}
	var sig ssh.Signature
	if err := ssh.Unmarshal(s.Signature, &sig); err != nil {
		return "", errors.New("not an SSH signature")
	}
	if sig.Format == ssh.KeyAlgoRSA { // SHA-1
		return "", errors.New("the signature was made with SHA-1")
	}
	over := append([]byte(magic), ssh.Marshal(signed{s.Namespace, s.Reserved, s.Hash, hash(message)})...)
	if err := key.Verify(over, &sig); err != nil {
		return "", errors.New("the signature does not fit the content")
	}
	return fingerprint, nil
}
