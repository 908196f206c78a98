package run

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestDrift: a write counts as unlisted when only the member has it that is replaced, and the present state of its key
// differs.
func TestDrift(t *testing.T) {
	for _, tc := range []struct {
		name     string
		set      func(c *fakeCluster, m *plan.Member)
		unlisted int
		keys     []string
		unknown  string
		tells    string
	}{
		{"nothing was written", func(*fakeCluster, *plan.Member) {}, 0, nil, "", "accepted nothing that node1 lacks"},
		{"only it has a write", func(c *fakeCluster, _ *plan.Member) { c.wrote(2, 11, "k", "v") }, 1, []string{"k"}, "",
			"1 key as it holds them are not on node1: k"},
		{"only it has a delete", func(c *fakeCluster, _ *plan.Member) {
			c.of(1).keys["k"] = "old"
			c.wrote(2, 11, "k", "")
		}, 1, []string{"k"}, "", "are not on node1"},
		{"both have it, at another revision", func(c *fakeCluster, _ *plan.Member) {
			c.wrote(1, 12, "k", "v")
			c.wrote(2, 11, "k", "v")
		}, 0, nil, "", "accepted nothing"},
		{"it has it twice, and both end with it", func(c *fakeCluster, _ *plan.Member) {
			c.wrote(1, 12, "k", "v")
			c.wrote(2, 11, "k", "v")
			c.wrote(2, 12, "k", "v")
		}, 0, nil, "", "accepted nothing"},
		{"an earlier value is lost, the last one is not", func(c *fakeCluster, _ *plan.Member) {
			c.wrote(1, 12, "k", "v")
			c.wrote(2, 11, "k", "u")
			c.wrote(2, 12, "k", "v")
		}, 0, nil, "", "accepted nothing"},
		{"the best member wrote more", func(c *fakeCluster, _ *plan.Member) {
			c.wrote(1, 11, "k", "v")
			c.wrote(1, 12, "k", "w")
			c.wrote(2, 11, "k", "v")
		}, 0, nil, "", "accepted nothing"},
		{"it wrote the same before both", func(c *fakeCluster, _ *plan.Member) {
			c.wrote(2, 10, "before", "v")
			c.wrote(1, 11, "k", "v")
			c.wrote(2, 11, "k", "v")
		}, 0, nil, "", "accepted nothing"},
		// Its copy was taken three entries before that of the best member, which has had its write since.
		{"the copy of the best member is newer", func(c *fakeCluster, m *plan.Member) {
			c.r.plan.Best.Revision, c.r.plan.Best.AppliedIndex = 13, 13
			m.Applied = 10
			c.wrote(1, 11, "k", "old")
			c.wrote(1, 12, "k", "new")
			c.wrote(2, 11, "k", "old")
		}, 0, nil, "", "accepted nothing"},
		{"the best member had its value long before", func(c *fakeCluster, m *plan.Member) {
			c.r.plan.Best.Revision, c.r.plan.Best.AppliedIndex = 13, 13
			m.Applied = 10
			c.wrote(1, 9, "k", "v")
			c.wrote(1, 10, "k", "w")
			c.wrote(1, 13, "l", "w")
			c.wrote(2, 11, "k", "v")
		}, 1, []string{"k"}, "", "are not on node1: k"},
		{"it wrote once more what both wrote", func(c *fakeCluster, _ *plan.Member) {
			for i, v := range []string{"v", "w"} {
				c.wrote(1, int64(11+i), "k", v)
				c.wrote(2, int64(11+i), "k", v)
			}
			c.wrote(2, 13, "k", "v")
		}, 1, []string{"k"}, "", "are not on node1: k"},
		{"the same bytes in another key", func(c *fakeCluster, _ *plan.Member) {
			c.wrote(1, 11, "ka", "b")
			c.wrote(2, 11, "k", "ab")
		}, 1, []string{"k"}, "", "are not on node1: k"},
		{"as many keys as are compared", func(c *fakeCluster, _ *plan.Member) { manyKeys(c, driftKeys) }, 0, nil, "",
			"accepted nothing"},
		{"more keys than are compared", func(c *fakeCluster, _ *plan.Member) {
			manyKeys(c, driftKeys)
			c.wrote(2, 20_000, "l", "only here") // the last one by name
		}, 0, nil,
			"it changed 10001 keys in a way in which node1 did not; only the first 10000 were compared",
			"; it changed"},
		{"another cluster", func(c *fakeCluster, _ *plan.Member) {
			c.wrote(2, 11, "k", "v")
			c.of(2).cluster = 9
		}, 0, nil, "it is a member of another cluster",
			"from applied index 10 to 11 since its data dir was copied; it is"},
		{"its copy is not known", func(c *fakeCluster, m *plan.Member) {
			c.wrote(2, 11, "k", "v")
			m.Revision = 0
		}, 0, nil, "the plan does not know where its copy stood", "the plan does not know"},
		{"the best member was compacted", func(c *fakeCluster, _ *plan.Member) {
			c.wrote(1, 11, "k", "v")
			c.wrote(1, 13, "l", "v")
			c.wrote(2, 11, "k", "v")
			c.of(1).compact = 12
		}, 0, nil, "node1 was compacted at revision 12 meanwhile", "deletes and superseded changes up to there"},
		{"it was compacted", func(c *fakeCluster, _ *plan.Member) {
			c.wrote(1, 13, "l", "v")
			c.wrote(2, 11, "k", "v")
			c.wrote(2, 13, "l", "w")
			c.of(2).compact = 12
		}, 2, []string{"k", "l"}, "node2 was compacted at revision 12 meanwhile", "superseded changes up to there"},
		{"what it wrote before the compaction fills pages", func(c *fakeCluster, _ *plan.Member) {
			c.wrote(2, 10, "before", "its copy")
			for i := range 8 {
				c.wrote(2, int64(11+i), fmt.Sprintf("k%d", i), "v")
			}
			c.of(2).compact = 18
		}, 8, []string{"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"},
			"node2 was compacted at revision 18 meanwhile", "8 keys as it holds them are not on node1"},
		{"it is compacted meanwhile", func(c *fakeCluster, _ *plan.Member) {
			c.wrote(2, 11, "k", "v")
			c.wrote(2, 12, "l", "v")
			c.wrote(2, 13, "k", "w")
			c.of(2).compact = 11
			c.read = func(id uint64) {
				if id == 2 {
					c.of(2).compact = 12
				}
			}
		}, 2, []string{"k", "l"}, "node2 was compacted at revision 12 meanwhile", "2 keys as it holds them"},
		{"both wrote it before a compaction of both", func(c *fakeCluster, _ *plan.Member) {
			for id := range uint64(2) {
				c.wrote(id+1, 11, "k", "v")
				c.wrote(id+1, 12, "k", "w")
				c.wrote(id+1, 13, "l", "v")
				c.of(id + 1).compact = 12
			}
			c.wrote(1, 14, "k", "newer")
		}, 0, nil, "node1 was compacted at revision 12 meanwhile", "superseded changes up to there"},
		{"many keys", func(c *fakeCluster, _ *plan.Member) {
			for i := range driftShown + 1 {
				c.wrote(2, int64(11+i), fmt.Sprintf("k%02d", i), "v")
			}
		}, driftShown + 1, nil, "", "21 keys as it holds them are not on node1: k00, k01, k02, k03, k04, …"},
		{"five keys", func(c *fakeCluster, _ *plan.Member) {
			for i := range 5 {
				c.wrote(2, int64(11+i), fmt.Sprintf("k\x00%d", i), "v")
			}
		}, 5, nil, "", `"k\x000", "k\x001", "k\x002", "k\x003", "k\x004"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newFake(t, fakePlan(t, 3, "node2"))
			m := c.r.plan.Member("node2")
			tc.set(c, m)
			c.of(1).applied = max(c.of(1).applied, c.of(2).applied)
			planned, now := m.Revision, c.of(2).revision
			d, err := c.r.drifts.drift(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			if d.Member != "node2" || d.PlannedRevision != planned || d.Revision != now ||
				d.PlannedIndex != m.Applied || d.AppliedIndex != c.of(2).applied {
				t.Errorf("%+v", d)
			}
			var keys []string
			for _, k := range d.UnlistedKeys {
				keys = append(keys, string(k))
			}
			if d.Unlisted != tc.unlisted || len(keys) != min(d.Unlisted, driftShown) ||
				len(tc.keys) > 0 && !slices.Equal(keys, tc.keys) {
				t.Errorf("%d unlisted: %s; want %d: %s", d.Unlisted, d.UnlistedKeys, tc.unlisted, tc.keys)
			}
			if tc.unknown == "" && d.Unknown != "" || !strings.HasPrefix(d.Unknown, tc.unknown) {
				t.Errorf("unknown is %q, want %q", d.Unknown, tc.unknown)
			}
			if text := c.r.drifts.tell(d); !strings.Contains(text, tc.tells) ||
				strings.Contains(text, "…") != (tc.unlisted > 5) {
				t.Errorf("%q does not say %q", text, tc.tells)
			}
		})
	}
}

// manyKeys makes node2 write n keys that node1 holds too, from before.
func manyKeys(c *fakeCluster, n int) {
	for i := range n {
		key := fmt.Sprintf("k%05d", i)
		c.of(1).keys[key] = "v"
		c.wrote(2, int64(11+i), key, "v")
	}
}

// TestDriftOfAMemberAhead: a key is read again, because one member may have applied what the other one has not yet.
func TestDriftOfAMemberAhead(t *testing.T) {
	for late, want := range map[int]bool{1: true, 3: true, 4: false} {
		c := newFake(t, fakePlan(t, 3, "node2"))
		c.r.limits.step = 20 * time.Millisecond
		c.wrote(2, 11, "k", "v")
		reads := 0
		c.read = func(id uint64) {
			if id == 1 {
				if reads++; reads == late {
					c.wrote(1, 11, "k", "v")
				}
			}
		}
		same, err := c.r.drifts.sameState(t.Context(), c.r.plan.Member("node2"), "k")
		if err != nil || same != want || reads > 3 {
			t.Errorf("node1 has it at read %d: %v %v after %d reads", late, same, err, reads)
		}
		for id := range uint64(2) {
			c.set(id+1, false)
			if same, err := c.r.drifts.sameState(t.Context(), c.r.plan.Member("node2"), "k"); err == nil || same {
				t.Errorf("a member is down: %v %v", same, err)
			}
			c.set(id+1, true)
		}
	}
}

// TestDriftWaits: the best member is asked once it has applied what the other one has.
func TestDriftWaits(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	c.wrote(2, 11, "k", "v")
	c.r.limits.step = 50 * time.Millisecond
	if _, err := c.r.drifts.drift(t.Context(), c.r.plan.Member("node2")); err == nil ||
		!strings.Contains(err.Error(), "node1 catches up: not within 50ms: applied 10 of 11") {
		t.Errorf("the best member is behind: %v", err)
	}
	c.of(2).revision = 10
	if d, err := c.r.drifts.drift(t.Context(), c.r.plan.Member("node2")); err != nil || d.Unlisted > 0 {
		t.Errorf("it wrote nothing, so nothing is compared: %+v %v", d, err)
	}
	c.of(2).revision = 11
	c.r.limits.step = 10 * time.Second
	time.AfterFunc(20*time.Millisecond, func() { c.wrote(1, 11, "k", "v") })
	d, err := c.r.drifts.drift(t.Context(), c.r.plan.Member("node2"))
	if err != nil || d.Unlisted > 0 {
		t.Errorf("%+v %v", d, err)
	}
	c.set(2, false)
	if _, err := c.r.drifts.drift(t.Context(), c.r.plan.Member("node2")); err == nil {
		t.Error("a member that is down is said to have accepted nothing")
	}
}
