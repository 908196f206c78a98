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

// TestEffectiveConfChanges: a change is dropped if a later append replaced its entry, and only then. What was replaced
// before it was written again says nothing of it.
func TestEffectiveConfChanges(t *testing.T) {
	at := func(segment string, offset int64, index uint64) dumplog.Overwrite {
		return dumplog.Overwrite{Pos: dumplog.Pos{Segment: segment, Offset: offset}, Index: index}
	}
	for name, c := range map[string]struct {
		replaced []dumplog.Overwrite
		want     []uint64
	}{
		"nothing replaced":              {nil, []uint64{10, 20}},
		"from the later change on":      {[]dumplog.Overwrite{at("b", 30, 20)}, []uint64{10}},
		"from the next entry on":        {[]dumplog.Overwrite{at("b", 30, 21)}, []uint64{10, 20}},
		"both":                          {[]dumplog.Overwrite{at("b", 30, 10)}, nil},
		"both, and then a shorter tail": {[]dumplog.Overwrite{at("b", 30, 10), at("b", 40, 15)}, nil},
		"before the later one":          {[]dumplog.Overwrite{at("b", 19, 11)}, []uint64{10, 20}},
		"by the later one itself":       {[]dumplog.Overwrite{at("b", 20, 10)}, []uint64{20}},
		"in the segment of the first":   {[]dumplog.Overwrite{at("a", 99, 10)}, []uint64{20}},
		"before the first":              {[]dumplog.Overwrite{at("a", 9, 10)}, []uint64{10, 20}},
		"three before the first": {[]dumplog.Overwrite{at("a", 1, 5), at("a", 2, 6), at("a", 3, 7)},
			[]uint64{10, 20}},
		"before the first and after all": {[]dumplog.Overwrite{at("a", 9, 10), at("b", 30, 20)}, []uint64{10}},
	} {
		log := newConfLog(2, 1)
		log.note(0, &dumplog.Entry{Index: 9, Term: 1})
		log.note(0, confChangeEntry(0, 10))
		log.note(1, confChangeEntry(1, 20))
		conf, err := log.effective(&dumplog.Summary{Segments: []dumplog.Segment{{Name: "a"}, {Name: "b"}},
			Overwrites: c.replaced})
		var got []uint64
		for _, x := range conf {
			got = append(got, x.Index)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
}

// TestConfChangesThatFit: changes are kept if they need just the space that there is, and counted if they need more.
// The range of those that are counted is that of all segments, whatever their order, and none of a segment without.
func TestConfChangesThatFit(t *testing.T) {
	entries := []*dumplog.Entry{confChangeEntry(0, 50), confChangeEntry(0, 30), confChangeEntry(2, 20),
		confChangeEntry(2, 40)}
	size := int64(0)
	for _, e := range entries {
		size += confEntryBytes + 2*int64(len(e.Data))
	}
	sum := &dumplog.Summary{Segments: []dumplog.Segment{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}}
	for left, fit := range map[int64]bool{size: true, size - 1: false} {
		log := newConfLog(4, 1)
		log.left = left
		for i, e := range entries {
			log.note(i&2, e)
			clear(e.Data) // the caller reads the next entry into it
			*e = *confChangeEntry(i&2, e.Index)
		}
		conf, err := log.effective(sum)
		var many *TooManyConfChangesError
		switch {
		case fit && (err != nil || len(conf) != 4 || conf[3].Change.NodeID != 7):
			t.Errorf("%d bytes: %v, %v", left, conf, err)
		case !fit && (!errors.As(err, &many) || many.Changes != 4 || many.First != 20 || many.Last != 50 ||
			len(many.Places) != 4):
			t.Errorf("%d bytes: %v, %v", left, conf, err)
		}
	}
}
