package evidence

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// LogSums are sums over the entries of a log by blocks of indexes. Logs with the same sum and number of entries in a
// block hold the same entries there, by index, term, type and data. Overwritten entries are counted as well, so the
// sums of a log that has some say nothing.
//
// A sum adds up hashes of 64 bits, made with seeds that no file can know and that never leave the process: that two
// blocks with other entries have one sum happens once in 10^19 times, whoever wrote them.
type LogSums struct {
	// width is the number of indexes in a block as a power of two. It grows with the log, so that the number of blocks
	// does not.
	width  uint
	blocks map[uint64]BlockSum
	// cur is the block of the last entries, not yet among blocks.
	cur BlockSum
	at  uint64
}

// BlockSum is the sum over one block; comparable with ==.
type BlockSum struct {
	sum, entries uint64
}

// Entries is the number of entries in the block.
func (b BlockSum) Entries() uint64 { return b.entries }

const (
	firstWidth = 8
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

// flush puts the block of the last entries among the others.
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

// bound makes blocks wider until there are few enough.
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

// CommonWidth makes the blocks of several logs equally wide. It returns the width: block n holds the indexes from
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

// Blocks are the sums by block.
func (l *LogSums) Blocks() map[uint64]BlockSum { return l.blocks }
