package check

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// TestV2Requests: plain puts and deletes give the keys of the store; of any other request its path is in doubt.
func TestV2Requests(t *testing.T) {
	yes := true
	put := func(path string, change ...func(r *dumplog.V2Request)) []*dumplog.V2Request {
		r := &dumplog.V2Request{Method: "PUT", Path: path}
		for _, c := range change {
			c(r)
		}
		return []*dumplog.V2Request{r}
	}
	remove := func(path string, change ...func(r *dumplog.V2Request)) []*dumplog.V2Request {
		r := put(path, change...)
		r[0].Method = "DELETE"
		return r
	}
	tree := func(r *dumplog.V2Request) { r.Recursive = true }
	at := func(r *dumplog.V2Request) { r.PrevIndex = 4 }
	value := func(r *dumplog.V2Request) { r.PrevValue = "v" }
	old, added := []string{"/1/old/k"}, []string{"/1/n"}
	for name, c := range map[string]struct {
		requests     []*dumplog.V2Request
		keys, doubts []string
	}{
		"a put":                  {put("/1/n"), []string{"/1/n", "/1/old/k"}, nil},
		"outside of the keys":    {put("/0/n"), old, nil},
		"in new folders":         {put("/1/a/b/c"), []string{"/1/a/b/c", "/1/old/k"}, nil},
		"over an old key":        {put("/1/old/k"), old, nil},
		"below a key":            {put("/1/old/k/x"), old, []string{"/1/old/k/x"}},
		"over a folder":          {put("/1/old"), old, []string{"/1/old"}},
		"a name that begins so":  {put("/1/old/k2"), []string{"/1/old/k", "/1/old/k2"}, nil},
		"a delete":               {remove("/1/old/k"), nil, nil},
		"a delete of another":    {remove("/1/old/k2"), old, nil},
		"a tree":                 {remove("/1/old", tree), nil, nil},
		"a tree of another name": {remove("/1/ol", tree), old, nil},
		"a tree if it is at":     {remove("/1/old", tree, at), old, []string{"/1/old"}},
		"a tree if it holds":     {remove("/1/old", tree, value), old, []string{"/1/old"}},
		"if it exists":           {put("/1/n", func(r *dumplog.V2Request) { r.PrevExist = &yes }), old, added},
		"a refresh":              {put("/1/n", func(r *dumplog.V2Request) { r.Refresh = &yes }), old, added},
		"a time to live":         {put("/1/n", func(r *dumplog.V2Request) { r.Expiration = 9 }), old, added},
		"a folder":               {put("/1/n", func(r *dumplog.V2Request) { r.Dir = true }), old, added},
		"if it is at an index":   {put("/1/n", at), old, added},
		"if it holds a value":    {put("/1/n", value), old, added},
		"a name of the server's": {put("/1/n", func(r *dumplog.V2Request) { r.Method = "POST" }), old, added},
	} {
		w := newV2World(release.AnyOf(4))
		w.load(&dumplog.V2Store{UserKeys: old})
		for _, r := range c.requests {
			w.request(r)
		}
		if got := slices.Sorted(maps.Keys(w.keys)); !slices.Equal(got, c.keys) || !slices.Equal(w.doubts, c.doubts) {
			t.Errorf("%s: keys %q, doubts %q, want %q and %q", name, got, w.doubts, c.keys, c.doubts)
		}
	}
}

// TestV2Folders: a put makes the folders above it, which stay; a key of the first snapshot that is put again has no
// time to live any more.
func TestV2Folders(t *testing.T) {
	w := newV2World(release.AnyOf(4))
	w.load(&dumplog.V2Store{UserKeys: []string{"/1/old/k", "/1/l"}})
	for _, path := range []string{"/1/a/b/c", "/1/a/d", "/1/l"} {
		w.request(&dumplog.V2Request{Method: "PUT", Path: path})
	}
	w.request(&dumplog.V2Request{Method: "DELETE", Path: "/1/a/b/c"})
	if got := slices.Sorted(maps.Keys(w.folders)); !slices.Equal(got, []string{"/1/a", "/1/a/b", "/1/old"}) {
		t.Errorf("folders %q", got)
	}
	if got := slices.Sorted(maps.Keys(w.mayExpire)); !slices.Equal(got, []string{"/1/old/k"}) {
		t.Errorf("may expire: %q", got)
	}
}

// TestV2Differences: keys differ unless the log leaves them open.
func TestV2Differences(t *testing.T) {
	type change = func(w *v2World, v *dumplog.V2Store)
	held := func(key string, doubts ...string) change {
		return func(w *v2World, v *dumplog.V2Store) {
			v.UserKeys, w.doubts = append(v.UserKeys, key), doubts
		}
	}
	nine := dumplog.V2Member{ID: 9}
	for name, c := range map[string]struct {
		change change
		want   []string
	}{
		"equal":       {func(*v2World, *dumplog.V2Store) {}, nil},
		"a key more":  {held("/1/n"), []string{"/1/n present"}},
		"in doubt":    {held("/1/n", "/1/n"), nil},
		"its folder":  {held("/1/n/x", "/1/n"), nil},
		"a key below": {held("/1/n", "/1/n/x"), nil},
		"another one": {held("/1/n", "/1/n2"), []string{"/1/n present"}},
		"an empty folder": {func(w *v2World, v *dumplog.V2Store) {
			held("/1/n")(w, v)
			w.folders["/1/n"] = true
		}, nil},
		"a key less": {func(_ *v2World, v *dumplog.V2Store) { v.UserKeys = nil }, []string{"/1/k absent"}},
		"which may expire": {func(w *v2World, v *dumplog.V2Store) { v.UserKeys, w.mayExpire["/1/k"] = nil, true },
			nil},
		"which is in doubt": {func(w *v2World, v *dumplog.V2Store) { v.UserKeys, w.doubts = nil, []string{"/1/k"} },
			nil},
		"a version":          {func(_ *v2World, v *dumplog.V2Store) { v.Version = "3.4.0" }, []string{"version 3.4.0"}},
		"that of the backup": {func(w *v2World, v *dumplog.V2Store) { v.Version, w.restored = "3.4.0", true }, nil},
		"not that of the log": {func(w *v2World, v *dumplog.V2Store) {
			v.Version, w.version, w.restored = "3.4.0", "3.3.0", true
		}, []string{"version 3.4.0"}},
		"a removed member": {func(_ *v2World, v *dumplog.V2Store) {
			v.Removed = []dumplog.ID{9}
		}, []string{"removed 9 removed"}},
		"one of the backup": {func(w *v2World, v *dumplog.V2Store) { v.Removed, w.restored = []dumplog.ID{9}, true },
			nil},
		"a member of a restore": {func(w *v2World, v *dumplog.V2Store) {
			v.Members, w.restored = []dumplog.V2Member{nine}, true
		}, []string{"member 9 peer URLs "}},
		"one that is unsure": {func(w *v2World, v *dumplog.V2Store) {
			v.Members, w.unsure["member 9"] = []dumplog.V2Member{nine}, true
		}, nil},
	} {
		w, v := newV2World(release.AnyOf(4)), &dumplog.V2Store{UserKeys: []string{"/1/k"}}
		w.keys["/1/k"] = true
		c.change(w, v)
		members, keys := w.differences(v)
		var got []string
		for _, d := range append(members, keys...) {
			got = append(got, d.key+" "+d.observed)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestV2KeysAgainstLog: keys that all are gone were dropped by hand; keys in part contradict the log.
func TestV2KeysAgainstLog(t *testing.T) {
	for name, c := range map[string]struct {
		held     []string
		minor    int
		leftOut  int
		severity Severity
		title    string
	}{
		"equal": {[]string{"/1/a", "/1/b"}, 4, 0, "", ""},
		"one is gone": {[]string{"/1/a"}, 4, 0, Error,
			"n1: keys in the v2 store of the newest snapshot contradicts the log in 1 place"},
		"all are gone": {nil, 4, 0, Warning,
			"n1: the v2 store of the newest snapshot holds no keys, the log wrote 2"},
		"not all is kept": {nil, 4, 1, "", ""},
		"3.6 keeps none":  {nil, 6, 0, "", ""},
	} {
		m := addSnap(withLog(withSnapDir(t, "n1"), 20), 15, &dumplog.V2Store{UserKeys: c.held})
		m.Version.Minor, m.WAL.Summary.Start = c.minor, dumplog.StartBootstrap
		survey := &replay.Survey{V2LeftOut: c.leftOut}
		for i, path := range []string{"/1/a", "/1/b", "/1/c"} { // the last one follows the snapshot
			survey.V2 = append(survey.V2, replay.V2Op{Index: uint64(14 + i),
				Req: &dumplog.V2Request{Method: "PUT", Path: path}})
		}
		in := &Input{Members: Sources{m}, MaxRows: 20, Replay: &replay.Result{Survey: survey}}
		fs, why := in.v2Lists().againstLog(m)
		if why != "" || (len(fs) == 0) != (c.title == "") {
			t.Fatalf("%s: %+v, %s", name, fs, why)
		}
		if len(fs) > 0 && (fs[0].Title != c.title || fs[0].Severity != c.severity ||
			fs[0].At != (At{Term: 2, Index: 15}) || !strings.Contains(fs[0].Evidence[0].Expected, "present")) {
			t.Errorf("%s: %+v", name, fs)
		}
	}
}

// TestV2StoreWhereLogsDiffer: what another log holds in the place of the member's entries says nothing of its store.
func TestV2StoreWhereLogsDiffer(t *testing.T) {
	for index, want := range map[uint64]string{15: "the logs hold different entries at index 15", 16: ""} {
		m := addSnap(withLog(withSnapDir(t, "n1"), 20), 15, &dumplog.V2Store{})
		m.Version.Minor, m.WAL.Summary.Start = 4, dumplog.StartBootstrap
		in := &Input{Members: Sources{m}, MaxRows: 20, Replay: &replay.Result{Survey: &replay.Survey{
			V2: []replay.V2Op{{Index: 12, Req: &dumplog.V2Request{Method: "PUT", Path: "/1/a"}}}},
			LogDiffs: []replay.LogDiff{{Index: index}}}}
		if fs, why := in.v2Lists().againstLog(m); why != want || (len(fs) == 0) != (want != "") {
			t.Errorf("they differ at %d: %+v, %s", index, fs, why)
		}
	}
}

// TestV2Begins: the store of a snapshot is compared with an older snapshot, or with the empty store before the first
// entry, if the log reaches from there to it.
func TestV2Begins(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *evidence.Member)
		from   uint64
		why    string
	}{
		"from the first entry": {func(*evidence.Member) {}, 0, ""},
		"a damaged log": {func(m *evidence.Member) { m.WAL.Summary.Damage = []*dumplog.DamageError{{}} }, 0,
			"no sound log"},
		"no log": {func(m *evidence.Member) { m.WAL.Log = nil }, 0, "no sound log"},
		"a member that joined": {func(m *evidence.Member) { m.WAL.Summary.Start = dumplog.StartJoin }, 0,
			"reaches back neither"},
		"it ends before": {func(m *evidence.Member) { m.WAL.Summary.LastIndex = 14 }, 0, "reaches back neither"},
		"it ends there":  {func(m *evidence.Member) { m.WAL.Summary.LastIndex = 15 }, 0, ""},
		"a purged log":   {func(m *evidence.Member) { m.WAL.Summary.FirstIndex = 9; older(m, 8) }, 8, ""},
		"an older file below": {func(m *evidence.Member) { m.WAL.Summary.FirstIndex = 9; older(m, 7) }, 0,
			"reaches back neither"},
		"of two the newest": {func(m *evidence.Member) { m.WAL.Summary.FirstIndex = 9; older(m, 8); older(m, 10) }, 10,
			""},
		"one without a record": {func(m *evidence.Member) {
			m.WAL.Summary.FirstIndex = 9
			older(m, 8)
			m.WAL.Summary.Snapshots = m.WAL.Summary.Snapshots[:1]
		}, 0, "reaches back neither"},
		"a damaged one": {func(m *evidence.Member) {
			m.WAL.Summary.FirstIndex = 9
			older(m, 8)
			m.Snap.Files[0].Damage = &dumplog.DamageError{}
		}, 0, "reaches back neither"},
		"one set aside": {func(m *evidence.Member) {
			m.WAL.Summary.FirstIndex = 9
			older(m, 8)
			m.Snap.Files[0].Broken = true
		}, 0, "reaches back neither"},
		"a received snapshot": {func(m *evidence.Member) {
			m.WAL.Summary.Jumps = []dumplog.Jump{{From: 5, To: 8}}
			older(m, 8)
		}, 8, ""},
		"one received after it": {func(m *evidence.Member) {
			m.WAL.Summary.Jumps = []dumplog.Jump{{From: 16, To: 18}}
		}, 0, ""},
	} {
		m := addSnap(withLog(withSnapDir(t, "n1"), 20), 15, &dumplog.V2Store{})
		m.WAL.Summary.Start = dumplog.StartBootstrap
		c.change(m)
		from, why := newV2World(release.AnyOf(4)).begin(m)
		if from != c.from || (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %d, %q, want %d, %q", name, from, why, c.from, c.why)
		}
	}
}

// older adds an older .snap file before the newest one.
func older(m *evidence.Member, index uint64) {
	addSnap(m, index, &dumplog.V2Store{})
	n := len(m.Snap.Files)
	m.Snap.Files = append([]*dumplog.SnapFile{m.Snap.Files[n-1]}, m.Snap.Files[:n-1]...)
}

// TestV2RequestsBehind: requests of v2 clients count from the oldest of the members' newest snapshots on.
func TestV2RequestsBehind(t *testing.T) {
	survey := &replay.Survey{V2: []replay.V2Op{{Index: 5}, {Index: 9}, {Index: 12}}, V2LeftOut: 4, V2Writes: 3}
	a := addSnap(withLog(withSnapDir(t, "a"), 20), 9, &dumplog.V2Store{})
	b := addSnap(withLog(withSnapDir(t, "b"), 20), 12, &dumplog.V2Store{})
	none := withLog(member("c"), 20)
	noLog := addSnap(withSnapDir(t, "d"), 1, &dumplog.V2Store{})
	for name, c := range map[string]struct {
		ss    Sources
		n     int
		first uint64
	}{
		"after the older one":     {Sources{b, a}, 5, 12},
		"at the end":              {Sources{b}, 0, 0},
		"without a snapshot":      {Sources{b, none}, 7, 5},
		"of a source without log": {Sources{b, noLog}, 0, 0},
	} {
		in := &Input{Members: c.ss, Replay: &replay.Result{Survey: survey}}
		if n, first := in.v2Lists().behindLog(); n != c.n || first != c.first {
			t.Errorf("%s: %d from %d, want %d from %d", name, n, first, c.n, c.first)
		}
		r := runNoV2Content(in)
		if (r.Outcome == Violated) != (c.n > 0) || c.n > 0 && (r.Findings[0].At.Index != c.first ||
			!strings.Contains(r.Findings[0].Title, "the first at index")) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	in := &Input{Members: Sources{none}, Replay: &replay.Result{Survey: &replay.Survey{}}}
	if r := runNoV2Content(in); r.Outcome == Holds || !strings.Contains(r.Reason, "no source has a snapshot file") {
		t.Errorf("no snapshot: %+v", r)
	}
	held := addSnap(withLog(withSnapDir(t, "a"), 20), 9, &dumplog.V2Store{UserKeys: []string{"/1/a", "/1/b"}})
	if r := runNoV2Content(&Input{Members: Sources{held}, MaxRows: 20}); len(r.Findings) != 1 ||
		r.Findings[0].Title != "a: the v2 store holds 2 keys of users" || r.Findings[0].At != (At{Term: 2, Index: 9}) {
		t.Errorf("keys: %+v", r)
	}
}
