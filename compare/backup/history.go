package backup

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// Broken is the first record at which two histories differ.
type Broken struct {
	Revision check.Rev   `json:"revision"`
	Key      check.Bytes `json:"key"`
	InBackup string      `json:"inBackup"`
	InSource string      `json:"inSource"`
}

func (b *Broken) revision() string { return fmt.Sprintf("%d.%d", b.Revision.Main, b.Revision.Sub) }

// history walks the records of both side by side, in constant memory, up to the lower of their current revisions. A record must stand in
// both when it lies above both compact revisions; one that lies above the compact revision of one side only must stand there if the other has
// it. What both have must be equal. This holds at any distance in time, since compaction never alters a record.
func (c *Compared) history(ctx context.Context, b, s *evidence.Member) error {
	end := dumpdb.Rev{Main: min(b.CurrentRevision(), s.CurrentRevision()) + 1}
	nextB, stopB := iter.Pull2(b.DB.Handle.RevisionsBetween(dumpdb.Rev{}, end))
	defer stopB()
	nextS, stopS := iter.Pull2(s.DB.Handle.RevisionsBetween(dumpdb.Rev{}, end))
	defer stopS()
	rb, errB, okB := nextB()
	rs, errS, okS := nextS()
	for n := 0; okB || okS; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if errB != nil || errS != nil || okB && rb.Err != nil || okS && rs.Err != nil {
			c.Reason = "a record can not be read"
			return nil
		}
		switch {
		case !okS || okB && rb.Less(rs.Rev):
			if rb.Main > s.CompactRevision() {
				c.broken(&rb, nil)
				return nil
			}
			rb, errB, okB = nextB()
		case !okB || rs.Less(rb.Rev):
			if rs.Main > b.CompactRevision() {
				c.broken(nil, &rs)
				return nil
			}
			rs, errS, okS = nextS()
		default:
			if c.Records++; !sameRecord(&rb, &rs) {
				c.broken(&rb, &rs)
				return nil
			}
			rb, errB, okB = nextB()
			rs, errS, okS = nextS()
		}
	}
	if c.Records == 0 {
		c.Reason = "no record stands in both"
		return nil
	}
	c.SameHistory = check.Holds
	return nil
}

// sameRecord compares by meaning: the encodings of older and newer servers may differ.
func sameRecord(a, b *dumpdb.Revision) bool {
	x, y := &a.KV, &b.KV
	return a.Tombstone == b.Tombstone && bytes.Equal(x.Key, y.Key) && bytes.Equal(x.Value, y.Value) && x.Lease == y.Lease &&
		x.CreateRevision == y.CreateRevision && x.ModRevision == y.ModRevision && x.Version == y.Version
}

func (c *Compared) broken(b, s *dumpdb.Revision) {
	c.SameHistory = check.Violated
	one := b
	if one == nil {
		one = s
	}
	c.First = &Broken{Revision: check.Rev{Main: one.Main, Sub: one.Sub}, Key: bytes.Clone(one.KV.Key), InBackup: recordText(b), InSource: recordText(s)}
}

// recordText describes a record without its value.
func recordText(r *dumpdb.Revision) string {
	switch {
	case r == nil:
		return "no such record"
	case r.Tombstone:
		return fmt.Sprintf("tombstone of %q", r.KV.Key)
	}
	s := fmt.Sprintf("put of %q, create %d, version %d, value of %d bytes with sha256 %s", r.KV.Key, r.KV.CreateRevision, r.KV.Version, len(r.KV.Value), diff.Digest(r.KV.Value))
	if r.KV.Lease != 0 {
		s += ", lease " + dumpdb.ID(r.KV.Lease).String()
	}
	return s
}
