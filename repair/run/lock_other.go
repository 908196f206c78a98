//go:build !unix

package run

import (
	"errors"
	"io/fs"
	"os"

	"github.com/etcd-medic/etcd-medic/refusal"
)

// lock keeps a second process from working with the same plan. Without flock, the file that a killed process leaves has
// to be removed by hand.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, refusal.New("if none runs, remove the file", "another etcd-medic works with this plan (%s exists)",
			path)
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close(); _ = os.Remove(path) }, nil
}

// locked reports whether another process holds the lock now.
func locked(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
