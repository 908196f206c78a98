package kube

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// maxSize is far above what an apiserver writes: etcd refuses requests above 1.5 MiB by default, and values above a
	// few MiB with any setting in use.
	maxSize = 16 << 20
	// maxFields bounds what a decoder allocates: the largest struct of k8s.io/api that one empty field stands for takes
	// about 1.5 KiB. Real objects stay below some ten thousand fields.
	maxFields = 1 << 16
	// maxDepth of JSON, and of messages inside messages that are counted. The built-in kinds stay below 20.
	maxDepth = 200
)

// bounded refuses a message that would take a decoder more memory than its size tells.
func bounded(raw []byte) error {
	if len(raw) > maxSize {
		return fmt.Errorf("%w: %d bytes", ErrTooLarge, len(raw))
	}
	if n := countFields(raw, maxFields, 24); n > maxFields {
		return fmt.Errorf("%w: more than %d fields", ErrTooLarge, maxFields)
	}
	return nil
}

// countFields counts the fields of a message and of everything inside it that could be one, up to limit+1. Without the
// types a text may be taken for a message, which only counts too much. Where b stops being a message, its fields before
// the fault count nevertheless, as a decoder meets them too.
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

// depth returns how deep arrays and objects of a JSON text nest; brackets inside strings do not count.
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
