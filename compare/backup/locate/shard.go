package locate

import (
	"fmt"
	"hash/fnv"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
)

// Shard is one of several equal parts of the backups to verify. Runs with the same Count and each Index cover
// everything once. The zero value is everything.
type Shard struct {
	// Index is 0 to Count-1.
	Index, Count int
	// Series keeps all backups of one series in one shard, to check the age of the newest.
	Series bool
}

// maxShards bounds Count.
const maxShards = 100_000

// ParseShard reads I/N, I from 0 to N-1 as the completion index of an Indexed Job counts.
func ParseShard(text string) (Shard, error) {
	first, second, ok := strings.Cut(text, "/")
	i, err1 := strconv.Atoi(first)
	n, err2 := strconv.Atoi(second)
	if !ok || err1 != nil || err2 != nil || n < 1 || n > maxShards || i < 0 || i >= n {
		return Shard{}, fmt.Errorf("%q: want I/N with I from 0 to N-1", text)
	}
	return Shard{Index: i, Count: n}, nil
}

// elsewhere reports whether a file belongs to another shard, and counts it.
func (f *finder) elsewhere(shown string) bool {
	if f.o.Shard.Count < 2 {
		return false
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(f.together(shown))) // never fails
	if h.Sum64()%uint64(f.o.Shard.Count) == uint64(f.o.Shard.Index) {
		return false
	}
	f.found.Elsewhere++
	return true
}

// together returns a string that is equal for all files that must be in one shard.
func (f *finder) together(shown string) string {
	switch {
	case f.o.Newest == NewestOfFolder:
		return f.given.Where
	case f.o.Newest == NewestOfSeries || f.o.Shard.Series:
		return seriesOf(shown)
	}
	if _, ok := chain.ParseName(shown); ok {
		return path.Dir(filepath.ToSlash(shown))
	}
	return shown
}
