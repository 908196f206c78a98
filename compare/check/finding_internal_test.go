package check

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/shell"
)

// TestApart: two members differ in a place where both are seen, with different content.
func TestApart(t *testing.T) {
	at := func(member, bucket, key, field, observed string) Evidence {
		return Evidence{Member: member, Bucket: bucket, Key: Bytes(key), Field: field, Observed: observed}
	}
	a := at("a", "key", "k", "value", "1")
	for name, c := range map[string]struct {
		other Evidence
		want  bool
	}{
		"another content": {at("b", "key", "k", "value", "2"), true},
		"the same":        {at("b", "key", "k", "value", "1"), false},
		"another key":     {at("b", "key", "l", "value", "2"), false},
		"another bucket":  {at("b", "lease", "k", "value", "2"), false},
		"another field":   {at("b", "key", "k", "mod", "2"), false},
		"a third member":  {at("c", "key", "k", "value", "2"), false},
	} {
		for _, evidence := range [][]Evidence{{a, c.other}, {c.other, a}} {
			f := Finding{Evidence: evidence}
			if got := f.Apart("a", "b"); got != c.want {
				t.Errorf("%s: %t", name, got)
			}
		}
	}
}

// TestAlone: a finding about several members says something of each only if it is said of each by itself.
func TestAlone(t *testing.T) {
	for _, c := range []struct {
		f    Finding
		want bool
	}{
		{Finding{Members: []string{"a"}}, true},
		{Finding{Members: []string{"b"}}, false},
		{Finding{Members: []string{"a", "b"}}, false},
		{Finding{Members: []string{"a", "b"}, Each: true}, true},
		{Finding{Members: []string{"b", "c"}, Each: true}, false},
		{Finding{}, false},
	} {
		if got := c.f.Alone("a"); got != c.want {
			t.Errorf("%+v: %t", c.f, got)
		}
	}
	for title, members := range map[string][]string{"a: is torn": {"a"}, "is torn": {"a"},
		"a and b: is torn": {"a", "b"}} {
		if f := (Finding{Title: title, Members: members}); f.BareTitle() != "is torn" {
			t.Errorf("%q", f.BareTitle())
		}
	}
}

// TestIDs: which checks are of family B, and which report what a start of the server repairs.
func TestIDs(t *testing.T) {
	for _, c := range All() {
		if c.ID.OfBackups() != (c.ID[0] == 'B') {
			t.Errorf("%s is of backups: %t", c.ID, c.ID.OfBackups())
		}
		if want := slices.Contains([]ID{W02, D01, S01}, c.ID); c.ID.MendedByStart() != want {
			t.Errorf("%s is mended by a start: %t", c.ID, !want)
		}
	}
}

// TestKindTexts: each kind has the text of its own row and is of the checks that the row names.
func TestKindTexts(t *testing.T) {
	EachKind(func(k Kind, checks []ID, states string) {
		if k.Text() != states {
			t.Errorf("%s: %q", k, k.Text())
		}
		for _, id := range checks {
			if !slices.Contains(KindsOf(id), k) {
				t.Errorf("%s is not of %s", k, id)
			}
		}
	})
	for _, c := range All() {
		for _, k := range KindsOf(c.ID) {
			if !k.StatedBy(c.ID) {
				t.Errorf("%s has kind %s", c.ID, k)
			}
		}
	}
	if text := Kind("none").Text(); text != "" {
		t.Errorf("a kind that is none: %q", text)
	}
}

// TestReachable: the commands of a remedy go to a member of the cluster that the finding is about.
func TestReachable(t *testing.T) {
	source := func(name string, cluster, id, index uint64) *evidence.Member {
		m := member(name)
		m.ClusterID, m.MemberID = dumplog.ID(cluster), dumplog.ID(id)
		m.DB = &evidence.DB{Members: []dumpdb.Member{{ID: dumpdb.ID(id), ClientURLs: []string{"http://" + name}}}}
		m.DB.Meta.ConsistentIndex = &index
		return m
	}
	ss := Sources{source("a", 1, 10, 5), source("b", 1, 11, 6), source("c", 2, 12, 9)}
	for want, members := range map[string][]string{"http://b": {"a"}, "http://c": {"c"}} {
		f := Finding{Members: members, Remedy: []Remedy{{Text: "t", Command: shell.Format("etcdctl alarm disarm")},
			{Text: "u", Command: shell.Format("etcdctl member list")}}}
		ss.Reachable(&f)
		for _, r := range f.Remedy {
			if got := r.Command.String(); !strings.Contains(got, "--endpoints "+want+" ") {
				t.Errorf("%v: %s", members, got)
			}
		}
	}
	f := Finding{Members: []string{"none"}, Remedy: []Remedy{{Command: shell.Format("etcdctl alarm disarm")}}}
	ss.Reachable(&f)
	if got := f.Remedy[0].Command.String(); !strings.Contains(got, "http://c") {
		t.Errorf("about no source: %s", got)
	}
	f = Finding{Members: []string{"a"}}
	if ss.Reachable(&f); f.Remedy != nil {
		t.Errorf("without a remedy: %+v", f)
	}
}

// TestNewestOfSources: equal indexes leave the first source; a removed member and one without URLs serve no client.
func TestNewestOfSources(t *testing.T) {
	index := uint64(5)
	source := func(url string, change func(*evidence.Member)) *evidence.Member {
		m := member("n")
		m.MemberID = 7
		m.DB = &evidence.DB{Members: []dumpdb.Member{{ID: 6}, {ID: 7, ClientURLs: []string{url}}}}
		m.DB.Meta.ConsistentIndex = &index
		if change != nil {
			change(m)
		}
		return m
	}
	removed := func(m *evidence.Member) { m.Membership.Removed = []dumplog.ID{7} }
	noDB := func(m *evidence.Member) { m.DB = nil }
	for want, ss := range map[string]Sources{
		"http://a": {source("http://a", nil), source("http://b", nil)},
		"http://c": {source("http://b", removed), source("http://c", nil)},
		"http://d": {source("http://b", noDB), source("http://d", nil)},
	} {
		if got := ss.AtEndpoint(shell.Format("etcdctl get x")).String(); got != "etcdctl --endpoints "+want+" get x" {
			t.Errorf("%s: %s", want, got)
		}
	}
}

// TestRanges: places of damage are named by ranges, adjacent ones joined, many of them counted.
func TestRanges(t *testing.T) {
	for want, rs := range map[string][][2]uint64{
		"3":                {{3, 3}},
		"3..5":             {{4, 5}, {3, 3}},
		"3, 5":             {{5, 5}, {3, 3}},
		"3..9":             {{3, 9}, {4, 5}},
		"3..6, 8":          {{3, 4}, {4, 6}, {8, 8}},
		"1..2, 4..5, 7..8": {{7, 8}, {1, 2}, {4, 5}},
	} {
		if got := rangesText(rs); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	var many [][2]uint64
	for i := range uint64(maxPlaces + 2) {
		many = append(many, [2]uint64{2 * i, 2 * i})
	}
	if got := rangesText(slices.Clone(many[:maxPlaces])); strings.Contains(got, "more") {
		t.Errorf("%s", got)
	}
	if got := rangesText(many); !strings.HasSuffix(got, "38, and 2 more ranges") {
		t.Errorf("%s", got)
	}
	page := func(n uint64) *dumpdb.DamageError { return &dumpdb.DamageError{Place: dumpdb.Place{Page: n}} }
	if got := pageRanges([]*dumpdb.DamageError{page(4), page(5), page(9)}); got != "pages 4..5, 9" {
		t.Errorf("%s", got)
	}
	if got := snapRanges([]*dumplog.SnapFile{{NameIndex: 4}, {NameIndex: 9}}); got != "of the indexes 4, 9" {
		t.Errorf("%s", got)
	}
	if got := indexRanges([]Finding{{At: At{Index: 4}}, {At: At{Index: 5}}}); got != "of entries 4..5" {
		t.Errorf("%s", got)
	}
	pos := func(segment string, offset int64) dumplog.Pos { return dumplog.Pos{Segment: segment, Offset: offset} }
	for want, ds := range map[string][]*dumplog.DamageError{
		"from segment a offset 1 to segment b offset 2": {{Pos: pos("a", 1)}, {Pos: pos("b", 2)}},
		"from segment a offset 1 to segment a offset 9; lost entries 4..6, 9": {
			{Pos: pos("a", 1), LostFrom: 4, LostTo: 6},
			{Pos: pos("a", 9), LostFrom: 9}},
	} {
		if got := logRanges(ds); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestUnreadableParts: only the parts that were asked for are named.
func TestUnreadableParts(t *testing.T) {
	a, b := member("a"), member("b")
	a.Problems = []evidence.Problem{{Part: "wal", File: "0.wal", Err: errors.New("denied")},
		{Part: "db", File: "db", Err: errors.New("gone")}}
	ss := Sources{a, b}
	if got := ss.unreadableParts("wal"); got != "a: 0.wal: denied" {
		t.Errorf("%q", got)
	}
	if got := ss.unreadableParts("snap"); got != "" {
		t.Errorf("%q", got)
	}
	if got := ss.labels(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%q", got)
	}
}

// TestSaidCommitted: a running member says what is committed, and so does a database without a log that has a revision
// of its own.
func TestSaidCommitted(t *testing.T) {
	dir, low, high := member("a"), member("b"), member("c")
	dir.Commit, low.Commit, high.Commit = 90, 40, 50
	low.Source.Kind, high.Source.Kind = evidence.KindEndpoint, evidence.KindEndpoint
	for want, ss := range map[uint64]Sources{0: {dir}, 40: {dir, low}, 50: {high, dir, low}} {
		if got := ss.SaidCommitted(nil); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
	database := func(commit uint64, rev int64) *evidence.Member {
		m := member("d")
		m.Commit, m.DB = commit, &evidence.DB{Handle: &dumpdb.DB{}, KV: &dumpdb.KVStats{CurrentRev: rev}}
		return m
	}
	if got := (Sources{database(70, 4), database(30, 3)}).SaidCommitted(nil); got != 70 {
		t.Errorf("with a newer revision: %d", got)
	}
	if got := (Sources{database(70, 4), database(30, 4)}).SaidCommitted(nil); got != 0 {
		t.Errorf("with the same revision: %d", got)
	}
	if got := (Sources{withLog(database(70, 4), 70)}).SaidCommitted(nil); got != 0 {
		t.Errorf("with a log that holds it: %d", got)
	}
	above := Sources{withLog(database(70, 4), 60), withLog(database(60, 3), 60)}
	index := uint64(70)
	above[0].DB.Meta.ConsistentIndex = &index
	for _, c := range []struct {
		what     string
		replayed replay.MemberResult
		want     uint64
	}{
		{"not replayed", replay.MemberResult{}, 70},
		{"the logs explain it", replay.MemberResult{Checked: true}, 0},
		{"the logs do not explain it", replay.MemberResult{Checked: true, PastLogs: true}, 70},
	} {
		rp := &replay.Result{Members: []*replay.MemberResult{&c.replayed, {}}}
		if got := above.SaidCommitted(rp); got != c.want {
			t.Errorf("above its log, %s: %d, want %d", c.what, got, c.want)
		}
	}
}

// TestCommitted: the index of a database above all logs counts only with a revision that no other source has.
func TestCommitted(t *testing.T) {
	source := func(last, commit, index uint64, rev int64) *evidence.Member {
		m := withLog(member("n"), last)
		m.Commit = commit
		m.DB = &evidence.DB{Handle: &dumpdb.DB{}, KV: &dumpdb.KVStats{CurrentRev: rev}}
		m.DB.Meta.ConsistentIndex = &index
		return m
	}
	for name, c := range map[string]struct {
		ss   Sources
		rp   *replay.Result
		want uint64
	}{
		"within the logs":            {Sources{source(20, 15, 15, 3), source(20, 18, 18, 3)}, nil, 18},
		"above, with a new revision": {Sources{source(20, 15, 15, 3), source(20, 30, 30, 4)}, nil, 30},
		"above, with the same":       {Sources{source(20, 15, 15, 3), source(20, 30, 30, 3)}, nil, 20},
		"above its own log only":     {Sources{source(40, 15, 15, 3), source(20, 30, 30, 3)}, nil, 30},
		"at the end":                 {Sources{source(20, 15, 15, 3), source(20, 20, 20, 3)}, nil, 20},
		"above, with a revision that the logs explain": {Sources{source(20, 15, 15, 3), source(20, 30, 30, 4)},
			&replay.Result{Members: []*replay.MemberResult{{Checked: true, PastLogs: true}, {Checked: true}}}, 20},
		"above, with one that they do not explain": {Sources{source(20, 15, 15, 3), source(20, 30, 30, 4)},
			&replay.Result{Members: []*replay.MemberResult{{Checked: true}, {Checked: true, PastLogs: true}}}, 30},
		"above, not replayed": {Sources{source(20, 15, 15, 3), source(20, 30, 30, 4)},
			&replay.Result{Members: []*replay.MemberResult{{Checked: true}, {}}}, 30},
	} {
		if got := c.ss.Committed(c.rp); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	backup := source(0, 50, 50, 3)
	backup.WAL.Log = nil
	if got := (Sources{source(20, 15, 15, 3), backup}).Committed(nil); got != 50 {
		t.Errorf("a backup: %d", got)
	}
}
