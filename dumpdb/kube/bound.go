package kube

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/internal/wire"
)

const (
	// maxSize is far above what an apiserver writes: etcd refuses requests above 1.5 MiB by default, and above a few
	// MiB with any setting in use.
	maxSize = 16 << 20
	// maxFields bounds what a decoder allocates. The largest struct of k8s.io/api that one empty field creates is about
	// 1.5 KiB. Real objects have fewer than about ten thousand fields.
	maxFields = 1 << 16
	// maxDepth bounds JSON, and nested messages that are counted. The built-in kinds have fewer than 20 levels.
	maxDepth = 200
)

// bounded refuses a message for which a decoder would allocate far more memory than its size suggests.
func bounded(raw []byte) error {
	if len(raw) > maxSize {
		return fmt.Errorf("%w: %s", ErrTooLarge, plural.Size(len(raw)))
	}
	if n := countFields(raw, maxFields, 24); n > maxFields {
		return fmt.Errorf("%w: more than %d fields", ErrTooLarge, maxFields)
	}
	return nil
}

// countFields counts the fields of a message and of everything inside it that could be a message, up to limit+1.
// Without the types, a text may be counted as a message; the result is then too high. If b stops being a message, its
// earlier fields count, since a decoder reads them too.
//
// It must not stop where the generated decoders of k8s.io/api continue. They drop the bits of a varint above the 64th,
// skip unknown fields of any number, and skip groups: the fields inside a group count, too.
func countFields(b []byte, limit, levels int) (n int) {
	for len(b) > 0 {
		tag, k := wire.Uvarint(b)
		if k == 0 {
			return n
		}
		n++
		value := b[k:]
		size := 0
		switch int8(tag & 7) {
		case wire.Varint:
			if _, size = wire.Uvarint(value); size == 0 {
				return n
			}
		case wire.Fixed64:
			size = 8
		case wire.Fixed32:
			size = 4
		case wire.Bytes:
			length, head := wire.Uvarint(value)
			if head == 0 || length > uint64(len(value)-head) {
				return n
			}
			if size = head + int(length); levels > 0 && n <= limit {
				n += countFields(value[head:size], limit-n, levels-1)
			}
		case startGroup, endGroup:
		default:
			return n
		}
		if n > limit {
			return limit + 1
		}
		if size > len(value) {
			return n
		}
		b = value[size:]
	}
	return n
}

// The wire types around the fields of a group.
const startGroup, endGroup = 3, 4

// depth returns how deep the arrays and objects of a JSON text are nested. Brackets inside strings do not count.
func depth(text []byte) (deepest int) {
	level, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}
