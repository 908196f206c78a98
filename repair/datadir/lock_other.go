//go:build !unix

package datadir

import "os"

// tryLock can tell nothing where there is no flock: two runs on one new path are not kept apart there.
func tryLock(*os.File) (held bool, err error) { return false, nil }

func unlock(f *os.File) {
	if f != nil {
		_ = f.Close()
	}
}
