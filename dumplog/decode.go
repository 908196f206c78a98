package dumplog

import (
	"errors"
	"fmt"

	"github.com/etcd-medic/etcd-medic/internal/wire"
)

// Decoder decodes entry payloads and reuses its memory: a Request is valid until the next call. The zero value is
// ready. It is for passes over many entries; Entry.Decode gives a Request that stays.
type Decoder struct {
	req Request
	mem requestMemory
	// users are the user names met: few in number, so each is made a string once.
	users map[string]string
}

// requestMemory holds the messages that make up nearly all of a log.
type requestMemory struct {
	put   PutRequest
	rng   RangeRequest
	del   DeleteRangeRequest
	txn   TxnRequest
	grant LeaseGrantRequest
	lease LeaseRevokeRequest
}

// Decode reads the payload of an entry as Entry.Decode does. Slices alias the entry's data.
func (d *Decoder) Decode(e *Entry) (*Request, error) {
	unknown := d.req.Unknown[:0]
	d.req = Request{Kind: KindUnknown, Unknown: unknown}
	err := d.decode(e)
	if len(d.req.Unknown) == 0 {
		d.req.Unknown = nil
	}
	return &d.req, err
}

// Decode reads the payload of an entry. It always returns a Request, of KindUnknown when the bytes make no sense,
// together with the error that says why. It never panics and allocates no more than the payload warrants. Slices alias
// Data.
func (e *Entry) Decode() (*Request, error) {
	var d Decoder
	return d.Decode(e)
}

// DecodeNew is Decode with a Request that stays, as that of Entry.Decode does; it takes no more memory than the request
// needs.
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
		return fmt.Errorf("no entry has type %d", e.Type)
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

var errNoOperation = errors.New("the request names no operation")

// internal reads InternalRaftRequest. The operation is the first field of the table; what else is there stays visible
// as Unknown.
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
				return d.spoiled(wrap("header", err))
			}
		case f.Num == fieldID && f.Type == wire.Varint: // the ID of requests without a header (etcdserver/server.go, applyEntryNormal)
			id = RequestID(f.V)
		case k == nil || f.Type != wire.Bytes || r.Kind != KindUnknown:
			d.unknown("", &f)
		default:
			r.Kind = k.kind
			if err := k.decode(d, f.B); err != nil {
				return d.spoiled(wrap(string(k.kind), err))
			}
		}
	}
	if r.Header.ID == 0 {
		r.Header.ID = id
	}
	switch {
	case s.bad:
		return d.spoiled(errWire)
	case r.Kind == KindUnknown && len(r.Unknown) == 0:
		return errNoOperation
	}
	return nil
}

// spoiled resets a request that turned out to make no sense.
func (d *Decoder) spoiled(err error) error {
	d.req = Request{Kind: KindUnknown}
	return err
}

func (d *Decoder) unknown(path string, f *field) {
	d.req.Unknown = append(d.req.Unknown, UnknownField{Path: path, Num: f.Num, Wire: f.Type, Raw: f.Raw})
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
			d.unknown("header", &f)
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

// err reports whether the scan ended because the bytes are no message.
func (s *scanner) err() error {
	if s.bad {
		return errWire
	}
	return nil
}

// message walks a message and hands every field to use, which returns false for a field without a name there.
func (d *Decoder) message(path string, b []byte, use func(f *field) bool) error {
	s := scanner{b: b}
	var f field
	for s.next(&f) {
		if !use(&f) {
			d.unknown(path, &f)
		}
	}
	return s.err()
}

// num and str accept a field when its wire type fits.
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
