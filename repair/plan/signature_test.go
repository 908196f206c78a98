package plan_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// sshKey makes a pair of keys, the private one with a passphrase if there is one.
func sshKey(t *testing.T, passphrase string) (private, public string) {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := ssh.NewPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	private, public = filepath.Join(dir, "key"), filepath.Join(dir, "keys")
	if err := errors.Join(os.WriteFile(private, pem.EncodeToMemory(block), 0o600),
		os.WriteFile(public, ssh.MarshalAuthorizedKey(line), 0o600)); err != nil {
		t.Fatal(err)
	}
	return private, public
}

// TestSignedPlan: a plan is taken when one of the named keys has signed just these bytes.
func TestSignedPlan(t *testing.T) {
	private, public := sshKey(t, "")
	_, others := sshKey(t, "")
	file := filepath.Join(t.TempDir(), "plan.yaml")
	s, err := plan.Signer(private, file)
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{SchemaVersion: plan.SchemaVersion, Why: "because"}
	if err := errors.Join(p.Seal(), p.SaveSigned(file, s)); err != nil {
		t.Fatal(err)
	}
	got, fingerprint, err := plan.LoadSigned(file, public)
	if err != nil || got.Digest != p.Digest || !strings.HasPrefix(fingerprint, "SHA256:") {
		t.Errorf("%+v by %q: %v", got, fingerprint, err)
	}
	refused := func(what, reason string) {
		t.Helper()
		var r *refusal.Error
		if got, by, err := plan.LoadSigned(file, public); !errors.As(err, &r) || !strings.Contains(r.Reason, reason) ||
			got != nil || by != "" && reason != "does not hold" {
			t.Errorf("%s: %+v by %q: %v", what, got, by, err)
		}
	}
	own := public
	public = others
	refused("another key", "does not hold")
	public = own
	var r *refusal.Error
	if err := p.SaveSigned(file, s); !errors.As(err, &r) {
		t.Errorf("a plan is overwritten: %v", err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(b, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("another byte", "does not hold")
	if err := os.Remove(plan.SignaturePath(file)); err != nil {
		t.Fatal(err)
	}
	refused("no signature", "has no signature: there is no "+file+".sig")
	// The signature is written first: where the plan cannot be written, none is left.
	if err := p.SaveSigned(file, s); !errors.As(err, &r) {
		t.Errorf("a plan is overwritten: %v", err)
	}
	if _, err := os.Stat(plan.SignaturePath(file)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a signature without its plan is left: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for _, keys := range []string{public, public + "-missing"} {
		if _, _, err := plan.LoadSigned(file, keys); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("keys in %s: %v", keys, err)
		}
	}
	locked, _ := sshKey(t, "secret")
	if _, err := plan.Signer(locked, file); !errors.As(err, &r) || !strings.Contains(r.Reason, "has a passphrase") ||
		!strings.Contains(r.Hint, "ssh-keygen -Y sign -n etcd-medic-plan -f "+locked+" "+file) {
		t.Errorf("a key with a passphrase: %v", err)
	}
	if _, err := plan.Signer(private+"-missing", file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no key: %v", err)
	}
}
