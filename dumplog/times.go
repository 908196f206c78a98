package dumplog

import (
	"bytes"
	"encoding/json"
	"sort"
	"strings"
	"time"

	"github.com/etcd-medic/etcd-medic/internal/wire"
)

// TimeSource says where a time in a log comes from.
type TimeSource string

// The sources of time. The clock is that of the proposing member or of a Kubernetes client.
const (
	// TimeRequestID: the time in a request ID. The generator never runs ahead of its member's clock, so the entry was
	// proposed at or after this time.
	TimeRequestID TimeSource = "request-id"
	// TimeLeaseRenewal: the renewTime of a Kubernetes Lease (coordination.k8s.io/v1), set by its holder just before the
	// write.
	TimeLeaseRenewal TimeSource = "lease-renewal"
	// TimeManagedFields: when the API server last wrote a Kubernetes object, according to its metadata.
	TimeManagedFields TimeSource = "managed-fields"
)

// TimeMark says that the entry at Index was proposed at or after Time.
type TimeMark struct {
	Index  uint64
	Time   time.Time
	Source TimeSource
}

// maxMarks bounds the marks of time, about three days of one each second. Of more, every second one is dropped.
const maxMarks = 1 << 18

// Times collects the wall-clock times in a log. Entries must come in physical order. Marks closer than Step are
// dropped, so memory grows with the time that the log covers, not with its entries.
type Times struct {
	// Near is any time within 17 years of the log. It must be set, because request IDs have only the low 40 bits.
	Near time.Time
	// Step is the least distance between two marks of one source; 0 means one second.
	Step time.Duration
	// Split, if set, is a time around which no mark is dropped; see Around.
	Split         time.Time
	marks         []TimeMark
	last          map[TimeSource]time.Time
	before, after *TimeMark
	// latest[i] is the latest time of marks[:i+1], as far as it was asked for.
	latest []time.Time
}

// Add adds the next entry.
func (t *Times) Add(e *Entry, r *Request) {
	if id := r.ProposerID(); id != 0 {
		t.mark(e.Index, id.StartTime(t.Near), TimeRequestID)
	}
	r.EachOp(func(op RequestOp) {
		if op.Put == nil {
			return
		}
		if at, src, ok := kubernetesTime(op.Put.Key, op.Put.Value); ok {
			t.mark(e.Index, at, src)
		}
	})
}

func (t *Times) mark(index uint64, at time.Time, src TimeSource) {
	t.split(TimeMark{Index: index, Time: at, Source: src})
	step := t.Step
	if step <= 0 {
		step = time.Second
	}
	if t.last == nil {
		t.last = map[TimeSource]time.Time{}
	}
	if last, ok := t.last[src]; ok && at.Before(last.Add(step)) {
		return // a time that does not advance adds nothing
	}
	t.last[src] = at
	if len(t.marks) == maxMarks {
		t.Step = 2 * step
		t.thin()
	}
	t.marks = append(t.marks, TimeMark{Index: index, Time: at, Source: src})
}

// thin drops every second mark.
func (t *Times) thin() {
	for i := range t.marks {
		if i%2 == 0 {
			t.marks[i/2] = t.marks[i]
		}
	}
	t.marks, t.latest = t.marks[:(len(t.marks)+1)/2], nil
}

// split keeps the marks before and after Split.
func (t *Times) split(m TimeMark) {
	switch {
	case t.Split.IsZero() || t.after != nil:
	case m.Time.After(t.Split):
		t.after = &m
	default:
		t.before = &m
	}
}

// Around returns the mark of the first entry that was certainly proposed after Split, and the last mark before it; nil
// if there is none. These marks are never dropped.
func (t *Times) Around() (before, after *TimeMark) { return t.before, t.after }

// Marks returns the marks in index order.
func (t *Times) Marks() []TimeMark { return t.marks }

// Bounds returns the times between which the entry at index was proposed. after is a lower bound. before is the next
// later mark; it is an estimate, since a mark may lag behind the clock. A zero time means unknown.
func (t *Times) Bounds(index uint64) (after, before time.Time) {
	n := sort.Search(len(t.marks), func(i int) bool { return t.marks[i].Index > index })
	for i := len(t.latest); i < len(t.marks); i++ {
		m := t.marks[i].Time
		if i > 0 && t.latest[i-1].After(m) {
			m = t.latest[i-1]
		}
		t.latest = append(t.latest, m)
	}
	if n > 0 {
		after = t.latest[n-1]
	}
	if i := n + sort.Search(len(t.marks)-n, func(i int) bool { return t.latest[n+i].After(after) }); i < len(t.marks) {
		before = t.latest[i]
	}
	return after, before
}

// kubernetesTime reads the time of a Kubernetes object: the renewTime of a Lease, the newest managedFields entry of any
// other object. Objects are stored as protobuf (k8s.io/apimachinery/pkg/runtime, generated.proto: Unknown {1 typeMeta,
// 2 raw}). Custom resources, and all objects with --storage-media-type application/json, are stored as JSON.
func kubernetesTime(key, value []byte) (at time.Time, src TimeSource, ok bool) {
	if len(value) > 0 && value[0] == '{' {
		return jsonTime(value)
	}
	value, ok = bytes.CutPrefix(value, []byte("k8s\x00"))
	if !ok {
		return at, src, false
	}
	object := sub(value, 2)
	if bytes.Contains(key, []byte("/leases/")) {
		if at, ok = protoTime(sub(sub(object, 2), 4)); ok { // spec.renewTime
			return at, TimeLeaseRenewal, true
		}
	}
	s := scanner{b: sub(object, 1)} // metadata
	var f field
	for s.next(&f) {
		if f.Num != 17 || f.Type != wire.Bytes { // managedFields
			continue
		}
		if m, good := protoTime(sub(f.B, 4)); good && m.After(at) {
			at = m
		}
	}
	return at, TimeManagedFields, !at.IsZero()
}

// jsonTime is kubernetesTime for an object in JSON. It returns false for JSON that is not a Kubernetes object.
func jsonTime(value []byte) (at time.Time, src TimeSource, ok bool) {
	if !bytes.Contains(value, []byte(`"apiVersion"`)) {
		return at, src, false
	}
	var object struct {
		APIVersion, Kind string
		Metadata         struct{ ManagedFields []struct{ Time string } }
		Spec             struct{ RenewTime any } // other kinds may have a field of this name that is not a string
	}
	if json.Unmarshal(value, &object) != nil {
		return at, src, false
	}
	if s, text := object.Spec.RenewTime.(string); text && object.Kind == "Lease" &&
		strings.HasPrefix(object.APIVersion, "coordination.k8s.io/") {
		if at, ok = textTime(s); ok {
			return at, TimeLeaseRenewal, true
		}
	}
	for _, m := range object.Metadata.ManagedFields {
		if t, good := textTime(m.Time); good && t.After(at) {
			at = t
		}
	}
	return at, TimeManagedFields, !at.IsZero()
}

// textTime reads the RFC 3339 form of metav1.Time and MicroTime. It rejects times before 1970.
func textTime(s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, s)
	return t.UTC(), err == nil && t.Unix() > 0
}

// sub returns the bytes of a length-delimited field, nil if the message does not have it.
func sub(b []byte, num int32) []byte {
	s := scanner{b: b}
	var f field
	for s.next(&f) {
		if f.Num == num && f.Type == wire.Bytes {
			return f.B
		}
	}
	return nil
}

// protoTime reads {1 seconds, 2 nanos}.
func protoTime(b []byte) (time.Time, bool) {
	var sec, nsec int64
	s := scanner{b: b}
	var f field
	for s.next(&f) {
		switch f.Num {
		case 1:
			num(&f, &sec)
		case 2:
			num(&f, &nsec)
		}
	}
	const year1 = -62135596800 // an unset time of Go
	if s.bad || sec <= 0 || sec == year1 || nsec < 0 || nsec >= 1e9 {
		return time.Time{}, false
	}
	return time.Unix(sec, nsec).UTC(), true
}
