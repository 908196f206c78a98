package release_test

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/release"
)

// FuzzParse reads any text as a version. A text that is accepted gives a known version of one minor release, which is
// written and read as itself.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "3", "3.5", "3.5.x", "v3.5.12-rc.1", "3.4.3+git", "3.9999.9999", "3.10000", "4.0",
		"3.5.", "3.5.12.1", "3.-1", "3.05.007", "not available", "3.5\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := release.Parse(s)
		if of := release.Of(s); of.Known() != (err == nil) {
			t.Fatalf("%q: Of %v, Parse %v", s, of, err)
		}
		if err != nil {
			return
		}
		if again, err := release.Parse(v.String()); err != nil || again != v {
			t.Errorf("%q is read as %v, and that as %v: %v", s, v, again, err)
		}
		if patch, ok := v.Patch(); ok && release.Exact(v.Minor(), patch) != v {
			t.Errorf("%q: minor version %d and patch %d are not all of %v", s, v.Minor(), patch, v)
		}
		if v.Above(v) || v.Newer(v) != v {
			t.Errorf("%v is newer than itself", v)
		}
	})
}
