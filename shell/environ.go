package shell

import (
	"os"
	"slices"
	"strings"
)

// HookEnviron is the environment for programs of the operator: the tool's own, without the password to the cluster.
func HookEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "ETCD_MEDIC_USER=") || strings.HasPrefix(e, "ETCD_MEDIC_PASSWORD")
	})
}
