//go:build !unix

package datadir

import "os"

// tryLock does nothing without flock: there, two runs on one new path are not detected.
func tryLock(*os.File) (held bool, err error) { return false, nil }

func unlock(f *os.File) {
	if f != nil {
		_ = f.Close()
	}
}
