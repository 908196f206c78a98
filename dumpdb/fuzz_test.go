package dumpdb

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// FuzzFile reads any bytes as a file, in every way. Seeds are small db files with the meta page made valid again by the
// target, so that mutations get past the checksum.
func FuzzFile(f *testing.F) {
	for _, b := range lineBytes(f) {
		if len(b) <= 64<<10 {
			f.Add(b, true)
		}
	}
	f.Add([]byte{}, false)
	f.Add(make([]byte, 8192), false)
	f.Fuzz(func(t *testing.T, b []byte, fix bool) {
		if fix {
			fixMetas(b, 4096)
		}
		done := time.AfterFunc(20*time.Second, func() { panic("reading does not end") })
		defer done.Stop()
		readAll(b)
		readDeep(b)
	})
}

// fixMetas gives both metas good checksums.
func fixMetas(b []byte, size int) {
	for n := range 2 {
		if at := n*size + headerSize; at+metaSize <= len(b) {
			h := b[at:]
			le.PutUint32(h, metaMagic)
			le.PutUint32(h[4:], metaVersion)
			le.PutUint32(h[8:], uint32(size))
			le.PutUint64(h[56:], fnv64(h[:56]))
		}
	}
}

// FuzzKeyValue holds our decoder against the generated one: what that takes we take, with the same content.
func FuzzKeyValue(f *testing.F) {
	f.Add(encodeKV(KeyValue{[]byte("k"), 2, 3, 4, []byte("v"), 5}))
	f.Add([]byte{0x0a, 0x7f})
	f.Add([]byte("\x30\xf2\xe5\xe2\xe2\xe2\xe2\xe2\xe2\xe2\x30")) // a varint above 64 bits
	f.Add([]byte("\x0a\x01k\x3a\x03new\x42\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := DecodeKeyValue(b)
		var want mvccpb.KeyValue
		if wantErr := want.Unmarshal(b); wantErr != nil {
			return // stricter is allowed where it refuses too; looser only for groups, which no etcd writes
		}
		if err != nil {
			if hasGroup(b) {
				return
			}
			t.Fatalf("%x: %v", b, err)
		}
		if !bytes.Equal(got.Key, want.Key) || !bytes.Equal(got.Value, want.Value) ||
			got.CreateRevision != want.CreateRevision ||
			got.ModRevision != want.ModRevision || got.Version != want.Version || got.Lease != want.Lease {
			t.Fatalf("%x: %+v, want %+v", b, got, want)
		}
	})
}

// hasGroup says whether a field that our decoder stops at is a group.
func hasGroup(b []byte) bool {
	var f field
	for len(b) > 0 {
		rest, err := nextField(b, &f)
		if err != nil {
			return b[0]&7 == 3 || b[0]&7 == 4 || len(b) > 1 && b[0] >= 0x80
		}
		b = rest
	}
	return false
}

// FuzzSmallRows feeds any key and value to every small decoder.
func FuzzSmallRows(f *testing.F) {
	f.Add([]byte("root"), []byte("\x0a\x04root\x12\x03abc\x1a\x04root\x22\x02\x08\x01"))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x10"), []byte("\x08\x10\x10\x3c"))
	f.Add([]byte("8e9e05c52164694d"), []byte(`{"id":10276657743932975437,"peerURLs":["http://a:1"]}`))
	f.Add([]byte("k8s"), []byte("k8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x08\x0a\x06\x0a\x01x\x1a\x01a"))
	f.Fuzz(func(t *testing.T, k, v []byte) {
		row := Row{Key: k, Value: v}
		decodeUser(row)
		decodeRole(row)
		decodeLease(row)
		new(MetaBucket).set(row)
		new(Auth).set(row)
		memberKey(k)
		ParseKube(v)
		proveRecord(append(Rev{Main: 3}.Bytes(), v...))
		showKey(k)
	})
}

// A context that ends stops every long reading.
func TestContextEnds(t *testing.T) {
	path, err := smallTree(t)
	fatal(t, err)
	db := open(t, path)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, checkErr := db.Check(ctx)
	_, statsErr := db.KVStats(ctx)
	_, hashErr := db.HashKV(ctx, 0)
	_, contentErr := db.BucketHash(ctx, "key")
	_, inspectErr := db.Inspect(ctx)
	_, usageErr := db.Usage(ctx, Query{}, 1)
	for i, err := range []error{checkErr, statsErr, hashErr, contentErr, inspectErr, usageErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("reading %d: %v", i, err)
		}
	}
	for _, err := range db.SalvageRevisions(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("salvage: %v", err)
		}
	}
}
