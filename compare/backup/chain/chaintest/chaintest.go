// Package chaintest writes chains of full and delta snapshots as etcd-backup-restore does, for tests.
package chaintest

import (
	"bytes"
	"compress/gzip"
	"compress/lzw"
	"compress/zlib"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// timedEvent is an element of a delta snapshot (pkg/snapshot/snapshotter, event).
type timedEvent struct {
	EtcdEvent *clientv3.Event `json:"etcdEvent"`
	Time      time.Time       `json:"time"`
}

// Chain writes files of one folder. Every file is one second newer than the one before it.
type Chain struct {
	TB     testing.TB
	Dir    string
	Suffix string
	Time   int64
}

// Full writes a full snapshot of a database file, with the sha256 trailer if it has none, under the name of a revision.
func (c *Chain) Full(db string, last int64) string {
	c.TB.Helper()
	b, err := os.ReadFile(db)
	c.ok(err)
	if len(b)%512 == 0 {
		sum := sha256.Sum256(b)
		b = append(b, sum[:]...)
	}
	return c.write("Full", 0, last, b)
}

// Delta writes a delta snapshot of events.
func (c *Chain) Delta(events []*clientv3.Event) string {
	c.TB.Helper()
	return c.DeltaAs(events[0].Kv.ModRevision, events[len(events)-1].Kv.ModRevision, events)
}

// DeltaAs is Delta under a name that may be wrong.
func (c *Chain) DeltaAs(first, last int64, events []*clientv3.Event) string {
	c.TB.Helper()
	list := make([]timedEvent, 0, len(events))
	for _, e := range events {
		list = append(list, timedEvent{e, time.Unix(c.Time, 0)})
	}
	b, err := json.Marshal(list)
	c.ok(err)
	sum := sha256.Sum256(b)
	return c.write("Incr", first, last, append(b, sum[:]...))
}

func (c *Chain) write(kind string, first, last int64, b []byte) string {
	c.TB.Helper()
	if c.Time == 0 {
		c.Time = 1_700_000_000
	}
	c.Time++
	path := filepath.Join(c.Dir, fmt.Sprintf("%s-%08d-%08d-%d%s", kind, first, last, c.Time, c.Suffix))
	c.ok(os.MkdirAll(c.Dir, 0o700))
	c.ok(os.WriteFile(path, c.pack(b), 0o600))
	return path
}

func (c *Chain) pack(b []byte) []byte {
	var out bytes.Buffer
	var w io.WriteCloser
	switch c.Suffix {
	case ".gz":
		w = gzip.NewWriter(&out)
	case ".zlib":
		w = zlib.NewWriter(&out)
	case ".Z":
		w = lzw.NewWriter(&out, lzw.LSB, 8)
	default:
		return b
	}
	_, err := w.Write(b)
	c.ok(err)
	c.ok(w.Close())
	return out.Bytes()
}

func (c *Chain) ok(err error) {
	c.TB.Helper()
	if err != nil {
		c.TB.Fatal(err)
	}
}

// Events returns the changes of the revisions from first to last in a database that was never compacted, as a watch
// reports them.
func Events(tb testing.TB, db string, first, last int64) []*clientv3.Event {
	tb.Helper()
	h, err := dumpdb.Open(db)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	var out []*clientv3.Event
	for r, err := range h.RevisionsBetween(dumpdb.Rev{Main: first}, dumpdb.Rev{Main: last + 1}) {
		if err != nil || r.Err != nil {
			tb.Fatal(err, r.Err)
		}
		kv := &mvccpb.KeyValue{Key: slices.Clone(r.KV.Key), Value: slices.Clone(r.KV.Value),
			CreateRevision: r.KV.CreateRevision, ModRevision: r.Main,
			Version: r.KV.Version, Lease: r.KV.Lease}
		e := &clientv3.Event{Type: mvccpb.PUT, Kv: kv}
		if r.Tombstone {
			e.Type, e.Kv = mvccpb.DELETE, &mvccpb.KeyValue{Key: kv.Key, ModRevision: r.Main}
		}
		out = append(out, e)
	}
	return out
}

// Watched collects the events of a running server from a revision to another one.
func Watched(tb testing.TB, cli *clientv3.Client, first, last int64) []*clientv3.Event {
	tb.Helper()
	var out []*clientv3.Event
	timeout := time.After(time.Minute)
	watch := cli.Watch(tb.Context(), "", clientv3.WithPrefix(), clientv3.WithRev(first))
	for {
		select {
		case <-timeout:
			tb.Fatalf("no events up to revision %d within a minute", last)
		case resp, ok := <-watch:
			if !ok || resp.Err() != nil {
				tb.Fatalf("watch ended: %v", resp.Err())
			}
			for _, e := range resp.Events {
				if e.Kv.ModRevision <= last {
					out = append(out, e)
				}
			}
			if n := len(resp.Events); n > 0 && resp.Events[n-1].Kv.ModRevision >= last {
				return out
			}
		}
	}
}

// Split splits events after a revision.
func Split(events []*clientv3.Event, after int64) (before, behind []*clientv3.Event) {
	i := slices.IndexFunc(events, func(e *clientv3.Event) bool { return e.Kv.ModRevision > after })
	if i < 0 {
		return events, nil
	}
	return events[:i], events[i:]
}
