package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/refusal"
)

// TestNotSaved: a plan that cannot be written or read is an error.
func TestNotSaved(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none", "plan.yaml")
	if err := (&Plan{}).Save(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if err := syncDir(filepath.Dir(missing)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder is synced: %v", err)
	}
	if p, err := Load(missing); p != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no plan: %+v, %v", p, err)
	}
}

// TestNotDecoded: what is no plan, or one that was changed together with its digest, is refused.
func TestNotDecoded(t *testing.T) {
	head := fmt.Sprintf("schemaVersion: %d\n", SchemaVersion)
	p := &Plan{SchemaVersion: SchemaVersion}
	p.Lost.Mend = "rm -rf /"
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	sealed, err := p.YAML()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		head + "unknown: 1\n": "is not a repair plan that this program reads: json: unknown field",
		head + "1: 2\n":       "is not a repair plan that this program reads: json: unsupported type",
		string(sealed):        "the command that mends records is not what its list of arguments says",
	} {
		var r *refusal.Error
		p, err := decode("plan", []byte(text))
		if p != nil || !errors.As(err, &r) || !strings.Contains(r.Reason, want) {
			t.Errorf("%s: %+v, %v", want, p, err)
		}
	}
	var to any
	if err := decodeYAML([]byte("a: ["), &to); err == nil || to != nil {
		t.Errorf("%v, %v", to, err)
	}
}

// TestNoSignature: a signature that cannot be read is an error, and no plan is loaded.
func TestNoSignature(t *testing.T) {
	dir := t.TempDir()
	file, keys := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "keys")
	key := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n"
	p := &Plan{SchemaVersion: SchemaVersion}
	if err := errors.Join(p.Seal(), p.Save(file), os.WriteFile(keys, []byte(key), 0o600),
		os.Mkdir(SignaturePath(file), 0o700)); err != nil {
		t.Fatal(err)
	}
	got, by, err := LoadSigned(file, keys)
	var r *refusal.Error
	if got != nil || by != "" || err == nil || errors.As(err, &r) || !strings.Contains(err.Error(), "plan.yaml.sig") {
		t.Errorf("%+v by %q: %v", got, by, err)
	}
}
