package plural_test

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/internal/plural"
)

func TestOf(t *testing.T) {
	for n, want := range map[int]string{0: "0 keys", 1: "1 key", 2: "2 keys"} {
		if got := plural.Of(n, "key", "keys"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
