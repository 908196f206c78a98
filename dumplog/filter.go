package dumplog

import (
	"bytes"
	"slices"
)

// Filter selects entries. The zero value matches every entry; all set conditions must match.
type Filter struct {
	// From and To bound the index, both inclusive; 0 means open.
	From, To uint64
	// Term selects one term, 0 any.
	Term uint64
	// Kinds selects kinds; empty means any.
	Kinds []Kind
	// Key selects requests that name the key, or a range that contains it; nil means any. A txn matches by any
	// operation or compare.
	Key []byte
	// Prefix selects requests that name a key with the prefix, or a range that overlaps it; nil means any.
	Prefix []byte
	// User selects requests by this user, or requests that change this user; "" any.
	User string
	// Proposer selects requests whose ID matches the member; 0 any. Only the low 16 bits of the member ID can be
	// compared.
	Proposer ID
	// Lease selects requests about the lease or keys put with it; 0 any.
	Lease int64
	// Overwritten selects by Entry.Overwritten; nil any.
	Overwritten *bool
}

// NeedsRequest reports whether Match uses the request. If not, the payload need not be decoded.
func (f *Filter) NeedsRequest() bool {
	return len(f.Kinds) > 0 || f.Key != nil || f.Prefix != nil || f.User != "" || f.Proposer != 0 || f.Lease != 0
}

// Match reports whether the filter selects the entry. r may be nil if NeedsRequest is false.
func (f *Filter) Match(e *Entry, r *Request) bool {
	switch {
	case e.Index < f.From, f.To != 0 && e.Index > f.To, f.Term != 0 && e.Term != f.Term:
		return false
	case f.Overwritten != nil && *f.Overwritten != e.Overwritten:
		return false
	case !f.NeedsRequest():
		return true
	case r == nil, len(f.Kinds) > 0 && !slices.Contains(f.Kinds, r.Kind):
		return false
	case f.User != "" && !r.ofUser(f.User):
		return false
	case f.Proposer != 0 && (r.ProposerID() == 0 || !r.ProposerID().Proposed(f.Proposer)):
		return false
	case f.Lease != 0 && !r.OfLease(f.Lease):
		return false
	case f.Key != nil && !r.Touches(f.Key, append(bytes.Clone(f.Key), 0)):
		return false
	}
	if f.Prefix == nil {
		return true
	}
	end := prefixEnd(f.Prefix)
	if len(end) == 1 && end[0] == 0 {
		end = nil
	}
	return r.Touches(f.Prefix, end)
}

func (r *Request) ofUser(user string) bool {
	return r.Header.Username == user || r.Auth != nil && r.Auth.User == user
}

// ProposerID returns the ID that etcd's generator gave to the request: that of the header, of the v2 request or of the
// conf change. It is 0 for entries without one, such as a leader's empty entry.
func (r *Request) ProposerID() RequestID {
	if r.ConfChange != nil {
		return r.ConfChange.ID
	}
	return r.Header.ID
}

// OfLease reports whether the request grants, revokes, checkpoints or attaches the lease.
func (r *Request) OfLease(id int64) bool {
	switch {
	case r.LeaseGrant != nil:
		return r.LeaseGrant.ID == id
	case r.LeaseRevoke != nil:
		return r.LeaseRevoke.ID == id
	case r.LeaseCheckpoint != nil:
		return slices.ContainsFunc(r.LeaseCheckpoint.Checkpoints, func(c LeaseCheckpoint) bool { return c.ID == id })
	}
	found := false
	r.EachOp(func(op RequestOp) { found = found || op.Put != nil && op.Put.Lease == id })
	return found
}

// EachOp calls use for every key-value operation of the request. For a txn these are the operations of both branches,
// nested ones included.
func (r *Request) EachOp(use func(RequestOp)) {
	switch {
	case r.Put != nil:
		use(RequestOp{Put: r.Put})
	case r.Range != nil:
		use(RequestOp{Range: r.Range})
	case r.DeleteRange != nil:
		use(RequestOp{DeleteRange: r.DeleteRange})
	case r.Txn != nil:
		r.Txn.eachOp(use)
	}
}

func (t *TxnRequest) eachOp(use func(RequestOp)) {
	for _, ops := range [...][]RequestOp{t.Success, t.Failure} {
		for _, op := range ops {
			if op.Txn != nil {
				op.Txn.eachOp(use)
				continue
			}
			use(op)
		}
	}
}

// Touches reports whether the request names a key of [from, to), in an operation, a compare or a permission. An empty
// to is the end of the key space.
func (r *Request) Touches(from, to []byte) bool {
	hit := false
	r.EachOp(func(op RequestOp) {
		switch {
		case op.Put != nil:
			hit = hit || meets(op.Put.Key, nil, from, to)
		case op.Range != nil:
			hit = hit || meets(op.Range.Key, op.Range.RangeEnd, from, to)
		case op.DeleteRange != nil:
			hit = hit || meets(op.DeleteRange.Key, op.DeleteRange.RangeEnd, from, to)
		}
	})
	switch {
	case hit:
	case r.Txn != nil:
		hit = r.Txn.compares(from, to)
	case r.Auth != nil && r.Auth.Perm != nil:
		hit = meets(r.Auth.Perm.Key, r.Auth.Perm.RangeEnd, from, to)
	case r.Auth != nil && len(r.Auth.Key) > 0:
		hit = meets(r.Auth.Key, r.Auth.RangeEnd, from, to)
	}
	return hit
}

func (t *TxnRequest) compares(from, to []byte) bool {
	for i := range t.Compare {
		if meets(t.Compare[i].Key, t.Compare[i].RangeEnd, from, to) {
			return true
		}
	}
	for _, ops := range [...][]RequestOp{t.Success, t.Failure} {
		for _, op := range ops {
			if op.Txn != nil && op.Txn.compares(from, to) {
				return true
			}
		}
	}
	return false
}

// meets reports whether the range of a request and [from, to) have a key in common. An empty end means one key, a zero
// byte the end of the key space.
func meets(key, end, from, to []byte) bool {
	if len(end) == 0 {
		return bytes.Compare(key, from) >= 0 && (len(to) == 0 || bytes.Compare(key, to) < 0)
	}
	open := len(end) == 1 && end[0] == 0
	return (len(to) == 0 || bytes.Compare(key, to) < 0) && (open || bytes.Compare(from, end) < 0)
}
