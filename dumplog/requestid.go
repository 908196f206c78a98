package dumplog

import "time"

// RequestID is a request ID from etcd's generator (pkg/idutil/id.go). It encodes the proposer, the start of its process
// and a counter.
type RequestID uint64

// String returns the ID in lower-case hex without leading zeros.
func (id RequestID) String() string { return ID(id).String() }

// MarshalText writes the hex form, so that JSON has a string: request IDs exceed 2^53.
func (id RequestID) MarshalText() ([]byte, error) { return ID(id).MarshalText() }

// UnmarshalText reads the hex form.
func (id *RequestID) UnmarshalText(b []byte) error { return (*ID)(id).UnmarshalText(b) }

// ProposerPrefix returns the low 16 bits of the proposing member's ID.
func (id RequestID) ProposerPrefix() uint16 { return uint16(id >> 48) }

// Proposed reports whether the member can have proposed the request. Only the low 16 bits of the member ID are
// compared.
func (id RequestID) Proposed(member ID) bool { return id.ProposerPrefix() == uint16(member) }

// StartMillis returns the low 40 bits of the start time of the proposer's process, in Unix milliseconds, plus one per
// 256 requests made since.
func (id RequestID) StartMillis() uint64 { return uint64(id) >> 8 & (1<<40 - 1) }

// StartTime returns StartMillis as a time. near supplies the missing high bits.
func (id RequestID) StartTime(near time.Time) time.Time {
	const span = 1 << 40
	ms := uint64(near.UnixMilli())
	t := ms&^uint64(span-1) | id.StartMillis()
	switch {
	case t > ms+span/2 && t >= span:
		t -= span
	case t+span/2 < ms:
		t += span
	}
	return time.UnixMilli(int64(t)).UTC()
}

// Counter returns the low 8 bits, the sequence number, whose overflow increments StartMillis.
func (id RequestID) Counter() uint8 { return uint8(id) }
