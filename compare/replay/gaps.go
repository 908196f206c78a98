package replay

import (
	"math"
	"slices"
)

// gaps are spans of entries in order, as those that no log holds.
type gaps []Gap

// between is how many entries above from up to to are missing.
func (gs gaps) between(from, to uint64) (n int64) {
	for _, g := range gs {
		if low, high := max(g.From, from+1), min(g.To, to); low <= high {
			n += int64(min(high-low+1, math.MaxInt32)) //nolint:gosec // bounded
		}
	}
	return n
}

// lastUpTo is the last missing entry of the gaps that begin at an index or below, 0 if there is none.
func (gs gaps) lastUpTo(index uint64) (last uint64) {
	for _, g := range gs {
		if g.From <= index {
			last = max(last, g.To)
		}
	}
	return last
}

// has reports whether an entry is in one of them.
func (gs gaps) has(index uint64) bool {
	_, in := slices.BinarySearchFunc(gs, index, func(g Gap, index uint64) int {
		switch {
		case g.To < index:
			return -1
		case g.From > index:
			return 1
		}
		return 0
	})
	return in
}
