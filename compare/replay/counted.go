package replay

import (
	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Below the compact revision the live records still say at which revision some entries wrote. Between two of them the
// revisions are counted: where there are as many as entries that must have written, all others had no effect; where
// there are as many as entries that may have written, all of them did.

// maxCounted bounds the last entries before the place that are kept to be counted.
const maxCounted = 4096

// kept is what is remembered of an entry before the place: its operations, values as sums.
type kept struct {
	index uint64
	// ops are those that are executed if the entry wrote; known is false where that is unknown. all are those that may
	// be executed.
	ops, all []keptOp
	known    bool
	// sure is true if the entry is executed in every state of the key space, writes if it then makes a revision.
	sure, writes bool
	// revoke is the lease that the entry revokes.
	revoke int64
	// rev is the revision of the live record that proves that the entry wrote, 0 if there is none.
	rev int64
}

// keptOp is a put or a delete.
type keptOp struct {
	key, end []byte
	put      bool
	// valued is false for a put that keeps the present value or lease.
	valued bool
	sum    uint64
	lease  int64
}

func keptOps(ops []dumplog.RequestOp) (out []keptOp, plain bool) {
	plain = true
	for _, op := range ops {
		switch {
		case op.Put != nil:
			valued := !op.Put.IgnoreLease && !op.Put.IgnoreValue
			k := keptOp{key: []byte(string(op.Put.Key)), put: true, valued: valued, lease: op.Put.Lease}
			if valued {
				k.sum = apply.SumOf(op.Put.Value)
			}
			out = append(out, k)
		case op.DeleteRange != nil:
			out = append(out, keptOp{key: []byte(string(op.DeleteRange.Key)),
				end: []byte(string(op.DeleteRange.RangeEnd))})
		case op.Txn != nil:
			plain = false
		}
	}
	return out, plain
}

// keep makes what is remembered of an entry that may write.
func (lv *logView) keep(it *item) *kept {
	k := &kept{index: it.entry.Index}
	var all []dumplog.RequestOp
	it.req.EachOp(func(op dumplog.RequestOp) { all = append(all, op) })
	k.all, _ = keptOps(all)
	var ops []dumplog.RequestOp
	if ops, k.sure = lv.sureOps(it.req, it.entry.Index); k.sure {
		k.ops, k.known = keptOps(ops)
		for _, op := range k.ops {
			k.writes = k.writes || op.put
		}
		return k
	}
	switch t := it.req.Txn; {
	case it.req.LeaseRevoke != nil:
		k.revoke = it.req.LeaseRevoke.ID
	case t == nil:
		k.ops, k.known = k.all, true
	case !txnMayWrite(&dumplog.TxnRequest{Success: t.Success}, 0):
		k.ops, k.known = keptOps(t.Failure)
	case !txnMayWrite(&dumplog.TxnRequest{Success: t.Failure}, 0):
		k.ops, k.known = keptOps(t.Success)
	}
	return k
}

// count finds out which of the entries wrote: wrote and quiet are those that certainly did and did not. Both are empty
// if records and entries contradict each other.
func (be *belowPlace) count(entries []*kept) (wrote, quiet map[*kept]bool) {
	wrote, quiet = map[*kept]bool{}, map[*kept]bool{}
	if !be.anchor(entries) {
		return wrote, quiet
	}
	from, last := -1, int64(0)
	for i := 0; i <= len(entries); i++ {
		rev := be.meet.rev + 1
		if i < len(entries) {
			if rev = entries[i].rev; rev == 0 {
				continue
			}
			wrote[entries[i]] = true
		}
		if last > 0 {
			between(entries[from+1:i], rev-last-1, wrote, quiet)
		}
		from, last = i, rev
	}
	return wrote, quiet
}

// between counts the entries between two that are known to have written.
func between(entries []*kept, revisions int64, wrote, quiet map[*kept]bool) {
	sure := int64(0)
	for _, k := range entries {
		if k.writes {
			sure++
		}
	}
	for _, k := range entries {
		switch {
		case k.writes:
		case revisions == sure:
			quiet[k] = true
		case revisions == int64(len(entries)):
			wrote[k] = true
		}
	}
}

// anchor gives entries the revisions of the live records that only they can have written. The first must be one that
// writes for certain: before it a record may be older than the log. It is false where their order is not that of the
// log.
func (be *belowPlace) anchor(entries []*kept) bool {
	type content struct {
		key   string
		sum   uint64
		lease int64
	}
	writers := map[content]int{}
	each := func(k *kept, visit func(content)) {
		for _, op := range k.all {
			if op.put && op.valued {
				visit(content{string(op.key), op.sum, op.lease})
			}
		}
	}
	unvalued := map[string]bool{}
	for _, k := range entries {
		k.rev = 0
		each(k, func(c content) { writers[c]++ })
		for _, op := range k.all {
			if op.put && !op.valued {
				unvalued[string(op.key)] = true
			}
		}
	}
	index, rev := uint64(0), int64(0)
	for _, k := range entries {
		each(k, func(c content) {
			got := be.Keys.Get(c.key)
			if got == nil || got.Sum != c.sum || got.Lease != c.lease || writers[c] != 1 || unvalued[c.key] ||
				rev == 0 && !k.writes || !k.known {
				return
			}
			k.rev = got.Mod
		})
		if k.rev == 0 {
			continue
		}
		if !k.writes && k.rev <= rev {
			k.rev = 0 // an older record of the same content: this entry may have had no effect
			continue
		}
		if rev > 0 && (k.rev <= rev || uint64(k.rev-rev) > k.index-index) { //nolint:gosec // both are positive
			return false
		}
		index, rev = k.index, k.rev
	}
	return rev <= be.meet.rev
}
