package evidence

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// LogSums are sums over the entries of a log by blocks of indexes. If two logs have the same sum and number of entries
// in a block, their entries there are equal in index, term, type and data. Overwritten entries are included, so the
// sums of a log with overwrites are useless.
//
// A sum adds 64-bit hashes with seeds that are known only to this process. Two different blocks have the same sum with
// a probability of 1 in 10^19, even in crafted files.
type LogSums struct {
	// width is the number of indexes in a block as a power of two. It grows with the log to bound the number of blocks.
	width  uint
	blocks map[uint64]BlockSum
	// cur is the block of the last entries, not yet in blocks.
	cur BlockSum
	at  uint64
}

// BlockSum is the sum over one block; comparable with ==.
type BlockSum struct {
	sum, entries uint64
}

// Entries returns the number of entries in the block.
func (b BlockSum) Entries() uint64 { return b.entries }

const (
	firstWidth = 4
	maxBlocks  = 1 << 12
)

var dataSeed, entrySeed = maphash.MakeSeed(), maphash.MakeSeed()

// NewLogSums returns the sums of an empty log.
func NewLogSums() *LogSums { return &LogSums{width: firstWidth, blocks: map[uint64]BlockSum{}} }

func (b *BlockSum) add(o BlockSum) {
	b.sum += o.sum
	b.entries += o.entries
}

// Note adds an entry.
func (l *LogSums) Note(e *dumplog.Entry) {
	var head [25]byte
	binary.LittleEndian.PutUint64(head[:], e.Index)
	binary.LittleEndian.PutUint64(head[8:], e.Term)
	head[16] = byte(e.Type)
	binary.LittleEndian.PutUint64(head[17:], maphash.Bytes(dataSeed, e.Data))
	if at := e.Index >> l.width; at != l.at {
		l.flush()
		l.at = e.Index >> l.width
	}
	l.cur.add(BlockSum{maphash.Bytes(entrySeed, head[:]), 1})
}

// flush adds the block of the last entries to blocks.
func (l *LogSums) flush() {
	if l.cur.entries > 0 {
		l.put(l.at, l.cur)
		l.cur = BlockSum{}
		l.bound()
	}
}

func (l *LogSums) put(block uint64, o BlockSum) {
	b := l.blocks[block]
	b.add(o)
	l.blocks[block] = b
}

// bound doubles the width until there are few enough blocks.
func (l *LogSums) bound() {
	for len(l.blocks) > maxBlocks {
		l.widen(l.width + 1)
	}
}

func (l *LogSums) widen(width uint) {
	old := l.blocks
	l.blocks = make(map[uint64]BlockSum, len(old)/2)
	for i, b := range old {
		l.put(i>>(width-l.width), b)
	}
	l.width = width
}

// join adds the sums of another part of the log.
func (l *LogSums) join(o *LogSums) {
	o.flush()
	if o.width < l.width {
		o.widen(l.width)
	}
	if l.width < o.width {
		l.widen(o.width)
	}
	for i, b := range o.blocks {
		l.put(i, b)
	}
	l.bound()
}

// CommonWidth gives the blocks of several logs the same width and returns it. Block n contains the indexes from
// n<<width on.
func CommonWidth(logs []*LogSums) (width uint) {
	for _, l := range logs {
		l.flush()
		width = max(width, l.width)
	}
	for _, l := range logs {
		if l.width < width {
			l.widen(width)
		}
	}
	return width
}

// Blocks returns the sums by block.
func (l *LogSums) Blocks() map[uint64]BlockSum { return l.blocks }
