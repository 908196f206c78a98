package rebuild

import (
	"reflect"
	"testing"
)

// FuzzParseTarget reads any text as the point of --to: never a panic.
func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"last", "index=20", "revision=1043", "before=/registry/x", "time=2026-01-02T03:04:05Z",
		"index=-1", "=", "index=99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, err := ParseTarget(s); err == nil && reflect.ValueOf(got).IsZero() && s != "last" {
			t.Errorf("%q names no point and is taken", s)
		}
	})
}
