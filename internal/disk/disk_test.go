package disk_test

import (
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/internal/disk"
)

func TestRoom(t *testing.T) {
	if free, ok := disk.Room(t.TempDir()); !ok || free <= 0 {
		t.Errorf("%d bytes free, told: %v", free, ok)
	}
	if _, ok := disk.Room(filepath.Join(t.TempDir(), "absent")); ok {
		t.Error("a folder that does not exist has room")
	}
}
