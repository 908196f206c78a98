// Package hooks prepares programs of the operator, which live repairs and watch run.
package hooks

import (
	"os"
	"slices"
	"strings"
)

// Environ is the environment for programs of the operator: the tool's own, without the password to the cluster.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "ETCD_MEDIC_USER=") || strings.HasPrefix(e, "ETCD_MEDIC_PASSWORD")
	})
}
