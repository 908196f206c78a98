package compare

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// named are members of one cluster with these names.
func named(names ...string) (out []*evidence.Member) {
	for _, name := range names {
		out = append(out, &evidence.Member{Source: &evidence.Source{Name: name}, ClusterID: 0xc1})
	}
	return out
}

// TestMixedClusters: the error names the sources of each cluster; one that does not say its cluster is of none.
func TestMixedClusters(t *testing.T) {
	ms := named("a", "b", "c", "d")
	ms[1].ClusterID, ms[3].ClusterID = 0xc2, 0
	var e *ErrMixed
	err := mixed(ms)
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "different clusters") {
		t.Fatal(err)
	}
	want := map[string][]string{"c1": {"a", "c"}, "c2": {"b"}}
	if !reflect.DeepEqual(e.Clusters, want) {
		t.Errorf("%v, want %v", e.Clusters, want)
	}
}

// TestWindowOfComparison: a member that was not compared has no revision but a reason.
func TestWindowOfComparison(t *testing.T) {
	d := &diff.Result{Members: named("a", "b"), Common: 9, Compact: 4, Note: "n", Revs: []int64{5, 6},
		NotCompared: map[int]string{}}
	c := &Comparison{}
	if c.window(d); c.Window.LeftOut != nil || !maps.Equal(c.Window.Revisions, map[string]int64{"a": 5, "b": 6}) ||
		c.Window.AppliedIndex != 9 || c.Window.CompactRevision != 4 || c.Window.Note != "n" {
		t.Errorf("%+v", c.Window)
	}
	d.NotCompared[1] = "why"
	if c.window(d); !maps.Equal(c.Window.LeftOut, map[string]string{"b": "why"}) ||
		!maps.Equal(c.Window.Revisions, map[string]int64{"a": 5}) {
		t.Errorf("%+v", c.Window)
	}
}

// TestRowsOfComparison: what a comparison says of rows that differ, of those that a normal difference explains, and of
// records where all live keys are equal.
func TestRowsOfComparison(t *testing.T) {
	d := &diff.Result{Members: named("a", "b", "c"), NotCompared: map[int]string{2: "why"}}
	pod := dumpdb.KubeObject{Encoding: "json", Kind: "Pod", Name: "p"}
	key := &diff.Bucket{Name: "key", Equal: release.No, Differ: 3, SameContent: 1, Compared: 7, Only: []int{1, 0, 0},
		Limits: "limits", Rows: []diff.Row{{Key: []byte("k"), Cells: []*diff.Cell{nil, {Mod: 5, Create: 4, Version: 2,
			Lease: 0x1f, ValueLen: 3, ValueDigest: "dig", Value: []byte("val"), Object: pod}, nil}}}}
	c := &Comparison{}
	for _, values := range []bool{false, true} {
		out := c.bucket(d, key, Options{Values: values})
		row := out.Rows[0]
		got := row.Members["b"]
		if out.More != 2 || out.Reason != "limits" || !maps.Equal(out.Only, map[string]int{"a": 1}) ||
			out.Compared != 7 ||
			out.SameContent != 1 || len(row.Members) != 2 || row.Members["a"] != nil || row.Object == nil ||
			row.Object.Kind != "Pod" || got.Lease != "1f" || got.ModRevision != 5 || got.CreateRevision != 4 ||
			got.Version != 2 || got.Value.Len != 3 || (got.Value.Bytes != nil) != values {
			t.Errorf("values %t: %+v, row %+v, cell %+v", values, out, row, got)
		}
	}
	small := &diff.Bucket{Name: "alarm", Reason: "reason", Limits: "limits", Normal: []diff.Row{{Key: []byte("r"),
		Cells: []*diff.Cell{{Text: "t"}, nil, nil}}}}
	if out := c.bucket(d, small, Options{}); out.Reason != "reason" || out.More != 0 || len(out.Rows) != 0 ||
		out.Normal[0].Members["a"].Text != "t" || out.Normal[0].Members["a"].Value != nil ||
		out.Normal[0].Object != nil {
		t.Errorf("%+v", out)
	}
	if got := cell("key", &diff.Cell{Mod: 5}, false); got.Lease != "" {
		t.Errorf("a key without a lease: %+v", got)
	}
	for _, equal := range []release.Answer{release.Yes, release.Unknown} {
		d.Records = &diff.Records{Equal: equal}
		if c.records(d); len(c.Buckets) > 0 {
			t.Errorf("records that are equal: %+v", c.Buckets)
		}
	}
	d.Records = nil
	c.records(d)
	d.Records = &diff.Records{Equal: release.No, Differ: 3, Rows: []diff.RecordRow{{Rev: dumpdb.Rev{Main: 5},
		At: []int{0, 1}, Cells: []*diff.RecordCell{{Text: "t"}, nil, nil}}}}
	c.records(d)
	if len(c.Buckets) != 1 || c.Buckets[0].More != 2 || c.Buckets[0].Differ != 3 || len(c.Buckets[0].Rows) != 1 {
		t.Fatalf("%+v", c.Buckets)
	}
	row := c.Buckets[0].Rows[0]
	if b, ok := row.Members["b"]; row.Members["a"].Text != "t" || !ok || b != nil || len(row.Members) != 2 ||
		string(row.Key) != (dumpdb.Rev{Main: 5}).String() {
		t.Errorf("%+v", row)
	}
}

// TestLogsOfComparison: logs are compared where two of them overlap, up to what their members have committed.
func TestLogsOfComparison(t *testing.T) {
	type logOf struct{ first, last, commit uint64 }
	for name, c := range map[string]struct {
		logs        []logOf
		differ      []replay.LogDiff
		shifts      []*replay.Shift
		first, last uint64
		equal       release.Answer
	}{
		"one log":           {logs: []logOf{{1, 9, 9}, {}}},
		"two logs":          {logs: []logOf{{1, 9, 9}, {3, 8, 8}}, first: 3, last: 8, equal: release.Yes},
		"what is committed": {logs: []logOf{{4, 9, 7}, {3, 8, 8}}, first: 4, last: 7, equal: release.Yes},
		"by the second":     {logs: []logOf{{4, 9, 9}, {3, 8, 6}}, first: 4, last: 6, equal: release.Yes},
		"one entry":         {logs: []logOf{{4, 9, 9}, {3, 4, 4}}, first: 4, last: 4, equal: release.Yes},
		"no overlap":        {logs: []logOf{{5, 9, 9}, {3, 4, 4}}},
		"an entry that differs": {logs: []logOf{{1, 9, 9}, {3, 8, 8}}, first: 3, last: 8, equal: release.No,
			differ: []replay.LogDiff{{Index: 5, By: map[int]string{0: "x", 1: "y"}}}},
		"a shift": {logs: []logOf{{1, 9, 9}, {3, 8, 8}}, first: 3, last: 8, equal: release.No,
			shifts: []*replay.Shift{{}}},
	} {
		ms := named("a", "b")
		indexes := map[string]uint64{}
		for i, l := range c.logs {
			if l.last == 0 {
				continue
			}
			ms[i].WAL.Log, ms[i].Commit = &dumplog.Log{}, l.commit
			ms[i].WAL.Summary.FirstIndex, ms[i].WAL.Summary.LastIndex = l.first, l.last
			indexes[ms[i].Label()] = l.last
		}
		var out Comparison
		out.log(ms, &replay.Result{LogDiffs: c.differ, Shifts: c.shifts})
		want := LogComparison{FirstIndex: c.first, LastIndex: c.last, Equal: c.equal, Differ: []LogDiff{},
			LastIndexes: indexes}
		if c.last > 0 {
			want.Compared = int(c.last - c.first + 1)
		}
		if len(c.differ) > 0 {
			want.Differ = []LogDiff{{Index: 5, Members: map[string]string{"a": "x", "b": "y"}}}
		}
		if !reflect.DeepEqual(out.Log, want) {
			t.Errorf("%s: %+v, want %+v", name, out.Log, want)
		}
	}
}

// TestGivenTo: the key of the client certificate has another flag where --key selects keys of a database.
func TestGivenTo(t *testing.T) {
	r := &Report{Given: []string{"--key", "k.pem", "dir"}}
	for want, commands := range map[string][]shell.Command{"--tls-key": {shell.Format("etcd-medic dumpdb get")},
		"--key": {shell.Format("etcd-medic diagnose"), shell.Format("etcdctl"), {}}} {
		for _, c := range commands {
			if got := r.GivenTo(c); got[0] != want || !slices.Equal(got[1:], r.Given[1:]) || r.Given[0] != "--key" {
				t.Errorf("%s: %q", c, got)
			}
		}
	}
}

// TestUnreadOfHistory: a damaged file is damage, another one that could not be read was left out.
func TestUnreadOfHistory(t *testing.T) {
	h := &KeyHistory{}
	m := named("a")[0]
	for file, err := range map[string]error{"db": &dumpdb.DamageError{}, "0.wal": &dumplog.DamageError{},
		"1.wal": errors.New("permission denied")} {
		h.unread(m, &evidence.Problem{File: file, Err: fmt.Errorf("open: %w", err)})
	}
	if len(h.Damage["a"]) != 2 || len(h.LeftOut["a"]) != 1 ||
		!strings.HasPrefix(h.LeftOut["a"][0], "1.wal cannot be read") {
		t.Errorf("damage %q, left out %q", h.Damage, h.LeftOut)
	}
}

// TestKeyRecord: a tombstone has a revision only; a value is shown if asked for.
func TestKeyRecord(t *testing.T) {
	m := named("a")[0]
	rec := &dumpdb.Salvaged{Revision: dumpdb.Revision{Rev: dumpdb.Rev{Main: 5},
		KV: dumpdb.KeyValue{Key: []byte("k"), Value: []byte("val"), Lease: 0x1f, CreateRevision: 4, Version: 2}}}
	for _, values := range []bool{false, true} {
		if r := keyRecord(m, rec, values); r.CreateRevision != 4 || r.Version != 2 || r.Lease != "1f" ||
			r.Value.Len != 3 || (r.Value.Bytes != nil) != values {
			t.Errorf("values %t: %+v", values, r)
		}
	}
	rec.KV.Lease = 0
	if r := keyRecord(m, rec, true); r.Lease != "" {
		t.Errorf("without a lease: %+v", r)
	}
	rec.Tombstone = true
	if r := keyRecord(m, rec, true); r.Value != nil || r.CreateRevision != 0 || !r.Tombstone || r.Revision == "" {
		t.Errorf("tombstone: %+v", r)
	}
	for want, o := range map[string]replay.Outcome{
		"applied at revision 5": {State: replay.Applied, Rev: 5}, "no-effect": {State: replay.NoEffect},
		"refused (permission denied)": {State: replay.Refused, Reason: replay.ReasonPermission},
		"missing: how":                {State: replay.Missing, Detail: "how"},
	} {
		if got := outcomeText(o); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSourcesOfReport: a source that could not be used is named by its name or else its place, and the verdict knows
// it. A source that changed while it was read comes before all findings.
func TestSourcesOfReport(t *testing.T) {
	set := &evidence.Set{Failed: []evidence.FailedSource{
		{Spec: evidence.Spec{Name: "n", Where: "/w"}, Err: errors.New("e1")},
		{Spec: evidence.Spec{Where: "/v"}, Err: errors.New("e2")}}}
	r := &Report{Findings: []check.Finding{{ID: "K01-1"}}}
	r.sources(set, Options{})
	if len(r.Sources) != 2 || r.Sources[0].Name != "n" || r.Sources[0].Error != "e1" || r.Sources[1].Name != "/v" {
		t.Errorf("%+v", r.Sources)
	}
	r.Sources = append(r.Sources, Source{Name: "sound"}, Source{Name: "busy", InUse: "etcd has it open"})
	in := (&collected{set: set, in: &check.Input{}}).verdictInput(r)
	if len(in.Unread) != 2 || in.Unread[1].Name != "/v" || in.Unread[1].Error != "e2" {
		t.Errorf("%+v", in.Unread)
	}
	r.noteChanged(errors.New("size of db"))
	if f := r.Findings[0]; len(r.Findings) != 2 || f.ID != "X00-1" ||
		f.Explanation != "size of db; busy: etcd has it open" ||
		r.Verdict.Class != check.ClassTornCopy || r.Verdict.Health != check.Unhealthy {
		t.Errorf("%+v, %+v", r.Findings, r.Verdict)
	}
}

// TestChanges: the changes lead from what the first source holds to what the second holds; they stop at an error.
func TestChanges(t *testing.T) {
	root := evidencetest.Incident(t, "n-silent-kv-divergence")
	spec := func(name string) evidence.Spec { return evidence.Spec{Name: name, Where: filepath.Join(root, name)} }
	run := func(from, to evidence.Spec, begin, one error) (w ChangeWindow, n int, err error) {
		err = Changes(t.Context(), from, to, Options{}, func(is ChangeWindow) error {
			w = is
			return begin
		}, func(diff.Change) error {
			n++
			return one
		})
		return w, n, err
	}
	counts := map[string]int{}
	for _, pair := range [][2]string{{"node1", "node2"}, {"node1", "node3"}, {"node2", "node3"}} {
		w, n, err := run(spec(pair[0]), spec(pair[1]), nil, nil)
		if err != nil || w.From != pair[0] || w.To != pair[1] || w.AppliedIndex == 0 || w.FromRevision == 0 {
			t.Errorf("%v: %+v, %d changes, %v", pair, w, n, err)
		}
		counts[pair[0]+pair[1]] = n
		if n == 0 {
			continue
		}
		stop := errors.New("stop")
		if _, n, err := run(spec(pair[0]), spec(pair[1]), nil, stop); n != 1 || !errors.Is(err, stop) {
			t.Errorf("after the first: %d changes, %v", n, err)
		}
		if _, n, err := run(spec(pair[0]), spec(pair[1]), stop, nil); n != 0 || !errors.Is(err, stop) {
			t.Errorf("before the first: %d changes, %v", n, err)
		}
	}
	if len(counts) != 3 || counts["node1node2"]+counts["node1node3"]+counts["node2node3"] == 0 {
		t.Errorf("changes: %v", counts)
	}
	if _, _, err := run(spec("node1"), spec("none"), nil, nil); err == nil {
		t.Error("a source that is not there")
	}
	other := evidence.Spec{Name: "other", Where: filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node1")}
	if _, _, err := run(spec("node1"), other, nil, nil); !errors.As(err, new(*ErrMixed)) {
		t.Errorf("another cluster: %v", err)
	}
	if _, err := Compare(t.Context(), []evidence.Spec{spec("node1"), other}, Options{}); !errors.As(err,
		new(*ErrMixed)) {
		t.Errorf("comparison with another cluster: %v", err)
	}
	if _, err := History(t.Context(), []byte("k"), []evidence.Spec{spec("node1"), other},
		Options{}); !errors.As(err, new(*ErrMixed)) {
		t.Errorf("history with another cluster: %v", err)
	}
}

// TestOneSource: one source alone has no best one; what a caller adds to a diagnosis may fail it.
func TestOneSource(t *testing.T) {
	spec := evidence.Spec{Name: "node1", Where: filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node1")}
	looked, failed := "", errors.New("failed")
	r, err := Inspect(t.Context(), spec, Options{Look: func(_ context.Context, m *evidence.Member, _ *Report) error {
		looked = m.Label()
		return nil
	}})
	if err != nil || r.Best != nil || looked != "node1" || !r.InputsUnchanged {
		t.Fatalf("%v, looked at %q", err, looked)
	}
	for name, o := range map[string]Options{
		"look":  {Look: func(context.Context, *evidence.Member, *Report) error { return failed }},
		"study": {Study: func(context.Context, *check.Input, *Report) error { return failed }},
	} {
		if r, err := Inspect(t.Context(), spec, o); !errors.Is(err, failed) || r != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	spec.Where += "none"
	if r, err := Inspect(t.Context(), spec, Options{}); err == nil || r != nil {
		t.Errorf("a source that is not there: %v", err)
	}
}
