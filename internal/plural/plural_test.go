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

func TestSome(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "a": {"a"}, "a and b": {"a", "b"}, "a, b and c": {"a", "b", "c"},
		"a, b, c and 2 more": {"a", "b", "c", "d", "e"}} {
		if got := plural.Some(names, 3); got != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
	}
	if got := plural.List([]string{"a", "b", "c", "d"}); got != "a, b, c and d" {
		t.Errorf("all: %q", got)
	}
}
