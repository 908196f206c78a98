package extract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

// ClusterCopy compares the target cluster with the selected keys, and counts what was written.
type ClusterCopy struct {
	// DryRun is true if nothing was to be written.
	DryRun bool `json:"dryRun"`
	// Revision is that of the target at the start of the copy, ClusterID its cluster ID.
	Revision  int64  `json:"revision"`
	ClusterID string `json:"clusterID"`
	// Absent, Equal and Different count the selected keys by their state in the target: absent, same value, another
	// value.
	Absent    int64 `json:"absent"`
	Equal     int64 `json:"equal"`
	Different int64 `json:"different"`
	// DifferentKeys are the first different keys: overwriting loses their current values.
	DifferentKeys []check.Bytes `json:"differentKeys"`
	// Written counts written keys, Kept those left unchanged because of OnlyIfAbsent, LeasesGranted the granted leases.
	Written       int64 `json:"written"`
	Kept          int64 `json:"kept"`
	LeasesGranted int64 `json:"leasesGranted"`
	// Conflicts counts keys that changed between reading and writing and were left unchanged. Failed counts those that
	// the cluster refused, with the first reasons.
	Conflicts    int64         `json:"conflicts"`
	ConflictKeys []check.Bytes `json:"conflictKeys"`
	Failed       int64         `json:"failed"`
	Errors       []string      `json:"errors"`
}

// Target is the cluster that receives the keys.
type Target struct {
	Client *clientv3.Client
	// Write writes the keys; without it the result only says what would be written.
	Write bool
}

// ToCluster copies the selected keys into a running cluster, in key order. Every put is conditional on the mod revision
// at which the key was read. A key that changes meanwhile is left unchanged and counted.
func ToCluster(ctx context.Context, path string, o Options, to Target) (*Result, error) {
	o.Format, o.Out = Cluster, ""
	if err := o.Valid(); err != nil {
		return nil, err
	}
	x, done, err := start(ctx, path, &o)
	if err != nil {
		return nil, err
	}
	defer done()
	c := &copier{x: x, to: to, granted: map[int64]bool{},
		res: &ClusterCopy{DryRun: !to.Write, DifferentKeys: []check.Bytes{}, ConflictKeys: []check.Bytes{},
			Errors: []string{}}}
	x.res.Cluster = c.res
	if err := c.reachable(ctx); err != nil {
		return nil, err
	}
	err = x.live(ctx, func(rec *Record) error { return c.put(ctx, rec) })
	if err == nil {
		err = c.flush(ctx)
	}
	if err != nil {
		return nil, err
	}
	x.missing()
	return x.res, nil
}

// copier collects keys, reads them from the target in one request, and writes them in one transaction.
type copier struct {
	x       *reader
	to      Target
	res     *ClusterCopy
	granted map[int64]bool
	batch   []want
	size    int
}

// want is a key to write.
type want struct {
	key, value []byte
	lease      int64
	// mod is the mod revision of the target's key, 0 if it does not exist.
	mod int64
}

// patience bounds the first request to each endpoint: the client itself would retry forever.
const patience = 5 * time.Second

// reachable asks every endpoint until one answers. A refusal is an answer: later requests show the user's permissions.
func (c *copier) reachable(ctx context.Context) error {
	var errs []error
	for _, e := range c.to.Client.Endpoints() {
		ask, cancel := context.WithTimeout(ctx, patience)
		r, err := c.to.Client.Status(ask, e)
		cancel()
		if err == nil {
			c.res.Revision, c.res.ClusterID = r.Header.GetRevision(), fmt.Sprintf("%x", r.Header.GetClusterId())
			return nil
		}
		var answer rpctypes.EtcdError
		if errors.As(err, &answer) && answer.Code() != codes.Unavailable {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s gives no answer: %w", e, err))
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(errs...)
}

func (c *copier) put(ctx context.Context, rec *Record) error {
	c.batch = append(c.batch, want{key: bytes.Clone(rec.Key), value: bytes.Clone(rec.Value), lease: rec.Lease})
	c.size += len(rec.Key) + len(rec.Value)
	if len(c.batch) < txnOps && c.size < txnBytes {
		return nil
	}
	return c.flush(ctx)
}

// flush compares the collected keys and writes those that need it.
func (c *copier) flush(ctx context.Context) error {
	batch := c.batch
	c.batch, c.size = nil, 0
	if len(batch) == 0 {
		return nil
	}
	todo, err := c.readTarget(ctx, batch)
	if err != nil || !c.to.Write || len(todo) == 0 {
		return err
	}
	if todo, err = c.grantAll(ctx, todo); err != nil {
		return err
	}
	ok, err := c.write(ctx, todo)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if ok && err == nil {
		c.res.Written += int64(len(todo))
		return nil
	}
	return c.oneByOne(ctx, todo)
}

// readTarget reads the keys in the target and returns those to write.
func (c *copier) readTarget(ctx context.Context, batch []want) (todo []want, err error) {
	ops := make([]clientv3.Op, len(batch))
	for i, w := range batch {
		ops[i] = clientv3.OpGet(string(w.key))
	}
	r, err := c.to.Client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, fmt.Errorf("reading the target: %w", err)
	}
	if c.res.ClusterID == "" {
		c.res.Revision, c.res.ClusterID = r.Header.GetRevision(), fmt.Sprintf("%x", r.Header.GetClusterId())
	}
	for i, w := range batch {
		kvs := r.Responses[i].GetResponseRange().Kvs
		switch {
		case len(kvs) == 0:
			c.res.Absent++
			todo = append(todo, w)
		case bytes.Equal(kvs[0].Value, w.value) && (kvs[0].Lease != 0) == (w.lease != 0):
			c.res.Equal++
		default:
			c.res.Different++
			if len(c.res.DifferentKeys) < maxListed {
				c.res.DifferentKeys = append(c.res.DifferentKeys, check.Bytes(w.key))
			}
			if c.x.o.OnlyIfAbsent {
				c.res.Kept++
				continue
			}
			w.mod = kvs[0].ModRevision
			todo = append(todo, w)
		}
	}
	return todo, nil
}

// grantAll grants the leases of the keys under their old IDs. It uses an existing lease of the target unchanged. Keys
// whose lease cannot be granted are not written, since they would never expire.
func (c *copier) grantAll(ctx context.Context, todo []want) ([]want, error) {
	kept := todo[:0]
	for _, w := range todo {
		if w.lease == 0 || c.granted[w.lease] {
			kept = append(kept, w)
			continue
		}
		err := c.grant(ctx, w.lease)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			c.fail(w.key, fmt.Errorf("lease %x: %w", w.lease, err))
			continue
		}
		c.granted[w.lease] = true
		kept = append(kept, w)
	}
	return kept, nil
}

func (c *copier) grant(ctx context.Context, id int64) error {
	api := etcdserverpb.NewLeaseClient(c.to.Client.ActiveConnection())
	_, err := api.LeaseGrant(ctx, &etcdserverpb.LeaseGrantRequest{ID: id, TTL: max(c.x.leases[id], 1)})
	err = rpctypes.Error(err)
	if err == rpctypes.ErrLeaseExist { //nolint:errorlint // a value of the client's own table
		return nil
	}
	if err == nil {
		c.res.LeasesGranted++
	}
	return err
}

// write puts the keys in one transaction and reports whether all of them were unchanged.
func (c *copier) write(ctx context.Context, todo []want) (bool, error) {
	cmps, ops := make([]clientv3.Cmp, len(todo)), make([]clientv3.Op, len(todo))
	for i, w := range todo {
		cmps[i] = clientv3.Compare(clientv3.ModRevision(string(w.key)), "=", w.mod)
		ops[i] = clientv3.OpPut(string(w.key), string(w.value), clientv3.WithLease(clientv3.LeaseID(w.lease)))
	}
	r, err := c.to.Client.Txn(ctx).If(cmps...).Then(ops...).Commit()
	if err != nil {
		return false, err
	}
	return r.Succeeded, nil
}

// oneByOne writes the keys of a failed transaction separately, to find those that changed.
func (c *copier) oneByOne(ctx context.Context, todo []want) error {
	for i := range todo {
		ok, err := c.write(ctx, todo[i:i+1])
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			c.fail(todo[i].key, err)
		case ok:
			c.res.Written++
		default:
			c.res.Conflicts++
			if len(c.res.ConflictKeys) < maxListed {
				c.res.ConflictKeys = append(c.res.ConflictKeys, check.Bytes(todo[i].key))
			}
		}
	}
	return nil
}

func (c *copier) fail(key []byte, err error) {
	c.res.Failed++
	if len(c.res.Errors) < 20 {
		c.res.Errors = append(c.res.Errors, fmt.Sprintf("%q: %v", key, err))
	}
}
