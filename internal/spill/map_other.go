//go:build !unix

package spill

import "os"

func mapPart(*os.File, int64, int) ([]byte, error) { return nil, errNoFile }

// backed reports whether the files of a folder can be used as memory.
func backed(string) bool { return false }
