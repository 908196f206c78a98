package check

import (
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestV2WorldUpdates: an update of the peer URLs to one of another member is refused, one that keeps a URL of its own is not.
func TestV2WorldUpdates(t *testing.T) {
	for name, c := range map[string]struct {
		id         dumplog.ID
		urls, want []string
	}{
		"new URLs":                 {1, []string{"c", "d"}, []string{"c", "d"}},
		"one of its own":           {1, []string{"a", "c"}, []string{"a", "c"}},
		"that of another":          {1, []string{"b"}, []string{"a"}},
		"also that of another":     {1, []string{"a", "b"}, []string{"a"}},
		"of one that is not there": {3, []string{"c"}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newV2World()
			for id, url := range map[dumplog.ID]string{1: "a", 2: "b"} {
				w.confChange(&dumplog.ConfChange{Type: dumplog.ConfChangeAddNode, NodeID: id, Member: &dumplog.MemberContext{ID: id, PeerURLs: []string{url}}})
			}
			w.confChange(&dumplog.ConfChange{Type: dumplog.ConfChangeUpdateNode, NodeID: c.id, Member: &dumplog.MemberContext{ID: c.id, PeerURLs: c.urls}})
			if got := w.members[1].PeerURLs; !slices.Equal(got, c.want) || len(w.members) != 2 {
				t.Errorf("peer URLs %q of %d members, want %q of 2", got, len(w.members), c.want)
			}
		})
	}
}
