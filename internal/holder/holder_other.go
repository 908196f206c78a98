//go:build !linux

package holder

// Of returns ErrUnknown.
func Of(...string) ([]Lock, error) { return nil, ErrUnknown }
