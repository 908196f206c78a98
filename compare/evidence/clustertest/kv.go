package clustertest

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// session is a client of one member with a time limit.
type session struct {
	ctx context.Context
	cli *clientv3.Client
}

// with runs fn with a session of member i and fails the test if it returns an error.
func (c *Cluster) with(i int, what string, fn func(session) error) {
	c.t.Helper()
	ctx, cancel := c.context()
	defer cancel()
	if err := fn(session{ctx, c.Client(i)}); err != nil {
		c.t.Fatalf("%s through %s: %v", what, c.Name(i), err)
	}
}

// Put writes a key through member i and returns the revision.
func (c *Cluster) Put(i int, key, value string, opts ...clientv3.OpOption) int64 {
	c.t.Helper()
	return c.Do(i, clientv3.OpPut(key, value, opts...))
}

// Delete deletes keys through member i and returns the revision.
func (c *Cluster) Delete(i int, key string, opts ...clientv3.OpOption) int64 {
	c.t.Helper()
	return c.Do(i, clientv3.OpDelete(key, opts...))
}

// Txn runs a transaction through member i. It returns the revision and whether its compares succeeded.
func (c *Cluster) Txn(i int, cmps []clientv3.Cmp, then, otherwise []clientv3.Op) (int64, bool) {
	c.t.Helper()
	var revision int64
	var held bool
	c.with(i, "txn", func(s session) error {
		r, err := s.cli.Txn(s.ctx).If(cmps...).Then(then...).Else(otherwise...).Commit()
		if err != nil {
			return err
		}
		revision, held = r.Header.Revision, r.Succeeded
		return nil
	})
	return revision, held
}

// Do runs one operation through member i and returns the revision.
func (c *Cluster) Do(i int, op clientv3.Op) int64 {
	c.t.Helper()
	var revision int64
	c.with(i, "operation", func(s session) error {
		r, err := s.cli.Do(s.ctx, op)
		if err != nil {
			return err
		}
		switch {
		case r.Put() != nil:
			revision = r.Put().Header.Revision
		case r.Del() != nil:
			revision = r.Del().Header.Revision
		case r.Get() != nil:
			revision = r.Get().Header.Revision
		}
		return nil
	})
	return revision
}

// HashKV returns the server's own hash of member i at a revision (0: its current one).
func (c *Cluster) HashKV(i int, revision int64) (hash uint32, at int64) {
	c.t.Helper()
	c.with(i, "hashkv", func(s session) error {
		r, err := s.cli.HashKV(s.ctx, c.Endpoint(i), revision)
		if err != nil {
			return err
		}
		hash, at = r.Hash, r.HashRevision
		if at == 0 { // before 3.6 only the header has it
			at = r.Header.Revision
		}
		return nil
	})
	return hash, at
}
