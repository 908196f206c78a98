package run

import (
	"context"
	"maps"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// fakeContent is what a member holds, and says of itself.
type fakeContent struct {
	cluster, auth, applied uint64
	revision, compact      int64
	hash                   uint32
	keys                   map[string]string
	events                 []*clientv3.Event
}

// of returns the content of a member. The lock is held.
func (c *fakeCluster) of(id uint64) *fakeContent {
	if c.contents[id] == nil {
		c.contents[id] = &fakeContent{cluster: fakeClusterID, applied: 10, revision: 10, hash: 7,
			keys: map[string]string{}}
	}
	return c.contents[id]
}

// wrote adds a write to what a member holds; an empty value deletes.
func (c *fakeCluster) wrote(id uint64, rev int64, key, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.of(id)
	e := &clientv3.Event{Kv: &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value), ModRevision: rev}}
	of.keys[key] = value
	if value == "" {
		e.Type = mvccpb.DELETE
		delete(of.keys, key)
	}
	of.events = append(of.events, e)
	of.revision, of.applied = max(of.revision, rev), max(of.applied, uint64(rev))
}

type fakeKV struct {
	clientv3.KV
	fakeClient
}

func (f fakeKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	op := clientv3.OpGet(key, opts...)
	if f.c.read != nil {
		f.c.read(f.id)
	}
	resp := &clientv3.GetResponse{Header: f.header()}
	return resp, f.asks(ctx, "Get", !op.IsSerializable(), func() error {
		of := f.c.of(f.id)
		resp.Count = int64(len(of.keys))
		switch v, ok := of.keys[key]; {
		case op.IsCountOnly():
		case op.Rev() > 0:
			return of.at(&op, resp)
		case ok:
			resp.Kvs = append(resp.Kvs, &mvccpb.KeyValue{Key: []byte(key), Value: []byte(v)})
		}
		return nil
	})
}

// at answers a read at a revision: one key, or a page of three of those from it on.
func (of *fakeContent) at(op *clientv3.Op, resp *clientv3.GetResponse) error {
	if op.Rev() < of.compact {
		return rpctypes.ErrCompacted
	}
	live := map[string]*mvccpb.KeyValue{}
	for _, e := range of.events {
		key := string(e.Kv.Key)
		wanted := key == string(op.KeyBytes()) || op.RangeBytes() != nil && key > string(op.KeyBytes())
		switch {
		case e.Kv.ModRevision > op.Rev() || !wanted:
		case e.Type == mvccpb.DELETE:
			delete(live, key)
		default:
			live[key] = e.Kv
		}
	}
	for _, key := range slices.Sorted(maps.Keys(live)) {
		if resp.More = len(resp.Kvs) == 3; resp.More {
			break
		}
		resp.Kvs = append(resp.Kvs, live[key])
	}
	return nil
}

func (f fakeKV) Put(ctx context.Context, key, value string, _ ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	return &clientv3.PutResponse{Header: f.header()}, f.asks(ctx, "Put", true, func() error {
		f.c.puts = append(f.c.puts, value)
		for _, m := range f.c.list {
			f.c.of(m.ID).keys[key] = value
		}
		return nil
	})
}

func (f fakeKV) Delete(ctx context.Context, key string, _ ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	return &clientv3.DeleteResponse{Header: f.header()}, f.asks(ctx, "Delete", true, func() error {
		for _, m := range f.c.list {
			delete(f.c.of(m.ID).keys, key)
		}
		return nil
	})
}

// fakeWatcher shows a member's history from a revision on, each change by itself.
type fakeWatcher struct {
	clientv3.Watcher
	fakeClient
}

func (f fakeWatcher) Watch(ctx context.Context, _ string, opts ...clientv3.OpOption) clientv3.WatchChan {
	op := clientv3.OpGet("", opts...)
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	of := f.c.of(f.id)
	c := make(chan clientv3.WatchResponse, len(of.events)+1)
	if op.Rev() <= of.compact {
		c <- clientv3.WatchResponse{CompactRevision: of.compact, Canceled: true}
		close(c)
		return c
	}
	for _, e := range of.events {
		if e.Kv.ModRevision >= op.Rev() {
			c <- clientv3.WatchResponse{Events: []*clientv3.Event{e}}
		}
	}
	context.AfterFunc(ctx, func() { close(c) })
	return c
}
