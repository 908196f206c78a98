package dossier

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/serverlog"
	"github.com/etcd-medic/etcd-medic/compare/timeline"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/ctxtest"
	"github.com/etcd-medic/etcd-medic/release"
)

func named(names ...string) (out []*evidence.Member) {
	for _, n := range names {
		out = append(out, &evidence.Member{Source: &evidence.Source{Name: n}})
	}
	return out
}

// TestKeyColumns: a row of keys has the numbers of every member, and what only some members have.
func TestKeyColumns(t *testing.T) {
	pod := dumpdb.KubeObject{Kind: "Pod", Namespace: "prod", Name: "web"}
	node := dumpdb.KubeObject{Kind: "Node", Name: "cp1"}
	b := &diff.Bucket{Name: "key", Equal: release.No, Limits: "node4 was not compared", Compared: 9, Differ: 3,
		SameContent: 1, Only: []int{0, 1, 0}, Rows: []diff.Row{
			{Key: []byte("/a/one"), SameContent: true, Cells: []*diff.Cell{{Mod: 7, Create: 2, Version: 3, ValueLen: 5,
				ValueDigest: "aa", Lease: 0x1a}, nil, {Mod: 8, ValueDigest: "aa"}}},
			{Key: []byte("/a/oné"), Out: []int{1}, Cells: []*diff.Cell{{Mod: 9, ValueDigest: "bb"},
				{Mod: 9, ValueDigest: "cc", Object: pod}, {Mod: 9, ValueDigest: "cc", Object: node}}},
			{Key: []byte("/a/onè"), Cells: []*diff.Cell{nil, {Mod: 4, Object: node}, nil}}}}
	got := difference(b, named("node1", "node2", "node3"))
	want := Difference{Bucket: "key", Equal: release.No, Reason: "node4 was not compared", Compared: 9, Differ: 3,
		SameContent: 1, Members: []string{"node1", "node2", "node3"}, Only: []int{0, 1, 0}, Shared: []int{0, 5, 5},
		Rest: []string{"/a/one", "é", "è"}, Same: []int{1, 0, 0},
		Objects: map[int]string{1: "Pod prod/web", 2: "Node cp1"}, Cells: []Cells{
			{Mod: []int64{7, 9, 0}, Create: []int64{2, 0, 0}, Version: []int64{3, 0, 0}, Lease: []string{"1a", "", ""},
				Len: []int{5, 0, 0}, SHA: []string{"aa", "bb", ""}},
			{Mod: []int64{0, 9, 4}, Create: []int64{0, 0, 0}, Version: []int64{0, 0, 0}, Lease: []string{"", "", ""},
				Len: []int{0, 0, 0}, SHA: []string{"", "cc", ""}, Out: []int{1}},
			{Mod: []int64{8, 9, 0}, Create: []int64{0, 0, 0}, Version: []int64{0, 0, 0}, Lease: []string{"", "", ""},
				Len: []int{0, 0, 0}, SHA: []string{"=", "=", ""}}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestTextColumns: a row of another bucket is its text; a row without one is present.
func TestTextColumns(t *testing.T) {
	b := &diff.Bucket{Name: "lease", Reason: "a reason", Limits: "limits", Rows: []diff.Row{{Key: []byte("1a"),
		Kind: diff.TTLRow, Cells: []*diff.Cell{{Text: "TTL 60"}, nil, {}, {Text: strings.Repeat("x", 1001)}}}}}
	got := difference(b, named("node1", "node2", "node3", "node4"))
	var texts []string
	for _, c := range got.Cells {
		texts = append(texts, c.Text...)
	}
	want := []string{"TTL 60", "", "present", strings.Repeat("x", 1000) + "…"}
	if d := cmp.Diff(want, texts); d != "" || got.Reason != "a reason" || got.Rest[0] != "1a (TTL)" ||
		got.Cells[0].Mod != nil || got.Objects != nil {
		t.Errorf("%s %+v", d, got)
	}
}

// TestSharedPrefix: keys are never cut inside a rune.
func TestSharedPrefix(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "x", 0}, {"ab", "ab", 2}, {"abc", "ab", 2}, {"ab", "abc", 2}, {"aé", "aè", 1}, {"é", "è", 0}, {"x", "y", 0}} {
		if got := sharedPrefix(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// TestListedBuckets: buckets that are equal are only named, all others are listed with the reason. Members that were
// not compared are named.
func TestListedBuckets(t *testing.T) {
	row := diff.Row{Key: []byte("k"), Cells: make([]*diff.Cell, 3)}
	in := &check.Input{Members: named("node1", "node2", "node3"), Diff: &diff.Result{Common: 77,
		NotCompared: map[int]string{0: "torn copy"}, KeysNotCompared: map[int]string{0: "unused", 2: "compacted"},
		Buckets: []diff.Bucket{{Name: "key", Equal: release.No, Differ: 1, Rows: []diff.Row{row}},
			{Name: "lease", Equal: release.Yes}, {Name: "auth", Equal: release.Unknown, Reason: "unreadable"},
			{Name: "meta", Equal: release.Yes, Rows: []diff.Row{row}, Differ: 1}}}}
	var d Dossier
	if err := d.differences(t.Context(), in, 5); err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, b := range d.Differences {
		listed = append(listed, fmt.Sprintf("%s %d %s", b.Bucket, len(b.Rest), b.Reason))
	}
	if d := cmp.Diff([]string{"key 1 ", "auth 0 unreadable", "meta 1 "}, listed); d != "" {
		t.Error(d)
	}
	if x := cmp.Diff([]string{"node1: torn copy", "keys of node3: compacted"}, d.NotCompared); x != "" ||
		d.ComparedAt != 77 || cmp.Diff([]string{"lease"}, d.Equal) != "" {
		t.Errorf("%s at %d, equal %v", x, d.ComparedAt, d.Equal)
	}
}

// TestNotes: known lines of servers' logs stand on the axis, with their time if they have one.
func TestNotes(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	in := &check.Input{Members: named("node1", "node2"), ServerLogs: map[string]*serverlog.Journal{"node2": {
		Events: []serverlog.Event{{ID: "wal-crc", Text: strings.Repeat("y", 301), Index: 9, Time: at}, {ID: "x", Text: "z"}}}}}
	r := &compare.Report{Timeline: []timeline.Moment{{Index: 4}}}
	got := TimelineInput(in, r)
	want := []timeline.Note{{Member: "node2", Index: 9, Unix: at.UnixMilli(), ID: "wal-crc",
		Line: strings.Repeat("y", 300) + "…"}, {Member: "node2", ID: "x", Line: "z"}}
	if d := cmp.Diff(want, got.Notes); d != "" || got.Break != 0 || len(got.Marks) != 1 || len(got.Members) != 2 {
		t.Errorf("%s %+v", d, got)
	}
	r.Verdict.FirstBreak = &compare.FirstBreak{Index: 12}
	if got := TimelineInput(in, r); got.Break != 12 {
		t.Errorf("break at %d", got.Break)
	}
	forgot := evidence.Facts{Commit: 90, WAL: &evidence.WALFacts{FirstIndex: 1, LastIndex: 80}}
	r.Members = []evidence.Facts{{}, forgot}
	if got, want := TimelineInput(in, r), []timeline.Span{{}, {From: 81, To: 90}}; !slices.Equal(got.Forgot, want) {
		t.Errorf("forgotten entries %v, want %v", got.Forgot, want)
	}
}

// TestMoreRows: rows that the diagnosis has only counted are read by the dossier.
func TestMoreRows(t *testing.T) {
	some := func(add func(string, string)) { add("/r/a/x", "v") }
	in := &check.Input{Members: []*evidence.Member{opened(t, "node1", some), opened(t, "node2", some)}}
	rows := []diff.Row{{Key: []byte("1"), Cells: []*diff.Cell{{Text: "t"}, nil}}}
	for name, c := range map[string]struct {
		differ, bound int
		again         bool
	}{
		"all are there":        {1, 50, false},
		"more are there":       {2, 50, true},
		"as many as are asked": {2, 1, false},
	} {
		in.Diff = &diff.Result{Members: in.Members, Buckets: []diff.Bucket{{Name: "lease", Equal: release.No,
			Differ: c.differ, Only: []int{1, 0}, Rows: rows}}}
		d := &Dossier{}
		if err := d.differences(t.Context(), in, c.bound); err != nil {
			t.Fatal(err)
		}
		// A new comparison is one of all buckets.
		if again := len(d.Differences)+len(d.Equal) > 1; again != c.again {
			t.Errorf("%s: compared again %t", name, again)
		}
	}
}

// TestKept: the first of the best members is kept, if there is one.
func TestKept(t *testing.T) {
	for want, best := range map[string]*compare.Best{"": {}, "node2": {Members: []string{"node2", "node3"}}} {
		if got := kept(&compare.Report{Best: best}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := kept(&compare.Report{}); got != "" {
		t.Errorf("without a best one %q", got)
	}
}

// TestMainRevision: what is no key of bucket key has no revision.
func TestMainRevision(t *testing.T) {
	for _, c := range []struct {
		key  []byte
		want int64
	}{{nil, 0}, {make([]byte, 7), 0}, {binary.BigEndian.AppendUint64(nil, 9), 9},
		{binary.BigEndian.AppendUint64(nil, 1<<63), 0}} {
		if got := mainRev(c.key); got != c.want {
			t.Errorf("%x: %d, want %d", c.key, got, c.want)
		}
	}
}

// TestOwner: a cell belongs to the bucket with most of its pages, with equal numbers to the first one.
func TestOwner(t *testing.T) {
	for _, c := range []struct {
		owned map[int]int
		want  int
	}{{nil, -1}, {map[int]int{2: 1}, 2}, {map[int]int{0: 1, 1: 5, 2: 3}, 1}, {map[int]int{1: 4, 3: 4, 2: 1}, 1},
		{map[int]int{0: 2, 1: 2, 2: 2, 3: 2}, 0}} {
		s := &Storage{Owner: []int{7, -1}}
		s.flush(c.owned)
		if s.Owner[0] != 7 || s.Owner[1] != c.want || len(c.owned) != 0 {
			t.Errorf("owner %v, want %d", s.Owner, c.want)
		}
	}
	s := &Storage{}
	if s.flush(map[int]int{1: 1}); len(s.Owner) != 0 {
		t.Errorf("a cell before the first: %v", s.Owner)
	}
}

// opened writes a database with keys, each once, and opens it.
func opened(t *testing.T, name string, keys func(add func(key, value string))) *evidence.Member {
	t.Helper()
	h := clustertest.NewHand(t, t.TempDir(), name, 0xa1, 0xc1)
	h.Found(false, 0xa1)
	h.Member(0xa1, false, true)
	keys(h.Revision)
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Name: name, Where: h.Close(1, 1)}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	return set.Members[0]
}

// TestPrefixes: as many parts of the keys are counted as it takes to have several prefixes, and no more; what is too
// much is one sum.
func TestPrefixes(t *testing.T) {
	for _, c := range []struct {
		name    string
		keys    func(add func(key, value string))
		number  int
		first   string
		records int64
		rest    int64
	}{
		{"few", func(add func(string, string)) {
			for i := range 8 {
				add(fmt.Sprintf("/r/%d/x", i%4), "value")
			}
			add("/r/2/x", "value")
		}, 4, "/r/2/", 3, 0},
		{"all below one", func(add func(string, string)) {
			for i := range 8 {
				add(fmt.Sprintf("/r/pods/ns%d/x%d", i%2, i), "value")
			}
		}, 8, "", 0, 0},
		{"all below one, and then too many", func(add func(string, string)) {
			for i := range 90 {
				add(fmt.Sprintf("/r/pods/%03d/x", i), "value")
			}
		}, 1, "/r/pods/", 90, 0},
		{"many", func(add func(string, string)) {
			for i := range 85 {
				add(fmt.Sprintf("/r/%03d/x", i), "value")
			}
		}, 81, "", 0, 5},
		{"as many as are listed", func(add func(string, string)) {
			for i := range 80 {
				add(fmt.Sprintf("/r/%03d/x", i), "value")
			}
		}, 80, "", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := opened(t, "node1", c.keys)
			var d Dossier
			if err := d.storage(t.Context(), []*evidence.Member{m}, ""); err != nil {
				t.Fatal(err)
			}
			got := d.Storage[0].Prefixes
			if len(got) != c.number {
				t.Fatalf("%d prefixes: %+v", len(got), got)
			}
			if c.first != "" && (got[0].Name != c.first || got[0].Revisions != c.records || got[0].Bytes == 0) {
				t.Errorf("first %+v", got[0])
			}
			last := got[len(got)-1]
			if last.Rest != (c.rest > 0) || last.Rest && (last.Revisions != c.rest || last.Keys != c.rest ||
				last.Bytes != c.rest*got[0].Bytes || last.LiveBytes != c.rest*got[0].LiveBytes) {
				t.Errorf("rest %+v", last)
			}
		})
	}
}

// TestStorageOf: prefixes are those of the member that is kept, else of the first; a member without a database has no
// storage.
func TestStorageOf(t *testing.T) {
	some := func(add func(string, string)) { add("/r/a/x", strings.Repeat("v", 3000)) }
	members := []*evidence.Member{named("log")[0], opened(t, "node1", some), opened(t, "node2", some)}
	for keep, want := range map[string]string{"": "node1", "node2": "node2", "log": ""} {
		var d Dossier
		if err := d.storage(t.Context(), members, keep); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, s := range d.Storage {
			if len(s.Prefixes) > 0 {
				got += s.Member
			}
		}
		if len(d.Storage) != 2 || got != want {
			t.Errorf("%q is kept: prefixes of %q in %d files", keep, got, len(d.Storage))
		}
	}
	s := &Storage{}
	if err := s.read(t.Context(), members[1], false); err != nil {
		t.Fatal(err)
	}
	at := slices.Index(s.Spans, [2]int64{2, 2})
	if at < 0 || s.Owner[at] < 0 || s.Buckets[s.Owner[at]] != "key" || s.PerCell != 1 ||
		len(s.States) != len(pageStates) {
		t.Errorf("owner %v of %v, spans %v", s.Owner, s.Buckets, s.Spans)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := new(Dossier).storage(ended, members, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
}

// TestEndsAnywhere: wherever the caller gives up, the dossier ends with the error of its context.
func TestEndsAnywhere(t *testing.T) {
	some := func(add func(string, string)) { add("/r/a/x", strings.Repeat("v", 3000)) }
	other := func(add func(string, string)) { add("/r/a/x", "w") }
	in := &check.Input{Members: []*evidence.Member{opened(t, "node1", some), opened(t, "node2", other)}}
	of := func(ctx context.Context) (*Dossier, error) {
		d := &Dossier{}
		in.Diff = &diff.Result{Members: in.Members, Buckets: []diff.Bucket{{Name: "lease", Equal: release.No, Differ: 2,
			Rows: []diff.Row{{Key: []byte("1"), Cells: []*diff.Cell{{Text: "t"}, nil}}}}}}
		return d, d.study(ctx, in, &compare.Report{}, &Options{MaxRows: 50})
	}
	ctx := ctxtest.EndingAfter(1 << 40)
	whole, err := of(ctx)
	if err != nil || len(whole.Differences) < 2 || len(whole.Storage[0].Prefixes) != 1 {
		t.Fatalf("%v, %+v", err, whole)
	}
	asked, ended := 1<<40-ctx.Left(), 0
	for n := int64(0); n < asked+2; n += 1 + asked/200 {
		d, err := of(ctxtest.EndingAfter(n))
		switch {
		case errors.Is(err, context.Canceled):
			ended++
		case err != nil:
			t.Errorf("after %d of %d: %v", n, asked, err)
		case len(d.Differences) != len(whole.Differences) || cmp.Diff(whole.Storage, d.Storage) != "":
			t.Errorf("after %d of %d: a dossier that is not whole: %+v", n, asked, d)
		}
	}
	if ended < 5 {
		t.Errorf("ended %d times", ended)
	}
	for name, read := range map[string]func(s *Storage, ctx context.Context) error{
		"pages":     func(s *Storage, ctx context.Context) error { return s.pages(ctx, in.Members[0].DB) },
		"revisions": func(s *Storage, ctx context.Context) error { return s.revisions(ctx, in.Members[0].DB) },
		"prefixes":  func(s *Storage, ctx context.Context) error { return s.prefixes(ctx, in.Members[0].DB.Handle) },
	} {
		s := whole.Storage[0]
		if err := read(&s, ctxtest.EndingAfter(0)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
