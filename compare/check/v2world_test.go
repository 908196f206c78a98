package check

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// TestV2WorldUpdates: an update of the peer URLs to one of another member is refused, one that keeps a URL of its own
// is not.
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
			w := newV2World(release.AnyOf(5))
			for id, url := range map[dumplog.ID]string{1: "a", 2: "b"} {
				w.confChange(&dumplog.ConfChange{Type: dumplog.ConfChangeAddNode, NodeID: id,
					Member: &dumplog.MemberContext{ID: id, PeerURLs: []string{url}}})
			}
			w.confChange(&dumplog.ConfChange{Type: dumplog.ConfChangeUpdateNode, NodeID: c.id,
				Member: &dumplog.MemberContext{ID: c.id, PeerURLs: c.urls}})
			if got := w.members[1].PeerURLs; !slices.Equal(got, c.want) || len(w.members) != 2 {
				t.Errorf("peer URLs %q of %d members, want %q of 2", got, len(w.members), c.want)
			}
		})
	}
}

// TestV2WorldLearners: a conf change is refused by the rules of the release, and where those leave it open its rows are
// not judged.
func TestV2WorldLearners(t *testing.T) {
	add := func(id dumplog.ID, learner bool, url string) *dumplog.ConfChange {
		c := &dumplog.ConfChange{NodeID: id, Member: &dumplog.MemberContext{ID: id, PeerURLs: []string{url},
			IsLearner: learner}}
		if learner {
			c.Type = dumplog.ConfChangeAddLearnerNode
		}
		return c
	}
	promote := func(id dumplog.ID) *dumplog.ConfChange {
		return &dumplog.ConfChange{NodeID: id, Member: &dumplog.MemberContext{ID: id, IsPromote: true}}
	}
	remove := func(id dumplog.ID) *dumplog.ConfChange {
		return &dumplog.ConfChange{Type: dumplog.ConfChangeRemoveNode, NodeID: id}
	}
	for name, c := range map[string]struct {
		version string
		log     []*dumplog.ConfChange
		want    string
		unsure  []string
	}{
		"promoted":          {"3.5", []*dumplog.ConfChange{add(2, true, "b"), promote(2)}, "1 2", nil},
		"a learner":         {"3.5", []*dumplog.ConfChange{add(2, true, "b")}, "1 2l", nil},
		"two learners, 3.5": {"3.5", []*dumplog.ConfChange{add(2, true, "b"), add(3, true, "c")}, "1 2l", nil},
		"two learners, 3.6": {"3.6", []*dumplog.ConfChange{add(2, true, "b"), add(3, true, "c")}, "1 2l 3l",
			[]string{"member 3", "removed 3"}},
		"two learners, unknown": {"", []*dumplog.ConfChange{add(2, true, "b"), add(3, true, "c"), remove(3)}, "1 2l",
			[]string{"member 3", "removed 3"}},
		"a promotion of a voter": {"3.5", []*dumplog.ConfChange{promote(1)}, "1", nil},
		"a promotion of none":    {"3.5", []*dumplog.ConfChange{promote(9)}, "1", nil},
		"added after its removal": {"3.5", []*dumplog.ConfChange{add(2, false, "b"), remove(2), add(2, false, "b")},
			"1", nil},
		"a URL that is taken": {"3.5", []*dumplog.ConfChange{add(2, false, "a")}, "1", nil},
		"an updated learner, 3.5": {"3.5", []*dumplog.ConfChange{add(2, true, "b"),
			{Type: dumplog.ConfChangeUpdateNode, NodeID: 2, Member: &dumplog.MemberContext{PeerURLs: []string{"c"}}}},
			"1 2l", []string{"member 2"}},
		"an updated learner, 3.7": {"3.7", []*dumplog.ConfChange{add(2, true, "b"),
			{Type: dumplog.ConfChangeUpdateNode, NodeID: 2, Member: &dumplog.MemberContext{PeerURLs: []string{"c"}}}},
			"1 2l", nil},
		"a change without context": {"3.5", []*dumplog.ConfChange{{NodeID: 4}}, "1", []string{"member 4"}},
	} {
		w := newV2World(release.Of(c.version))
		w.confChange(add(1, false, "a"))
		for _, x := range c.log {
			w.confChange(x)
		}
		var got, unsure []string
		for _, id := range slices.Sorted(maps.Keys(w.members)) {
			text := fmt.Sprint(uint64(id))
			if w.members[id].IsLearner {
				text += "l"
			}
			got = append(got, text)
		}
		for row, yes := range w.unsure {
			if yes {
				unsure = append(unsure, row)
			}
		}
		slices.Sort(unsure)
		for i := range c.unsure {
			kind, id, _ := strings.Cut(c.unsure[i], " ")
			n, _ := strconv.ParseUint(id, 16, 64)
			c.unsure[i] = kind + " " + dumplog.ID(n).String()
		}
		if strings.Join(got, " ") != c.want || !slices.Equal(unsure, c.unsure) {
			t.Errorf("%s: members %v, unsure %v, want %s, %v", name, got, unsure, c.want, c.unsure)
		}
	}
}

// TestV2EmptyFolder: a folder stays when its last key is deleted, and the snapshot lists it like a key.
func TestV2EmptyFolder(t *testing.T) {
	put := func(path string) *dumplog.V2Request { return &dumplog.V2Request{Method: "PUT", Path: path} }
	remove := func(path string) *dumplog.V2Request { return &dumplog.V2Request{Method: "DELETE", Path: path} }
	for name, c := range map[string]struct {
		requests []*dumplog.V2Request
		store    []string
		differ   string
	}{
		"the last key of a folder":  {[]*dumplog.V2Request{put("/1/a/b/c"), remove("/1/a/b/c")}, []string{"/1/a/b"}, ""},
		"a key":                     {[]*dumplog.V2Request{put("/1/a/b"), remove("/1/a/b")}, []string{"/1/a/b"}, "/1/a/b present"},
		"another folder":            {[]*dumplog.V2Request{put("/1/a/b")}, []string{"/1/a/b", "/1/c"}, "/1/c present"},
		"a key that the store lost": {[]*dumplog.V2Request{put("/1/a/b")}, []string{"/1/a"}, "/1/a/b absent"},
		"filled again":              {[]*dumplog.V2Request{put("/1/a/b"), remove("/1/a/b"), put("/1/a/c")}, []string{"/1/a/c"}, ""},
	} {
		w := newV2World(release.Of("3.5"))
		for _, r := range c.requests {
			w.request(r)
		}
		var got []string
		_, keys := w.differences(&dumplog.V2Store{UserKeys: c.store})
		for _, k := range keys {
			got = append(got, k.key+" "+k.observed)
		}
		if strings.Join(got, ", ") != c.differ {
			t.Errorf("%s: %v, want %q", name, got, c.differ)
		}
	}
}
