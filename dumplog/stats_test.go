package dumplog_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

func showStats(t *testing.T, l *dumplog.Log) string {
	st, _, err := l.Stats(context.Background(), nil)
	must(t, err)
	var w strings.Builder
	fmt.Fprintf(&w, "total %d entries, largest %d at index %d, undecoded %d\n", st.Total.Entries, st.Largest,
		st.LargestIndex, st.Undecoded)
	counts(&w, "kind", st.Kinds)
	counts(&w, "term", st.Terms)
	counts(&w, "proposer", st.Proposers)
	counts(&w, "user", st.Users)
	counts(&w, "prefix", st.Prefixes)
	return w.String()
}

func counts[K cmp.Ordered](w *strings.Builder, what string, m map[K]*dumplog.Count) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(w, "%s %v: %d entries, %d bytes\n", what, k, m[k].Entries, m[k].Bytes)
	}
}

// TestStatsBothWays counts side by side and in order, and expects the same.
func TestStatsBothWays(t *testing.T) {
	dir := filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node1", "member", "wal")
	evidencetest.Unchanged(t, dir)
	l, err := dumplog.Open(dir)
	must(t, err)
	no := false
	one, _, err := l.Stats(context.Background(), nil)
	must(t, err)
	two, _, err := l.Stats(context.Background(), &dumplog.Filter{Overwritten: &no})
	must(t, err)
	var a, b strings.Builder
	for w, st := range map[*strings.Builder]*dumplog.Stats{&a: one, &b: two} {
		counts(w, "kind", st.Kinds)
		counts(w, "prefix", st.Prefixes)
	}
	if a.String() != b.String() {
		t.Errorf("side by side:\n%sin order:\n%s", a.String(), b.String())
	}
	yes := true
	none, _, err := l.Stats(context.Background(), &dumplog.Filter{Overwritten: &yes})
	must(t, err)
	if none.Total.Entries != 0 {
		t.Errorf("%d overwritten entries in a log without any", none.Total.Entries)
	}
}

// TestStatsOfManyNames: what is counted separately is bounded, also over the parts of a log, every entry is counted,
// and the parts give the same however often they are merged.
func TestStatsOfManyNames(t *testing.T) {
	const each, parts = 8000, 3
	merged := func() *dumplog.Stats {
		all := &dumplog.Stats{}
		for p := range parts {
			var part dumplog.Stats
			for i := range each {
				n := p*each + i
				r := &dumplog.Request{Kind: dumplog.KindPut, Put: &dumplog.PutRequest{Key: fmt.Appendf(nil, "/%d/a/b", n)}}
				r.Header.Username = fmt.Sprint("u", n)
				part.Add(&dumplog.Entry{Term: uint64(1 + n), Data: []byte{1, 2}}, r)
			}
			all.Merge(&part)
		}
		return all
	}
	all := merged()
	if len(all.Terms) != 10000 || len(all.Users) != 10001 || len(all.Prefixes) != 10001 {
		t.Errorf("%d terms, %d users, %d prefixes", len(all.Terms), len(all.Users), len(all.Prefixes))
	}
	rest := int64(parts*each - 10000)
	if o := all.OtherTerms; o.Entries != rest || o.Bytes != 2*rest {
		t.Errorf("other terms: %+v", o)
	}
	u, p := all.Users[dumplog.OtherPrefix].Entries, all.Prefixes[dumplog.OtherPrefix].Entries
	if u != rest || p != rest {
		t.Errorf("other users %d, prefixes %d, want %d", u, p, rest)
	}
	var a, b strings.Builder
	for w, st := range map[*strings.Builder]*dumplog.Stats{&a: all, &b: merged()} {
		counts(w, "term", st.Terms)
		counts(w, "user", st.Users)
		counts(w, "prefix", st.Prefixes)
	}
	if a.String() != b.String() {
		t.Error("merged twice, the counts differ")
	}
}

func TestFilter(t *testing.T) {
	dir := filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node1", "member", "wal")
	evidencetest.Unchanged(t, dir)
	l, err := dumplog.Open(dir)
	must(t, err)
	count := func(f dumplog.Filter) int64 {
		st, _, err := l.Stats(context.Background(), &f)
		must(t, err)
		return st.Total.Entries
	}
	s, err := l.Scan(context.Background())
	must(t, err)
	all := count(dumplog.Filter{})
	for what, got := range map[string]int64{
		"index range": count(dumplog.Filter{From: 5, To: 14}) - 10,
		"both terms":  count(dumplog.Filter{Term: 1}) + count(dumplog.Filter{Term: 2}) - all,
		"terms known": int64(len(s.Terms)) - 2,
		"kind":        count(dumplog.Filter{Kinds: []dumplog.Kind{dumplog.KindTxn, dumplog.KindCompaction}}) - 8,
		"empty prefix": count(dumplog.Filter{Prefix: []byte{}}) - count(dumplog.Filter{Kinds: []dumplog.Kind{"put",
			"delete_range", "txn", "auth_role_grant_permission"}}),
		"unknown lease": count(dumplog.Filter{Lease: 1}),
		"unknown user":  count(dumplog.Filter{User: "nobody"}),
	} {
		if got != 0 {
			t.Errorf("%s: off by %d", what, got)
		}
	}
	proposed := int64(0)
	for _, m := range []dumplog.ID{0x1a373ff3db73851c, 0x6011453c9518cbe1, 0xd26641f1e42c0f7c, 0xa03da297d506388} {
		n := count(dumplog.Filter{Proposer: m})
		if n == 0 {
			t.Errorf("member %s proposed nothing", m)
		}
		proposed += n
	}
	if rest := all - proposed; rest > 4 || rest < 1 { // bootstrap entries and the leader's empty one have no proposer
		t.Errorf("%d of %d entries have a known proposer", proposed, all)
	}
}

func TestTouches(t *testing.T) {
	del := func(key, end string) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindDeleteRange,
			DeleteRange: &dumplog.DeleteRangeRequest{Key: []byte(key), RangeEnd: []byte(end)}}
	}
	for _, c := range []struct {
		key, end, wanted string
		want             bool
	}{
		{"a", "", "a", true}, {"a", "", "b", false}, {"a", "c", "b", true}, {"a", "c", "c", false},
		{"a", "\x00", "zzz", true}, {"b", "\x00", "a", false}, {"\x00", "\x00", "", false}, {"a", "b", "abc", true},
	} {
		f := dumplog.Filter{Key: []byte(c.wanted)}
		if got := f.Match(&dumplog.Entry{}, del(c.key, c.end)); got != c.want {
			t.Errorf("delete %q..%q touches %q: %v", c.key, c.end, c.wanted, got)
		}
	}
}
