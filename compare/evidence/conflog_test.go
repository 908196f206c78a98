package evidence

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// confChangeEntry is the removal of a member at an index of segment i.
func confChangeEntry(i int, index uint64) *dumplog.Entry {
	var data []byte
	for n, v := range []uint64{index, uint64(dumplog.ConfChangeRemoveNode), 7} {
		data = protowire.AppendVarint(protowire.AppendTag(data, protowire.Number(n+1), protowire.VarintType), v)
	}
	return &dumplog.Entry{Pos: dumplog.Pos{Segment: string(rune('a' + i)), Offset: int64(index)}, Index: index, Term: 1,
		Type: dumplog.EntryConfChange, Data: data}
}

// TestTooManyConfChanges: conf changes are kept as far as they fit. Above that nothing of them is kept but their
// number, their range and the first places, in whatever order the segments are read.
func TestTooManyConfChanges(t *testing.T) {
	sum := &dumplog.Summary{Segments: []dumplog.Segment{{Name: "a"}, {Name: "b"}}}
	for name, order := range map[string][]int{"in order": {0, 1}, "last first": {1, 0}} {
		for _, n := range []uint64{100, 400} {
			c := newConfLog(2, 1<<30)
			for _, i := range order {
				for k := range n {
					c.note(i, confChangeEntry(i, uint64(i)*n+k+1))
				}
			}
			conf, err := c.effective(sum)
			if n == 100 {
				if err != nil || len(conf) != 200 || !slices.IsSortedFunc(conf, func(a, b ConfEntry) int {
					return int(a.Index) - int(b.Index)
				}) {
					t.Errorf("%s: %d of 200 changes, %v", name, len(conf), err)
				}
				continue
			}
			var many *TooManyConfChangesError
			if !errors.As(err, &many) || many.Changes != 800 || many.First != 1 || many.Last != 800 ||
				len(many.Places) != shownPlaces || many.Places[0].Segment != "a" || len(conf) > 0 {
				t.Errorf("%s: %d changes, %v", name, len(conf), err)
				continue
			}
			if s := err.Error(); !strings.Contains(s, "800 conf changes from entry 1 to 800") || len(s) > 1000 {
				t.Errorf("%s: %s", name, s)
			}
			for i := range c.parts {
				if len(c.parts[i].places) > shownPlaces {
					t.Errorf("%s: %d places of segment %d", name, len(c.parts[i].places), i)
				}
			}
		}
	}
}

// TestShareOfConfChanges: many sources together may keep as much as one alone.
func TestShareOfConfChanges(t *testing.T) {
	if one, four := newConfLog(1, 1).left, newConfLog(1, 4).left; one != keptConfBytes || four != one/4 {
		t.Errorf("%d bytes for one source, %d for each of four", one, four)
	}
}
