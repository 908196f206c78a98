package dumplog

import (
	"errors"

	"github.com/etcd-medic/etcd-medic/internal/wire"
)

// errWire is the error for every broken protobuf message; the caller adds the place.
var errWire = errors.New("the bytes are not a protobuf message")

// field is one field of a message. Its slices alias the message.
type field = wire.Field

// scanner walks the fields of a message without knowing its type. It allocates nothing and never reads beyond b.
type scanner struct {
	b []byte
	// bad is set if the rest of b is not a field; next then returns false.
	bad bool
}

// next reads the next field into f and reports whether there was one.
func (s *scanner) next(f *field) bool {
	if len(s.b) == 0 {
		return false
	}
	n := f.Next(s.b)
	if n == 0 {
		s.bad = true
		return false
	}
	s.b = s.b[n:]
	return true
}
