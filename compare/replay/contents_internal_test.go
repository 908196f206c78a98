package replay

import (
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestNoneOf: a database holds nothing of a log if none of its newest puts is one of the log's, up to its index.
func TestNoneOf(t *testing.T) {
	s := newStory("3.6.0")
	s.put("a", "1")
	s.put("b", "2")
	s.put("c", "3")
	s.put("d", "4")
	s.put("e", "5")
	s.del("e")
	m := openStory(t, s)
	log := func(more ...*dumplog.Request) *putContents {
		pc := &putContents{first: map[uint64]uint64{}}
		for i := range 8 {
			pc.note(itemAt(2, put("a", strings.Repeat("1", i+1))))
		}
		for _, r := range more {
			pc.note(itemAt(m.AppliedMax, r))
		}
		return pc
	}
	kept := put("e", "5")
	kept.Put.IgnoreValue = true
	late := log()
	late.note(itemAt(m.AppliedMax+1, put("e", "5")))
	full := log()
	full.full = true
	for name, c := range map[string]struct {
		pc   *putContents
		want bool
	}{
		"none of the newest":           {log(), true},
		"the newest":                   {log(put("e", "5")), false},
		"the fourth":                   {log(put("b", "2")), false},
		"other values":                 {log(put("e", "6"), put("x", "5")), true},
		"a put that keeps the value":   {log(kept), true},
		"an entry above its index":     {late, true},
		"more than can be kept":        {full, false},
		"a log that needs no contents": {nil, false},
	} {
		if got := c.pc.noneOf(m); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	short := &putContents{first: map[uint64]uint64{}}
	for i := range 7 {
		short.note(itemAt(2, put("a", strings.Repeat("1", i+1))))
	}
	short.note(itemAt(m.AppliedMin+1, put("x", "1")))
	if short.noneOf(m) {
		t.Error("a log with hardly any puts")
	}
	few := newStory("3.6.0")
	few.put("a", "1")
	few.put("b", "2")
	if log().noneOf(openStory(t, few)) {
		t.Error("of too few puts")
	}
}

func openStory(t *testing.T, s *story) *evidence.Member {
	t.Helper()
	dirs := s.Write(t, t.TempDir())
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: dirs[0]}}, evidence.Options{Deep: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	return set.Members[0]
}
