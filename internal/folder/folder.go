// Package folder finds files in a folder by their names.
package folder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Match returns the paths of the entries of a folder whose names match a pattern, in the order of their names. Only the
// name is a pattern, as in [filepath.Match]: the folder may have any name, unlike in [filepath.Glob]. What is not a
// folder has no entries.
func Match(dir, pattern string) (paths []string, err error) {
	if st, err := os.Stat(dir); err != nil || !st.IsDir() { // no pipe is opened
		return nil, unlessAbsent(err)
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		ok, bad := filepath.Match(pattern, e.Name())
		if bad != nil {
			return nil, bad
		}
		if ok {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, unlessAbsent(err)
}

// unlessAbsent is an error other than that there is no such folder, also one that was removed meanwhile.
func unlessAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
