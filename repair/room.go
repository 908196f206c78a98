package repair

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/etcd-medic/etcd-medic/internal/disk"
)

// syncTree flushes every file and folder below dir, for data dirs that servers wrote without fsync.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() && !d.Type().IsRegular() {
			return nil
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// Room is how many bytes are free below dir for this user; ok is false when the system does not tell.
func Room(dir string) (free int64, ok bool) { return disk.Room(dir) }

// Enough refuses with a *RefusedError when the file system of scratch has less room than need bytes.
func Enough(scratch string, need int64, room func(string) (int64, bool)) error {
	err := enough(scratch, need, room)
	var refused *RefusedError
	if errors.As(err, &refused) {
		refused.Hint = "free some, or name another folder with --scratch"
	}
	return err
}

// enough refuses when dir's file system has less room than need bytes.
func enough(dir string, need int64, roomOf func(string) (int64, bool)) error {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
	}
	free, ok := roomOf(dir)
	if ok && free < need {
		return refusedf("free some, or name another place with --work or -o",
			"%d MiB are needed below %s, %d MiB are free", need>>20, dir, free>>20)
	}
	return nil
}
