package apply

import "strings"

// names keeps the names of keys in large chunks: one object for many.
type names struct {
	chunk strings.Builder
	// live is the length of the names in use, taken that of all so far, in bytes.
	live, taken int
}

const (
	// nameChunk is the size of a chunk, and fewNames what is never worth a compaction, in bytes.
	nameChunk = 32 << 10
	fewNames  = 1 << 20
)

// keep returns a copy of a name, and the memory in bytes that it took for it.
func (n *names) keep(name string) (kept string, took int) {
	if n.chunk.Len()+len(name) > n.chunk.Cap() {
		n.chunk.Reset()
		n.chunk.Grow(max(nameChunk, len(name)))
		took = n.chunk.Cap()
	}
	at := n.chunk.Len()
	n.chunk.WriteString(name)
	n.live, n.taken = n.live+len(name), n.taken+len(name)
	return n.chunk.String()[at:], took // what is written later goes after it
}

// sparse reports whether most of the names are not in use any more. A single name keeps the chunk that it is in.
func (n *names) sparse() bool { return n.taken > fewNames && n.taken > 3*n.live }
