package surgery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/regular"
	"github.com/etcd-medic/etcd-medic/internal/wire"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// dropV2 empties /1, the v2 keys of users, in every intact .snap file: 3.6 does not start with any ("detected
// disallowed custom content in v2store"). It does not change keys of the v3 API, or v2 entries in the log.
func dropV2(ctx context.Context, c *Meta, w *work) ([]datadir.Edit, error) {
	if !c.DropV2 {
		return nil, nil
	}
	m := w.source()
	if !m.HasSnap() || w.parts.Snap == "" {
		return nil, refusef("give the whole data dir", "%s has no .snap files", m.Label())
	}
	keys := map[string]bool{}
	for _, f := range m.Snap.Files {
		if f.Damage != nil || f.Broken || f.V2 == nil || len(f.V2.UserKeys) == 0 {
			continue
		}
		b, err := regular.ReadFile(filepath.Join(w.parts.Snap, f.File), dumplog.MaxSnapFile)
		if err != nil {
			return nil, err
		}
		clean, err := withoutUserKeys(f.File, b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.File, err)
		}
		w.snaps[f.File] = clean
		for _, k := range f.V2.UserKeys {
			keys[k] = true
		}
		w.did("%s carries no v2 keys any more", f.File)
	}
	if len(keys) == 0 {
		return nil, refusef("", "no .snap file of %s holds v2 keys", m.Label())
	}
	w.givesUp("%d v2 keys; etcdctl with ETCDCTL_API=2 on the old member, or etcdctl migrate of etcd 3.3, still reads "+
		"them", len(keys))
	for _, p := range w.peers() {
		if f := p.NewestSnap(); f != nil && f.V2 != nil && len(f.V2.UserKeys) > 0 {
			w.note("%s has v2 keys too", p.Label())
		}
	}
	if n := v2Entries(ctx, w); n > 0 {
		w.note("the log has %d v2 requests after the newest snapshot; etcd 3.6 and later do not start on those",
			n)
	}
	return nil, nil
}

// v2Entries counts raw v2 requests after the newest snapshot that write user keys.
func v2Entries(ctx context.Context, w *work) (n int) {
	m := w.source()
	if !m.HasLog() {
		return 0
	}
	from := newestUsable(m)
	for e, err := range m.WAL.Log.Entries(ctx, &m.WAL.Summary) {
		if err != nil || e.Overwritten || e.Index <= from {
			continue
		}
		if r, err := e.Decode(); err == nil && r.Kind == dumplog.KindV2 && r.Publishes() == nil &&
			bytes.HasPrefix([]byte(r.V2.Path), []byte("/1")) {
			n++
		}
	}
	return n
}

// withoutUserKeys takes a .snap file apart, empties /1 in the JSON of the v2 store, and puts it together with a new
// checksum. The result is read again: a store that is not laid out as etcd writes it is refused.
func withoutUserKeys(name string, file []byte) ([]byte, error) {
	snap, err := field(file, 2) // snappb.Snapshot {1 crc, 2 data}
	if err != nil {
		return nil, err
	}
	store, err := field(snap, 1) // raftpb.Snapshot {1 data, 2 metadata}
	if err != nil {
		return nil, err
	}
	meta, err := field(snap, 2)
	if err != nil {
		return nil, err
	}
	if store, err = emptied(store); err != nil {
		return nil, err
	}
	clean := datadir.SnapFile(store, meta)
	before, after := dumplog.DecodeSnapFile(name, file).V2, dumplog.DecodeSnapFile(name, clean).V2
	if before == nil || after == nil || len(after.UserKeys) > 0 || !sameMembers(before, after) {
		return nil, errors.New("the v2 store is not laid out as etcd writes it")
	}
	return clean, nil
}

// sameMembers compares what two v2 stores hold of the cluster.
func sameMembers(a, b *dumplog.V2Store) bool {
	return a.Version == b.Version && slices.Equal(a.Removed, b.Removed) && slices.EqualFunc(a.Members, b.Members,
		func(x, y dumplog.V2Member) bool { return reflect.DeepEqual(x, y) })
}

// emptied returns the JSON of a v2 store without its content below /1.
func emptied(store []byte) ([]byte, error) {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(store, &doc); err != nil {
		return nil, err
	}
	var root map[string]json.RawMessage
	if err := json.Unmarshal(doc["Root"], &root); err != nil {
		return nil, err
	}
	var children map[string]json.RawMessage
	if err := json.Unmarshal(root["Children"], &children); err != nil {
		return nil, err
	}
	if children == nil {
		return nil, errors.New("the v2 store has no keys where it should")
	}
	// Children may be named by their whole path.
	maps.DeleteFunc(children, func(name string, _ json.RawMessage) bool { return strings.HasSuffix(name, "/1") })
	children["1"] = json.RawMessage(`{"Path":"/1","CreatedIndex":0,"ModifiedIndex":0,"ExpireTime":"0001-01-01T00:00:00Z","Value":"","Children":{}}`)
	// What was watched is not kept either: the history names the keys.
	delete(doc, "WatcherHub")
	for _, up := range []struct {
		into map[string]json.RawMessage
		key  string
		v    map[string]json.RawMessage
	}{{root, "Children", children}, {doc, "Root", root}} {
		b, err := json.Marshal(up.v)
		if err != nil {
			return nil, err
		}
		up.into[up.key] = b
	}
	return json.Marshal(doc)
}

// field returns the bytes of a length-delimited field.
func field(b []byte, want int32) ([]byte, error) {
	var f wire.Field
	for n := f.Next(b); n > 0; n = f.Next(b) {
		if f.Num == want && f.Type == wire.Bytes {
			return f.B, nil
		}
		b = b[n:]
	}
	return nil, fmt.Errorf("field %d is not there", want)
}
