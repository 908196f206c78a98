package surgery

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// snapName is the name of the .snap files that fuzz targets make: term 1, index 5.
const snapName = "0000000000000001-0000000000000005.snap"

// FuzzWithoutUserKeys reads any bytes as a .snap file and any text as the v2 store of a sound one. What the v2 keys can
// be taken out of is a sound .snap file again. It has no v2 key, and everything else of the store is unchanged.
func FuzzWithoutUserKeys(f *testing.F) {
	metadata := []byte{16, 5, 24, 1}
	for _, store := range []string{"", "null", "{}", `{"Root":{}}`, `{"Root":{"Children":{}}}`,
		`{"Root":{"Children":{"1":{"Path":"/1","Children":{"k":{"Path":"/1/k","Value":"v","Children":null}}}}}}`,
		`{"Root":{"Path":"/","Children":{"0":{"Path":"/0","Children":{"members":{"Path":"/0/members","Children":` +
			`{"8e9e05c52164694d":{"Path":"/0/members/8e9e05c52164694d","Children":{}}}}}},"1":{"Path":"/1"}}},` +
			`"CurrentIndex":7,"WatcherHub":{"EventHistory":{}}}`,
		`{"root":{"children":{"1":{}}},"Root":{"Children":{"1":1,"0":[]},"children":{"2":{}}}}`} {
		f.Add([]byte(store), true)
		f.Add(datadir.SnapFile([]byte(store), metadata), false)
	}
	f.Add([]byte{0x12, 0xff, 0xff, 0xff, 0xff, 0x0f}, false)
	f.Fuzz(func(t *testing.T, b []byte, isStore bool) {
		file := b
		if isStore {
			file = datadir.SnapFile(b, metadata)
		}
		clean, err := withoutUserKeys(snapName, file)
		if err != nil {
			return
		}
		before, after := dumplog.DecodeSnapFile(snapName, file), dumplog.DecodeSnapFile(snapName, clean)
		if after.StoredCRC != after.ComputedCRC {
			t.Fatalf("the checksum of the new file is wrong: %x", clean)
		}
		if before.Damage != nil || before.V2 == nil {
			return // only sound files are edited
		}
		if after.Damage != nil || after.V2 == nil || len(after.V2.UserKeys) != 0 {
			t.Fatalf("%s\nbecame damaged or has v2 keys: %v %+v", b, after.Damage, after.V2)
		}
		before.V2.UserKeys, before.V2.Bytes, after.V2.Bytes = nil, 0, 0
		if was, is := asJSON(t, before.V2), asJSON(t, after.V2); was != is {
			t.Fatalf("members or version changed:\n%s\n%s", was, is)
		}
	})
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}
