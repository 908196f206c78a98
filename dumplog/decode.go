package dumplog

import (
	"errors"
	"fmt"

	"github.com/etcd-medic/etcd-medic/internal/wire"
)

// Decoder decodes entry payloads and reuses its memory: a Request is valid until the next call. The zero value is
// ready. Use it to pass over many entries; Entry.Decode returns a Request that stays valid.
type Decoder struct {
	req Request
	mem requestMemory
	// parts counts what the request consists of.
	parts int
	// users are the user names seen. They are few, so each becomes a string only once.
	users map[string]string
}

// requestMemory is reused for the messages that nearly all entries consist of.
type requestMemory struct {
	put   PutRequest
	rng   RangeRequest
	del   DeleteRangeRequest
	txn   TxnRequest
	grant LeaseGrantRequest
	lease LeaseRevokeRequest
}

// Decode is Entry.Decode with a Request that is valid until the next call. Slices alias the entry's data.
func (d *Decoder) Decode(e *Entry) (*Request, error) {
	unknown := d.req.Unknown[:0]
	d.req = Request{Kind: KindUnknown, Unknown: unknown}
	err := d.decode(e)
	if len(d.req.Unknown) == 0 {
		d.req.Unknown = nil
	}
	return &d.req, err
}

// Decode reads the payload of an entry. It always returns a Request. If the bytes do not decode, its kind is
// KindUnknown and the error says why. Decode does not panic and allocates no more than the payload's size justifies.
// Slices alias Data.
func (e *Entry) Decode() (*Request, error) {
	var d Decoder
	return d.Decode(e)
}

// NoMessage reports whether the data of an entry that does not decode is not a protobuf message at all, or not a conf
// change. A server reads other data that it does not understand as a request of etcd 2.
func (e *Entry) NoMessage() bool {
	if e.Type != EntryNormal {
		return true
	}
	s := scanner{b: e.Data}
	var f field
	for s.next(&f) {
	}
	return s.bad
}

// DecodeNew is Decode with a Request that stays valid. It allocates only what the request needs.
func (d *Decoder) DecodeNew(e *Entry) (*Request, error) {
	d.req.Unknown = nil
	_, err := d.Decode(e)
	own := &struct {
		Request
		put PutRequest
	}{Request: d.req}
	switch r := &own.Request; {
	case r.Put != nil:
		own.put = *r.Put
		r.Put = &own.put
	case r.Txn != nil:
		t := *r.Txn
		r.Txn, d.mem.txn = &t, TxnRequest{}
	default:
		r.Range, r.DeleteRange = kept(r.Range), kept(r.DeleteRange)
		r.LeaseGrant, r.LeaseRevoke = kept(r.LeaseGrant), kept(r.LeaseRevoke)
	}
	d.req.Unknown = nil
	return &own.Request, err
}

func kept[T any](p *T) *T {
	if p == nil {
		return nil
	}
	own := *p
	return &own
}

func (d *Decoder) decode(e *Entry) error {
	r := &d.req
	if d.parts = 0; len(e.Data) > MaxPayload {
		return errPayload
	}
	switch e.Type {
	case EntryConfChange:
		cc, err := decodeConfChange(e.Data)
		if err == nil {
			r.Kind, r.ConfChange = KindConfChange, &cc
			cc.readContext()
		}
		return err
	case EntryConfChangeV2:
		cc, err := decodeConfChangeV2(e.Data)
		if err == nil {
			r.Kind, r.ConfChangeV2 = KindConfChangeV2, &cc
		}
		return err
	case EntryNormal:
	default:
		return fmt.Errorf("raft has no entry type %d", e.Type)
	}
	if len(e.Data) == 0 {
		r.Kind = KindEmpty
		return nil
	}
	if isV2Request(e.Data) {
		return d.v2(e.Data)
	}
	return d.internal(e.Data)
}

var errNoOperation = errors.New("the request contains no operation")

// internal reads InternalRaftRequest. The operation is the first field listed in requestFields; other fields are kept
// in Unknown.
func (d *Decoder) internal(b []byte) error {
	r := &d.req
	s := scanner{b: b}
	var f field
	var id RequestID
	for s.next(&f) {
		k := requestKind(f.Num)
		switch {
		case f.Num == fieldHeader && f.Type == wire.Bytes:
			if err := d.header(f.B); err != nil {
				return d.resetUnknown(wrap("header", err))
			}
		// the ID of requests without a header (etcdserver/server.go, applyEntryNormal)
		case f.Num == fieldID && f.Type == wire.Varint:
			id = RequestID(f.V)
		case k == nil || f.Type != wire.Bytes || r.Kind != KindUnknown:
			if err := d.unknown("", &f); err != nil {
				return d.resetUnknown(err)
			}
		default:
			r.Kind = k.kind
			if err := k.decode(d, f.B); err != nil {
				return d.resetUnknown(wrap(string(k.kind), err))
			}
		}
	}
	if r.Header.ID == 0 {
		r.Header.ID = id
	}
	switch {
	case s.bad:
		return d.resetUnknown(errWire)
	case r.Kind == KindUnknown && len(r.Unknown) == 0:
		return errNoOperation
	}
	return nil
}

// resetUnknown replaces a request that does not decode by one of KindUnknown.
func (d *Decoder) resetUnknown(err error) error {
	d.req = Request{Kind: KindUnknown}
	return err
}

func (d *Decoder) unknown(path string, f *field) error {
	d.req.Unknown = append(d.req.Unknown, UnknownField{Path: path, Num: f.Num, Wire: f.Type, Raw: f.Raw})
	return d.part()
}

// header reads RequestHeader {1 ID, 2 username, 3 auth_revision}.
func (d *Decoder) header(b []byte) error {
	h := &d.req.Header
	s := scanner{b: b}
	var f field
	for s.next(&f) {
		switch {
		case f.Num == 1 && f.Type == wire.Varint:
			h.ID = RequestID(f.V)
		case f.Num == 2 && f.Type == wire.Bytes:
			h.Username = d.user(f.B)
		case f.Num == 3 && f.Type == wire.Varint:
			h.AuthRevision = f.V
		default:
			if err := d.unknown("header", &f); err != nil {
				return err
			}
		}
	}
	return s.err()
}

func (d *Decoder) user(b []byte) string {
	if s, ok := d.users[string(b)]; ok {
		return s
	}
	if d.users == nil || len(d.users) >= 1024 { // hostile logs may name a new user each time
		d.users = map[string]string{}
	}
	s := string(b)
	d.users[s] = s
	return s
}

// err returns errWire if the scan ended at bytes that are not a protobuf message.
func (s *scanner) err() error {
	if s.bad {
		return errWire
	}
	return nil
}

// message calls use for every field of a message. use returns false for a field it does not know.
func (d *Decoder) message(path string, b []byte, use func(f *field) bool) error {
	s := scanner{b: b}
	var f field
	for s.next(&f) {
		if use(&f) {
			continue
		}
		if err := d.unknown(path, &f); err != nil {
			return err
		}
	}
	return s.err()
}

// num and str store a field if its wire type fits, and report whether it did.
func num[T ~int32 | ~int64 | ~uint64](f *field, to *T) bool {
	if f.Type == wire.Varint {
		*to = T(f.V)
	}
	return f.Type == wire.Varint
}

func flag(f *field, to *bool) bool {
	if f.Type == wire.Varint {
		*to = f.V != 0
	}
	return f.Type == wire.Varint
}

func str(f *field, to *string) bool {
	if f.Type == wire.Bytes {
		*to = string(f.B)
	}
	return f.Type == wire.Bytes
}

func raw(f *field, to *[]byte) bool {
	if f.Type == wire.Bytes {
		*to = f.B
	}
	return f.Type == wire.Bytes
}
