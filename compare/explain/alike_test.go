package explain_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/explain"
)

// TestAlike: the codes that are nearest to a mistyped one are offered.
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

// TestAlikeIsBounded: too short or too long a text has no code alike, at most three codes are offered, and a longer
// text may have more wrong letters.
func TestAlikeIsBounded(t *testing.T) {
	long := strings.Repeat("x", 64)
	codes := []string{"ab1", "ab2", "ab3", "ab4", "abcdefghijkl", "abcdefghijk", long}
	for ask, want := range map[string][]string{
		"ab": nil, "ab9": {"ab1", "ab2", "ab3"}, "zzz": nil, "abcdefghi__l": {"abcdefghijkl"},
		"abcdefgh__l": nil, long: {long}, long + "x": nil,
	} {
		if got := explain.Alike(ask, codes); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", ask, got, want)
		}
	}
	if got := explain.Alike(" AB1\t", codes); !slices.Equal(got, []string{"ab1"}) {
		t.Errorf("in capitals, with spaces: %v", got)
	}
}

// TestDistance: letters that are added, removed, replaced or swapped with the next count once each.
func TestDistance(t *testing.T) {
	for pair, want := range map[[2]string]int{
		{"", ""}: 0, {"", "abc"}: 3, {"abc", ""}: 3, {"abc", "abc"}: 0, {"abc", "abd"}: 1, {"abc", "xbc"}: 1,
		{"abc", "abcd"}: 1, {"abcd", "acd"}: 1, {"ab", "ba"}: 1, {"abc", "acb"}: 1, {"abcd", "badc"}: 2,
		{"abc", "cab"}: 2, {"abc", "xyz"}: 3, {"xab", "xba"}: 1, {"aab", "aba"}: 1, {"kitten", "sitting"}: 3,
	} {
		if got := explain.Distance(pair[0], pair[1]); got != want {
			t.Errorf("%q: %d, want %d", pair, got, want)
		}
	}
}
