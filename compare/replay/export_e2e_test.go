//go:build e2e

package replay

// Unclear reports whether the rules leave open what a user may do, whatever the release.
func (m *Machine) Unclear(user string) bool { return m.s.Auth.Unclear(user) }
