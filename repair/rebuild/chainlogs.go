package rebuild

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// runChainLogs rebuilds from a full snapshot of the chains and the logs. It uses the newest full snapshot before the
// target; the logs must reach back to it.
func runChainLogs(ctx context.Context, o Options, chains []chain.Chain) (*Result, error) {
	dir, err := os.MkdirTemp("", "etcd-medic-chain-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a copy of the full snapshot
	var first error
	for i := len(chains) - 1; i >= 0; i-- {
		c := &chains[i]
		if o.To.Revision > 0 && c.Full.Last > o.To.Revision || !o.To.Time.IsZero() && c.Full.Created.After(o.To.Time) {
			continue
		}
		full := filepath.Join(dir, filepath.Base(c.Full.Name()))
		if err := (&chained{o: o, chain: c}).unpack(ctx, full); err != nil {
			return nil, err
		}
		at := o
		at.Base = evidence.Spec{Name: c.Full.Name(), Where: full}
		res, err := Run(ctx, at)
		var refused *refusal.Error
		switch {
		case err == nil:
			res.note("the logs lead on from the full snapshot %s; its deltas were not used", c.Full.Name())
			return res, nil
		case !errors.As(err, &refused):
			return nil, err
		case first == nil:
			first = err
		}
		if err := os.Remove(full); err != nil {
			return nil, err
		}
	}
	if first == nil {
		first = refuse("no full snapshot here is as old as %s", o.To)
	}
	return nil, first
}

// chainAgainst compares the keys of the result with the databases of other members, up to the lower revision of both.
// Data that deltas do not contain cannot be compared.
func (b *builder) chainAgainst(ctx context.Context, path string) error {
	if len(b.o.Against) == 0 {
		return nil
	}
	set, err := evidence.Open(ctx, b.o.Against, evidence.Options{Access: b.o.Access, Progress: b.o.Progress})
	if err != nil {
		return err
	}
	defer func() { _ = set.Close() }() // only read
	for _, f := range set.Failed {
		return f.Err
	}
	db, err := dumpdb.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // only read
	for _, m := range set.Members {
		if !m.HasDB() {
			continue
		}
		v := Verification{Member: m.Label(), Buckets: []Bucket{}}
		key, rev, err := b.keys(ctx, db, m)
		if err != nil {
			return err
		}
		v.Revision, v.Buckets = rev, append(v.Buckets, key)
		if v.HashKV, err = b.hashKV(ctx, db, m, rev); err != nil {
			return err
		}
		for _, name := range hashed {
			v.Buckets = append(v.Buckets, Bucket{Bucket: name, Why: "deltas hold keys only"})
		}
		b.res.Verified = append(b.res.Verified, v)
	}
	return set.Unchanged(ctx)
}
