package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// with are data dirs at one index with these databases.
func with(dbs ...evidence.DB) *Result {
	r := &Result{NotCompared: map[int]string{}, KeysNotCompared: map[int]string{}}
	for i := range dbs {
		r.Members = append(r.Members, &evidence.Member{AppliedMin: 9, AppliedMax: 9, DB: &dbs[i],
			Version: evidence.Version{Minor: 5},
			Source:  &evidence.Source{Name: fmt.Sprint("node", i+1), Kind: evidence.KindDataDir}})
	}
	return r
}

// at puts members at indexes.
func (r *Result) at(indexes ...uint64) *Result {
	for i, index := range indexes {
		r.Members[i].AppliedMin, r.Members[i].AppliedMax = index, index
	}
	return r
}

// TestRaisedOnly: a TTL above the lowest is normal where the member's own minimum explains it: it then stores no lease
// with less, and the minimum is one that a server accepts.
func TestRaisedOnly(t *testing.T) {
	for name, c := range map[string]struct {
		ttls   map[int]int64
		lowest map[int]int64
		want   bool
	}{
		"raised to its minimum":        {map[int]int64{0: 2, 1: 5, 2: 2}, map[int]int64{0: 2, 1: 5, 2: 2}, true},
		"two minimums":                 {map[int]int64{0: 2, 1: 5, 2: 7}, map[int]int64{0: 2, 1: 5, 2: 7}, true},
		"it stores one with less":      {map[int]int64{0: 2, 1: 5}, map[int]int64{0: 2, 1: 4}, false},
		"the highest minimum":          {map[int]int64{0: 2, 1: 75}, map[int]int64{0: 2, 1: 75}, true},
		"above every minimum":          {map[int]int64{0: 2, 1: 76}, map[int]int64{0: 2, 1: 76}, false},
		"the first is the raised one":  {map[int]int64{0: 5, 1: 2}, map[int]int64{0: 5, 1: 1}, true},
		"the lowest one needs no room": {map[int]int64{0: 80, 1: 80}, map[int]int64{0: 1, 1: 1}, true},
	} {
		at := []int{0, 1, 2}[:len(c.ttls)]
		if got := raisedOnly(c.ttls, c.lowest, at); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestLeaseTTLs: a TTL that only a minimum raised is listed as normal, another one differs; a lease that one member
// lacks is no matter of its TTL.
func TestLeaseTTLs(t *testing.T) {
	leases := func(ttls ...int64) evidence.DB {
		db := evidence.DB{}
		for i, ttl := range ttls {
			if ttl > 0 {
				db.Leases = append(db.Leases, dumpdb.Lease{ID: dumpdb.ID(i + 1), TTL: ttl})
			}
		}
		return db
	}
	made := func(member dumpdb.ID, r *Result) *Result {
		r.Members[1].DB.Removed = []dumpdb.ID{0xabc00000 | member}
		for _, m := range r.Members {
			for i := range m.DB.Leases {
				m.DB.Leases[i].ID |= 0x1234 << 48
			}
		}
		return r
	}
	for name, c := range map[string]struct {
		r              *Result
		differ, normal int
	}{
		"equal":                  {with(leases(60, 5), leases(60, 5)), 0, 0},
		"raised":                 {with(leases(60, 5), leases(60, 2)), 0, 1},
		"lowered":                {with(leases(60, 5), leases(30, 5)), 1, 0},
		"one lacks it":           {with(leases(60, 0), leases(60, 5)), 0, 0},
		"no log in between":      {with(leases(60, 5), leases(30, 5)).at(9, 7), 0, 1},
		"raised, one lacks it":   {with(leases(60, 5), leases(60, 2), leases(60, 0)), 0, 1},
		"lowered, one lacks it":  {with(leases(60, 5), leases(30, 5), leases(0, 5)), 1, 0},
		"alone":                  {with(leases(60, 5)), 0, 0},
		"its server made the ID": {made(0x1234, with(leases(60, 5), leases(30, 5)).at(9, 7)), 1, 0},
		"another server's ID":    {made(0x1235, with(leases(60, 5), leases(30, 5)).at(9, 7)), 0, 1},
		"made, raised":           {made(0x1234, with(leases(60, 5), leases(60, 2)).at(9, 7)), 0, 1},
	} {
		b := &Bucket{Name: "lease", Only: make([]int, 2)}
		c.r.rows(nil, Options{MaxRows: 5}).leaseTTLs(b)
		if b.Differ != c.differ || len(b.Rows) != c.differ || len(b.Normal) != c.normal ||
			b.Equal.Excluded() != (c.differ > 0) || b.Equal.Certain() {
			t.Errorf("%s: %+v, want %d rows that differ, %d normal ones", name, b, c.differ, c.normal)
		}
		for _, row := range append(b.Rows, b.Normal...) {
			if lacks := strings.HasSuffix(name, "one lacks it"); slices.Contains(row.Out, 2) != lacks {
				t.Errorf("%s: not compared: %v", name, row.Out)
			}
		}
		if bounded := (&Bucket{Name: "lease"}); c.differ > 0 {
			c.r.rows(nil, Options{}).leaseTTLs(bounded)
			if bounded.Differ != c.differ || len(bounded.Rows) > 0 {
				t.Errorf("%s: rows are not bounded: %+v", name, bounded)
			}
		}
	}
}

// TestAttributes: a name that differs is a difference where the releases replace the row at each start, and normal
// where one of them may leave it. Rows without a name, or on one member only, say nothing.
func TestAttributes(t *testing.T) {
	members := func(minors []int, names ...string) *Result {
		var dbs []evidence.DB
		for _, name := range names {
			db := evidence.DB{}
			if name != "none" {
				db.Members = []dumpdb.Member{{ID: 0xa1, Name: name, ClientURLs: []string{"http://127.0.0.1:2379"}}}
			}
			dbs = append(dbs, db)
		}
		r := with(dbs...)
		for i, m := range minors {
			r.Members[i].Version.Minor = m
		}
		return r
	}
	for name, c := range map[string]struct {
		r              *Result
		differ, normal int
	}{
		"equal":                        {members([]int{6, 6}, "n1", "n1"), 0, 0},
		"another name":                 {members([]int{6, 6}, "n1", "n2"), 1, 0},
		"a row without":                {members([]int{6, 6}, "n1", ""), 0, 0},
		"one lacks it":                 {members([]int{6, 6}, "n1", "none"), 0, 0},
		"releases that leave":          {members([]int{5, 5}, "n1", "n2"), 0, 1},
		"one that may":                 {members([]int{6, 5}, "n1", "n2"), 0, 1},
		"two of three strict":          {members([]int{6, 6, 5}, "n1", "n2", "n1"), 1, 1},
		"at other indexes":             {members([]int{6, 6}, "n1", "n2").at(9, 8), 0, 0},
		"equal, and may leave":         {members([]int{5, 5}, "n1", "n1"), 0, 0},
		"one lacks it, and may leave":  {members([]int{5, 5}, "n1", "none"), 0, 0},
		"other indexes, and may leave": {members([]int{5, 5}, "n1", "n2").at(9, 8), 0, 0},
		"alone":                        {members([]int{6}, "n1"), 0, 0},
	} {
		b := &Bucket{Name: "members", Only: make([]int, 3)}
		c.r.rows(nil, Options{MaxRows: 5}).attributes(b)
		if b.Differ != c.differ || len(b.Rows) != c.differ || len(b.Normal) != c.normal ||
			b.Equal.Excluded() != (c.differ > 0) {
			t.Errorf("%s: %+v, want %d rows that differ, %d normal ones", name, b, c.differ, c.normal)
		}
	}
	r, b := members([]int{6, 6, 5, 6}, "n1", "n2", "n1", "none"), &Bucket{Name: "members", Only: make([]int, 4)}
	r.rows(nil, Options{MaxRows: 5}).attributes(b)
	if len(b.Rows) != 1 || len(b.Normal) != 1 || !slices.Equal(b.Rows[0].Out, []int{3, 2}) ||
		!slices.Equal(b.Normal[0].Out, []int{3}) {
		t.Errorf("one without the row, one that may leave it: %+v", b)
	}
}

// TestCheckpointedTTL: a remaining TTL that one member alone stores differs, unless the log holds a checkpoint of it.
func TestCheckpointedTTL(t *testing.T) {
	lease := func(remaining int64) evidence.DB {
		return evidence.DB{Leases: []dumpdb.Lease{{ID: 1, TTL: 60, RemainingTTL: remaining}}}
	}
	survey := func(checkpoints int) *replay.Result {
		return &replay.Result{First: 1, Last: 9, Survey: &replay.Survey{
			Kinds: map[dumplog.Kind]int{dumplog.KindLeaseCheckpoint: checkpoints}}}
	}
	for name, c := range map[string]struct {
		rp             *replay.Result
		remaining      int64
		differ, normal int
	}{
		"no checkpoint":     {survey(0), 30, 1, 0},
		"a checkpoint":      {survey(1), 30, 0, 1},
		"no log":            {nil, 30, 0, 1},
		"none on all alike": {survey(0), 0, 0, 0},
	} {
		b := &Bucket{Name: "lease", Only: make([]int, 2)}
		with(lease(c.remaining), lease(0)).rows(c.rp, Options{MaxRows: 5}).leaseTTLs(b)
		rows := slices.Concat(b.Rows, b.Normal)
		if b.Differ != c.differ || len(b.Rows) != c.differ || len(b.Normal) != c.normal ||
			len(rows) > 0 && rows[0].Cells[0].Text != "TTL 60 s, remaining 30 s" {
			t.Errorf("%s: %+v", name, b)
		}
	}
}

// TestKeysNotCompared: where no two members can be compared at one index, each that was set apart says why.
func TestKeysNotCompared(t *testing.T) {
	r := with(evidence.DB{}, evidence.DB{}, evidence.DB{})
	r.KeysNotCompared[1], r.KeysNotCompared[2] = "node2 lags", "node3 has compacted it"
	b, err := keyComparer{r}.compare(t.Context(), Options{})
	if want := "no two members can be compared at one index: node2 lags; node3 has compacted it"; err != nil ||
		b.Equal != release.Unknown || b.Reason != want {
		t.Errorf("%+v, %v; want %q", b, err, want)
	}
}

const (
	salt  = "$2a$10$fQ7qwV.KVmlWVkCrBvdu/O"
	hash1 = salt + "sRSWNdU8r2O9sLn8zVVUoziSV0Mw3TD"
	hash2 = salt + "sRSWNdU8r2O9sLn8zVVUoziSV0Mw3TE"
	hash3 = "$2a$10$AAAAAAAAAAAAAAAAAAAAAA" + "Kq0pXb4YhJc1mE7fGtQw9vLd2uZyHeS"
)

// TestWellFormed: a server writes 60 characters, the version, the cost, and salt and digest in the alphabet of bcrypt.
func TestWellFormed(t *testing.T) {
	change := func(at int, c byte) string { return hash1[:at] + string(c) + hash1[at+1:] }
	for _, good := range []string{hash1, hash2, hash3, change(2, 'b'), change(7, '.'), change(59, '/'),
		change(20, '0'), change(20, '9'), change(20, 'A'), change(20, 'Z'), change(20, 'a'), change(20, 'z')} {
		if !wellFormed([]byte(good)) {
			t.Errorf("%q is one that a server writes", good)
		}
	}
	for _, bad := range []string{"", hash1[:59], hash1 + "a", change(0, '%'), change(1, '3'), change(3, 'x'),
		change(6, 'x'), change(7, '-'), change(59, '='), change(20, '@'), change(20, '['), change(20, '`'),
		change(20, '{'), change(20, ':')} {
		if wellFormed([]byte(bad)) {
			t.Errorf("%q is none that a server writes", bad)
		}
	}
}

// TestPasswords: hashes that differ with another salt may each be right; with the same salt, or one that is no hash,
// they cannot.
func TestPasswords(t *testing.T) {
	users := func(hashes ...string) *Result {
		var dbs []evidence.DB
		for _, h := range hashes {
			db := evidence.DB{}
			if h != "none" {
				db.Auth.Users = []dumpdb.User{{Name: "eve", Password: []byte(h)}}
			}
			dbs = append(dbs, db)
		}
		return with(dbs...)
	}
	for name, c := range map[string]struct {
		r     *Result
		legal bool
		wrong []int
		why   string
		none  bool
	}{
		"equal":                {r: users(hash1, hash1), none: true},
		"salts of their own":   {r: users(hash1, hash3), legal: true},
		"one salt":             {r: users(hash1, hash2, hash3), why: "agree in most of"},
		"a bit of the salt":    {r: users(hash1, hash1[:20]+"z"+hash1[21:]), why: "agree in most of"},
		"another cost":         {r: users(hash1, "$2a$12$"+hash1[7:]), why: "agree in most of"},
		"no hash":              {r: users(hash1, "x", hash1), wrong: []int{1}, why: "does not create such a hash"},
		"a user without one":   {r: users(hash1, "", hash1), legal: true},
		"one lacks the user":   {r: users(hash1, "none", hash2), why: "agree in most of"},
		"only one has it":      {r: users(hash1, "none"), none: true},
		"at different indexes": {r: users(hash1, hash2).at(9, 8), none: true},
	} {
		b := &Bucket{Name: "authUsers"}
		c.r.rows(nil, Options{MaxRows: 5}).passwords(b)
		if c.none {
			if len(c.r.Passwords) > 0 || b.Differ > 0 {
				t.Errorf("%s: %+v", name, c.r.Passwords)
			}
			continue
		}
		if len(c.r.Passwords) != 1 {
			t.Errorf("%s: %+v, want one user", name, c.r.Passwords)
			continue
		}
		p := c.r.Passwords[0]
		if p.User != "eve" || p.Legal != c.legal || !slices.Equal(p.Wrong, c.wrong) ||
			!strings.Contains(p.Why, c.why) ||
			(b.Differ == 0) != c.legal || len(b.Rows) != b.Differ || b.Equal.Excluded() == c.legal {
			t.Errorf("%s: %+v, %+v", name, p, b)
		}
	}
}

// TestOdd: those that differ from more than half of the compared members that agree; without such a majority none.
func TestOdd(t *testing.T) {
	x, y := &Cell{Text: "x"}, &Cell{Text: "y"}
	for name, c := range map[string]struct {
		cells    []*Cell
		compared []int
		want     []int
	}{
		"one of three":        {[]*Cell{x, y, x}, []int{0, 1, 2}, []int{1}},
		"one of three has it": {[]*Cell{nil, nil, x}, []int{0, 1, 2}, []int{2}},
		"one of two":          {[]*Cell{x, y}, []int{0, 1}, nil},
		"two of four":         {[]*Cell{x, x, y, y}, []int{0, 1, 2, 3}, nil},
		"half against two":    {[]*Cell{x, x, y, nil}, []int{0, 1, 2, 3}, nil},
		"one is not compared": {[]*Cell{y, x, x, y}, []int{1, 2, 3}, []int{3}},
	} {
		row := Row{Cells: c.cells}
		if got := row.Odd(c.compared); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestByRow: a row differs where both members have applied the same; where one has applied more and no log tells what,
// the row is left undecided, and the others are compared all the same.
func TestByRow(t *testing.T) {
	alarm := func(ids ...uint64) evidence.DB {
		db := evidence.DB{}
		for _, id := range ids {
			db.Alarms = append(db.Alarms, dumpdb.Alarm{MemberID: dumpdb.ID(id), Type: 1})
		}
		return db
	}
	for name, c := range map[string]struct {
		r                       *Result
		compared, differ, moved int
		only                    []int
		equal                   string
		limits, reason          string
	}{
		"equal": {r: with(alarm(1, 2), alarm(1, 2)), compared: 2, only: []int{0, 0}, equal: "yes"},
		"one has one more": {r: with(alarm(1, 2), alarm(1)), compared: 2, differ: 1, only: []int{1, 0},
			equal: "no"},
		"two have one more": {r: with(alarm(1, 2), alarm(1, 2), alarm(1)), compared: 2, differ: 1,
			only: []int{0, 0, 0}, equal: "no"},
		"at another index": {r: with(alarm(1, 2), alarm(1)).at(9, 8), compared: 2, moved: 1, only: []int{0, 0},
			equal: "unknown", reason: "node1 and node2 are at different indexes"},
		"one lags, the others are equal": {r: with(alarm(1, 2), alarm(1, 2), alarm(1)).at(9, 9, 8), compared: 2,
			moved: 1, only: []int{0, 0, 0}, equal: "yes", limits: "are at different indexes"},
		"one lags, the others differ": {r: with(alarm(1, 2), alarm(1), alarm()).at(9, 9, 8), compared: 2, differ: 1,
			moved: 1, only: []int{1, 0, 0}, equal: "no"},
		"an unknown index": {r: with(alarm(1), alarm()).at(9, 0), compared: 1, moved: 1, only: []int{0, 0},
			equal: "unknown", reason: "does not show how far"},
	} {
		b := c.r.rows(nil, Options{MaxRows: 5}).small(smallBucket{"alarm", alarmRows})
		if b.Compared != c.compared || b.Differ != c.differ || b.Moved != c.moved || !slices.Equal(b.Only, c.only) ||
			b.Equal.String() != c.equal || (b.Limits == "") != (c.limits == "") ||
			!strings.Contains(b.Limits, c.limits) ||
			(b.Reason == "") != (c.reason == "") || !strings.Contains(b.Reason, c.reason) || len(b.Rows) != b.Differ {
			t.Errorf("%s: %+v, equal %s", name, b, b.Equal)
		}
	}
	if b := with(alarm(1)).rows(nil, Options{}).small(smallBucket{"alarm", alarmRows}); b.Equal != release.Unknown ||
		b.Reason == "" {
		t.Errorf("one member alone is compared: %+v", b)
	}
	damaged := with(alarm(1), alarm(2), alarm(2))
	damaged.Members[0].DB.Damage = []*dumpdb.DamageError{{Bucket: "alarm"}}
	if b := damaged.rows(nil, Options{}).small(smallBucket{"alarm", alarmRows}); !b.Equal.Certain() {
		t.Errorf("rows of a damaged bucket are compared: %+v", b)
	}
}

// TestBetween: where a log has every entry between the indexes of two members and none of them touches the row, the row
// may not differ.
func TestBetween(t *testing.T) {
	row := replay.Row{Bucket: "alarm", Key: "1 NOSPACE"}
	for name, c := range map[string]struct {
		rp   *replay.Result
		want string
	}{
		"the log has all":      {&replay.Result{First: 1, Last: 12, Survey: &replay.Survey{}}, ""},
		"it begins just there": {&replay.Result{First: 8, Last: 9, Survey: &replay.Survey{}}, ""},
		"it begins too late": {&replay.Result{First: 9, Last: 9, Survey: &replay.Survey{}},
			"do not have all entries between 7 and 9"},
		"it ends too early": {&replay.Result{First: 1, Last: 8, Survey: &replay.Survey{}},
			"do not have all entries"},
		"no entry": {&replay.Result{Survey: &replay.Survey{}}, "are at different indexes"},
		"no log":   {nil, "are at different indexes"},
	} {
		r := with(evidence.DB{}, evidence.DB{}).at(9, 7)
		for _, pair := range [][2]int{{0, 1}, {1, 0}} {
			got := r.rows(c.rp, Options{}).mayDiffer(row, pair[0], pair[1])
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		}
	}
	if e, l := with(evidence.DB{}, evidence.DB{}).at(9, 7), "node1"; later(e.Members[0], e.Members[1]).Label() != l ||
		later(e.Members[1], e.Members[0]).Label() != l || earlier(e.Members[0], e.Members[1]).Label() != "node2" ||
		earlier(e.Members[1], e.Members[0]).Label() != "node2" {
		t.Error("later and earlier do not tell which member has applied more")
	}
}

// TestRolesWithoutTheLogBetween: users and roles at one auth revision are compared although the logs lack entries
// between the indexes of the members.
func TestRolesWithoutTheLogBetween(t *testing.T) {
	late := &replay.Result{First: 9, Last: 9, Survey: &replay.Survey{}}
	for bucket, decided := range map[string]bool{"authRoles": true, "authUsers": true, "auth": false, "lease": false} {
		for rev, same := range map[uint64]bool{5: true, 6: false} {
			r := with(evidence.DB{}, evidence.DB{}).at(9, 7)
			for i, m := range r.Members {
				m.Source.Kind = evidence.KindDataDir
				m.DB.Auth.HasRevision, m.DB.Auth.Revision = true, []uint64{rev, 5}[i]
			}
			why := r.rows(late, Options{}).mayDiffer(replay.Row{Bucket: bucket, Key: "r"}, 0, 1)
			if (why == "") != (decided && same) {
				t.Errorf("%s at revisions %d and 5: %q", bucket, rev, why)
			}
		}
	}
}

// TestParticipants: a record is compared between members that have its revision and have not compacted it, and those of
// the others that hold a put there.
func TestParticipants(t *testing.T) {
	db := func(current, compact int64) evidence.DB {
		return evidence.DB{KV: &dumpdb.KVStats{CurrentRev: current, CompactRev: compact}}
	}
	const (
		none = iota
		put
		tombstone
		later
	)
	for name, c := range map[string]struct {
		dbs  []evidence.DB
		hold []int
		at   []int
	}{
		"all have it":           {[]evidence.DB{db(9, -1), db(9, 4)}, []int{none, put}, []int{0, 1}},
		"one is not that far":   {[]evidence.DB{db(9, -1), db(9, -1), db(4, -1)}, []int{put, put, none}, []int{0, 1}},
		"just that far":         {[]evidence.DB{db(5, -1), db(9, -1)}, []int{put, none}, []int{0, 1}},
		"one compacted it":      {[]evidence.DB{db(9, -1), db(9, 5), db(9, 4)}, []int{put, none, none}, []int{0, 2}},
		"one kept it":           {[]evidence.DB{db(9, -1), db(9, 5), db(9, 4)}, []int{none, put, none}, []int{0, 1, 2}},
		"all compacted it":      {[]evidence.DB{db(9, 7), db(9, 6), db(9, 6)}, []int{put, none, put}, []int{0, 2}},
		"a tombstone":           {[]evidence.DB{db(9, 5), db(9, 5)}, []int{put, tombstone}, []int{0}},
		"another revision":      {[]evidence.DB{db(9, 5), db(9, 5)}, []int{put, later}, []int{0}},
		"no other is that far":  {[]evidence.DB{db(9, -1), db(4, -1)}, []int{put, none}, []int{0}},
		"an unexpected one too": {[]evidence.DB{db(9, -1), db(4, -1)}, []int{put, put}, []int{0, 1}},
	} {
		m := &recordMerge{r: with(c.dbs...), rev: dumpdb.Rev{Main: 5}, as: map[int]*recordCursor{}}
		for i, hold := range c.hold {
			m.take = append(m.take, i)
			rec := dumpdb.Revision{Rev: m.rev, Tombstone: hold == tombstone}
			if hold == later {
				rec.Rev.Main++
			}
			m.as[i] = &recordCursor{rec: rec, ok: hold != none}
		}
		if at := m.participants(); !slices.Equal(at, c.at) {
			t.Errorf("%s: %v, want %v", name, at, c.at)
		}
	}
}

// TestSmallRowsOf: what a row of a small bucket says, in an order that does not depend on the database.
func TestSmallRowsOf(t *testing.T) {
	m := with(evidence.DB{}).Members[0]
	m.DB.Handle = &dumpdb.DB{}
	m.DB.Auth = dumpdb.Auth{Enabled: true, Revision: 7,
		Users: []dumpdb.User{{Name: "u", Roles: []string{"r", "s"}}, {Name: "v", NoPassword: true}},
		Roles: []dumpdb.Role{{Name: "r"}}}
	m.DB.Members = []dumpdb.Member{{ID: 0xa1, PeerURLs: []string{"http://b", "http://a"}, IsLearner: true}}
	m.DB.Removed = []dumpdb.ID{0xb2}
	m.DB.Leases = []dumpdb.Lease{{ID: 0x10}}
	m.DB.Cluster = dumpdb.Cluster{Version: "3.5.0", DowngradeEnabled: true, DowngradeTarget: "3.4.0"}
	for bucket, want := range map[string]map[string]string{
		"auth":            {"authEnabled": "true", "authRevision": "7"},
		"authUsers":       {"u": "roles [r s]", "v": "roles [] no password"},
		"authRoles":       {"r": ""},
		"members":         {"a1": "peer URLs http://a,http://b learner"},
		"members_removed": {"b2": "removed"},
		"lease":           {dumpdb.ID(0x10).String(): "granted"},
		"cluster":         {"clusterVersion": "3.5.0", "downgrade": "3.4.0"},
		"alarm":           {},
	} {
		rows, ok := SmallRows(m, bucket)
		if !ok || fmt.Sprint(rows) != fmt.Sprint(want) || fmt.Sprint(RowsOf(m, bucket, WholeRow)) != fmt.Sprint(want) {
			t.Errorf("%s: %v, %t; want %v", bucket, rows, ok, want)
		}
	}
	if _, ok := SmallRows(m, "key"); ok {
		t.Error("bucket key is no small one")
	}
	for _, damaged := range []string{"lease", ""} {
		m.DB.Damage = []*dumpdb.DamageError{{Bucket: damaged}}
		if _, ok := SmallRows(m, "lease"); ok {
			t.Errorf("damage of bucket %q hides no rows of bucket lease", damaged)
		}
	}
	if _, ok := SmallRows(m, "auth"); ok {
		t.Error("damage of the root hides no rows")
	}
}

// TestMetaRows: bucket meta shows each of its keys under the name that etcd gives it, and none that is not there.
func TestMetaRows(t *testing.T) {
	index, term := uint64(9), uint64(3)
	m := with(evidence.DB{Meta: dumpdb.MetaBucket{ConsistentIndex: &index, Term: &term,
		ScheduledCompact: &dumpdb.Rev{Main: 7}, FinishedCompact: &dumpdb.Rev{Main: 5}, StorageVersion: "3.6.0",
		ConfState: &dumpdb.ConfState{Voters: []dumpdb.ID{1, 2}, Learners: []dumpdb.ID{3}}}}, evidence.DB{}).Members
	want := map[string]string{"consistent_index": "9", "term": "3", "scheduledCompactRev": "7.0",
		"finishedCompactRev": "5.0", "storageVersion": "3.6.0", "confState": "voters [1 2] learners [3]"}
	if got := metaRows(m[0]); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := metaRows(m[1]); len(got) > 0 {
		t.Errorf("an empty bucket: %v", got)
	}
}

// TestHashAt: a hash at a lower revision is taken only where few of the records are above it. Else the keys are
// compared themselves, which reads them once.
func TestHashAt(t *testing.T) {
	db := func() evidence.DB {
		return evidence.DB{KV: &dumpdb.KVStats{CurrentRev: 100, CompactRev: -1, Revisions: 40},
			Content: &dumpdb.Content{}, Hashes: map[string]string{"key": "h"}}
	}
	r := with(db(), db(), db())
	r.Members[2].DB.Content = nil
	r.Revs = []int64{100, 89, 99}
	for i, want := range []string{"h", "", ""} {
		if got, ok := (keyComparer{r}).hashAt(t.Context(), i, "h"); got != want || ok != (want != "") {
			t.Errorf("%d revisions above: %q, %t", 100-r.Revs[i], got, ok)
		}
	}
	if _, ok := (keyComparer{r}).hashAt(t.Context(), 0, ""); ok {
		t.Error("no hash is known, and one is compared")
	}
}

// TestConfState: raft's configuration is compared at the commit index, between members of which it is known.
func TestConfState(t *testing.T) {
	conf := func(commit uint64, known bool, voters ...dumplog.ID) func(m *evidence.Member) {
		return func(m *evidence.Member) {
			m.Commit, m.Membership.RaftKnown, m.Membership.Voters = commit, known, voters
		}
	}
	for name, c := range map[string]struct {
		of    []func(m *evidence.Member)
		equal string
	}{
		"equal":           {[]func(m *evidence.Member){conf(9, true, 1, 2), conf(9, true, 1, 2)}, "yes"},
		"another voter":   {[]func(m *evidence.Member){conf(9, true, 1, 2), conf(9, true, 1, 3)}, "no"},
		"one is unknown":  {[]func(m *evidence.Member){conf(9, true, 1, 2), conf(9, false, 1, 3)}, "none"},
		"another commit":  {[]func(m *evidence.Member){conf(9, true, 1, 2), conf(8, true, 1, 3)}, "unknown"},
		"none is unknown": {[]func(m *evidence.Member){conf(9, false), conf(9, false)}, "none"},
	} {
		r := with(evidence.DB{}, evidence.DB{}).at(20, 7)
		for i, change := range c.of {
			change(r.Members[i])
		}
		got := "none"
		if b := r.rows(&replay.Result{}, Options{MaxRows: 5}).confState(); b != nil {
			got = b.Equal.String()
		}
		if got != c.equal {
			t.Errorf("%s: equal %s, want %s", name, got, c.equal)
		}
	}
}

// TestRowOfNoComparedMember: a row that only members have which are not compared does not count.
func TestRowOfNoComparedMember(t *testing.T) {
	b := &Bucket{Compared: 1, Only: make([]int, 3)}
	b.weigh([]int{0, 1}, Row{Cells: []*Cell{nil, nil, {Text: "x"}}}, 5)
	if b.Compared != 0 || b.Differ != 0 || len(b.Rows) != 0 {
		t.Errorf("%+v", b)
	}
}

// TestMarkOf: each part of a key's history changes the mark's history alone, value and lease its content alone.
func TestMarkOf(t *testing.T) {
	base := dumpdb.KeyValue{CreateRevision: 2, ModRevision: 5, Version: 3, Lease: 7, Value: []byte("v")}
	was := markOf(dumpdb.Rev{Main: 5}, &base)
	for name, c := range map[string]struct {
		change           func(kv *dumpdb.KeyValue)
		history, content bool
	}{
		"create revision": {func(kv *dumpdb.KeyValue) { kv.CreateRevision = 3 }, true, false},
		"mod revision":    {func(kv *dumpdb.KeyValue) { kv.ModRevision = 6 }, true, false},
		"version":         {func(kv *dumpdb.KeyValue) { kv.Version = 4 }, true, false},
		"lease":           {func(kv *dumpdb.KeyValue) { kv.Lease = 8 }, false, true},
		"value":           {func(kv *dumpdb.KeyValue) { kv.Value = []byte("w") }, false, true},
	} {
		kv := base
		c.change(&kv)
		if is := markOf(dumpdb.Rev{Main: 5}, &kv); is.at != 5 || (is.history != was.history) != c.history ||
			(is.content != was.content) != c.content {
			t.Errorf("%s: %+v, was %+v", name, is, was)
		}
	}
	if is := markOf(dumpdb.Rev{Main: 5, Sub: 1}, &base); is.history == was.history || is.content != was.content {
		t.Errorf("another place in the transaction: %+v, was %+v", is, was)
	}
}
