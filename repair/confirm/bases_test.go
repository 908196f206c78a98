package confirm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// reopened is a database after a change of its bytes.
func reopened(t *testing.T, path string, change func([]byte)) *dumpdb.DB {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	change(b)
	out := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(out, b, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := dumpdb.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // only read
	return db
}

// TestUnsoundBase: a damaged database, and a backup whose trailer does not match, are no base.
func TestUnsoundBase(t *testing.T) {
	sv := surveyed(entry(5, 4, put), entry(6, 4, put), entry(7, 6, put))
	dir := clustertest.Synth{Members: 1, Entries: 3, Keys: 3, Value: 5000}.Write(t, t.TempDir())[0]
	evidencetest.Unchanged(t, dir)
	db := filepath.Join(dir, "member", "snap", "db")
	backup := filepath.Join(t.TempDir(), "backup.db")
	if _, err := datadir.WriteBackup(t.Context(), backup, db); err != nil {
		t.Fatal(err)
	}
	var page uint64
	for p, err := range reopened(t, db, func([]byte) {}).Pages(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Bucket == "key" && p.Type == "leaf" && p.State == dumpdb.PageReachable {
			page = p.Page
		}
	}
	if page == 0 {
		t.Fatal("bucket key has no page")
	}
	for name, c := range map[string]struct {
		path   string
		change func(b []byte)
		says   string
	}{
		"sound":        {db, func([]byte) {}, ""},
		"a backup":     {backup, func([]byte) {}, ""},
		"its trailer":  {backup, func(b []byte) { b[len(b)-1] ^= 1 }, "its sha256 trailer does not match its bytes"},
		"damaged page": {db, func(b []byte) { clear(b[page*4096 : (page+1)*4096]) }, "it is damaged in "},
	} {
		h := reopened(t, c.path, c.change)
		index, err := h.MetaBucket()
		if err != nil || index.ConsistentIndex == nil {
			t.Fatalf("%s: %v", name, err)
		}
		if *index.ConsistentIndex != 4 {
			t.Fatalf("%s: at entry %d", name, *index.ConsistentIndex)
		}
		b, err := dbBase(t.Context(), h, sv)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) || err == nil &&
			(b.Index != 4 || len(b.Members) != 1) {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
}

// history writes a member whose log has puts of the keys k2, k3, … with the value v up to an entry. Its database is
// at that entry and has the puts that has names, with this value. A restored log begins with a restore.
func history(t *testing.T, name string, restored bool, last uint64, value string, has ...uint64) string {
	t.Helper()
	h := clustertest.NewHand(t, t.TempDir(), name, 0xa0+uint64(name[len(name)-1]-'0'), 0xc1)
	h.Found(restored, 0xa1)
	h.Member(0xa1, false, true)
	for i := uint64(2); i <= last; i++ {
		h.Put(2, i, clustertest.RequestID(0xa1, 1000, i), fmt.Sprint("k", i), "v", false)
	}
	for _, i := range has {
		h.Revision(fmt.Sprint("k", i), value)
	}
	h.State(2, 0xa1, last)
	return h.Close(last, 2)
}

// TestAnchoredBase: a base that has none of the log's last writes is of another history. If it has some, a member's own
// database is a base. A backup with less than most of them may be older than the restore with which a log begins.
func TestAnchoredBase(t *testing.T) {
	all := []uint64{2, 3, 4, 5, 6, 7, 8, 9}
	const none, before = "it shows none of the last 8 writes that the log has up to its index 9",
		"nothing shows that it was taken after the restore"
	for name, c := range map[string]struct {
		restored bool
		kind     BaseKind
		index    uint64
		value    string
		has      []uint64
		noTerm   bool
		says     string
	}{
		"all":                       {false, Backup, 9, "v", all, false, ""},
		"all, restored":             {true, Backup, 9, "v", all, false, ""},
		"none":                      {false, Backup, 9, "v", nil, false, none},
		"none, a member":            {false, MemberDB, 9, "v", nil, false, none},
		"other values":              {false, Backup, 9, "x", all, false, none},
		"two":                       {false, Backup, 9, "v", all[:2], false, ""},
		"two, restored":             {true, Backup, 9, "v", all[:2], false, before},
		"two, restored, a member":   {true, MemberDB, 9, "v", all[:2], false, ""},
		"two, restored, a snapshot": {true, SnapshotDB, 9, "v", all[:2], false, ""},
		"up to the base":            {false, Backup, 3, "v", all[:2], false, ""},
		"up to the base, none": {false, Backup, 3, "v", all[2:], false,
			"none of the last 2 writes that the log has up to its index 3"},
		"nothing written":            {false, Backup, 1, "v", nil, false, ""},
		"nothing written, restored":  {true, Backup, 1, "v", nil, false, ""},
		"nothing written, no term":   {true, Backup, 1, "v", nil, true, before},
		"no term, a member":          {true, MemberDB, 1, "v", nil, true, before},
		"not restored, without term": {false, Backup, 1, "v", nil, true, ""},
	} {
		dir := history(t, "node1", c.restored, 9, c.value, c.has...)
		evidencetest.Unchanged(t, dir)
		set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: dir}}, evidence.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := set.Members[0]
		b := &Base{Kind: c.kind, Index: c.index, db: m.DB.Handle, needs: m.DB.Meta}
		if c.noTerm {
			b.needs.Term = nil
		}
		err = anchored(t.Context(), b, set.Members)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		_ = set.Close() // only read
	}
}

// TestBasesOfSources: each database from which a log continues is a base. It is a member's own database if it came with
// a log, and a backup without. Why a database is none is said of backups alone; the log of a member leads beyond its
// own database anyway.
func TestBasesOfSources(t *testing.T) {
	source := func(name string, index, own uint64) *evidence.Member {
		return &evidence.Member{Source: &evidence.Source{Name: name}, DB: &evidence.DB{Handle: based(t, index, own, 1),
			Meta: dumpdb.MetaBucket{ConsistentIndex: &index}}}
	}
	logged := func(m *evidence.Member) *evidence.Member {
		m.WAL = evidence.WAL{Log: &dumplog.Log{}, Summary: dumplog.Summary{FirstIndex: 5, LastIndex: 7}}
		return m
	}
	doubted := source("doubted", 5, 4)
	doubted.OverrideConsistentIndex(6)
	sv := surveyed(entry(5, 4, put), entry(6, 4, put), entry(7, 6, put))
	found, why := bases(t.Context(), []*evidence.Member{source("a", 5, 4), logged(source("b", 6, 4)),
		source("late", 7, 4), logged(source("lagging", 2, 4)), source("other", 6, 5), doubted,
		logged(&evidence.Member{Source: &evidence.Source{Name: "log"}})}, sv)
	var got []string
	for _, b := range found {
		got = append(got, fmt.Sprintf("%s %s %d at %d", b.Kind, b.Source, b.Owner, b.Index))
	}
	if s := strings.Join(got, ", "); s != "backup a 0 at 5, member-db b 1 at 6" {
		t.Error(s)
	}
	want := []string{"late cannot be the base: no log holds entry 8, which follows its consistent index",
		"other cannot be the base: it is at entry 5/6 and the log holds 4/6: they are of different histories"}
	if strings.Join(why, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", why)
	}
}

// backup is one of a member of history, at an entry.
func backup(t *testing.T, index uint64, value string) string {
	t.Helper()
	var all []uint64
	for i := uint64(2); i <= index; i++ {
		all = append(all, i)
	}
	path := filepath.Join(t.TempDir(), fmt.Sprintf("backup-%d-%s.db", index, value))
	from := filepath.Join(history(t, "node1", true, index, value, all...), "member", "snap", "db")
	if _, err := datadir.WriteBackup(t.Context(), path, from); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestChosenBase: of the databases from which the log continues, a backup is preferred to that of a member, then one
// from which more sources can be compared, which is the one that leaves most of the log to the server. A base that has
// none of the log's last writes is passed over. Where there is none, the reason names what is wrong with each.
func TestChosenBase(t *testing.T) {
	all := []uint64{2, 3, 4, 5, 6, 7, 8, 9}
	member := history(t, "node1", true, 9, "v", all...)
	lagging, behind := history(t, "node2", true, 3, "v", all[:2]...), history(t, "node3", true, 9, "v", all[:2]...)
	db := filepath.Join(behind, "member", "snap", "db")
	if err := datadir.EditNew(db, datadir.SetConsistentIndex(3)); err != nil {
		t.Fatal(err)
	}
	const restore = "the log begins with a restore from a backup that is not among the sources"
	three, five, other, same := backup(t, 3, "v"), backup(t, 5, "v"), backup(t, 3, "x"), backup(t, 9, "v")
	received := evidencetest.Copy(t, member)
	if err := datadir.CopyDB(t.Context(), filepath.Join(received, "member", "snap", "0000000000000005.snap.db"),
		five); err != nil {
		t.Fatal(err)
	}
	evidencetest.Unchanged(t, member, lagging, behind, received, three, five, other, same)
	for name, c := range map[string]struct {
		sources []string
		base    string
		stops   string
		reason  string
	}{
		"a backup":              {[]string{member, three}, "backup 3", "[9]", ""},
		"two backups":           {[]string{member, five, three}, "backup 3", "[5 9]", ""},
		"in any order":          {[]string{three, five, member}, "backup 3", "[5 9]", ""},
		"a lagging member":      {[]string{lagging, member}, "member-db 3", "[9]", ""},
		"a later backup":        {[]string{lagging, member, five}, "backup 5", "[9]", ""},
		"a received snapshot":   {[]string{received}, "snapshot-db 5", "[9]", ""},
		"an older backup":       {[]string{received, three}, "backup 3", "[9]", ""},
		"no newer database":     {[]string{behind, five}, "member-db 3", "[5]", ""},
		"of another history":    {[]string{member, other, five}, "backup 5", "[9]", ""},
		"none":                  {[]string{member}, "", "[]", restore},
		"one at the same index": {[]string{member, same}, "", "[]", restore},
		"none of this history": {[]string{member, other}, "", "[]", restore +
			"; backup-3-x.db cannot be the base: it shows none of the last 2 writes"},
	} {
		var specs []evidence.Spec
		for _, s := range c.sources {
			specs = append(specs, evidence.Spec{Name: filepath.Base(s), Where: s})
		}
		set, err := evidence.Open(t.Context(), specs, evidence.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPlan(t.Context(), set.Members)
		if err != nil {
			t.Fatal(err)
		}
		base := ""
		if p.Base != nil {
			base = fmt.Sprint(p.Base.Kind, " ", p.Base.Index)
			p.Base.close()
		}
		if base != c.base || fmt.Sprint(p.Stops) != c.stops || (p.Reason == "") != (c.reason == "") {
			t.Errorf("%s: base %q, stops %v, reason %q", name, base, p.Stops, p.Reason)
		}
		if got := p.Reason; !strings.Contains(got, c.reason) {
			t.Errorf("%s: %q does not say %q", name, got, c.reason)
		}
		_ = set.Close() // only read
	}
}

// TestRestsOn: what a result rests on is the first entry, or the entries after the base's index.
func TestRestsOn(t *testing.T) {
	for _, c := range []struct {
		kind        BaseKind
		base, index uint64
		want        string
	}{
		{NewCluster, 1, 9, ", from the first entry on"},
		{Backup, 5, 9, ", executing 4 entries from the database of b on"},
		{Backup, 8, 9, ", executing 1 entry from the database of b on"},
		{MemberDB, 9, 9, ", executing 1 entry from the database of b on"},
	} {
		v := &verdict{target: &Target{Index: c.index}, base: &Base{Kind: c.kind, Source: "b", Index: c.base}}
		if got := v.from(); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestFrozenIndex: a database whose term is above every term of the log, and whose index stays below what was
// committed, does not say which entries it has. It is not compared.
func TestFrozenIndex(t *testing.T) {
	for name, c := range map[string]struct {
		index, term uint64
		says        string
	}{
		"the term of the log":  {6, 2, ""},
		"a higher term":        {6, 3, "its consistent index does not say what it has applied"},
		"at the last of those": {9, 3, ""},
	} {
		var specs []evidence.Spec
		for id, at := range map[uint64][2]uint64{0xa1: {c.index, c.term}, 0xa2: {9, 2}} {
			h := clustertest.NewHand(t, t.TempDir(), clustertest.HandName(id), id, 0xc1)
			h.Found(false, 0xa1, 0xa2)
			h.Member(0xa1, false, true)
			h.Member(0xa2, false, true)
			for i := uint64(3); i <= 9; i++ {
				h.Put(2, i, clustertest.RequestID(0xa1, 1000, i), fmt.Sprint("k", i), "v", i <= at[0])
			}
			h.State(2, 0xa1, 9)
			specs = append(specs, evidence.Spec{Where: h.Close(at[0], at[1])})
			evidencetest.Unchanged(t, h.Dir)
		}
		set, err := evidence.Open(t.Context(), specs, evidence.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPlan(t.Context(), set.Members)
		if err != nil || p.Base == nil {
			t.Fatalf("%s: %v, %+v", name, err, p)
		}
		for _, x := range p.Targets {
			if want := map[bool]string{true: c.says}[x.Member.MemberID == 0xa1]; x.Reason != want {
				t.Errorf("%s: %s: %q, want %q", name, x.Member.Label(), x.Reason, want)
			}
		}
		_ = set.Close() // only read
	}
}
