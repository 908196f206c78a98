package check

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// TestV2StoresToCompare: without the store of a snapshot there is nothing to compare.
func TestV2StoresToCompare(t *testing.T) {
	for name, m := range map[string]*evidence.Member{
		"no snapshot": withLog(withSnapDir(t, "n1"), 20),
		"no store":    addSnap(withLog(withSnapDir(t, "n1"), 20), 15, nil),
		"index 0":     addSnap(withLog(withSnapDir(t, "n1"), 20), 0, &dumplog.V2Store{}),
	} {
		in := &Input{Members: Sources{m}, Replay: &replay.Result{Survey: &replay.Survey{}}}
		if r := runV2StoreTrue(in); r.Outcome == Holds || r.Reason != "no source has a snapshot file with a v2 store" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := runV2StoreTrue(&Input{}); r.Reason != "the logs could not be merged" {
		t.Errorf("%+v", r)
	}
	m := addSnap(withLog(withSnapDir(t, "n1"), 20), 15, &dumplog.V2Store{})
	in := &Input{Members: Sources{m}, Replay: &replay.Result{Survey: &replay.Survey{}}}
	if r := runV2StoreTrue(in); !strings.HasPrefix(r.Reason, "n1: the log reaches back neither") {
		t.Errorf("%+v", r)
	}
}

// TestV2StoresDiffer: the stores of members are compared with each other, unless the log shows which one is wrong.
func TestV2StoresDiffer(t *testing.T) {
	row := diff.Row{Key: []byte("member 1"), Cells: []*diff.Cell{{Text: "a"}, {Text: "b"}, {Text: "b"}}}
	build := func() *Input {
		in := &Input{MaxRows: 20, Replay: &replay.Result{Survey: &replay.Survey{}}}
		for _, name := range []string{"n1", "n2", "n3"} {
			m := addSnap(withLog(withSnapDir(t, name), 20), 15, &dumplog.V2Store{})
			m.Version.Minor = 4
			in.Members = append(in.Members, m)
		}
		in.Diff = &diff.Result{Members: in.Members, Buckets: []diff.Bucket{{Name: "v2store", Equal: release.No,
			Differ: 1, Rows: []diff.Row{row}}}}
		return in
	}
	for name, c := range map[string]struct {
		change   func(in *Input)
		severity Severity
		rows     int
		why      string
	}{
		"different":          {func(*Input) {}, Error, 3, ""},
		"3.6 keeps no store": {func(in *Input) { in.Members[2].Version.Minor = 6 }, Warning, 3, ""},
		"one left out":       {func(in *Input) { in.Diff.NotCompared = map[int]string{0: "x"} }, Error, 2, ""},
		"one without":        {func(in *Input) { in.Members[0].Snap.Files = nil }, Error, 2, ""},
		"no diff":            {func(in *Input) { in.Diff = nil }, "", 0, ""},
		"no stores":          {func(in *Input) { in.Diff.Buckets = nil }, "", 0, ""},
		"equal":              {func(in *Input) { in.Diff.Buckets[0].Equal = release.Yes }, "", 0, ""},
		"unknown": {func(in *Input) {
			in.Diff.Buckets[0].Equal, in.Diff.Buckets[0].Reason = release.Unknown, "purged"
		}, "", 0, "purged"},
	} {
		in := build()
		c.change(in)
		f, why := in.v2Lists().differs()
		if (f != nil) != (c.rows > 0) || why != c.why {
			t.Fatalf("%s: %+v, %s", name, f, why)
		}
		if f != nil && (f.Severity != c.severity || len(f.Evidence) != c.rows || len(f.Members) != c.rows ||
			f.At.Index != 15 || (f.Class == "") != (c.severity == Warning)) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	against := func(severity Severity, members ...string) []Finding {
		return []Finding{{Severity: severity, Members: members}}
	}
	for name, c := range map[string]struct {
		fs     []Finding
		change func(in *Input)
		want   bool
	}{
		"the odd one is named": {against(Error, "n1"), nil, true},
		"another one is":       {against(Error, "n2"), nil, false},
		"with a warning":       {against(Warning, "n1"), nil, false},
		"none is":              {nil, nil, false},
		"none at hand":         {against(Error, "n9"), nil, false},
		"two, one is left":     {against(Error, "n1", "n2"), nil, true},
		"the odd one left out": {against(Error, "n2"), func(in *Input) {
			in.Diff.NotCompared = map[int]string{0: "x"}
		}, true},
		"it has no snapshot": {against(Error, "n2"), func(in *Input) { in.Members[0].Snap.Files = nil }, true},
		"it has no store":    {against(Error, "n2"), func(in *Input) { in.Members[0].Snap.Files[0].V2 = nil }, true},
		"one has no row": {against(Error, "n1"), func(in *Input) {
			in.Diff.Buckets[0].Rows[0].Cells[2] = nil
		}, false},
		"neither of two has it": {against(Error, "n1"), func(in *Input) {
			clear(in.Diff.Buckets[0].Rows[0].Cells[1:])
		}, true},
	} {
		in := build()
		in.Diff.Buckets[0].Rows[0].Cells = append([]*diff.Cell{}, row.Cells...)
		if c.change != nil {
			c.change(in)
		}
		if got := in.v2Lists().explained(c.fs); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// dbOf opens the database of a data dir, for a source that closes it.
func dbOf(t *testing.T, dir string) *dumpdb.DB {
	t.Helper()
	set, err := evidence.Open(context.Background(), []evidence.Spec{{Where: dir}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set.Members[0].DB.Handle
}

// TestV2ListAgainstBucket: up to 3.5 the rows that both lists have are compared, as long as no entry changes them. A
// member that has published itself has a row.
func TestV2ListAgainstBucket(t *testing.T) {
	whole := filepath.Join(evidencetest.Incident(t, "m-healthy-3.5"), "node1")
	for name, c := range map[string]struct {
		change   func(m *evidence.Member, rp *replay.Result)
		compared bool
		rows     int
	}{
		"equal": {func(*evidence.Member, *replay.Result) {}, true, 0},
		"other peer URLs": {func(m *evidence.Member, _ *replay.Result) {
			m.DB.Members[0].PeerURLs = []string{"q"}
		}, true, 1},
		"in another order": {func(m *evidence.Member, _ *replay.Result) {
			m.DB.Members[0].PeerURLs = []string{"b", "a"}
		}, true, 0},
		"another name": {func(m *evidence.Member, _ *replay.Result) { m.DB.Members[0].Name = "q" }, true, 1},
		"other clients": {func(m *evidence.Member, _ *replay.Result) {
			m.DB.Members[0].ClientURLs = []string{"q"}
		}, true, 1},
		"not published": {func(m *evidence.Member, _ *replay.Result) {
			m.DB.Members[0].Name, m.DB.Members[0].ClientURLs = "q", nil
		}, true, 0},
		"published since": {func(m *evidence.Member, rp *replay.Result) {
			m.DB.Members[0].Name = "q"
			rp.Survey.Starts = map[dumplog.ID][]replay.Start{1: {{Index: 16}}}
		}, true, 0},
		"published before": {func(m *evidence.Member, rp *replay.Result) {
			m.DB.Members[0].Name = "q"
			rp.Survey.Starts = map[dumplog.ID][]replay.Start{1: {{Index: 15}}}
		}, true, 1},
		"changed since": {func(m *evidence.Member, _ *replay.Result) {
			m.WAL.Conf = []evidence.ConfEntry{updated(16, 1, "q")}
		}, false, 0},
		"changed before": {func(m *evidence.Member, _ *replay.Result) {
			m.WAL.Conf = []evidence.ConfEntry{updated(15, 1, "q")}
		}, true, 0},
		"another is changed": {func(m *evidence.Member, _ *replay.Result) {
			m.WAL.Conf = []evidence.ConfEntry{updated(16, 2, "q")}
		}, true, 0},
		"another member": {func(m *evidence.Member, _ *replay.Result) { m.DB.Members[0].ID = 7 }, true, 1},
		"no row":         {func(m *evidence.Member, _ *replay.Result) { m.DB.Members = nil }, true, 1},
		"no row, which damage may hide": {func(m *evidence.Member, _ *replay.Result) {
			m.DB.Members, m.DB.Damage = nil, dumpdb.Damages{{Kind: dumpdb.DamagePage, Bucket: "members"}}
		}, false, 0},
		"no row, and no bucket": {func(m *evidence.Member, _ *replay.Result) {
			m.DB.Members, m.DB.Handle = nil, &dumpdb.DB{}
		}, false, 0},
		"no row, never published": {func(m *evidence.Member, _ *replay.Result) {
			m.DB.Members, m.Snap.Files[0].V2.Members[0].ClientURLs = nil, nil
		}, false, 0},
		"no row, removed since": {func(m *evidence.Member, _ *replay.Result) {
			m.DB.Members, m.WAL.Conf = nil, []evidence.ConfEntry{updated(16, 1, "q")}
		}, false, 0},
		"no database":       {func(m *evidence.Member, _ *replay.Result) { m.DB = nil }, false, 0},
		"no log":            {func(m *evidence.Member, _ *replay.Result) { m.WAL.Log = nil }, false, 0},
		"an older database": {func(m *evidence.Member, _ *replay.Result) { m.AppliedMin = 14 }, false, 0},
		"one of that index": {func(m *evidence.Member, _ *replay.Result) { m.AppliedMin = 15 }, true, 0},
		"entries are missing": {func(_ *evidence.Member, rp *replay.Result) {
			rp.Gaps = []replay.Gap{{From: 16, To: 17}}
		}, false, 0},
		"purged beyond it":  {func(m *evidence.Member, _ *replay.Result) { m.WAL.Summary.FirstIndex = 17 }, false, 0},
		"purged up to it":   {func(m *evidence.Member, _ *replay.Result) { m.WAL.Summary.FirstIndex = 16 }, true, 0},
		"a log that ends":   {func(m *evidence.Member, _ *replay.Result) { m.WAL.Summary.LastIndex = 17 }, false, 0},
		"a log up to there": {func(m *evidence.Member, _ *replay.Result) { m.WAL.Summary.LastIndex = 18 }, true, 0},
	} {
		m := withDB(addSnap(withLog(withSnapDir(t, "n1"), 20), 15, &dumplog.V2Store{Members: []dumplog.V2Member{
			{ID: 1, Name: "n1", PeerURLs: []string{"a", "b"}, ClientURLs: []string{"c"}}}}), 18)
		m.Version.Minor, m.DB.Handle = 5, dbOf(t, whole)
		m.DB.Members = []dumpdb.Member{{ID: 1, Name: "n1", PeerURLs: []string{"a", "b"}, ClientURLs: []string{"c"}}}
		rp := &replay.Result{First: 1, Last: 20, Survey: &replay.Survey{}}
		c.change(m, rp)
		fs, compared := (&Input{Members: Sources{m}, Replay: rp, MaxRows: 20}).v2Lists().againstBuckets(m)
		rows := 0
		for _, f := range fs {
			rows += len(f.Evidence)
			if f.At != (At{Term: 2, Index: 15}) || !strings.Contains(f.Explanation, "no entry in 16..20 explains") {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if compared != c.compared || rows != c.rows {
			t.Errorf("%s: compared %t, %+v", name, compared, fs)
		}
	}
}

// TestV2AgainstItsEvents: a store that contradicts its own history is named by that alone, also in an older file.
func TestV2AgainstItsEvents(t *testing.T) {
	altered := []dumplog.V2Altered{{Path: "/0/version", Index: 3, Value: "3.9.0", Written: "3.4.0"}}
	none, written := &dumplog.V2Store{}, &dumplog.V2Store{InHistory: 1}
	wrong := &dumplog.V2Store{InHistory: 1, Altered: altered}
	for name, c := range map[string]struct {
		store, older *dumplog.V2Store
		minor        int
		severity     Severity
		index        uint64
		checked      bool
	}{
		"no history":               {store: none, minor: 4},
		"as written":               {store: written, minor: 4, checked: true},
		"altered":                  {store: wrong, minor: 4, severity: Error, index: 15, checked: true},
		"3.6 does not read it":     {store: wrong, minor: 6, severity: Warning, index: 15, checked: true},
		"an older file":            {store: none, older: wrong, minor: 4, severity: Error, index: 9, checked: true},
		"an older file as written": {store: none, older: written, minor: 4, checked: true},
	} {
		m := withLog(withSnapDir(t, "n1"), 20)
		if c.older != nil {
			m = addSnap(m, 9, c.older)
		}
		m = addSnap(m, 15, c.store)
		m.Version.Minor = c.minor
		in := &Input{Members: Sources{m}, MaxRows: 9, Replay: &replay.Result{Survey: &replay.Survey{}}}
		r := runV2StoreTrue(in)
		if (r.Reason == "") != c.checked {
			t.Errorf("%s: %+v", name, r)
		}
		if len(r.Findings) == 0 {
			if c.severity != "" {
				t.Errorf("%s: not found", name)
			}
			continue
		}
		f := &r.Findings[0]
		if f.Kind != KindV2MembersAgainstEvents || f.Severity != c.severity || f.At.Index != c.index ||
			len(r.Findings) != 1 || (f.Class == ClassMembership) != (c.severity == Error) {
			t.Errorf("%s: %+v", name, r.Findings)
			continue
		}
		if e := f.Evidence[0]; e.Observed != "3.9.0" || e.Expected != "3.4.0" || string(e.Key) != "/0/version" ||
			e.Field != "node with modifiedIndex 3" || e.File == "" {
			t.Errorf("%s: %+v", name, e)
		}
	}
	m := addSnap(withLog(withSnapDir(t, "n1"), 20), 15, wrong)
	m.Snap.Files[0].Damage = &dumplog.DamageError{}
	if fs, checked := (v2Lists{&Input{}}).againstEvents(m); checked || fs != nil {
		t.Errorf("a damaged file: %v", fs)
	}
}
