package cli

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// signingKey makes a key pair, with a passphrase if that is not "".
func signingKey(t *testing.T, passphrase string) (private, public string) {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sshPub, err := ssh.NewPublicKey(pub)
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
	private = filepath.Join(t.TempDir(), "id_ed25519")
	public = private + ".pub"
	writeFile(t, private, pem.EncodeToMemory(block))
	writeFile(t, public, ssh.MarshalAuthorizedKey(sshPub))
	return private, public
}

func writeFile(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// ran runs a command and returns its exit code and what it said on stderr.
func ran(t *testing.T, args ...string) (code int, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(t.Context(), args, &Streams{Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
	return code, errs.String()
}

// TestSignedPlan: --verify-with lets a plan through that one of its keys signed, and no other: not one that was changed
// and sealed with a new digest, not one of another key, and none without a signature.
func TestSignedPlan(t *testing.T) {
	dir, file := evidencetest.Incident(t, "a-auth-revision-replay"), filepath.Join(t.TempDir(), "plan.yaml")
	private, public := signingKey(t, "")
	_, stranger := signingKey(t, "")
	if code, said := ran(t, "repair", "plan", dir, "-o", file, "--sign-with", private); code != ExitDone {
		t.Fatalf("exit code %d: %s", code, said)
	}
	// A server that is not there is the first thing to fail once the plan is accepted.
	const accepted = "no such etcd"
	server := filepath.Join(t.TempDir(), accepted)
	verified := func(keys string) string {
		t.Helper()
		code, said := 0, ""
		for _, command := range [][]string{{"rehearse", file}, {"apply", file, "--mode", "clone", "-o",
			filepath.Join(t.TempDir(), "new")}} {
			if code, said = ran(t, append(append([]string{"repair"}, command...), "--verify-with", keys,
				"--etcd-binary", server)...); code == ExitDone {
				t.Errorf("%s: exit code 0", command[0])
			}
			if strings.Contains(said, accepted) == strings.Contains(said, "signature") {
				t.Errorf("%s says %s", command[0], said)
			}
		}
		if !strings.Contains(said, accepted) && code != ExitRefused {
			t.Errorf("exit code %d: %s", code, said)
		}
		return said
	}
	if said := verified(public); !strings.Contains(said, accepted) {
		t.Errorf("the signed plan: %s", said)
	}
	if said := verified(stranger); !strings.Contains(said, "not among those that are trusted") {
		t.Errorf("another key: %s", said)
	}
	p, err := plan.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	p.Why += " (changed)"
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	changed, err := p.YAML()
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, changed)
	if said := verified(public); !strings.Contains(said, "does not fit the content") {
		t.Errorf("a changed plan: %s", said)
	}
	if err := os.Remove(plan.SignaturePath(file)); err != nil {
		t.Fatal(err)
	}
	if said := verified(public); !strings.Contains(said, "has no signature") {
		t.Errorf("no signature: %s", said)
	}
}

// TestSignPlanRefused: a key with a passphrase, and a signature that is there already, end before a plan is written.
// Where a plan cannot be written, no signature is left.
func TestSignPlanRefused(t *testing.T) {
	dir, to := evidencetest.Incident(t, "a-auth-revision-replay"), t.TempDir()
	file := filepath.Join(to, "plan.yaml")
	encrypted, public := signingKey(t, "secret")
	code, said := ran(t, "repair", "plan", dir, "-o", file, "--sign-with", encrypted)
	if code != ExitRefused || !strings.Contains(said, "ssh-keygen -Y sign -n etcd-medic-plan") {
		t.Errorf("a key with a passphrase: exit code %d: %s", code, said)
	}
	if code, said = ran(t, "repair", "plan", dir, "-o", file, "--sign-with", public); code != ExitError {
		t.Errorf("a public key: exit code %d: %s", code, said)
	}
	private, _ := signingKey(t, "")
	writeFile(t, plan.SignaturePath(file), nil)
	if code, said = ran(t, "repair", "plan", dir, "-o", file, "--sign-with", private); code != ExitRefused {
		t.Errorf("a signature is there: exit code %d: %s", code, said)
	}
	if left, err := filepath.Glob(filepath.Join(to, "*.yaml")); err != nil || len(left) > 0 {
		t.Errorf("%q was written, %v", left, err)
	}
	taken := filepath.Join(to, "taken.yaml")
	writeFile(t, taken, []byte("mine"))
	if code, said = ran(t, "repair", "plan", dir, "-o", taken, "--sign-with", private); code != ExitRefused {
		t.Errorf("a plan is there: exit code %d: %s", code, said)
	}
	if _, err := os.Lstat(plan.SignaturePath(taken)); err == nil {
		t.Error("the signature of a plan that was not written is left")
	}
}
