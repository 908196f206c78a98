package evidence_test

import (
	"maps"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/release"
)

// TestSameContent: the hashes of the buckets decide, at one index and one compact revision. Leases, alarms and
// auth of servers that change them without moving the index may differ at one index.
func TestSameContent(t *testing.T) {
	equal := map[string]string{"key": "1", "auth": "2", "authUsers": "3", "authRoles": "4", "lease": "5", "alarm": "6"}
	facts := func(etcd string, index uint64, compact int64, change ...string) *evidence.Facts {
		hashes := maps.Clone(equal)
		for i := 0; i+1 < len(change); i += 2 {
			hashes[change[i]] = change[i+1]
		}
		f := &evidence.Facts{AppliedIndex: index, DB: &evidence.DBFacts{CompactRevision: &compact, Hashes: hashes}}
		if etcd != "" {
			f.WroteBy.Etcd = &etcd
		}
		return f
	}
	base, bare := facts("3.5.x", 9, 4), &evidence.Facts{AppliedIndex: 9, DB: &evidence.DBFacts{}}
	for name, c := range map[string]struct {
		a, b *evidence.Facts
		want release.Answer
	}{
		"one":                             {base, base, release.Yes},
		"equal":                           {base, facts("3.5.x", 9, 4), release.Yes},
		"another index":                   {base, facts("3.5.x", 8, 4), release.Unknown},
		"another compact revision":        {base, facts("3.5.x", 9, 3), release.Unknown},
		"no database":                     {base, &evidence.Facts{AppliedIndex: 9}, release.Unknown},
		"no compact revision":             {base, bare, release.Unknown},
		"a key":                           {base, facts("3.5.x", 9, 4, "key", "0"), release.No},
		"keys that were not hashed":       {base, facts("3.5.x", 9, 4, "key", ""), release.Unknown},
		"a user":                          {base, facts("3.5.x", 9, 4, "authUsers", "0"), release.No},
		"a bucket that only one has":      {base, facts("3.5.x", 9, 4, "authUsers", ""), release.Unknown},
		"a lease":                         {base, facts("3.5.x", 9, 4, "lease", "0"), release.No},
		"a lease, older servers":          {facts("3.4.x", 9, 4), facts("3.4.x", 9, 4, "lease", "0"), release.Unknown},
		"an alarm, one of unknown server": {base, facts("", 9, 4, "alarm", "0"), release.Unknown},
		"a role, fixed servers":           {facts("3.4.23", 9, 4), facts("3.4.23", 9, 4, "authRoles", "0"), release.No},
		"a role, older servers":           {facts("3.4.3", 9, 4), facts("3.4.3", 9, 4, "authRoles", "0"), release.Unknown},
		"a user, of unknown patch":        {facts("3.3.x", 9, 4), facts("3.3.x", 9, 4, "authUsers", "0"), release.Unknown},
		"a key, older servers":            {facts("3.3.x", 9, 4), facts("3.3.x", 9, 4, "key", "0"), release.No},
	} {
		if got := evidence.SameContent(c.a, c.b); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
