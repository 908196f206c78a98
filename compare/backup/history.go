package backup

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// Broken is the first record at which two histories differ.
type Broken struct {
	Revision check.Rev   `json:"revision"`
	Key      check.Bytes `json:"key"`
	InBackup string      `json:"inBackup"`
	InSource string      `json:"inSource"`
	// rewritten is set if the source shows only that a record must be there at that revision: it has written the key
	// again since.
	rewritten bool
}

func (b *Broken) revision() string { return fmt.Sprintf("%d.%d", b.Revision.Main, b.Revision.Sub) }

// side walks the records of one of the two, in revision order.
type side struct {
	next func() (dumpdb.Revision, error, bool)
	stop func()
	rec  dumpdb.Revision
	more bool
	// lost counts the records that could not be read or decoded.
	lost int64
}

func walk(m *evidence.Member, end dumpdb.Rev) *side {
	s := &side{}
	s.next, s.stop = iter.Pull2(m.DB.Handle.RevisionsBetween(dumpdb.Rev{}, end))
	s.step()
	return s
}

// step advances to the next readable record.
func (s *side) step() {
	for {
		var err error
		s.rec, err, s.more = s.next()
		if !s.more || err == nil && s.rec.Err == nil {
			return
		}
		s.lost++
	}
}

// tally counts how two histories differ.
type tally struct{ onlySource, onlyBackup, differ int64 }

// history walks the records of both in parallel, in constant memory, up to the lower of their current revisions. A
// record above both compact revisions must be in both. One above the compact revision of only one side must be there if
// the other side has it. Records in both must be equal. This is true however far the two are apart, since compaction
// never changes a record. If part of one side cannot be read, missing records prove nothing.
func (c *Compared) history(ctx context.Context, b, s *evidence.Member) error {
	end := dumpdb.Rev{Main: min(b.CurrentRevision(), s.CurrentRevision()) + 1}
	rb, rs := walk(b, end), walk(s, end)
	defer rb.stop()
	defer rs.stop()
	var t tally
	var moved movedRecords
	damaged := b.DB.KVDamaged || s.DB.KVDamaged
	for n := 0; rb.more || rs.more; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		whole := !damaged && rb.lost+rs.lost == 0
		switch {
		case !rs.more || rb.more && rb.rec.Less(rs.rec.Rev):
			if whole && rb.rec.Main > s.CompactRevision() {
				t.onlyBackup++
				c.broken(s, &rb.rec, nil)
			} else if other := moved.find(rb, rs, &moved.source, &moved.backup); other != nil {
				t.differ++
				c.broken(s, &rb.rec, other)
			}
			rb.step()
		case !rb.more || rs.rec.Less(rb.rec.Rev):
			if whole && rs.rec.Main > b.CompactRevision() {
				t.onlySource++
				c.broken(s, nil, &rs.rec)
			} else if other := moved.find(rs, rb, &moved.backup, &moved.source); other != nil {
				t.differ++
				c.broken(s, other, &rs.rec)
			}
			rs.step()
		default:
			if c.Records++; !sameRecord(&rb.rec, &rs.rec) {
				t.differ++
				c.broken(s, &rb.rec, &rs.rec)
			}
			rb.step()
			rs.step()
		}
	}
	c.conclude(t, rb.lost, rs.lost, damaged)
	return nil
}

// movedRecords finds the put of a key at one main revision that the two have at different places of the transaction,
// where either may have compacted what it lacks: a transaction puts a key once. It keeps the puts of one main revision
// that only one side has at their place.
type movedRecords struct{ backup, source []dumpdb.Revision }

// find returns the record of the other side that has the key of own's record at the same main revision, and keeps own's
// record if the other side may still show one there.
func (m *movedRecords) find(own, other *side, theirs, ours *[]dumpdb.Revision) *dumpdb.Revision {
	r := &own.rec
	gone := func(x dumpdb.Revision) bool { return x.Main != r.Main }
	*theirs, *ours = slices.DeleteFunc(*theirs, gone), slices.DeleteFunc(*ours, gone)
	if r.Tombstone {
		return nil
	}
	for i := range *theirs {
		if bytes.Equal((*theirs)[i].KV.Key, r.KV.Key) {
			return &(*theirs)[i]
		}
	}
	if other.more && other.rec.Main == r.Main {
		kept := *r
		kept.KV.Key, kept.KV.Value = slices.Clone(r.KV.Key), slices.Clone(r.KV.Value)
		*ours = append(*ours, kept)
	}
	return nil
}

func (c *Compared) conclude(t tally, lostB, lostS int64, damaged bool) {
	switch {
	case c.First != nil:
		c.SameHistory = check.Violated
		// The backup contradicts nothing in the source; it only lacks records of revisions that it claims to have.
		c.BackupLacks = t.differ == 0 && t.onlyBackup == 0 && c.promised()
	case damaged || lostB+lostS > 0:
		c.Reason = fmt.Sprintf("bucket key cannot be read in full: %s of the backup and %d of %s cannot be read or "+
			"decoded; the %d that both have are equal", plural.Of(lostB, "record", "records"), lostS, c.Source,
			c.Records)
	case c.Records == 0:
		c.Reason = "no record is in both"
	default:
		c.SameHistory = check.Holds
	}
}

// promised reports whether what the source held at the backup's revision has to be in the backup. It does not if the
// cluster may have been restored from an older backup: then it may hold what was deleted before this one was taken.
func (c *Compared) promised() bool { return !c.apart && !c.restored }

// mustHold records a live key of the source that the backup's own revision must hold, whatever either has compacted. A
// key that was last written at or before that revision is unchanged since. One that was created at or before it and
// written later existed then as well, since a delete would have given it a later create revision.
func (c *Compared) mustHold(s *evidence.Member, ch *diff.Change, backupRev int64) {
	written := ch.Mod <= backupRev
	created := ch.Create > 0 && ch.Create <= backupRev
	switch {
	case ch.Delete || !written && !created:
		return
	case ch.New:
		c.Lost++
	case written || ch.WasMod < ch.Create:
		c.Altered++
	default: // it was there, with what it held before
		return
	}
	if c.First == nil {
		c.First = lackedKey(s, ch, written)
	}
	c.SameHistory, c.Reason = check.Violated, ""
}

func lackedKey(s *evidence.Member, ch *diff.Change, written bool) *Broken {
	b := &Broken{Revision: check.Rev{Main: ch.Mod}, Key: bytes.Clone(ch.Key), InBackup: "no such key"}
	if !ch.New {
		b.InBackup = "the key with other content"
	}
	if written {
		b.InSource = fmt.Sprintf("put of %q, value of %d bytes with digest %s, not written since", ch.Key,
			len(ch.Value), s.Digest(ch.Value))
		return b
	}
	b.Revision.Main, b.rewritten = ch.Create, true
	if !ch.New {
		b.InBackup = fmt.Sprintf("the key, written at revision %d and not since", ch.WasMod)
	}
	b.InSource = fmt.Sprintf("%q, created at revision %d, not deleted since and written again at %d", ch.Key, ch.Create,
		ch.Mod)
	return b
}

// sharesMember reports whether a member that the backup lists is or was one of the source as well, as in one cluster.
// It is true if one of the two lists none.
func sharesMember(b, s *evidence.Member) bool {
	known := s.Membership
	if known.RaftKnown {
		known.Bucket = nil // older releases restore a backup and keep its list of members
	}
	theirs := len(s.Membership.Bucket) > 0 || known.RaftKnown
	return !theirs || len(b.Membership.Bucket) == 0 ||
		slices.ContainsFunc(b.Membership.Bucket, known.Knows)
}

// sameRecord compares the decoded records, since the encodings of older and newer servers may differ.
func sameRecord(a, b *dumpdb.Revision) bool {
	x, y := &a.KV, &b.KV
	return a.Tombstone == b.Tombstone && bytes.Equal(x.Key, y.Key) && bytes.Equal(x.Value, y.Value) &&
		x.Lease == y.Lease &&
		x.CreateRevision == y.CreateRevision && x.ModRevision == y.ModRevision && x.Version == y.Version
}

func (c *Compared) broken(m *evidence.Member, b, s *dumpdb.Revision) {
	if c.First != nil {
		return
	}
	one := b
	if one == nil {
		one = s
	}
	c.First = &Broken{Revision: check.Rev{Main: one.Main, Sub: one.Sub}, Key: bytes.Clone(one.KV.Key),
		InBackup: recordText(m, b), InSource: recordText(m, s)}
	if b != nil && s != nil && b.Rev != s.Rev {
		c.First.InBackup = b.Rev.String() + ": " + c.First.InBackup
		c.First.InSource = s.Rev.String() + ": " + c.First.InSource
	}
}

// recordText describes a record without its value.
func recordText(m *evidence.Member, r *dumpdb.Revision) string {
	switch {
	case r == nil:
		return "no such record"
	case r.Tombstone:
		return fmt.Sprintf("tombstone of %q", r.KV.Key)
	}
	s := fmt.Sprintf("put of %q, create %d, version %d, value of %d bytes with digest %s", r.KV.Key,
		r.KV.CreateRevision, r.KV.Version, len(r.KV.Value), m.Digest(r.KV.Value))
	if r.KV.Lease != 0 {
		s += ", lease " + dumpdb.ID(r.KV.Lease).String()
	}
	return s
}
