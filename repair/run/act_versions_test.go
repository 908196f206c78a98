package run

import (
	"strings"
	"testing"
)

// TestOtherMinorIsNoted: a start hook may run another version of etcd. The result says so; the repair does not fail.
func TestOtherMinorIsNoted(t *testing.T) {
	for version, says := range map[string]string{
		"3.6.16": "", "3.6.2": "", "": "",
		"3.7.3":  "node2 was started with etcd 3.7, and node1 runs 3.6: the cluster version rises once every",
		"3.5.21": "node2 was started with etcd 3.5, and node1 runs 3.6: the cluster version cannot rise above",
	} {
		c := newFake(t, fakePlan(t, 3, "node2"))
		c.versions = map[uint64]string{1: "3.6.16", 3: "3.7.3", c.nextID + 1: version}
		if err := c.r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range c.r.out.Notes {
			if strings.Contains(n, "was started with etcd") {
				got = append(got, n)
			}
		}
		if all := strings.Join(got, "; "); !strings.HasPrefix(all, says) || says == "" && all != "" || len(got) > 1 {
			t.Errorf("%q: %q", version, got)
		}
	}
}
