package bundle

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// LogCounts are counts of the entries of one log.
type LogCounts struct {
	Total dumplog.Count `json:"total"`
	// Kinds, Terms and Prefixes are sorted, largest first. Prefixes are those of written keys.
	Kinds    []Counted `json:"kinds"`
	Terms    []Counted `json:"terms"`
	Prefixes []Counted `json:"prefixes"`
	// Sizes counts payloads by size: class i has less than 2^i and at least 2^(i-1) bytes.
	Sizes []int64 `json:"sizes"`
	// Largest is the largest payload, LargestIndex its entry.
	Largest      int64  `json:"largest"`
	LargestIndex uint64 `json:"largestIndex"`
	Undecoded    int64  `json:"undecoded"`
}

// Counted is one name with its count.
type Counted struct {
	Name string `json:"name"`
	dumplog.Count
}

// maxCounted bounds each list.
const maxCounted = 1000

// CountLog counts the log of a member, nil if it has none. prefix returns the replacement of a key prefix.
func CountLog(ctx context.Context, m *evidence.Member, prefix func(string) string) (*LogCounts, error) {
	if !m.HasWAL() {
		return nil, nil
	}
	s, _, err := m.WAL.Log.Stats(ctx, nil)
	if err != nil {
		return nil, err
	}
	out := &LogCounts{Total: s.Total, Largest: s.Largest, LargestIndex: s.LargestIndex, Undecoded: s.Undecoded,
		Sizes: s.Sizes[:]}
	out.Kinds = counted(s.Kinds, func(k dumplog.Kind) string { return string(k) })
	out.Terms = counted(s.Terms, func(t uint64) string { return strconv.FormatUint(t, 10) })
	out.Prefixes = counted(s.Prefixes, func(p string) string {
		if p == dumplog.OtherPrefix {
			return p
		}
		return prefix(p)
	})
	return out, nil
}

func counted[K comparable](from map[K]*dumplog.Count, name func(K) string) []Counted {
	out := []Counted{}
	for k, c := range from {
		out = append(out, Counted{Name: name(k), Count: *c})
	}
	slices.SortFunc(out, func(a, b Counted) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes),
			cmp.Compare(a.Name, b.Name))
	})
	return out[:min(len(out), maxCounted)]
}
