package dumplog

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// FuzzV2Store reads any bytes as the v2 store of a .snap file, of which a fuzzed file has the right lengths and CRC
// seldom: never a panic, the same result each time, and no more than there is room for.
func FuzzV2Store(f *testing.F) {
	for _, s := range []string{"", "{}", `{"Root":{"Children":{"0":{"Children":{"members":{"Children":{"a":{"Children":{` +
		`"attributes":{"Value":"{\"name\":\"n\",\"clientURLs\":[\"http://a:1\"]}"},` +
		`"raftAttributes":{"Value":"{\"peerURLs\":[\"http://a:2\"],\"isLearner\":true}"}}}}},` +
		`"removed_members":{"Children":{"b":{}}},"version":{"Value":"3.5.0"}}},"1":{"Children":{"k":{"Value":"v"}}}}}}`,
		`{"Root":{"Path":"/","Children":{"/0":{"Path":"/0","Children":{"/0/members":{"Children":{"/0/members/c":null}}}},` +
			`"/1":{"Children":{"/1/d":{"Children":{"/1/d/e":{"Value":"v"}}}}}}}}`,
		strings.Repeat(`{"Root":{"Children":{"1":`, 50)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const nodes = 1000
		v, err := decodeV2Store(b, newV2Room(nodes))
		if v == nil || v.Bytes != len(b) {
			t.Fatalf("%+v of %d bytes, %v", v, len(b), err)
		}
		kept := 0
		for _, k := range v.UserKeys {
			if kept += len(k); !strings.HasPrefix(k, "/1/") {
				t.Errorf("key %q is not below /1", k)
			}
		}
		if len(v.UserKeys)+len(v.Members)+len(v.Removed) > nodes || kept > nodes*nodeBytes {
			t.Errorf("%d keys of %d bytes, %d members, %d removed", len(v.UserKeys), kept, len(v.Members),
				len(v.Removed))
		}
		again, err2 := decodeV2Store(b, newV2Room(nodes))
		if (err == nil) != (err2 == nil) || !slices.Equal(v.UserKeys, again.UserKeys) ||
			err == nil && len(v.Members) < 2 && !reflect.DeepEqual(v.Members, again.Members) {
			t.Errorf("%+v, then %+v", v, again)
		}
	})
}

// FuzzKubernetesTime reads any key and value as an object of Kubernetes: a time that it yields is after 1970, and
// says where it is from.
func FuzzKubernetesTime(f *testing.F) {
	for _, s := range [][2]string{
		{"/registry/leases/kube-system/a", `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","spec":{"renewTime":"2026-01-02T03:04:05.000006Z"}}`},
		{"/registry/configmaps/d/c", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"managedFields":[{"time":"2026-01-02T03:04:05Z"}]}}`},
		{"/registry/pods/d/p", "k8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x08\x0a\x06\x0a\x01x\x1a\x01a"},
		{"/registry/leases/a/b", "k8s\x00\x0a\x1e\x0a\x16coordination.k8s.io/v1\x12\x05Lease\x12\x0e\x12\x0c\x1a\x08\x08\x80\x94\xeb\xdc\x03"},
		{"", ""}} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		at, src, ok := kubernetesTime(key, value)
		if ok && (at.Before(time.Unix(0, 0)) || src == "") {
			t.Errorf("%v from %q", at, src)
		}
	})
}
