package check

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// copiedDatabase opens a copy as bbolt writes it, of a database after some commits, with bytes after its end.
func copiedDatabase(t *testing.T, commits int, after int) *dumpdb.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	b, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range commits {
		err = errors.Join(err, b.Update(func(tx *bbolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("meta"))
			if err != nil {
				return err
			}
			return bucket.Put([]byte("k"), []byte("v"))
		}))
	}
	err = errors.Join(err, b.View(func(tx *bbolt.Tx) error { return tx.CopyFile(path+".copy", 0o600) }), b.Close())
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path + ".copy")
	if err == nil {
		err = os.WriteFile(path+".copy", append(content, make([]byte, after)...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := dumpdb.Open(path + ".copy")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// TestStrippedBackup: a copy without a trailer that no server wrote to, next to a log that it does not fit.
func TestStrippedBackup(t *testing.T) {
	odd, even := copiedDatabase(t, 2, 0), copiedDatabase(t, 1, 0)
	for name, c := range map[string]struct {
		change func(m *evidence.Member, rp *replay.Result)
		want   string
	}{
		"a start after it": {func(*evidence.Member, *replay.Result) {}, "a server published its start at 15"},
		"above the log": {func(m *evidence.Member, _ *replay.Result) {
			*m.DB.Meta.ConsistentIndex = 31
		}, "the log ends at 30"},
		"at its end":     {func(m *evidence.Member, _ *replay.Result) { *m.DB.Meta.ConsistentIndex = 30 }, ""},
		"a start at it":  {func(m *evidence.Member, _ *replay.Result) { *m.DB.Meta.ConsistentIndex = 20 }, ""},
		"no start":       {func(_ *evidence.Member, rp *replay.Result) { rp.Survey.Starts = nil }, ""},
		"of another":     {func(m *evidence.Member, _ *replay.Result) { m.MemberID = 6 }, ""},
		"not in its log": {func(m *evidence.Member, _ *replay.Result) { m.WAL.Summary.Terms = nil }, ""},
		"no survey":      {func(_ *evidence.Member, rp *replay.Result) { rp.Survey = nil }, ""},
		"no log":         {func(m *evidence.Member, _ *replay.Result) { m.WAL.Log = nil }, ""},
		"damaged": {func(m *evidence.Member, _ *replay.Result) {
			m.DB.Damage = make([]*dumpdb.DamageError, 1)
		}, ""},
		"index 0":          {func(m *evidence.Member, _ *replay.Result) { *m.DB.Meta.ConsistentIndex = 0 }, ""},
		"written to since": {func(m *evidence.Member, _ *replay.Result) { m.DB.Handle = even }, ""},
		"received": {func(m *evidence.Member, _ *replay.Result) {
			m.WAL.Summary.Terms[0].First, m.WAL.Summary.FirstIndex = 13, 13
			m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: 12}}
		}, ""},
		"of a snapshot that it held": {func(m *evidence.Member, _ *replay.Result) {
			m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: 12}}
		}, "a server published its start at 15"},
	} {
		m := withDB(withLog(member("n1"), 30), 12)
		m.MemberID, m.DB.Handle, m.DB.Trailer.State = 5, odd, "absent"
		m.WAL.Summary.Terms = []dumplog.TermRange{{Term: 2, First: 1, Last: 30}}
		rp := &replay.Result{Survey: &replay.Survey{Starts: map[dumplog.ID][]replay.Start{
			5: {{Index: 9}, {Index: 15}, {Index: 20}}}}}
		c.change(m, rp)
		f := (&Input{Members: Sources{m}, Replay: rp}).provenance().backupAsDatabase(m)
		if (f != nil) != (c.want != "") || f != nil && (!strings.Contains(f.Explanation, c.want) ||
			f.Kind != KindCopyUsedAsDB) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestBackupAsDatabase: the trailer of a backup, unless a file that lost its end has its size by chance.
func TestBackupAsDatabase(t *testing.T) {
	for name, c := range map[string]struct {
		state string
		kind  dumpdb.DamageKind
		want  bool
	}{
		"match":                     {"match", "", true},
		"match, cut":                {"match", dumpdb.DamageTruncated, true},
		"mismatch":                  {"mismatch", "", true},
		"mismatch, truncated":       {"mismatch", dumpdb.DamageTruncated, false},
		"mismatch, out of the file": {"mismatch", dumpdb.DamageOutOfFile, false},
		"mismatch, other damage":    {"mismatch", dumpdb.DamageRow, true},
		"not examined":              {"", "", false},
		"absent":                    {"absent", "", false},
	} {
		m := withDB(withLog(member("n1"), 30), 0)
		m.DB.Handle, m.DB.Trailer.State = copiedDatabase(t, 1, 0), c.state
		if c.kind != "" {
			m.DB.Damage = []*dumpdb.DamageError{{Kind: c.kind}}
		}
		f := (&Input{Members: Sources{m}}).provenance().backupAsDatabase(m)
		if (f != nil) != c.want || f != nil && (f.Kind != KindBackupUsedAsDB || f.At.Index != 1) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	m := member("b")
	m.Source.Kind = evidence.KindBackup
	if r := runPartsTogether(&Input{Members: Sources{m}}); r.Reason != "no source is a data dir" || r.Outcome == Holds {
		t.Errorf("%+v", r)
	}
}

// TestReceivedUnused: a database as the leader sent it, although more is committed.
func TestReceivedUnused(t *testing.T) {
	odd, even := copiedDatabase(t, 2, 0), copiedDatabase(t, 1, 0)
	for name, c := range map[string]struct {
		change func(m *evidence.Member)
		want   bool
	}{
		"unused":           {func(*evidence.Member) {}, true},
		"nothing more":     {func(m *evidence.Member) { m.Commit = 12 }, false},
		"written to":       {func(m *evidence.Member) { m.DB.Handle = even }, false},
		"with a trailer":   {func(m *evidence.Member) { m.DB.Trailer.State = "match" }, false},
		"with a wrong one": {func(m *evidence.Member) { m.DB.Trailer.State = "mismatch" }, false},
		"no database":      {func(m *evidence.Member) { m.DB = nil }, false},
		"no log":           {func(m *evidence.Member) { m.WAL.Log = nil }, false},
		"no record":        {func(m *evidence.Member) { m.WAL.Summary.Snapshots = nil }, false},
		"of another index": {func(m *evidence.Member) { *m.DB.Meta.ConsistentIndex = 13 }, false},
		"of its own log":   {func(m *evidence.Member) { m.WAL.Summary.Terms[0].First = 12 }, false},
		"a restore's record": {func(m *evidence.Member) {
			m.WAL.Summary.Snapshots[0].Index, *m.DB.Meta.ConsistentIndex = 0, 0
		}, false},
	} {
		m := withDB(withLog(member("n1"), 30), 12)
		m.DB.Handle, m.Commit, m.WAL.Summary.FirstIndex = odd, 20, 13
		m.WAL.Summary.Terms = []dumplog.TermRange{{Term: 2, First: 13, Last: 30}}
		m.WAL.LastByTerm = []evidence.TermEnd{{Term: 2, First: 13, Last: 30}}
		m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: 12}}
		c.change(m)
		r := runReceivedIsUsed(&Input{Members: Sources{m}})
		if (len(r.Findings) > 0) != c.want || c.want && r.Findings[0].At != (At{Term: 2, Index: 13}) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestReceivedSnapshots: a snapshot was received if the log never held its entry.
func TestReceivedSnapshots(t *testing.T) {
	m := withLog(member("n1"), 30)
	m.WAL.Summary.FirstIndex = 10
	m.WAL.Summary.Terms = []dumplog.TermRange{{Term: 2, First: 10, Last: 14}, {Term: 2, First: 21, Last: 30}}
	m.WAL.Summary.Jumps = []dumplog.Jump{{From: 17, To: 20}}
	for index, want := range map[uint64]bool{9: true, 10: false, 14: false, 15: false, 16: false, 17: true,
		20: true, 21: false, 30: false, 31: true} {
		if got := Received(m, index); got != want {
			t.Errorf("%d: %t", index, got)
		}
	}
	if m.WAL.Summary = (dumplog.Summary{}); !Received(m, 5) {
		t.Error("an empty log")
	}
}

// TestSizesOfBackups: what follows the content of a backup, or is missing of it.
func TestSizesOfBackups(t *testing.T) {
	for name, c := range map[string]struct {
		after   int
		trailer string
		want    Kind
		title   string
	}{
		"exact":               {0, "absent", "", ""},
		"a trailer":           {32, "match", "", ""},
		"a wrong trailer":     {32, "mismatch", "", ""},
		"a cut trailer":       {31, "absent", KindTrailerCut, "b: the sha256 trailer is cut: 31 of 32 bytes are left"},
		"a byte":              {1, "absent", KindTrailerCut, "b: the sha256 trailer is cut: 1 of 32 bytes are left"},
		"more than a trailer": {33, "absent", KindBackupAppended, "b: 33 B follow the end of the content"},
		"a page more":         {4096, "absent", KindBackupAppended, "b: 4.0 KiB follow the end of the content"},
	} {
		m := member("b")
		m.Source.Kind = evidence.KindBackup
		m.DB = &evidence.DB{Handle: copiedDatabase(t, 2, c.after), File: "b", Trailer: dumpdb.Trailer{State: c.trailer}}
		r := runBackupSize(&Input{Members: Sources{m}})
		if (len(r.Findings) > 0) != (c.want != "") || c.want != "" && (r.Findings[0].Kind != c.want ||
			r.Findings[0].Title != c.title || *r.Findings[0].Evidence[0].Offset%4096 != 0) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestPagesAfterRawCopy: the meta pages of an even transaction may be those of a stopped server's database, which is
// longer than its content.
func TestPagesAfterRawCopy(t *testing.T) {
	for after, want := range map[int]Outcome{0: Holds, 4096: Holds, 4096 + 64: Violated} {
		m := member("b")
		m.Source.Kind = evidence.KindBackup
		m.DB = &evidence.DB{Handle: copiedDatabase(t, 1, after), File: "b", Trailer: dumpdb.Trailer{State: "absent"}}
		if r := runBackupSize(&Input{Members: Sources{m}}); r.Outcome != want {
			t.Errorf("%d bytes more: %+v", after, r)
		}
	}
}

// TestMixedClusters: sources of one cluster, and backups whose members no data dir knows.
func TestMixedClusters(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(in *Input)
		outcome Outcome
		members []string
		reason  string
	}{
		"one cluster":  {func(*Input) {}, Holds, nil, ""},
		"two clusters": {func(in *Input) { in.Members[1].ClusterID = 8 }, Violated, []string{"n1", "n2"}, ""},
		"one source":   {func(in *Input) { in.Members = in.Members[:1] }, "", nil, needsTwo},
		"one cluster ID": {func(in *Input) {
			in.Members[1].ClusterID = 0
		}, "", nil, "fewer than two sources carry a cluster ID"},
		"a backup of strangers": {func(in *Input) {
			in.Members[1].ClusterID = 0
			in.Members[1].Membership.Bucket = []dumplog.ID{9}
		}, Violated, []string{"n1", "n2"}, ""},
		"a backup of its own": {func(in *Input) {
			in.Members[1].ClusterID = 0
			in.Members[1].Membership.Bucket = []dumplog.ID{9, 5}
		}, "", nil, "fewer than two sources carry a cluster ID"},
		"a backup from before": {func(in *Input) {
			b := withDB(member("b"), 9)
			b.Membership.Bucket = []dumplog.ID{3}
			b.DB.KV.LastRev.Main = 44
			in.Members, in.Earlier = in.Members[:1], []Earlier{{Backup: b, Member: in.Members[0], Records: 12}}
		}, Holds, []string{"b"}, ""},
	} {
		in := &Input{}
		for i, name := range []string{"n1", "n2"} {
			m := withDB(withLog(member(name), 20), 20)
			m.MemberID, m.ClusterID = dumplog.ID(5+i), 7
			in.Members = append(in.Members, m)
		}
		c.change(in)
		r := runOneCluster(in)
		var members []string
		for _, f := range r.Findings {
			members = append(members, f.Members...)
			if f.Kind == KindBackupBeforeRestore &&
				(!strings.Contains(f.Explanation, "12 of them, up to revision 44") || f.Evidence[0].Observed != "[3]") {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if r.Outcome != c.outcome || r.Reason != c.reason || !slices.Equal(members, c.members) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestNamesOfSources: a data dir under the name of another member, and sources that no configuration knows.
func TestNamesOfSources(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *evidence.Member)
		want   []Kind
	}{
		"its own name": {func(m *evidence.Member) { m.NodeName = "n2" }, nil},
		"of another":   {func(*evidence.Member) {}, []Kind{KindMemberNamedWrongly}},
		"no name":      {func(m *evidence.Member) { m.NodeName = "" }, nil},
		"a mixed log": {func(m *evidence.Member) {
			m.WAL.Summary.Damage = []*dumplog.DamageError{{Kind: dumplog.DamageMixed}}
		}, nil},
		"of no member":     {func(m *evidence.Member) { m.Membership.Names = nil }, nil},
		"of itself":        {func(m *evidence.Member) { m.Membership.Names = map[dumplog.ID]string{5: "n2"} }, nil},
		"of a removed one": {func(m *evidence.Member) { m.Membership.Removed = []dumplog.ID{6} }, nil},
		"unknown":          {func(m *evidence.Member) { m.MemberID, m.NodeName = 9, "" }, []Kind{KindMemberUnknown}},
		"known to a change": {func(m *evidence.Member) {
			m.MemberID, m.NodeName, m.WAL.Conf = 9, "", []evidence.ConfEntry{added(3, 9)}
		}, nil},
		"known to a refused change": {func(m *evidence.Member) {
			m.MemberID, m.NodeName, m.WAL.Conf = 9, "", []evidence.ConfEntry{added(3, 9)}
			m.WAL.Conf[0].Refused = true
		}, []Kind{KindMemberUnknown}},
		"no member to ask": {func(m *evidence.Member) {
			m.MemberID, m.NodeName, m.Membership.RaftKnown = 9, "", false
		}, nil},
	} {
		m := withLog(member("n2"), 20)
		m.MemberID, m.NodeName, m.Commit = 5, "n1", 20
		m.WAL.Summary.Segments = make([]dumplog.Segment, 1)
		m.Membership = evidence.Membership{RaftKnown: true, Voters: []dumplog.ID{5, 6},
			Names: map[dumplog.ID]string{5: "n1", 6: "n2"}}
		c.change(m)
		r := runBelongsHere(&Input{Members: Sources{m}})
		var got []Kind
		for _, f := range r.Findings {
			got = append(got, f.Kind)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for _, m := range []*evidence.Member{member("n1"), withLog(member("n1"), 9)} {
		r := runBelongsHere(&Input{Members: Sources{m}})
		if r.Reason != "no source carries a member ID" || r.Outcome == Holds {
			t.Errorf("%+v", r)
		}
	}
}

// TestUnreadableTitles: a file is named once, and one that can be read may not open.
func TestUnreadableTitles(t *testing.T) {
	m := member("b.db")
	for want, p := range map[string]evidence.Problem{
		"b.db cannot be read":              {Part: "db", File: "b.db", Err: os.ErrPermission},
		"b.db: db cannot be read":          {Part: "db", File: "db", Err: os.ErrPermission},
		"b.db does not open as a database": {Part: "db", File: "b.db", Err: &dumpdb.DamageError{}},
		"b.db: 0.wal cannot be read":       {Part: "wal", File: "0.wal", Err: &dumpdb.DamageError{}},
	} {
		if got := unreadableTitle(m, &p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestRepeatedRequests: a log that holds a request twice numbers the entries after it wrongly.
func TestRepeatedRequests(t *testing.T) {
	m, o := withLog(member("n1"), 30), withLog(member("n2"), 30)
	m.WAL.LastByTerm = []evidence.TermEnd{{Term: 3, First: 1, Last: 30}}
	for name, c := range map[string]struct {
		shift *replay.Shift
		want  string
	}{
		"none": {nil, ""},
		"one": {&replay.Shift{Index: 7, Missing: 1, Long: []int{1}},
			"n1: entry 7 was added to the log, and the later ones are renumbered"},
		"three": {&replay.Shift{Index: 7, Missing: 3, Long: []int{1}},
			"n1: entries 7..9 were added to the log, and the later ones are renumbered"},
		"of another":      {&replay.Shift{Index: 7, Missing: 1, Long: []int{0}}, ""},
		"shown by others": {&replay.Shift{Index: 7, Missing: 1, Long: []int{1}, Short: []int{0}}, ""},
	} {
		in := &Input{Members: Sources{o, m}, Replay: &replay.Result{}}
		if c.shift != nil {
			in.Replay.Shifts = []*replay.Shift{c.shift}
		}
		fs := in.shiftedLogs().repeated(m)
		if (len(fs) > 0) != (c.want != "") || len(fs) > 0 && (fs[0].Title != c.want ||
			fs[0].At != (At{Term: 3, Index: 7}) || len(fs[0].Evidence) != 1) {
			t.Errorf("%s: %+v", name, fs)
		}
	}
	if fs := (&Input{Members: Sources{m}}).shiftedLogs().repeated(m); fs != nil {
		t.Errorf("without a replay: %+v", fs)
	}
}

// TestIndependent: an older copy of a data dir does not confirm what the newer one says, where both are among the
// members.
func TestIndependent(t *testing.T) {
	copies := func(of ...replay.Copies) []replay.Copies { return of }
	older := replay.Copies{A: 0, B: 2, Compared: true}
	forked := replay.Copies{A: 0, B: 2, Compared: true, Forked: true}
	for name, c := range map[string]struct {
		copies   []replay.Copies
		at, want []int
	}{
		"none":                 {nil, []int{0, 1, 2}, []int{0, 1, 2}},
		"one":                  {copies(older), []int{0, 1, 2}, []int{1, 2}},
		"the newer is not":     {copies(older), []int{0, 1}, []int{0, 1}},
		"the older is not":     {copies(older), []int{1, 2}, []int{1, 2}},
		"both ran":             {copies(forked), []int{0, 1, 2}, []int{0, 1, 2}},
		"two of the newest":    {copies(older, replay.Copies{A: 1, B: 2, Compared: true}), []int{0, 1, 2}, []int{2}},
		"their order is none":  {copies(replay.Copies{A: 2, B: 0, Compared: true}), []int{2, 1, 0}, []int{2, 1}},
		"they share no record": {copies(replay.Copies{A: 0, B: 2}), []int{0, 2}, []int{0, 2}},
	} {
		in := &Input{Members: Sources{withLog(member("n1"), 20), withLog(member("n2"), 25), withLog(member("n3"), 30)},
			Replay: &replay.Result{Copies: c.copies}}
		for _, m := range in.Members {
			in.Replay.Members = append(in.Replay.Members, &replay.MemberResult{Member: m})
		}
		at := slices.Clone(c.at)
		if got := independent(in, at); !slices.Equal(got, c.want) || !slices.Equal(at, c.at) {
			t.Errorf("%s: %v of %v, want %v", name, got, at, c.want)
		}
	}
}
