package replay

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// disputed is an entry at an index that member 0 holds in one version, and member 1 in another of the same term.
func disputed(index uint64, own, other *dumplog.Request) *item {
	it := itemAt(index, own)
	it.holders = []int{0, 2}
	o := itemAt(index, other)
	o.holders = []int{1}
	it.others = map[int]*item{1: o}
	return it
}

// withHolders is an entry that all logs hold alike.
func withHolders(index uint64, r *dumplog.Request) *item {
	it := itemAt(index, r)
	it.holders = []int{0, 1, 2}
	return it
}

// TestBroughtOver: a member whose own log holds no version of an entry shows in its next records which one was
// executed. It says nothing before the place, above what it has applied, or where its own log holds a version.
func TestBroughtOver(t *testing.T) {
	grant := &dumplog.Request{Kind: dumplog.KindLeaseGrant, LeaseGrant: &dumplog.LeaseGrantRequest{ID: 7}}
	for name, c := range map[string]struct {
		change func(s *sim, it *item)
		rows   []row
		want   string
	}{
		"the one":              {func(*sim, *item) {}, []row{rec(2, 0, "a", "1")}, "a"},
		"the other":            {func(*sim, *item) {}, []row{rec(2, 0, "b", "1")}, "b"},
		"neither":              {func(*sim, *item) {}, []row{rec(2, 0, "c", "1")}, ""},
		"a later revision":     {func(*sim, *item) {}, []row{rec(3, 0, "a", "1")}, ""},
		"no records":           {func(*sim, *item) {}, nil, ""},
		"not disputed":         {func(_ *sim, it *item) { it.others = nil }, []row{rec(2, 0, "a", "1")}, ""},
		"below the place":      {func(s *sim, _ *item) { s.met = false }, []row{rec(2, 0, "a", "1")}, ""},
		"at the base":          {func(s *sim, _ *item) { s.base = 5 }, []row{rec(2, 0, "a", "1")}, ""},
		"right after the base": {func(s *sim, _ *item) { s.base = 4 }, []row{rec(2, 0, "a", "1")}, "a"},
		"the last applied":     {func(s *sim, _ *item) { s.m.AppliedMin = 5 }, []row{rec(2, 0, "a", "1")}, "a"},
		"not applied":          {func(s *sim, _ *item) { s.m.AppliedMin = 4 }, []row{rec(2, 0, "a", "1")}, ""},
		"its log holds it":     {func(s *sim, _ *item) { s.pos = 0 }, []row{rec(2, 0, "a", "1")}, ""},
		"its log holds other":  {func(s *sim, _ *item) { s.pos = 1 }, []row{rec(2, 0, "a", "1")}, ""},
		"one does not decode":  {func(_ *sim, it *item) { it.err = errDoubted }, []row{rec(2, 0, "a", "1")}, ""},
		"one writes no key":    {func(_ *sim, it *item) { it.req = grant }, []row{rec(2, 0, "b", "1")}, "b"},
	} {
		s := newBench(t, 6, -1, c.rows...).sim
		s.pos = 3
		it := disputed(5, put("a", "1"), put("b", "1"))
		c.change(s, it)
		got := ""
		if v := s.broughtOver(it); v != nil {
			got = string(v.req.Put.Key)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestExecutedInstead: a member whose own log has one version, and whose records are what another version of the term
// wrote, has executed that. It is not said where its own entry, or the next one that writes, can have written them.
func TestExecutedInstead(t *testing.T) {
	next := func(r ...*dumplog.Request) (ahead []*item) {
		for i, x := range r {
			ahead = append(ahead, withHolders(uint64(6+i), x))
		}
		return ahead
	}
	grant := &dumplog.Request{Kind: dumplog.KindLeaseGrant, LeaseGrant: &dumplog.LeaseGrantRequest{ID: 7}}
	b := []row{rec(2, 0, "b", "1"), rec(3, 0, "c", "1")}
	for name, c := range map[string]struct {
		change func(s *sim, it *item)
		rows   []row
		ahead  []*item
		want   bool
	}{
		"the other":        {func(*sim, *item) {}, b, next(put("c", "1")), true},
		"nothing is ahead": {func(*sim, *item) {}, b[:1], nil, true},
		"its own":          {func(*sim, *item) {}, []row{rec(2, 0, "a", "1")}, nil, false},
		"its own, after extra ones": {func(*sim, *item) {}, []row{rec(2, 0, "b", "1"), rec(3, 0, "a", "1")}, nil,
			false},
		"the next entry's":            {func(*sim, *item) {}, b, next(put("b", "1")), false},
		"the next but one's":          {func(*sim, *item) {}, b, next(put("c", "1"), put("b", "1")), true},
		"the next that writes":        {func(*sim, *item) {}, b, next(grant, put("b", "1")), false},
		"a later revision":            {func(*sim, *item) {}, []row{rec(3, 0, "b", "1")}, nil, false},
		"another value":               {func(*sim, *item) {}, []row{rec(2, 0, "b", "2")}, nil, false},
		"of another term":             {func(_ *sim, it *item) { it.others[1].entry.Term = 9 }, b, nil, false},
		"not disputed":                {func(_ *sim, it *item) { it.others = nil }, b, nil, false},
		"below the place":             {func(s *sim, _ *item) { s.met = false }, b, nil, false},
		"at the base":                 {func(s *sim, _ *item) { s.base = 5 }, b, nil, false},
		"right after the base":        {func(s *sim, _ *item) { s.base = 4 }, b, nil, true},
		"the last that may be":        {func(s *sim, _ *item) { s.m.AppliedMax = 5 }, b, nil, true},
		"not applied":                 {func(s *sim, _ *item) { s.m.AppliedMax = 4 }, b, nil, false},
		"its own entry writes no key": {func(_ *sim, it *item) { it.req = grant }, b, nil, true},
	} {
		s := newBench(t, 6, -1, c.rows...).sim
		it := disputed(5, put("a", "1"), put("b", "1"))
		c.change(s, it)
		if v := s.executedInstead(it, it.forMember(s.pos), c.ahead); (v != nil) != c.want ||
			v != nil && v != it.others[1] {
			t.Errorf("%s: %+v, want %t", name, v, c.want)
		}
	}
}

// TestExchanged: two entries that the member's own log holds in the other order. The records of both have to be there,
// in the order of the other log, with those of the entries between them.
func TestExchanged(t *testing.T) {
	a, b := put("a", "1"), put("b", "1")
	grant := &dumplog.Request{Kind: dumplog.KindLeaseGrant, LeaseGrant: &dumplog.LeaseGrantRequest{ID: 7}}
	for name, c := range map[string]struct {
		ahead []*item
		rows  []row
		want  bool
	}{
		"next to each other": {[]*item{disputed(6, b, a)}, []row{rec(2, 0, "b", "1"), rec(3, 0, "a", "1")}, true},
		"one between": {[]*item{withHolders(6, put("m", "1")), disputed(7, b, a)},
			[]row{rec(2, 0, "b", "1"), rec(3, 0, "m", "1"), rec(4, 0, "a", "1")}, true},
		"one between that wrote nothing": {[]*item{withHolders(6, grant), disputed(7, b, a)},
			[]row{rec(2, 0, "b", "1"), rec(3, 0, "a", "1")}, true},
		"too far": {[]*item{disputed(6, b, a)},
			[]row{rec(2, 0, "b", "1"), rec(3, 0, "m", "1"), rec(4, 0, "a", "1")}, false},
		"a gap of revisions": {[]*item{disputed(6, b, a)}, []row{rec(2, 0, "b", "1"), rec(4, 0, "a", "1")},
			false},
		"no second record": {[]*item{disputed(6, b, a)}, []row{rec(2, 0, "b", "1")}, false},
		"in the order of its log": {[]*item{disputed(6, b, a)}, []row{rec(2, 0, "a", "1"), rec(3, 0, "b", "1")},
			false},
		"nothing else differs": {[]*item{withHolders(6, b)}, []row{rec(2, 0, "b", "1"), rec(3, 0, "a", "1")},
			false},
		"the later one is another": {[]*item{disputed(6, put("z", "1"), a)},
			[]row{rec(2, 0, "b", "1"), rec(3, 0, "a", "1")}, false},
		"the later one wrote else": {[]*item{disputed(6, b, put("z", "1"))},
			[]row{rec(2, 0, "b", "1"), rec(3, 0, "a", "1")}, false},
		"the later one no key": {[]*item{disputed(6, grant, a)}, []row{rec(2, 0, "b", "1"), rec(3, 0, "a", "1")},
			false},
	} {
		s := newBench(t, 6, -1, c.rows...).sim
		it := disputed(5, a, b)
		if v := s.exchanged(it, it.forMember(s.pos), c.ahead); (v != nil) != c.want || v != nil && v != it.others[1] {
			t.Errorf("%s: %+v, want %t", name, v, c.want)
		}
	}
	s := newBench(t, 6, -1, rec(2, 0, "b", "1"), rec(3, 0, "a", "1")).sim
	it := disputed(5, grant, b)
	if v := s.exchanged(it, it, []*item{disputed(6, b, a)}); v != nil {
		t.Errorf("its own entry writes no key: %+v", v)
	}
}

// keyText shows what is certain of a key.
func keyText(c *certainty) (out []string) {
	for _, k := range slices.Sorted(maps.Keys(c.keys)) {
		s := fmt.Sprintf("%s@%d", k, c.keys[k].index)
		if c.keys[k].gone {
			s += " gone"
		}
		out = append(out, s)
	}
	return out
}

// TestCertainOperations: what operations that were executed, and those that may have been, leave certain about keys.
func TestCertainOperations(t *testing.T) {
	valued := func(key string, lease int64) keptOp {
		return keptOp{key: []byte(key), put: true, valued: true, lease: lease}
	}
	keeping := keptOp{key: []byte("b"), put: true}
	remove := func(key, end string) keptOp { return keptOp{key: []byte(key), end: []byte(end)} }
	before := []*kept{{index: 1, sure: true, ops: []keptOp{valued("a", 7), valued("b", 0), valued("c", 0)}},
		{index: 2, sure: true, ops: []keptOp{remove("b", "")}}}
	for name, c := range map[string]struct {
		k            kept
		wrote, quiet bool
		want         []string
	}{
		"nothing": {kept{sure: true}, false, false, []string{"a@1", "b@2 gone", "c@1"}},
		"a put": {kept{sure: true, ops: []keptOp{valued("b", 0)}}, false, false,
			[]string{"a@1", "b@3", "c@1"}},
		"a put that keeps": {kept{sure: true, ops: []keptOp{keeping}}, false, false, []string{"a@1", "c@1"}},
		"a delete": {kept{sure: true, ops: []keptOp{remove("a", "")}}, false, false,
			[]string{"a@3 gone", "b@2 gone", "c@1"}},
		"a range": {kept{sure: true, ops: []keptOp{remove("a", "c")}}, false, false,
			[]string{"a@3 gone", "b@3 gone", "c@1"}},
		"perhaps a put": {kept{all: []keptOp{valued("a", 0)}}, false, false, []string{"b@2 gone", "c@1"}},
		"perhaps a delete": {kept{all: []keptOp{remove("a", "")}}, false, false,
			[]string{"b@2 gone", "c@1"}},
		"perhaps a delete of none": {kept{all: []keptOp{remove("b", "")}}, false, false,
			[]string{"a@1", "b@2 gone", "c@1"}},
		"perhaps a range": {kept{all: []keptOp{remove("a", "c")}}, false, false,
			[]string{"b@2 gone", "c@1"}},
		"a revoke":            {kept{revoke: 7}, false, false, []string{"b@2 gone", "c@1"}},
		"a revoke of another": {kept{revoke: 8}, false, false, []string{"a@1", "b@2 gone", "c@1"}},
		"it wrote": {kept{known: true, ops: []keptOp{valued("a", 0)}, all: []keptOp{valued("c", 0)}},
			true, false, []string{"a@3", "b@2 gone", "c@1"}},
		"it wrote one of two things": {kept{ops: []keptOp{valued("a", 0)}, all: []keptOp{valued("c", 0)}}, true, false,
			[]string{"a@1", "b@2 gone"}},
		"it did not write": {kept{all: []keptOp{valued("c", 0)}}, false, true,
			[]string{"a@1", "b@2 gone", "c@1"}},
		"it must have, by its nature": {kept{sure: true, ops: []keptOp{valued("c", 0)}}, false, true,
			[]string{"a@1", "b@2 gone", "c@3"}},
	} {
		cert := &certainty{keys: map[string]certainKey{}, put: map[string]uint64{}}
		cert.learnAll(before, nil, nil)
		c.k.index = 3
		cert.learnAll([]*kept{&c.k}, map[*kept]bool{&c.k: c.wrote}, map[*kept]bool{&c.k: c.quiet})
		if got := keyText(cert); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestCertainIsBounded: of deleted ranges the last ones are remembered. When no more keys are, those that are there are
// still kept up, and ranges prove nothing any more once a put was not remembered.
func TestCertainIsBounded(t *testing.T) {
	c := &certainty{keys: map[string]certainKey{}, put: map[string]uint64{}}
	for i := range uint64(maxDeletedRanges + 1) {
		c.took(keptOp{key: []byte("a"), end: []byte("z")}, i+1)
	}
	if len(c.ranges) != maxDeletedRanges || c.ranges[0].index != 2 || c.ranges[maxDeletedRanges-1].index !=
		maxDeletedRanges+1 {
		t.Errorf("%d ranges, the first of entry %d", len(c.ranges), c.ranges[0].index)
	}
	c.took(keptOp{key: []byte("k"), put: true, valued: true}, 50)
	c.full = true
	c.took(keptOp{key: []byte("k")}, 51)
	c.took(keptOp{key: []byte("new")}, 52)
	if got := keyText(c); !slices.Equal(got, []string{"k@51 gone"}) || len(c.ranges) == 0 {
		t.Errorf("%q, %d ranges", got, len(c.ranges))
	}
	c.took(keptOp{key: []byte("k"), put: true, valued: true, sum: apply.SumOf([]byte("v"))}, 53)
	if got := keyText(c); !slices.Equal(got, []string{"k@53"}) || len(c.ranges) != 0 || c.put["k"] != 50 {
		t.Errorf("%q, %d ranges, put by %d", got, len(c.ranges), c.put["k"])
	}
}

// TestRecall: at the place the database is compared with what is certain. Each key that differs is named once, with the
// entry that decides it.
func TestRecall(t *testing.T) {
	s := certainSim()
	sum := apply.SumOf([]byte("1"))
	for _, r := range []row{rec(5, 0, "a/deleted", "1"), rec(6, 0, "a/put", "1"), rec(7, 0, "a/same", "1"),
		rec(8, 0, "a/too",
			"1"), rec(9, 0, "gone", "1"), rec(10, 0, "kept", "1"), rec(11, 0, "other", "2"), rec(12, 0, "z", "1")} {
		absorb(s.Keys, &r.record)
	}
	s.below.certain = &certainty{keys: map[string]certainKey{"gone": {index: 3, gone: true},
		"kept":  {index: 4, sum: sum},
		"other": {index: 6, sum: sum}, "never": {index: 7, gone: true}, "lost": {index: 8, sum: sum}},
		put:    map[string]uint64{"a/put": 21, "a/same": 20, "a/too": 19},
		ranges: []deletedRange{{[]byte("z"), []byte("zz"), 9}, {[]byte("a/"), []byte("a0"), 20}}}
	s.below.certain.put["z"] = 10
	s.below.recall()
	var got []string
	for _, d := range s.res.Below {
		what := ""
		if d.Expected == "absent" {
			what = " must be absent"
		}
		if d.Observed == "absent" {
			what += " is absent"
		}
		got = append(got, fmt.Sprintf("%s@%d rev %d%s", d.Key, d.Index, d.Rev, what))
	}
	slices.Sort(got)
	if want := []string{"a/deleted@20 rev 5 must be absent", "a/too@20 rev 8 must be absent",
		"gone@3 rev 9 must be absent", "lost@8 rev 0 is absent", "other@6 rev 11"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRecallLast: the last put before the place made the revision of the place, if no entry after it may have written.
func TestRecallLast(t *testing.T) {
	writer := &apply.Key{Name: "k", Entry: 4, Sum: apply.SumOf([]byte("1"))}
	for name, c := range map[string]struct {
		writer *apply.Key
		row    row
		rev    int64
		want   bool
	}{
		"another revision": {writer, rec(5, 0, "k", "1"), 9, true},
		"that one":         {writer, rec(9, 0, "k", "1"), 9, false},
		"another value":    {writer, rec(5, 0, "k", "2"), 9, false},
		"another key":      {writer, rec(5, 0, "m", "1"), 9, false},
		"not known":        {nil, rec(5, 0, "k", "1"), 9, false},
		"compacted":        {writer, rec(5, 0, "k", "1"), 7, false},
		"right above that": {writer, rec(5, 0, "k", "1"), 8, true},
	} {
		s := certainSim()
		absorb(s.Keys, &c.row.record)
		s.below.lastWriter, s.meet.rev, s.compacted = c.writer, c.rev, 7
		s.below.recallLast()
		if b := s.res.Below; (len(b) == 1) != c.want || len(b) > 0 &&
			(b[0].Key != "k" || b[0].Index != 4 || b[0].Rev != 5) ||
			s.below.lastWriter != nil {
			t.Errorf("%s: %+v", name, b)
		}
	}
}
