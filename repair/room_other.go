//go:build !linux

package repair

// room is how many bytes are free below dir for this user; ok is false when the system does not tell.
func room(string) (free int64, ok bool) { return 0, false }
