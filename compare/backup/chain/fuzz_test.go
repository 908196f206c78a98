package chain_test

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
)

// FuzzParseName reads any text as the name of a snapshot in a chain of backups: what is one names the file, and its
// revisions are in order.
func FuzzParseName(f *testing.F) {
	for _, s := range []string{"Full-00000000-00000010-1700000000",
		"v2/Backup-1700000000/Incr-00000011-00000020-1700000100.gz", "Incr-20-10-1",
		"Full-00000000-99999999999999999999-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		s, ok := chain.ParseName(name)
		if ok && (s.Last < s.Start || s.Start < 0 || s.Path != name || s.Name() == "") {
			t.Errorf("%q: %+v", name, s)
		}
	})
}
