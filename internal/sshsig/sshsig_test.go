package sshsig_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/etcd-medic/etcd-medic/internal/sshsig"
)

const namespace = "test-of-signatures"

// newKeys makes a key of each kind, by its name.
func newKeys(t testing.TB) map[string]any {
	t.Helper()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{"ed25519": &ed, "ecdsa": ec, "rsa": rs}
}

// write writes a private key, and its public one as a line of allowed_signers.
func write(t testing.TB, key any) (private, public string) {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "made by a test")
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	private, public = filepath.Join(dir, "key"), filepath.Join(dir, "allowed")
	put(t, private, pem.EncodeToMemory(block))
	put(t, public, append([]byte("# who may sign\n\nops@example.com "), ssh.MarshalAuthorizedKey(s.PublicKey())...))
	return private, public
}

func put(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSignatures: what is signed verifies, and with another content, namespace or key it does not.
func TestSignatures(t *testing.T) {
	_, stranger := write(t, newKeys(t)["ed25519"])
	for name, key := range newKeys(t) {
		t.Run(name, func(t *testing.T) {
			private, public := write(t, key)
			signer, err := sshsig.ReadSigner(private)
			if err != nil {
				t.Fatal(err)
			}
			sig, err := signer.Sign(namespace, []byte("content"))
			if err != nil {
				t.Fatal(err)
			}
			verify := func(keys, space, content string, sig []byte) error {
				k, err := sshsig.ReadKeys(keys)
				if err != nil {
					t.Fatal(err)
				}
				who, err := k.Verify(space, []byte(content), sig)
				if err == nil && who != signer.Fingerprint() {
					t.Errorf("signed by %s, not %s", signer.Fingerprint(), who)
				}
				return err
			}
			if err := verify(public, namespace, "content", sig); err != nil {
				t.Error(err)
			}
			for what, err := range map[string]error{"content": verify(public, namespace, "Content", sig),
				"namespace": verify(public, "file", "content", sig), "key": verify(stranger, namespace, "content", sig),
				"nothing": verify(public, namespace, "content", nil)} {
				if err == nil {
					t.Errorf("another %s: accepted", what)
				}
			}
			p, _ := pem.Decode(sig)
			for i := range p.Bytes {
				b := bytes.Clone(p.Bytes)
				b[i] ^= 1
				if verify(public, namespace, "content", pem.EncodeToMemory(&pem.Block{Type: p.Type, Bytes: b})) == nil {
					t.Errorf("byte %d flipped: accepted", i)
				}
			}
		})
	}
}

// TestAgainstOpenSSH: ssh-keygen verifies what is signed here, and what it signs verifies here.
func TestAgainstOpenSSH(t *testing.T) {
	content := []byte("content\n")
	for name, key := range newKeys(t) {
		t.Run(name, func(t *testing.T) {
			private, public := write(t, key)
			file := filepath.Join(t.TempDir(), "content")
			put(t, file, content)
			keygen(t, nil, "-Y", "sign", "-n", namespace, "-f", private, file)
			sig, err := os.ReadFile(file + ".sig")
			if err != nil {
				t.Fatal(err)
			}
			keys, err := sshsig.ReadKeys(public)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := keys.Verify(namespace, content, sig); err != nil {
				t.Errorf("a signature of ssh-keygen: %v", err)
			}
			signer, err := sshsig.ReadSigner(private)
			if err != nil {
				t.Fatal(err)
			}
			if sig, err = signer.Sign(namespace, content); err != nil {
				t.Fatal(err)
			}
			put(t, file+".ours", sig)
			said := keygen(t, content, "-Y", "verify", "-n", namespace, "-f", public, "-I", "ops@example.com", "-s",
				file+".ours")
			if !strings.Contains(said, signer.Fingerprint()) {
				t.Errorf("ssh-keygen says %s", said)
			}
		})
	}
}

func keygen(t *testing.T, in []byte, args ...string) string {
	t.Helper()
	cmd := exec.Command("ssh-keygen", args...)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("ssh-keygen %q: %v: %s", args, err, out)
	}
	return string(out)
}

// TestKeysThatAreRefused: no line of a file of keys is passed over, and no option of one is forgotten.
func TestKeysThatAreRefused(t *testing.T) {
	_, public := write(t, newKeys(t)["ed25519"])
	b, err := os.ReadFile(public)
	if err != nil {
		t.Fatal(err)
	}
	_, plain, _ := strings.Cut(string(b), "ops@example.com ")
	file := filepath.Join(t.TempDir(), "keys")
	for _, good := range []string{plain, "ops@example.com " + plain, "a,b@c " + plain, plain + plain} {
		put(t, file, []byte(good))
		if k, err := sshsig.ReadKeys(file); err != nil || len(k) != strings.Count(good, "\n") {
			t.Errorf("%q: %d keys, %v", good, len(k), err)
		}
	}
	for _, bad := range []string{"", "# none\n", "words\n" + plain, `namespaces="git" ` + plain,
		`ops namespaces="git" ` + plain, `ops,valid-before="20200101" ` + plain, "cert-authority " + plain,
		"ops cert-authority " + plain, "restrict " + plain} {
		put(t, file, []byte(bad))
		if k, err := sshsig.ReadKeys(file); err == nil {
			t.Errorf("%q: %d keys", bad, len(k))
		}
	}
}

// TestPrivateKeysThatAreRefused: a public key and noise are none, and an encrypted key is told apart.
func TestPrivateKeysThatAreRefused(t *testing.T) {
	key := newKeys(t)["ed25519"]
	_, public := write(t, key)
	if _, err := sshsig.ReadSigner(public); err == nil || errors.Is(err, sshsig.ErrPassphrase) {
		t.Errorf("a public key: %v", err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key")
	put(t, file, pem.EncodeToMemory(block))
	if _, err := sshsig.ReadSigner(file); !errors.Is(err, sshsig.ErrPassphrase) {
		t.Errorf("an encrypted key: %v", err)
	}
}

// FuzzVerify: no bytes are a signature of a key that signed nothing, and none makes a panic.
func FuzzVerify(f *testing.F) {
	private, public := write(f, newKeys(f)["ed25519"])
	signer, err := sshsig.ReadSigner(private)
	if err != nil {
		f.Fatal(err)
	}
	keys, err := sshsig.ReadKeys(public)
	if err != nil {
		f.Fatal(err)
	}
	sig, err := signer.Sign(namespace, []byte("other content"))
	if err != nil {
		f.Fatal(err)
	}
	p, _ := pem.Decode(sig)
	f.Add(p.Bytes)
	f.Fuzz(func(t *testing.T, b []byte) {
		armored := pem.EncodeToMemory(&pem.Block{Type: p.Type, Bytes: b})
		if _, err := keys.Verify(namespace, []byte("content"), armored); err == nil {
			t.Errorf("%q is a signature", b)
		}
	})
}

// FuzzReadKeys reads any bytes as a file of trusted keys: never a panic, no error without the file's name, and no more
// keys than lines.
func FuzzReadKeys(f *testing.F) {
	for _, name := range []string{"ed25519", "rsa"} {
		if key, ok := newKeys(f)[name]; ok {
			_, public := write(f, key)
			b, err := os.ReadFile(public)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
			f.Add(append([]byte("# comment\n\nfrom=\"10.0.0.1\" "), b...))
		}
	}
	path := filepath.Join(f.TempDir(), "keys") // one per worker
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		keys, err := sshsig.ReadKeys(path)
		switch {
		case err == nil && (len(keys) == 0 || len(keys) > bytes.Count(b, []byte("\n"))+1):
			t.Errorf("%d keys", len(keys))
		case err != nil && !strings.Contains(err.Error(), path):
			t.Error(err)
		}
	})
}
