package apply

import "unsafe"

// names keeps the names of keys in large chunks: one object for many.
type names struct {
	// chunk is in use up to its length. held are those that are not in an area: keys in an area do not keep them.
	chunk []byte
	held  [][]byte
	// live is the length of the names in use, taken that of all so far, in bytes.
	live, taken int
}

const (
	// nameChunk is the size of a chunk, and fewNames what is never worth a compaction, in bytes.
	nameChunk = 32 << 10
	fewNames  = 1 << 20
)

// keep returns a copy of a name, and the memory in bytes that it took from the room for it.
func (n *names) keep(name string, r *Room) (kept string, took int) {
	if len(name) == 0 {
		return "", 0
	}
	if len(n.chunk)+len(name) > cap(n.chunk) {
		size := max(nameChunk, len(name))
		if p := r.piece(size); p != nil {
			n.chunk = p[:0]
		} else {
			n.chunk, took = make([]byte, 0, size), size
			n.held = append(n.held, n.chunk)
		}
	}
	at := len(n.chunk)
	n.chunk = append(n.chunk, name...)
	n.live, n.taken = n.live+len(name), n.taken+len(name)
	return unsafe.String(&n.chunk[at], len(name)), took //nolint:gosec // what is written later goes after it
}

// sparse reports whether most of the names are not in use any more. A single name keeps the chunk that it is in.
func (n *names) sparse() bool { return n.taken > fewNames && n.taken > 3*n.live }
