package scratch_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/internal/scratch"
)

func TestRemove(t *testing.T) {
	parent := t.TempDir()
	var made []string
	for range 3 {
		dir, err := scratch.Dir(parent, "test-")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		made = append(made, dir)
	}
	if err := scratch.Remove(parent); err != nil {
		t.Fatal(err)
	}
	if err := scratch.Remove(made[0]); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(parent)
	if err != nil || len(left) != 2 {
		t.Fatalf("%d folders left of 2: what Dir did not make is not removed: %v", len(left), err)
	}
	if err := scratch.RemoveAll(); err != nil {
		t.Fatal(err)
	}
	if left, err = os.ReadDir(parent); err != nil || len(left) != 0 {
		t.Fatalf("%d folders left: %v", len(left), err)
	}
}

func TestBudget(t *testing.T) {
	b := scratch.Budget(t.TempDir())
	if b <= 0 || b == 1<<63-1 {
		t.Errorf("budget of %d bytes", b)
	}
	if got := scratch.Budget(filepath.Join(t.TempDir(), "absent")); got != 1<<63-1 {
		t.Errorf("where the system does not tell: %d", got)
	}
}
