package explain_test

import (
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/explain"
)

func TestAlike(t *testing.T) {
	codes := []string{"A01", "wal-crc", "wal-torn-tail", "slow-disk", "P10"}
	for ask, want := range map[string][]string{
		"wal-crd":       {"wal-crc"},
		"wal-tron-tail": {"wal-torn-tail"},
		"Slow_Dsik":     {"slow-disk"},
		"P1":            nil,
		"A10":           {"A01", "P10"},
		"lease":         nil,
	} {
		if got := explain.Alike(ask, codes); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", ask, got, want)
		}
	}
}
