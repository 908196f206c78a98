package check

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// cellsOf are the cells of a row with these texts; "" is none.
func cellsOf(texts ...string) (out []*diff.Cell) {
	for _, s := range texts {
		var c *diff.Cell
		if s != "" {
			c = &diff.Cell{Text: s}
		}
		out = append(out, c)
	}
	return out
}

// positions are the members that witnesses accuse, with what they expect.
func positions(ws []witness) (out []string) {
	for _, w := range ws {
		out = append(out, fmt.Sprintf("%d %s", w.pos, w.expected))
	}
	return out
}

// TestWitnessesOfReplay: a row or lease that contradicts the member's log accuses the member, unless its release
// refuses the revoke.
func TestWitnessesOfReplay(t *testing.T) {
	fault := func(f replay.LeaseFault) func(*replay.MemberResult) {
		return func(r *replay.MemberResult) { f.ID = 7; r.LeaseFaults = []replay.LeaseFault{f} }
	}
	rowDiff := func(r *replay.MemberResult) {
		r.StateDiffs = []replay.StateDiff{{Bucket: "auth", Key: "k", Expected: "no"}, {Bucket: "lease", Key: "6",
			Expected: "no"}, {Bucket: "lease", Key: dumplog.ID(7).String(), Expected: "x"}}
	}
	for name, c := range map[string]struct {
		bucket string
		kind   diff.RowKind
		change func(r *replay.MemberResult)
		want   []string
	}{
		"nothing":              {"lease", diff.WholeRow, func(*replay.MemberResult) {}, nil},
		"a row":                {"lease", diff.WholeRow, rowDiff, []string{"1 x"}},
		"a row of another one": {"members", diff.WholeRow, rowDiff, nil},
		"a password":           {"lease", diff.PasswordRow, rowDiff, nil},
		"not replayed":         {"lease", diff.WholeRow, func(r *replay.MemberResult) { rowDiff(r); r.Checked = false }, nil},
		"a row and a fault": {"lease", diff.WholeRow, func(r *replay.MemberResult) {
			fault(replay.LeaseFault{})(r)
			rowDiff(r)
		}, []string{"1 x"}},
		"gone":              {"lease", diff.WholeRow, fault(replay.LeaseFault{}), []string{"1 granted"}},
		"revoked":           {"lease", diff.WholeRow, fault(replay.LeaseFault{Kept: true}), []string{"1 absent"}},
		"unknown lease":     {"lease", diff.WholeRow, fault(replay.LeaseFault{Kept: true, Reason: replay.ReasonLease}), []string{"1 absent"}},
		"refused revoke":    {"lease", diff.WholeRow, fault(replay.LeaseFault{Kept: true, Reason: replay.ReasonKey}), nil},
		"gone, with reason": {"lease", diff.WholeRow, fault(replay.LeaseFault{Reason: replay.ReasonKey}), []string{"1 granted"}},
		"its TTL":           {"lease", diff.TTLRow, fault(replay.LeaseFault{}), nil},
		"another bucket":    {"members", diff.WholeRow, fault(replay.LeaseFault{}), nil},
		"another lease": {"lease", diff.WholeRow, func(r *replay.MemberResult) {
			r.LeaseFaults = []replay.LeaseFault{{ID: 8}}
		}, nil},
	} {
		in := threeMembers(release.Yes)
		c.change(in.Replay.Members[1])
		row := &diff.Row{Key: []byte(dumplog.ID(7).String()), Kind: c.kind, Cells: cellsOf("a", "b", "a")}
		if got := positions(in.rowWitnesses().byReplay(c.bucket, row, []int{0, 1, 2})); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{{"x", "x", true}, {"NOSPACE of 7", "7 NOSPACE", true}, {"NOSPACE of 7", "8 NOSPACE", false}, {"x", "y", false}} {
		if got := sameRowKey(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
	}
}

// TestWitnessesOfTTL: a TTL below that of the grant, and a remaining TTL that no checkpoint sets.
func TestWitnessesOfTTL(t *testing.T) {
	for name, c := range map[string]struct {
		fact replay.LeaseFact
		want []string
	}{
		"as asked":   {replay.LeaseFact{ID: 7, Asked: 10, Stored: 10}, nil},
		"raised":     {replay.LeaseFact{ID: 7, Asked: 10, Stored: 11}, nil},
		"lower":      {replay.LeaseFact{ID: 7, Asked: 10, Stored: 9}, []string{"1 at least 10 s"}},
		"remaining":  {replay.LeaseFact{ID: 7, NeverAsked: true}, []string{"1 no remaining TTL, or one of a checkpoint"}},
		"of another": {replay.LeaseFact{ID: 8, Asked: 10, Stored: 9, NeverAsked: true}, nil},
	} {
		in := threeMembers(release.Yes)
		in.Replay.Members[1].Leases = []replay.LeaseFact{c.fact}
		key := dumplog.ID(7).String()
		if got := positions(ttlWitness(in.Replay, key, []int{0, 1, 2})); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if len(ttlWitness(nil, key, []int{0, 1})) > 0 {
			t.Error("without a replay")
		}
	}
}

// TestWitnessesOfLog: the last entry that every member applied and every log shows says what the row must be.
func TestWitnessesOfLog(t *testing.T) {
	version := func(index uint64) func(in *Input) {
		return func(in *Input) {
			in.Replay.Survey.Versions = []replay.VersionSet{{Index: 3, Version: "3.4.0"}, {Index: index, Version: "3.5.0"}}
		}
	}
	lowTTL := func(in *Input) {
		in.Replay.Members[1].Leases = []replay.LeaseFact{{ID: 7, Asked: 10, Stored: 9}}
	}
	added := func(in *Input) {
		c := evidence.ConfEntry{Index: 5}
		c.Change.NodeID, in.Members[0].Commit = 7, 20
		in.Members[0].WAL.Conf = []evidence.ConfEntry{c}
	}
	own := dumplog.ID(7)
	for name, c := range map[string]struct {
		bucket, key string
		kind        diff.RowKind
		change      func(in *Input)
		cells       []*diff.Cell
		want        []string
	}{
		"no entry":         {"cluster", "clusterVersion", "", func(*Input) {}, cellsOf("3.4.0", "3.5.0"), nil},
		"the last":         {"cluster", "clusterVersion", "", version(9), cellsOf("3.4.0", "3.5.0"), []string{"0 3.5.0"}},
		"a row is missing": {"cluster", "clusterVersion", "", version(9), cellsOf("3.5.0", ""), []string{"1 3.5.0"}},
		"applied by one": {"cluster", "clusterVersion", "", func(in *Input) {
			version(9)(in)
			in.Members[1].AppliedMin = 8
		}, cellsOf("3.4.0", "3.5.0"), []string{"1 3.4.0"}},
		"just applied": {"cluster", "clusterVersion", "", func(in *Input) {
			version(9)(in)
			in.Members[1].AppliedMin = 9
		}, cellsOf("3.4.0", "3.5.0"), []string{"0 3.5.0"}},
		"disputed": {"cluster", "clusterVersion", "", func(in *Input) {
			version(9)(in)
			in.Replay.LogDiffs = []replay.LogDiff{{Index: 9}}
		}, cellsOf("3.4.0", "3.5.0"), nil},
		"entries are missing": {"cluster", "clusterVersion", "", func(in *Input) {
			version(9)(in)
			in.Replay.First = 11
		}, cellsOf("3.4.0", "3.5.0"), nil},
		"another row": {"cluster", "x", "", version(9), cellsOf("3.4.0", "3.5.0"), nil},
		"published": {"members", own.String(), diff.AttributesRow, func(in *Input) {
			in.Replay.Survey.Starts = map[dumplog.ID][]replay.Start{8: {{Index: 19, Name: "z"}},
				7: {{Index: 5, Name: "a"}, {Index: 20, Name: "b"}, {Index: 21, Name: "c"}}}
		}, cellsOf(diff.AttributesText("a", nil), diff.AttributesText("b", nil)),
			[]string{"0 " + diff.AttributesText("b", nil)}},
		"a password": {"auth", "u", diff.PasswordRow, func(in *Input) {
			in.Diff.Passwords = []diff.Password{{User: "v", Wrong: []int{0}}, {User: "u", Wrong: []int{1}, Why: "w"}}
		}, cellsOf("x", "y"), []string{"1 the hash that the log gives"}},
		"a TTL":            {"lease", own.String(), diff.TTLRow, lowTTL, cellsOf("10", "9"), []string{"1 at least 10 s"}},
		"a lease":          {"lease", own.String(), "", lowTTL, cellsOf("10", "9"), nil},
		"another TTL":      {"alarm", own.String(), diff.TTLRow, lowTTL, cellsOf("10", "9"), nil},
		"a member":         {"members", own.String(), "", added, cellsOf("", "x"), []string{"0 listed"}},
		"a removed member": {"members_removed", own.String(), "", added, cellsOf("", "x"), []string{"1 absent"}},
		"no member":        {"auth", own.String(), "", added, cellsOf("", "x"), nil},
		"not surveyed": {"cluster", "clusterVersion", "", func(in *Input) { in.Replay.Survey = nil },
			cellsOf("3.4.0", "3.5.0"), nil},
	} {
		in := threeMembers(release.Yes)
		in.Replay.First, in.Replay.Last = 1, 20
		c.change(in)
		row := &diff.Row{Key: []byte(c.key), Kind: c.kind, Cells: c.cells}
		if got := positions(in.rowWitnesses().byLog(c.bucket, row, []int{0, 1})); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// buckets opens a database that has only these buckets.
func buckets(t *testing.T, names ...string) *dumpdb.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	b, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = b.Update(func(tx *bbolt.Tx) error {
		for _, name := range names {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = b.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// TestWitnessesOfDatabase: live keys of a lease that does not exist, or a missing bucket, accuse the member without the
// row; a bucket that no one fills proves nothing.
func TestWitnessesOfDatabase(t *testing.T) {
	with, without := buckets(t, "lease", "auth"), buckets(t, "auth")
	keys := func(lease int64, rule string) func(m *evidence.Member) {
		return func(m *evidence.Member) {
			m.DB.KV.Violations = []dumpdb.Violation{{Rule: rule, Lease: lease}, {Rule: rule, Lease: lease}}
		}
	}
	none := func(*evidence.Member) {}
	const missing = "1 present"
	for name, c := range map[string]struct {
		bucket string
		cells  []*diff.Cell
		handle *dumpdb.DB
		change func(m *evidence.Member)
		want   []string
	}{
		"no bucket":            {"lease", cellsOf("x", ""), without, none, []string{missing}},
		"no bucket, and a row": {"lease", cellsOf("", "x"), without, none, nil},
		"no bucket and no row": {"lease", cellsOf("", ""), without, none, nil},
		"a bucket":             {"lease", cellsOf("x", ""), with, none, nil},
		"live keys":            {"lease", cellsOf("x", ""), with, keys(7, dumpdb.RuleLease), []string{"1 granted"}},
		"live keys, and a row": {"lease", cellsOf("", "x"), with, keys(7, dumpdb.RuleLease), nil},
		"keys of another":      {"lease", cellsOf("x", ""), with, keys(8, dumpdb.RuleLease), nil},
		"another rule":         {"lease", cellsOf("x", ""), with, keys(7, "order"), nil},
		"another bucket":       {"auth", cellsOf("x", ""), with, keys(7, dumpdb.RuleLease), nil},
		"keys were not read":   {"lease", cellsOf("x", ""), with, func(m *evidence.Member) { m.DB.KV = nil }, nil},
	} {
		in := threeMembers(release.Yes)
		in.Members[0].DB.Handle, in.Members[1].DB.Handle = with, c.handle
		c.change(in.Members[1])
		row := &diff.Row{Key: []byte(dumpdb.ID(7).String()), Cells: c.cells}
		if got := positions(in.rowWitnesses().byDatabase(c.bucket, row, []int{0, 1})); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestWitnessesOfAuthRevision: at auth revision 1 no request has added a user or a role, so that a member with a row
// that others lack is wrong; at any other revision, or for a row that both hold, nothing follows.
func TestWitnessesOfAuthRevision(t *testing.T) {
	set := func(pos int, revision uint64, known bool) func(in *Input) {
		return func(in *Input) {
			in.Members[pos].DB.Auth = dumpdb.Auth{HasRevision: known, Revision: revision}
		}
	}
	none := func(*Input) {}
	handle := buckets(t, "auth", "authUsers", "authRoles")
	for name, c := range map[string]struct {
		bucket string
		kind   diff.RowKind
		cells  []*diff.Cell
		change func(in *Input)
		want   []string
	}{
		"a role":               {"authRoles", diff.WholeRow, cellsOf("x", ""), none, []string{"0 absent"}},
		"a user":               {"authUsers", diff.WholeRow, cellsOf("", "x"), none, []string{"1 absent"}},
		"roles of both":        {"authRoles", diff.WholeRow, cellsOf("x", "y"), none, nil},
		"a password":           {"authUsers", diff.PasswordRow, cellsOf("x", ""), none, nil},
		"another bucket":       {"auth", diff.WholeRow, cellsOf("x", ""), none, nil},
		"the revision is 2":    {"authRoles", diff.WholeRow, cellsOf("x", ""), set(0, 2, true), nil},
		"that of the other":    {"authRoles", diff.WholeRow, cellsOf("x", ""), set(1, 2, true), nil},
		"no revision":          {"authRoles", diff.WholeRow, cellsOf("x", ""), set(0, 1, false), nil},
		"none of the other":    {"authRoles", diff.WholeRow, cellsOf("x", ""), set(1, 1, false), nil},
		"the third has others": {"authRoles", diff.WholeRow, cellsOf("x", ""), set(2, 9, true), []string{"0 absent"}},
	} {
		in := threeMembers(release.Yes)
		for pos, m := range in.Members {
			set(pos, 1, true)(in)
			m.DB.Handle = handle
		}
		c.change(in)
		row := &diff.Row{Key: []byte("r"), Kind: c.kind, Cells: c.cells}
		if got := positions(in.rowWitnesses().witnesses(c.bucket, row, []int{0, 1})); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestWitnessesOfLastTransaction: a row that the last transaction changed from what another member holds, without an
// entry about it.
func TestWitnessesOfLastTransaction(t *testing.T) {
	for name, c := range map[string]struct {
		was    string
		cells  []*diff.Cell
		change func(in *Input)
		want   []string
	}{
		"changed":              {"a", cellsOf("a", "b", "c"), nil, []string{"1 a"}},
		"unchanged":            {"b", cellsOf("b", "b", "a"), nil, nil},
		"was like none":        {"z", cellsOf("a", "b", "a"), nil, nil},
		"was like one":         {"a", cellsOf("c", "b", "a"), nil, []string{"1 a"}},
		"appeared":             {"", cellsOf("", "b", "b"), nil, []string{"1 absent"}},
		"vanished":             {"a", cellsOf("a", "", "a"), nil, []string{"1 a"}},
		"no earlier state":     {"a", cellsOf("a", "b", "a"), func(in *Input) { in.earlier.before[in.Members[1]] = nil }, nil},
		"up to 3.4":            {"a", cellsOf("a", "b", "a"), func(in *Input) { in.Members[1].Version = evidence.Version{Minor: 4} }, nil},
		"not surveyed":         {"a", cellsOf("a", "b", "a"), func(in *Input) { in.Replay.Survey = nil }, nil},
		"not replayed":         {"a", cellsOf("a", "b", "a"), func(in *Input) { in.Replay = nil }, nil},
		"the entry is missing": {"a", cellsOf("a", "b", "a"), func(in *Input) { in.Replay.Last = 19 }, nil},
		"only the entry":       {"a", cellsOf("a", "b", "a"), func(in *Input) { in.Replay.First = 20 }, []string{"1 a"}},
	} {
		in := threeMembers(release.Yes)
		in.Replay.First, in.Replay.Last = 1, 20
		in.earlier.before = map[*evidence.Member]*evidence.Member{}
		in.earlier.beforeRows = map[beforeKey]map[string]string{}
		for i, m := range in.Members {
			m.Version = evidence.Version{Minor: 6}
			in.earlier.before[m] = nil
			if i == 1 {
				in.earlier.before[m] = m
			}
		}
		rows := map[string]string{}
		if c.was != "" {
			rows["k"] = c.was
		}
		in.earlier.beforeRows[beforeKey{in.Members[1], "alarm", diff.WholeRow}] = rows
		if c.change != nil {
			c.change(in)
		}
		row := &diff.Row{Key: []byte("k"), Cells: c.cells}
		got := in.rowWitnesses().byLastTransaction("alarm", row, []int{0, 1, 2})
		if !slices.Equal(positions(got), c.want) || len(got) > 0 && !got[0].byHand {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}

// TestWitnessesOfMembers: the last change of a member that no server refused says whether it must be listed.
func TestWitnessesOfMembers(t *testing.T) {
	change := func(index uint64, of dumplog.ConfChangeType) evidence.ConfEntry {
		c := evidence.ConfEntry{Index: index}
		c.Change.NodeID, c.Change.Type = 7, of
		return c
	}
	added, removed := change(5, dumplog.ConfChangeAddNode), change(9, dumplog.ConfChangeRemoveNode)
	for name, c := range map[string]struct {
		bucket  string
		changes []evidence.ConfEntry
		adapt   func(in *Input)
		want    []string
	}{
		"added":                  {"members", []evidence.ConfEntry{added}, nil, []string{"0 listed"}},
		"added, not in removed":  {"members_removed", []evidence.ConfEntry{added}, nil, []string{"1 absent"}},
		"removed":                {"members", []evidence.ConfEntry{added, removed}, nil, []string{"1 absent"}},
		"removed, so in removed": {"members_removed", []evidence.ConfEntry{added, removed}, nil, []string{"0 listed"}},
		"no change":              {"members", nil, nil, nil},
		"disputed": {"members", []evidence.ConfEntry{added}, func(in *Input) {
			in.Replay.LogDiffs = []replay.LogDiff{{Index: 5}}
		}, nil},
		"the log after it is missing": {"members", []evidence.ConfEntry{added}, func(in *Input) { in.Replay.First = 7 }, nil},
		"removed once, for ever": {"members", []evidence.ConfEntry{removed}, func(in *Input) { in.Replay.First = 12 },
			[]string{"1 absent"}},
	} {
		in := threeMembers(release.Yes)
		in.Replay.First, in.Replay.Last = 1, 20
		in.Members[0].WAL.Conf, in.Members[0].Commit = c.changes, 20
		if c.adapt != nil {
			c.adapt(in)
		}
		row := &diff.Row{Key: []byte(dumplog.ID(7).String()), Cells: cellsOf("", "x")}
		got := in.rowWitnesses().memberWitness(c.bucket, row, []int{0, 1})
		if !slices.Equal(positions(got), c.want) {
			t.Errorf("%s: %q, want %q", name, positions(got), c.want)
		}
		verb := "added"
		if strings.HasPrefix(name, "removed") {
			verb = "removed"
		}
		if len(got) > 0 && !strings.HasSuffix(got[0].why, " "+verb+" the member") {
			t.Errorf("%s: %s, want it %s", name, got[0].why, verb)
		}
	}
}

// TestFirstWitnessDecides: the first that accuses some members, but not all, decides.
func TestFirstWitnessDecides(t *testing.T) {
	for name, c := range map[string]struct {
		byReplay []int
		was      string
		want     []string
	}{
		"the replay":              {[]int{0}, "", []string{"0 x"}},
		"the replay, of two":      {[]int{0, 2}, "c", []string{"0 x", "2 x"}},
		"the replay accuses all":  {[]int{0, 1, 2}, "c", []string{"1 c"}},
		"nothing but the past":    {nil, "c", []string{"1 c"}},
		"nothing":                 {nil, "b", nil},
		"all, and then none else": {[]int{0, 1, 2}, "b", nil},
	} {
		in := threeMembers(release.Yes)
		in.Replay.First, in.Replay.Last = 1, 20
		for _, pos := range c.byReplay {
			in.Replay.Members[pos].StateDiffs = []replay.StateDiff{{Bucket: "lease", Key: "k", Expected: "x"}}
		}
		for _, m := range in.Members {
			m.DB.Handle, m.Version = buckets(t, "lease"), evidence.Version{Minor: 6}
		}
		second := in.Members[1]
		in.earlier.before = map[*evidence.Member]*evidence.Member{in.Members[0]: nil, second: second,
			in.Members[2]: nil}
		in.earlier.beforeRows = map[beforeKey]map[string]string{{second, "lease", diff.WholeRow}: {"k": c.was}}
		row := &diff.Row{Key: []byte("k"), Cells: cellsOf("a", "b", "c")}
		got := in.rowWitnesses().witnesses("lease", row, []int{0, 1, 2})
		if !slices.Equal(positions(got), c.want) {
			t.Errorf("%s: %q, want %q", name, positions(got), c.want)
		}
	}
}
