package restore

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzPlan reads any bytes as a plan of members and as --initial-cluster: never a panic, and a member always has a name
// and a URL.
func FuzzPlan(f *testing.F) {
	for _, s := range []string{"", "token: t\nmembers:\n- name: a\n  peerURLs: [http://127.0.0.1:2380]\n",
		"a=http://127.0.0.1:2380,b=http://127.0.0.1:2381", "a: &x [*x]", "members: [{}]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		file := filepath.Join(t.TempDir(), "plan.yaml")
		if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = ReadPlan(file) // what is no plan is an error
		members, err := ParseInitialCluster(s)
		for _, m := range members {
			if err == nil && (m.Name == "" || len(m.PeerURLs) == 0) {
				t.Errorf("%q gives %+v", s, m)
			}
		}
	})
}
