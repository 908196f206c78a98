package dumpdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/lease/leasepb"
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
	f.Add(encodeKV(KeyValue{[]byte("k"), 2, 3, 4, []byte("v"), 5, 0}))
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
			return b[0]&7 == 3 || b[0]&7 == 4
		}
		b = rest
	}
	return false
}

// FuzzSmallRows feeds any key and value to the decoders of all buckets but key. What they take is what etcd's own types
// hold.
func FuzzSmallRows(f *testing.F) {
	for _, row := range [][2]string{
		{"root", "\x0a\x04root\x12\x03abc\x1a\x04root\x22\x02\x08\x01"},
		{"r", "\x0a\x01r\x12\x08\x08\x02\x12\x01a\x1a\x01b"},
		{"\x00\x00\x00\x00\x00\x00\x00\x10", "\x08\x10\x10\x3c"},
		{"8e9e05c52164694d", `{"id":10276657743932975437,"peerURLs":["http://a:1"],"name":"a","clientURLs":["http://a:2"]}`},
		{"8e9e05c52164694d", "removed"}, {"\x08\x10\x10\x02", ""},
		{"clusterVersion", "3.6.0"}, {"downgrade", `{"target-version":"3.5.0","enabled":true}`},
		{"consistent_index", "\x00\x00\x00\x00\x00\x00\x00\x10"}, {"term", "\x00\x00\x00\x00\x00\x00\x00\x02"},
		{"confState", `{"voters":[1,2],"learners":[3],"auto_leave":false}`}, {"storageVersion", "3.6.0"},
		{"scheduledCompactRev", "\x00\x00\x00\x00\x00\x00\x00\x05_\x00\x00\x00\x00\x00\x00\x00\x00"},
		{"authEnabled", "\x01"}, {"authRevision", "\x00\x00\x00\x00\x00\x00\x00\x05"},
		{"k8s", "k8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x08\x0a\x06\x0a\x01x\x1a\x01a"},
	} {
		f.Add([]byte(row[0]), []byte(row[1]))
	}
	f.Fuzz(func(t *testing.T, k, v []byte) {
		row := Row{Key: k, Value: v}
		_ = new(MetaBucket).set(row)
		_ = new(Auth).set(row)
		_ = new(Cluster).set(row)
		_, _ = memberKey(k)
		ParseKube(v)
		proveRecord(append(Rev{Main: 3}.Bytes(), v...))
		showKey(k)
		asEtcdReads(t, row)
	})
}

// asEtcdReads compares the decoders of messages with the generated ones, where both take a row.
func asEtcdReads(t *testing.T, row Row) {
	t.Helper()
	var user authpb.User
	if u, err := decodeUser(row); err == nil && user.Unmarshal(row.Value) == nil && (u.Name != string(user.Name) ||
		!slices.Equal(u.Roles, user.Roles)) {
		t.Errorf("user %+v, etcd's types: %+v", u, &user)
	}
	var role authpb.Role
	if r, err := decodeRole(row); err == nil && role.Unmarshal(row.Value) == nil &&
		(r.Name != string(role.Name) || len(r.Perms) != len(role.KeyPermission)) {
		t.Errorf("role %+v, etcd's types: %+v", r, &role)
	}
	var alarm etcdserverpb.AlarmMember
	if a, err := decodeAlarm(row); err == nil && alarm.Unmarshal(row.Key) == nil &&
		(uint64(a.MemberID) != alarm.MemberID || a.Type != int32(alarm.Alarm)) {
		t.Errorf("alarm %+v, etcd's types: %+v", a, &alarm)
	}
	var lease leasepb.Lease
	if l, err := decodeLease(row); err == nil && lease.Unmarshal(row.Value) == nil &&
		(int64(l.ID) != lease.ID || l.TTL != lease.TTL) {
		t.Errorf("lease %+v, etcd's types: %+v", l, &lease)
	}
	if m, err := decodeMember(row); err == nil && !strings.EqualFold(strings.TrimLeft(string(row.Key), "0"),
		strings.TrimLeft(fmt.Sprintf("%x", uint64(m.ID)), "0")) {
		t.Errorf("row %q is member %s", row.Key, m.ID)
	}
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
