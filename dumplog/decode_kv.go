package dumplog

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/internal/wire"
)

// maxNesting bounds transactions inside transactions. Servers have no such bound.
const maxNesting = 100

func (d *Decoder) put(b []byte) error {
	p := &d.mem.put
	d.req.Put = p
	return d.putInto(p, "put", b)
}

func (d *Decoder) putInto(p *PutRequest, path string, b []byte) error {
	*p = PutRequest{}
	s := scanner{b: b}
	var f field
	for s.next(&f) {
		ok := false
		switch f.Num {
		case 1:
			ok = raw(&f, &p.Key)
		case 2:
			ok = raw(&f, &p.Value)
		case 3:
			ok = num(&f, &p.Lease)
		case 4:
			ok = flag(&f, &p.PrevKV)
		case 5:
			ok = flag(&f, &p.IgnoreValue)
		case 6:
			ok = flag(&f, &p.IgnoreLease)
		}
		if !ok {
			if err := d.unknown(path, &f); err != nil {
				return err
			}
		}
	}
	return s.err()
}

func (d *Decoder) rangeRequest(b []byte) error {
	d.req.Range = &d.mem.rng
	return d.rangeInto(d.req.Range, "range", b)
}

func (d *Decoder) rangeInto(r *RangeRequest, path string, b []byte) error {
	*r = RangeRequest{}
	return d.message(path, b, func(f *field) bool {
		switch f.Num {
		case 1:
			return raw(f, &r.Key)
		case 2:
			return raw(f, &r.RangeEnd)
		case 3:
			return num(f, &r.Limit)
		case 4:
			return num(f, &r.Revision)
		case 5:
			return num(f, &r.SortOrder)
		case 6:
			return num(f, &r.SortTarget)
		case 7:
			return flag(f, &r.Serializable)
		case 8:
			return flag(f, &r.KeysOnly)
		case 9:
			return flag(f, &r.CountOnly)
		case 10:
			return num(f, &r.MinModRevision)
		case 11:
			return num(f, &r.MaxModRevision)
		case 12:
			return num(f, &r.MinCreateRevision)
		case 13:
			return num(f, &r.MaxCreateRevision)
		}
		return false
	})
}

func (d *Decoder) deleteRange(b []byte) error {
	d.req.DeleteRange = &d.mem.del
	return d.deleteInto(d.req.DeleteRange, "delete_range", b)
}

func (d *Decoder) deleteInto(r *DeleteRangeRequest, path string, b []byte) error {
	*r = DeleteRangeRequest{}
	return d.message(path, b, func(f *field) bool {
		switch f.Num {
		case 1:
			return raw(f, &r.Key)
		case 2:
			return raw(f, &r.RangeEnd)
		case 3:
			return flag(f, &r.PrevKV)
		}
		return false
	})
}

func (d *Decoder) txn(b []byte) error {
	d.req.Txn = &d.mem.txn
	return d.txnInto(d.req.Txn, "txn", b, 0)
}

func (d *Decoder) txnInto(t *TxnRequest, path string, b []byte, depth int) error {
	*t = TxnRequest{Compare: t.Compare[:0], Success: t.Success[:0], Failure: t.Failure[:0]}
	if depth > maxNesting {
		return errNesting
	}
	t.grow(b)
	s := scanner{b: b}
	var f field
	for s.next(&f) {
		if f.Type != wire.Bytes || f.Num < 1 || f.Num > 3 {
			if err := d.unknown(path, &f); err != nil {
				return err
			}
			continue
		}
		err := d.part()
		if err != nil {
			return err
		}
		switch f.Num {
		case 1:
			t.Compare = append(t.Compare, Compare{})
			err = d.compare(&t.Compare[len(t.Compare)-1], path+".compare", f.B)
		case 2:
			t.Success, err = d.op(t.Success, path+".success", f.B, depth)
		case 3:
			t.Failure, err = d.op(t.Failure, path+".failure", f.B, depth)
		}
		if err != nil {
			return err
		}
	}
	return s.err()
}

// grow makes room for the parts of a large transaction at once, so that a slice is not allocated several times.
func (t *TxnRequest) grow(b []byte) {
	if len(b) < 64<<10 {
		return
	}
	var n [4]int
	s := scanner{b: b}
	var f field
	for s.next(&f) {
		if f.Num >= 1 && f.Num <= 3 {
			n[f.Num] = min(n[f.Num]+1, MaxParts)
		}
	}
	t.Compare = slices.Grow(t.Compare, n[1])
	t.Success, t.Failure = slices.Grow(t.Success, n[2]), slices.Grow(t.Failure, n[3])
}

// op reads RequestOp {1 range, 2 put, 3 delete_range, 4 txn}; the last of several wins, as in a protobuf oneof.
func (d *Decoder) op(ops []RequestOp, path string, b []byte, depth int) ([]RequestOp, error) {
	var op RequestOp
	s := scanner{b: b}
	var f field
	for s.next(&f) {
		if f.Type != wire.Bytes || f.Num < 1 || f.Num > 4 {
			if err := d.unknown(path, &f); err != nil {
				return ops, err
			}
			continue
		}
		op = RequestOp{}
		var err error
		switch f.Num {
		case 1:
			op.Range = new(RangeRequest)
			err = d.rangeInto(op.Range, path+".range", f.B)
		case 2:
			op.Put = new(PutRequest)
			err = d.putInto(op.Put, path+".put", f.B)
		case 3:
			op.DeleteRange = new(DeleteRangeRequest)
			err = d.deleteInto(op.DeleteRange, path+".delete_range", f.B)
		case 4:
			op.Txn = new(TxnRequest)
			err = d.txnInto(op.Txn, path+".txn", f.B, depth+1)
		}
		if err != nil {
			return ops, err
		}
	}
	return append(ops, op), s.err()
}

// compare reads Compare {1 result, 2 target, 3 key, 4 version, 5 create, 6 mod, 7 value, 8 lease, 64 range_end}. Of 4
// to 8 the last one counts. A server compares with zero or nothing if it is not the one of the target.
func (d *Decoder) compare(c *Compare, path string, b []byte) error {
	var with int32
	err := d.message(path, b, func(f *field) bool {
		switch f.Num {
		case 1:
			return num(f, &c.Result)
		case 2:
			return num(f, &c.Target)
		case 3:
			return raw(f, &c.Key)
		case 4, 5, 6, 8:
			with = f.Num
			return num(f, &c.Num)
		case 7:
			with = f.Num
			return raw(f, &c.Value)
		case 64:
			return raw(f, &c.RangeEnd)
		}
		return false
	})
	if with != compareField(c.Target) {
		c.Num, c.Value = 0, nil
	}
	return err
}

// compareField is the field that a server compares with, 0 for an unknown target.
func compareField(t CompareTarget) int32 {
	if t < 0 || t > 4 {
		return 0
	}
	return int32(t) + 4
}

func (d *Decoder) compaction(b []byte) error {
	r := new(CompactionRequest)
	d.req.Compaction = r
	return d.message("compaction", b, func(f *field) bool {
		switch f.Num {
		case 1:
			return num(f, &r.Revision)
		case 2:
			return flag(f, &r.Physical)
		}
		return false
	})
}
