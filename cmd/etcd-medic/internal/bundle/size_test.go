package bundle_test

import (
	"bytes"
	"testing"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/bundle"
	"github.com/etcd-medic/etcd-medic/compare/dossier/redact"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// sizeOf returns the bytes of the bundle of a generated cluster.
func sizeOf(t *testing.T, s clustertest.Synth) float64 {
	t.Helper()
	root := t.TempDir()
	s.Write(t, root)
	files, _ := makeBundle(t, root, redact.Hashed)
	var b bytes.Buffer
	if err := bundle.Write(&b, files); err != nil {
		t.Fatal(err)
	}
	return float64(b.Len())
}

// TestSizeIsBounded: a bundle hardly grows with entries, keys and values, and with rows that differ by less than 50
// bytes each. Not more than rowLimit of those are listed, so that it stays below 6 MB, whatever the database.
func TestSizeIsBounded(t *testing.T) {
	const rowLimit = 100_000
	// More entries than a report lists one by one.
	few, many := clustertest.Synth{Members: 1, Entries: 21_000, Keys: 1000, Value: 16},
		clustertest.Synth{Members: 1, Entries: 42_000, Keys: 4000, Value: 16}
	small, large := sizeOf(t, few), sizeOf(t, many)
	if grown := (large - small) / float64(many.Entries-few.Entries); grown > 0.2 {
		t.Errorf("%.0f bytes for %d entries and %.0f for %d", small, few.Entries, large, many.Entries)
	}
	few = clustertest.Synth{Members: 2, Entries: 1000, Keys: 500, Value: 16}
	many = few
	many.Value = 4000
	if small, large := sizeOf(t, few), sizeOf(t, many); large > small*1.1 {
		t.Errorf("%.0f bytes with values of %d bytes, %.0f with values of %d", small, few.Value, large, many.Value)
	}
	// One member never executed an early entry: all later keys differ in their revisions.
	lost := map[int]map[int]bool{1: {10: true}}
	few = clustertest.Synth{Members: 2, Entries: 3000, Keys: 1500, Value: 16, Purged: 2500, Skip: lost}
	many = clustertest.Synth{Members: 2, Entries: 9000, Keys: 7500, Value: 16, Purged: 8500, Skip: lost}
	small, large = sizeOf(t, few), sizeOf(t, many)
	row := (large - small) / float64(many.Keys-few.Keys)
	if row < 4 || row > 50 || small+row*rowLimit > 6e6 {
		t.Errorf("%.0f bytes for %d rows and %.0f for %d: %.1f for each", small, few.Keys, large, many.Keys, row)
	}
	t.Logf("%.0f bytes with %d rows that differ, %.1f for each further row", small, few.Keys, row)
}
