package diff

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// TestAuthRevisionDecides: snapshots of running members at different indexes are compared where their auth revisions
// show that nothing can have changed between them, and nowhere else.
func TestAuthRevisionDecides(t *testing.T) {
	member := func(kind evidence.Kind, applied, revision uint64) *evidence.Member {
		return &evidence.Member{Source: &evidence.Source{Kind: kind}, AppliedMin: applied, AppliedMax: applied,
			Version: evidence.Version{Minor: 5},
			DB:      &evidence.DB{Auth: dumpdb.Auth{Revision: revision, HasRevision: true}}}
	}
	role, revision := replay.Row{Bucket: "authRoles", Key: "r"}, replay.Row{Bucket: "auth", Key: "authRevision"}
	for _, c := range []struct {
		what           string
		kind           evidence.Kind
		row            replay.Row
		early, late    uint64
		mayNot, moment bool // moment: both at one index
	}{
		{"roles, same revision", evidence.KindEndpoint, role, 5, 5, true, false},
		{"roles, changed in between", evidence.KindEndpoint, role, 5, 6, false, false},
		{"roles of backups", evidence.KindBackup, role, 5, 5, false, false},
		{"roles of backups at one index", evidence.KindBackup, role, 5, 5, true, true},
		{"lower revision later", evidence.KindEndpoint, revision, 6, 5, true, false},
		{"higher revision later", evidence.KindEndpoint, revision, 5, 6, false, false},
		{"same revision later", evidence.KindEndpoint, revision, 5, 5, false, false},
		{"lower revision in a later backup", evidence.KindBackup, revision, 6, 5, false, false},
		{"a lease", evidence.KindEndpoint, replay.Row{Bucket: "lease", Key: "1"}, 5, 5, false, false},
		{"auth enabled", evidence.KindEndpoint, replay.Row{Bucket: "auth", Key: "authEnabled"}, 5, 5, false, false},
	} {
		late := uint64(20)
		if c.moment {
			late = 10
		}
		r := &Result{Members: []*evidence.Member{member(c.kind, late, c.late), member(c.kind, 10, c.early)}}
		if why := r.rows(nil, Options{}).mayDiffer(c.row, 0, 1); (why == "") != c.mayNot {
			t.Errorf("%s: %q", c.what, why)
		}
		if why := r.rows(nil, Options{}).mayDiffer(c.row, 1, 0); (why == "") != c.mayNot {
			t.Errorf("%s, the other way round: %q", c.what, why)
		}
	}
}

// TestAtOneAuthRevision: users and roles of two data dirs with one auth revision are of one moment. Other rows are not,
// nor are those of copies with other indexes.
func TestAtOneAuthRevision(t *testing.T) {
	member := func(kind evidence.Kind, known bool, rev uint64) *evidence.Member {
		return &evidence.Member{Source: &evidence.Source{Kind: kind},
			DB: &evidence.DB{Auth: dumpdb.Auth{HasRevision: known, Revision: rev}}}
	}
	dir, five := evidence.KindDataDir, member(evidence.KindDataDir, true, 5)
	for name, c := range map[string]struct {
		bucket string
		other  *evidence.Member
		want   bool
	}{
		"users": {"authUsers", member(dir, true, 5), true}, "roles": {"authRoles", member(dir, true, 5), true},
		"auth":                    {"auth", member(dir, true, 5), false},
		"another revision":        {"authRoles", member(dir, true, 6), false},
		"a revision not known":    {"authRoles", member(dir, false, 5), false},
		"a backup":                {"authRoles", member(evidence.KindBackup, true, 5), false},
		"a member that is asked":  {"authUsers", member(evidence.KindEndpoint, true, 5), false},
		"leases of the same time": {"lease", member(dir, true, 5), false},
	} {
		row := replay.Row{Bucket: c.bucket, Key: "x"}
		for _, pair := range [][2]*evidence.Member{{five, c.other}, {c.other, five}} {
			if got := atOneAuthRevision(row, pair[0], pair[1]); got != c.want {
				t.Errorf("%s: %t", name, got)
			}
		}
	}
}

// TestEntriesCannotExplain: the auth revisions of two data dirs at different indexes differ normally by as many auth
// entries as the lower one may not have applied, not by more.
func TestEntriesCannotExplain(t *testing.T) {
	member := func(kind evidence.Kind, applied, revision uint64) *evidence.Member {
		return &evidence.Member{Source: &evidence.Source{Kind: kind}, AppliedMin: applied, AppliedMax: applied,
			Version: evidence.Version{Minor: 5},
			DB:      &evidence.DB{Auth: dumpdb.Auth{Revision: revision, HasRevision: revision > 0}}}
	}
	dir, log := evidence.KindDataDir, func(first, last uint64, rises ...uint64) *replay.Result {
		return &replay.Result{First: first, Last: last, Survey: &replay.Survey{AuthRises: rises}}
	}
	revision, enabled := replay.Row{Bucket: "auth", Key: "authRevision"}, replay.Row{Bucket: "auth", Key: "authEnabled"}
	early, late := member(dir, 10, 6), member(dir, 20, 5)
	for name, c := range map[string]struct {
		a, b *evidence.Member
		row  replay.Row
		rp   *replay.Result
		want bool
	}{
		"lower after more entries": {early, late, revision, log(1, 20, 15), true},
		"the one after it has one more entry to apply": {early, late, revision,
			log(1, 21, 15, 21), false},
		"higher by an entry":              {member(dir, 10, 5), member(dir, 20, 6), revision, log(1, 20, 15), false},
		"higher by more than the entries": {member(dir, 10, 5), member(dir, 20, 7), revision, log(1, 20, 15), true},
		"equal":                           {member(dir, 10, 5), late, revision, log(1, 20, 15), false},
		"the log begins later":            {member(dir, 10, 5), member(dir, 20, 9), revision, log(12, 20, 15), false},
		"the log ends before":             {member(dir, 30, 6), late, revision, log(1, 20), false},
		"a backup":                        {member(evidence.KindBackup, 10, 6), late, revision, log(1, 20), false},
		"none stored":                     {early, member(dir, 20, 0), revision, log(1, 20), false},
		"another row of the bucket":       {early, late, enabled, log(1, 20), false},
	} {
		r := &Result{}
		for _, pair := range [][2]*evidence.Member{{c.a, c.b}, {c.b, c.a}} {
			if got := r.rows(c.rp, Options{}).entriesCannotExplain(c.row, pair[0], pair[1]); got != c.want {
				t.Errorf("%s: %t", name, got)
			}
		}
	}
	r := &Result{Members: []*evidence.Member{early, late}}
	touched := log(1, 20, 15)
	if why := r.rows(touched, Options{}).mayDiffer(revision, 0, 1); why != "" {
		t.Errorf("not compared: %s", why)
	}
}

// TestRowsOf: the part of a row that is compared by itself has its own text; a bucket that is not small has no rows.
func TestRowsOf(t *testing.T) {
	m := with(evidence.DB{}).Members[0]
	m.DB.Leases = []dumpdb.Lease{{ID: 0x10, TTL: 60, RemainingTTL: 5}, {ID: 0x11, TTL: 30}}
	m.DB.Auth.Users = []dumpdb.User{{Name: "u", Password: []byte(hash1)}, {Name: "v"}}
	m.DB.Members = []dumpdb.Member{{ID: 0xa1, Name: "n", ClientURLs: []string{"http://b", "http://a"}},
		{ID: 0xa2, Name: "m"}, {ID: 0xa3, ClientURLs: []string{"http://c"}}}
	for _, c := range []struct {
		bucket string
		kind   RowKind
		want   map[string]string
	}{
		{"lease", TTLRow, map[string]string{"10": "TTL 60 s, remaining 5 s", "11": "TTL 30 s"}},
		{"lease", WholeRow, map[string]string{"10": "granted", "11": "granted"}},
		{"authUsers", PasswordRow, map[string]string{"u": "password hash with digest " + m.Digest([]byte(hash1)),
			"v": "no password hash"}},
		{"members", AttributesRow, map[string]string{"a1": "name n, client URLs http://a,http://b"}},
		{"key", WholeRow, nil},
	} {
		if got := RowsOf(m, c.bucket, c.kind); !maps.Equal(got, c.want) {
			t.Errorf("%s %s: %v, want %v", c.bucket, c.kind, got, c.want)
		}
	}
}

// TestEarlierAndLater: of two members with one applied index there is one that counts as the later one.
func TestEarlierAndLater(t *testing.T) {
	for _, at := range [][2]uint64{{9, 9}, {9, 8}, {8, 9}} {
		r := with(evidence.DB{}, evidence.DB{}).at(at[0], at[1])
		a, b := r.Members[0], r.Members[1]
		if e, l := earlier(a, b), later(a, b); e == l || e.AppliedMin > l.AppliedMin {
			t.Errorf("%v: earlier %s, later %s", at, e.Label(), l.Label())
		}
	}
}

// TestOneAuthRevisionDecidesNothing: without the auth revision of one of them nothing is known of users.
func TestOneAuthRevisionDecidesNothing(t *testing.T) {
	r := with(evidence.DB{}, evidence.DB{}).at(9, 8)
	for _, m := range r.Members {
		m.Source.Kind, m.DB.Auth.Revision = evidence.KindEndpoint, 5
	}
	row := replay.Row{Bucket: "authUsers", Key: "u"}
	for _, known := range [][2]bool{{true, true}, {true, false}, {false, true}, {false, false}} {
		r.Members[0].DB.Auth.HasRevision, r.Members[1].DB.Auth.HasRevision = known[0], known[1]
		if why := r.rows(nil, Options{}).mayDiffer(row, 0, 1); (why == "") != (known[0] && known[1]) {
			t.Errorf("known %v: %q", known, why)
		}
	}
	r.Members[0].DB.Auth.HasRevision, r.Members[1].DB.Auth.HasRevision = true, true
	for _, m := range r.Members {
		m.Source.Kind = evidence.KindDB
		if why := r.rows(nil, Options{}).mayDiffer(row, 0, 1); why == "" {
			t.Errorf("users of database %s are equal by the auth revision", m.Label())
		}
		m.Source.Kind = evidence.KindEndpoint
	}
}

// TestRowsAreBounded: of every kind of row no more are listed than asked for, and all that differ are counted.
func TestRowsAreBounded(t *testing.T) {
	db := func(n int64) evidence.DB {
		d := evidence.DB{}
		for i := range int64(3) {
			id := dumpdb.ID(i + 1)
			d.Leases = append(d.Leases, dumpdb.Lease{ID: id, TTL: 1000 + n})
			d.Auth.Users = append(d.Auth.Users, dumpdb.User{Name: id.String(), Password: []byte("no hash " + salt[:n])})
			d.Members = append(d.Members, dumpdb.Member{ID: id, Name: "n" + salt[:n], ClientURLs: []string{"http://a"}})
		}
		return d
	}
	for what, c := range map[string]struct {
		bucket string
		minor  int
		of     func(r *rowComparer, b *Bucket)
		normal bool
	}{
		"TTLs":               {"lease", 6, (*rowComparer).leaseTTLs, false},
		"passwords":          {"authUsers", 6, (*rowComparer).passwords, false},
		"attributes":         {"members", 6, (*rowComparer).attributes, false},
		"lagging attributes": {"members", 5, (*rowComparer).attributes, true},
		"whole rows": {"alarm", 6, func(r *rowComparer, b *Bucket) {
			r.Members[0].DB.Alarms = []dumpdb.Alarm{{MemberID: 1}, {MemberID: 2}, {MemberID: 3}}
			r.byRow(b, r.taking(), alarmRows)
		}, false},
	} {
		for _, most := range []int{0, 1, 2, 5} {
			r := with(db(1), db(2))
			for _, m := range r.Members {
				m.Version.Minor = c.minor
			}
			b := &Bucket{Name: c.bucket, Only: make([]int, 2)}
			c.of(r.rows(nil, Options{MaxRows: most}), b)
			rows := b.Rows
			if c.normal {
				rows = b.Normal
			}
			if len(rows) != min(most, 3) || (b.Differ == 3) == c.normal {
				t.Errorf("%s, at most %d: %d rows, %d differ", what, most, len(rows), b.Differ)
			}
		}
	}
	for _, most := range []int{1, 2} { // raised to a minimum
		r := with(evidence.DB{Leases: []dumpdb.Lease{{ID: 1, TTL: 5}, {ID: 2, TTL: 5}, {ID: 3, TTL: 5}}},
			evidence.DB{Leases: []dumpdb.Lease{{ID: 1, TTL: 2}, {ID: 2, TTL: 2}, {ID: 3, TTL: 2}}})
		b := &Bucket{Name: "lease", Only: make([]int, 2)}
		if r.rows(nil, Options{MaxRows: most}).leaseTTLs(b); len(b.Normal) != most || b.Differ > 0 {
			t.Errorf("normal TTLs, at most %d: %d, %d differ", most, len(b.Normal), b.Differ)
		}
	}
}

// TestRowKeys: the keys of both members, each once and in order.
func TestRowKeys(t *testing.T) {
	got := RowKeys(map[string]string{"c": "", "a": "1"}, map[string]string{"b": "", "a": "2"})
	if want := []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLimits: each member that could not be compared gives one reason, in the order of the members.
func TestLimits(t *testing.T) {
	db := func(id dumpdb.ID) evidence.DB { return evidence.DB{Leases: []dumpdb.Lease{{ID: id}}} }
	r := with(db(1), db(1), db(2), db(3)).at(9, 9, 8, 7)
	b := r.rows(nil, Options{MaxRows: 5}).small(smallBucket{"lease", leaseRows})
	want := "node2 and node3 are at different indexes and no log has the entries between them; " +
		"node3 and node4 are at different indexes and no log has the entries between them"
	if b.Limits != want || !b.Equal.Certain() || b.Moved != 3 {
		t.Errorf("%q, want %q; %+v", b.Limits, want, b)
	}
}

// TestLastWrite: the revision is known only if all that have the key wrote it there, with different content.
func TestLastWrite(t *testing.T) {
	at := func(mods ...int64) []*Cell {
		var out []*Cell
		for _, m := range mods {
			var c *Cell
			if m > 0 {
				c = &Cell{Mod: m}
			}
			out = append(out, c)
		}
		return out
	}
	for _, c := range []struct {
		row  Row
		want int64
	}{
		{Row{Cells: at(5, 5, 5)}, 5}, {Row{Cells: at(0, 5, 0)}, 5}, {Row{Cells: at(5, 6)}, 0},
		{Row{Cells: at(5, 5, 6)}, 0}, {Row{Cells: at(0, 0)}, 0}, {Row{Cells: at(5, 5), SameContent: true}, 0},
	} {
		if got := c.row.LastWrite(); got != c.want {
			t.Errorf("%+v: %d, want %d", c.row, got, c.want)
		}
	}
}

// TestSameRecords: equal content hashes of sound members at one revision spare the reading of their keys.
func TestSameRecords(t *testing.T) {
	sound := func() evidence.DB {
		return evidence.DB{KV: &dumpdb.KVStats{CurrentRev: 9, CompactRev: -1, LiveKeys: 4, Revisions: 9},
			Hashes: map[string]string{"key": "h"}}
	}
	for name, c := range map[string]struct {
		change func(r *Result)
		same   bool
		as     int // the member whose records are those of the second
	}{
		"equal":             {func(*Result) {}, true, 0},
		"another hash":      {func(r *Result) { r.Members[1].DB.Hashes["key"] = "x" }, false, 1},
		"no hash":           {func(r *Result) { r.Members[1].DB.Hashes["key"] = "" }, false, 1},
		"no hash at all":    {func(r *Result) { r.Members[0].DB.Hashes, r.Members[1].DB.Hashes = nil, nil }, false, 1},
		"damaged":           {func(r *Result) { r.Members[1].DB.KVDamaged = true }, false, 1},
		"the other damaged": {func(r *Result) { r.Members[0].DB.KVDamaged = true }, false, 1},
		"another revision":  {func(r *Result) { r.Revs[1], r.Members[1].DB.KV.CurrentRev = 8, 8 }, false, 1},
		"further, and its records above are not known": {func(r *Result) { r.Members[1].DB.KV.CurrentRev = 10 }, false, 0},
	} {
		r := with(sound(), sound())
		r.Revs = []int64{9, 9}
		c.change(r)
		k := keyComparer{r}
		n, same := k.sameRecords(t.Context(), []int{0, 1})
		if same != c.same || (n == 4) != c.same {
			t.Errorf("%s: %d keys, %t", name, n, same)
		}
		if as := k.sameAs([]int{0, 1}, 1); as != c.as || k.sameAs([]int{0, 1}, 0) != 0 {
			t.Errorf("%s: the records of the second are those of %d, want %d", name, as, c.as)
		}
	}
}

// TestWithoutALog: without a log a row may differ between members that are not at one index, or one of which may have
// applied more than its database says.
func TestWithoutALog(t *testing.T) {
	const at, later = "are at different indexes", "may have applied later entries that write no key"
	for name, c := range map[string]struct {
		bucket      string
		minors      [2]int
		least, most [2]uint64
		running     bool
		want        string
	}{
		"one index":                    {"alarm", [2]int{5, 5}, [2]uint64{9, 9}, [2]uint64{9, 9}, false, ""},
		"one span of indexes":          {"alarm", [2]int{5, 5}, [2]uint64{7, 7}, [2]uint64{9, 9}, false, ""},
		"one may be behind":            {"alarm", [2]int{5, 5}, [2]uint64{7, 9}, [2]uint64{9, 9}, false, at},
		"one may be ahead":             {"alarm", [2]int{5, 5}, [2]uint64{7, 7}, [2]uint64{9, 7}, false, at},
		"leases":                       {"lease", [2]int{5, 5}, [2]uint64{9, 9}, [2]uint64{9, 9}, false, ""},
		"leases, the index lags":       {"lease", [2]int{4, 4}, [2]uint64{9, 9}, [2]uint64{9, 9}, false, later},
		"leases, that of one lags":     {"lease", [2]int{5, 4}, [2]uint64{9, 9}, [2]uint64{9, 9}, false, later},
		"alarms, the index lags":       {"alarm", [2]int{4, 4}, [2]uint64{9, 9}, [2]uint64{9, 9}, false, ""},
		"leases of running members":    {"lease", [2]int{4, 4}, [2]uint64{9, 9}, [2]uint64{9, 9}, true, ""},
		"leases, at different indexes": {"lease", [2]int{4, 4}, [2]uint64{7, 9}, [2]uint64{7, 9}, false, at},
		"an index that is not known":   {"alarm", [2]int{5, 5}, [2]uint64{0, 9}, [2]uint64{0, 9}, false, "does not show"},
	} {
		r := with(evidence.DB{}, evidence.DB{})
		for i, m := range r.Members {
			m.Version.Minor, m.AppliedMin, m.AppliedMax = c.minors[i], c.least[i], c.most[i]
			if c.running {
				m.Source.Kind = evidence.KindEndpoint
			}
		}
		for _, pair := range [][2]int{{0, 1}, {1, 0}} {
			got := r.rows(nil, Options{}).mayDiffer(replay.Row{Bucket: c.bucket, Key: "1"}, pair[0], pair[1])
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		}
	}
}

// TestCellOf: a cell names the Kubernetes object in a value, and keeps bytes only if values are asked for.
func TestCellOf(t *testing.T) {
	m := with(evidence.DB{}).Members[0]
	value := []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`)
	rev := &dumpdb.Revision{KV: dumpdb.KeyValue{Key: []byte("k"), Value: value, Lease: 7}}
	for _, values := range []bool{false, true} {
		c := cellOf(m, rev, values)
		if c.Object.Kind != "Pod" || c.Object.Raw != nil || (c.Value != nil) != values || c.ValueLen != len(value) ||
			c.Lease != 7 {
			t.Errorf("values %t: %+v", values, c)
		}
	}
}
