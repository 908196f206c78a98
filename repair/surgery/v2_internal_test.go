package surgery

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// TestStrangeSnapFiles: a .snap file may hold any JSON; what is not understood is an error, never a panic.
func TestStrangeSnapFiles(t *testing.T) {
	for _, store := range []string{"", "null", "[]", "{}", `{"Root":null}`, `{"Root":{}}`, `{"Root":{"Children":null}}`,
		`{"root":{"children":{"1":{}}}}`, `{"Root":[1]}`} {
		if b, err := withoutUserKeys(snapName, datadir.SnapFile([]byte(store), nil)); err == nil {
			t.Errorf("%s is taken: %x", store, b)
		}
	}
	for _, file := range [][]byte{nil, {0x12}, {0x12, 0xff, 0xff, 0xff, 0xff, 0x0f}, {0xff}} {
		if _, err := withoutUserKeys(snapName, file); err == nil {
			t.Errorf("%x is taken", file)
		}
	}
	b, err := withoutUserKeys(snapName, datadir.SnapFile([]byte(`{"Root":{"Path":"/","Children":{"0":{"Path":"/0","Children":{}},"1":{"Path":"/1","Children":{"k":{"Path":"/1/k","Value":"v","Children":null}}}}},"CurrentIndex":7}`), []byte{16, 5, 24, 1}))
	if err != nil {
		t.Fatal(err)
	}
	if f := dumplog.DecodeSnapFile(snapName, b); f.Damage != nil ||
		len(f.V2.UserKeys) != 0 || f.Index != 5 {
		t.Errorf("%+v", f)
	}
}
