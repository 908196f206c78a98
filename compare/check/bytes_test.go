package check_test

import (
	"encoding/json"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

// TestBytesAreReadBack: a key in a plan file is the same after it was read, printable or not.
func TestBytesAreReadBack(t *testing.T) {
	for _, key := range []string{"", "/registry/pods/a", "\x00\xff", "a\nb", "ü"} {
		b, err := json.Marshal(check.Bytes(key))
		if err != nil {
			t.Fatal(err)
		}
		var got check.Bytes
		if err := json.Unmarshal(b, &got); err != nil || string(got) != key {
			t.Errorf("%q is written as %s and read as %q (%v)", key, b, got, err)
		}
	}
	var got check.Bytes
	if err := json.Unmarshal([]byte(`{"base64": "%"}`), &got); err == nil {
		t.Errorf("no base64, and read as %q", got)
	}
}
