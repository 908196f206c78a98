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

// TestSize: a size is short, and a part of a size never looks like the whole.
func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 225508: "220 KiB", 9000: "8.8 KiB",
		5 << 40: "5.0 TiB", 1 << 62: "4096 PiB"} {
		if got := plural.Size(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for want, n := range map[string][2]int{"8.8 KiB of 84.0 KiB": {9000, 86016}, "86015 of 86016 bytes": {86015, 86016},
		"1.0 KiB of 1.0 KiB": {1024, 1024}} {
		if got := plural.SizeOf(n[0], n[1]); got != want {
			t.Errorf("%v: %q, want %q", n, got, want)
		}
	}
}

// TestSizeUp: room that is said to be enough is enough.
func TestSizeUp(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1025: "1.1 KiB", 9000: "8.8 KiB",
		9012: "8.9 KiB", 289 << 19: "145 MiB", 100 << 20: "100 MiB"} {
		if got := plural.SizeUp(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for want, got := range map[string]string{
		"entry 5":      plural.Span(uint64(5), 5, "entry", "entries"),
		"entries 5..6": plural.Span(uint64(5), 6, "entry", "entries"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
