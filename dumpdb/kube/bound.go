package kube

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
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
		return fmt.Errorf("%w: %d bytes", ErrTooLarge, len(raw))
	}
	if n := countFields(raw, maxFields, 24); n > maxFields {
		return fmt.Errorf("%w: more than %d fields", ErrTooLarge, maxFields)
	}
	return nil
}

// countFields counts the fields of a message and of everything inside it that could be a message, up to limit+1.
// Without the types, a text may be counted as a message; the result is then too high. If b stops being a message, its
// earlier fields count, since a decoder reads them too.
func countFields(b []byte, limit, levels int) (n int) {
	for len(b) > 0 {
		num, typ, tag := protowire.ConsumeTag(b)
		if tag < 0 {
			return n
		}
		size := protowire.ConsumeFieldValue(num, typ, b[tag:])
		if size < 0 {
			return n
		}
		n++
		if typ == protowire.BytesType && levels > 0 && n <= limit {
			inner, _ := protowire.ConsumeBytes(b[tag:])
			n += countFields(inner, limit-n, levels-1)
		}
		if n > limit {
			return limit + 1
		}
		b = b[tag+size:]
	}
	return n
}

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
