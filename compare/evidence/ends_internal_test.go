package evidence

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/ctxtest"
)

// handDir is a data dir with a few entries of each kind; the last ones are above the commit index and write no key.
func handDir(t *testing.T) string {
	t.Helper()
	const a1, b1 = 0xa1, 0xb1
	h := clustertest.NewHand(t, t.TempDir(), "node1", a1, 0xc1)
	h.Found(false, a1)
	h.Put(2, 2, clustertest.RequestID(a1, 1000, 1), "k", "v", true)
	h.Conf(2, 3, clustertest.AddLearner(b1, clustertest.RequestID(a1, 1000, 2)))
	h.State(2, a1, 3)
	h.Request(2, 4, nil)
	h.Request(2, 5, &etcdserverpb.InternalRaftRequest{LeaseGrant: &etcdserverpb.LeaseGrantRequest{ID: 7, TTL: 60}})
	h.Member(a1, false, true)
	h.Member(b1, true, false)
	h.Row("meta", "storageVersion", "3.6.0")
	return h.Close(3, 2)
}

// loadDir loads a data dir. Its digests do not end with ctx.
func loadDir(ctx context.Context, t *testing.T, dir string, o Options) (*Member, error) {
	t.Helper()
	l, err := detect(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	m, err := load(ctx, &Source{Name: "node1", Kind: l.kind, Where: dir, layout: l}, o, newHashing(t.Context()))
	if m != nil {
		t.Cleanup(func() { _ = (&Set{Members: []*Member{m}}).Close() })
	}
	return m, err
}

// TestLoadEndsAnywhere: wherever the caller gives up, a source is not read to its end, and the error is that of the
// context. What is returned never lacks something.
func TestLoadEndsAnywhere(t *testing.T) {
	dir := handDir(t)
	text := func(m *Member) string {
		b, err := json.Marshal(m.Facts())
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s first %+v, idle %v", b, m.WAL.First, m.WAL.Idle)
	}
	ctx := ctxtest.EndingAfter(1 << 40)
	o := Options{List: true, Deep: true, several: true, sources: 2}
	whole, err := loadDir(ctx, t, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if !whole.HasSnap() || !whole.HasDB() || len(whole.Problems) > 0 {
		t.Errorf("snap %t, database %t, problems %+v", whole.HasSnap(), whole.HasDB(), whole.Problems)
	}
	if whole.WAL.First.Index != 2 || whole.WAL.IdleAfter(4) != 5 {
		t.Errorf("the first request is %+v, idle %v", whole.WAL.First, whole.WAL.Idle)
	}
	asked, ended := 1<<40-ctx.Left(), 0
	for n := int64(0); n < asked+2; n += 1 + n/12 {
		m, err := loadDir(ctxtest.EndingAfter(n), t, dir, o)
		switch {
		case errors.Is(err, context.Canceled) && m == nil:
			ended++
		case err != nil:
			t.Errorf("after %d of %d: %v", n, asked, err)
		case text(m) != text(whole):
			t.Errorf("after %d of %d: a member that is not whole: %s", n, asked, text(m))
		}
	}
	if ended < 10 {
		t.Errorf("ended %d times", ended)
	}
	for name, read := range map[string]func(context.Context) error{"first request": whole.WAL.findFirst,
		"idle entries": whole.WAL.findIdle, "database": func(ctx context.Context) error {
			return whole.DB.readDeep(ctx, false)
		}} {
		if err := read(ctxtest.EndingAfter(0)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDigestsEnd: digests that are not taken because the run ends are an error, not unreadable files.
func TestDigestsEnd(t *testing.T) {
	l, err := detect(handDir(t), "")
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	src := &Source{Name: "node1", Kind: l.kind, layout: l}
	if m, err := load(t.Context(), src, Options{Hash: true}, newHashing(ended)); m != nil ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", m, err)
	}
	running, stop := context.WithCancel(t.Context())
	busy := &hashing{ctx: running, slots: make(chan struct{})} // no digest gets a turn
	src = &Source{Name: "node1", Kind: l.kind, layout: l}
	m, err := load(t.Context(), src, Options{Hash: true, HashLater: true}, busy)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	set := &Set{Members: []*Member{m}}
	defer func() { _ = set.Close() }()
	if err := set.Digests(); !errors.Is(err, context.Canceled) || len(m.Problems) > 0 {
		t.Errorf("later: %v, problems %v", err, m.Problems)
	}
}

// TestUnreadableFilesComeFirst: the files that could not be hashed are named once, before all other problems.
func TestUnreadableFilesComeFirst(t *testing.T) {
	m := &Member{Source: &Source{Manifest: &Manifest{}}}
	m.Source.Manifest.unread("member/wal/0.wal", &fs.PathError{Op: "open", Path: "/d/member/wal/0.wal", Err: fs.ErrPermission})
	m.loading().problem("db", "/d/db", os.ErrClosed)
	for range 2 {
		if err := m.loading().digested(); err != nil {
			t.Fatal(err)
		}
	}
	p := m.Problems
	if len(p) != 2 || p[0].Part != "file" || p[0].File != "0.wal" || p[1].Part != "db" {
		t.Fatalf("%+v", p)
	}
	if err := p[0].Err; !errors.Is(err, fs.ErrPermission) || err.Error() != "cannot be read: permission denied" {
		t.Error(err)
	}
}

// TestSnapsLeftOut: if one .snap file was not examined, which one a server uses is unknown, and all are left out. A
// listing still shows the others, and what was received stays known.
func TestSnapsLeftOut(t *testing.T) {
	intact := &dumplog.SnapFile{File: "a.snap", Term: 2, Index: 9}
	closed := &dumplog.SnapFile{File: "b.snap", Damage: &dumplog.DamageError{Err: fs.ErrPermission}}
	for name, c := range map[string]struct {
		files []*dumplog.SnapFile
		left  int
	}{
		"all examined":     {[]*dumplog.SnapFile{intact, {Damage: &dumplog.DamageError{Kind: dumplog.DamageCRC}}}, 2},
		"one not examined": {[]*dumplog.SnapFile{intact, closed, closed}, 0},
	} {
		m := &Member{snapRead: true, Snap: dumplog.SnapDir{Files: c.files, SnapDBs: []dumplog.SnapDB{{}}}}
		m.loading().leaveOutSnaps()
		if len(m.Snap.Files) != c.left || m.HasSnap() != (c.left > 0) || len(m.Snap.SnapDBs) != 1 {
			t.Errorf("%s: %d files, snap %t, received %d", name, len(m.Snap.Files), m.HasSnap(), len(m.Snap.SnapDBs))
		}
		if left := c.left == 0; len(m.Problems) > 1 || left != (len(m.Problems) == 1) || left &&
			(m.Problems[0].Part != "snap" || m.Problems[0].File != "b.snap" ||
				!errors.Is(m.Problems[0].Err, fs.ErrPermission)) {
			t.Errorf("%s: %+v", name, m.Problems)
		}
	}
}

// TestListingOfALargeSnap: a listing shows the .snap files that are there although one is too large to be examined.
func TestListingOfALargeSnap(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "0000000000000002-0000000000000009.snap")
	if err := errors.Join(os.WriteFile(large, nil, 0o600), os.Truncate(large, dumplog.MaxSnapFile+1)); err != nil {
		t.Fatal(err)
	}
	for _, listing := range []bool{false, true} {
		m := &Member{}
		m.loading().snaps(layout{snap: dir}, Options{Listing: listing})
		if m.HasSnap() != listing || len(m.Problems) == 0 != listing || listing && len(m.Snap.Files) != 1 {
			t.Errorf("listing %t: %d files, %+v", listing, len(m.Snap.Files), m.Problems)
		}
	}
}

// TestLogThatIsNotRead: a log that cannot be read is a problem of the source, and the rest is read. Of a segment that
// this process may not read nothing is concluded.
func TestLogThatIsNotRead(t *testing.T) {
	if err := notAllowed(&dumplog.Summary{Damage: []*dumplog.DamageError{{Err: fs.ErrNotExist}}}); err != nil {
		t.Error(err)
	}
	closed := &dumplog.DamageError{Pos: dumplog.Pos{Segment: "1.wal"}, Err: fs.ErrPermission}
	err := notAllowed(&dumplog.Summary{Damage: []*dumplog.DamageError{{}, closed}})
	if !errors.Is(err, fs.ErrPermission) || !strings.HasPrefix(err.Error(), "1.wal: ") {
		t.Errorf("%v", err)
	}
	m := &Member{}
	dir := filepath.Join(t.TempDir(), "none")
	if err := m.loading().wal(t.Context(), dir, Options{}); err != nil || m.HasWAL() || len(m.Problems) != 1 ||
		m.Problems[0].Part != "wal" || m.Problems[0].File != "none" {
		t.Errorf("no folder: %v, %+v", err, m.Problems)
	}
}

// TestDatabaseThatDoesNotOpen: a file that is not there is a problem of its source; damage is kept with it. A backup
// that contradicts how every database begins and has no page of one is a file of another kind.
func TestDatabaseThatDoesNotOpen(t *testing.T) {
	noise := bytes.Repeat([]byte("noise"), 4000)
	head := slices.Clone(noise)
	copy(head[16:], []byte{0xED, 0xDA, 0x0C, 0xED})
	for name, c := range map[string]struct {
		content []byte
		kind    Kind
		foreign bool
	}{
		"not there":             {nil, KindBackup, false},
		"noise":                 {noise, KindBackup, true},
		"noise in a data dir":   {noise, KindDataDir, false},
		"of a meta page":        {noise[:80], KindBackup, true},
		"less than that":        {noise[:79], KindBackup, true},
		"a few bytes":           {noise[:5], KindBackup, true},
		"nothing":               {[]byte{}, KindBackup, false},
		"the first zeros":       {make([]byte, 8), KindBackup, false},
		"only zeros":            {make([]byte, 17), KindBackup, true},
		"the first page's type": {[]byte(boltHead[:17]), KindBackup, false},
		"cut after the magic":   {head[:20], KindBackup, false},
		"with its magic number": {head, KindBackup, false},
	} {
		m := &Member{Source: &Source{Kind: c.kind}}
		path := filepath.Join(t.TempDir(), "b.db")
		if c.content != nil {
			if err := os.WriteFile(path, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := m.loading().database(t.Context(), t.Context(), path, Options{Deep: true})
		if err != nil || m.HasDB() || len(m.Problems) != 1 || m.Problems[0].Part != "db" ||
			m.Problems[0].File != "b.db" || (m.DB != nil) != (c.content != nil) {
			t.Errorf("%s: %v, %+v", name, err, m)
			continue
		}
		if d := m.DB; d != nil && (d.Foreign != c.foreign || len(d.Damage) != 1 || !d.KVDamaged ||
			d.Size != int64(len(c.content))) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// TestManyConfChanges: a log with more conf changes than are examined is left out. A listing shows its entries anyway,
// and where the changes are.
func TestManyConfChanges(t *testing.T) {
	h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
	h.Found(false, 0xa1)
	for index := uint64(2); index < 400; index++ {
		h.Conf(2, index, clustertest.AddLearner(index, clustertest.RequestID(0xa1, 1000, index)))
	}
	h.State(2, 0xa1, 399)
	dir := h.Close(399, 2)
	many := new(TooManyConfChangesError)
	m, err := loadDir(t.Context(), t, dir, Options{sources: 1 << 30})
	if err != nil || m.HasWAL() || len(m.Problems) != 1 || !errors.As(m.Problems[0].Err, &many) ||
		many.Changes != 399 || m.Problems[0].Part != "wal" {
		t.Fatalf("%v, %+v", err, m)
	}
	seen := uint64(0)
	m, err = loadDir(t.Context(), t, dir, Options{sources: 1 << 30, Listing: true,
		Visit: func(int) func(*dumplog.Entry) { return func(e *dumplog.Entry) { seen = max(seen, e.Index) } }})
	if err != nil || !m.HasWAL() || len(m.Problems) > 0 || seen != 399 {
		t.Fatalf("a listing: %v, entries up to %d, %+v", err, seen, m)
	}
	i := slices.IndexFunc(m.WAL.Summary.Damage, func(d *dumplog.DamageError) bool { return errors.As(d.Err, &many) })
	if i < 0 || m.WAL.Summary.Damage[i].Kind != dumplog.DamageMarks || m.WAL.Summary.Damage[i].Pos != many.Places[0] {
		t.Errorf("damage %v", m.WAL.Summary.Damage)
	}
	if m, err = loadDir(t.Context(), t, dir, Options{sources: 1}); err != nil || len(m.WAL.Conf) != 399 {
		t.Errorf("alone: %v", err)
	}
}

// TestCollectedCopy: a data dir is a copy of a running member as long as its log ends where collect says.
func TestCollectedCopy(t *testing.T) {
	dir := handDir(t)
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"the copy":        {`{"memberID":"a1","clusterID":"c1","lastIndex":5}`, true},
		"a server ran":    {`{"memberID":"a1","clusterID":"c1","lastIndex":4}`, false},
		"another member":  {`{"memberID":"a2","clusterID":"c1","lastIndex":5}`, false},
		"another cluster": {`{"memberID":"a1","clusterID":"c2","lastIndex":5}`, false},
		"no JSON":         {`{"memberID":"a1","clusterID":"c1","lastIndex":5`, false},
	} {
		if err := os.WriteFile(filepath.Join(dir, CollectedName), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := loadDir(t.Context(), t, dir, Options{})
		if err != nil || m.Source.Collected != c.want {
			t.Errorf("%s: %v, collected %t", name, err, m.Source.Collected)
		}
	}
}

// TestShownUpdates: an update of peer URLs is known to be applied if the row has the new ones, and the log gave the
// member others before.
func TestShownUpdates(t *testing.T) {
	before, after := []string{"http://a"}, []string{"http://b"}
	for name, c := range map[string]struct {
		before, row []string
		want        bool
	}{
		"the row has the new ones":  {before, after, true},
		"the row has the old ones":  {before, before, false},
		"nothing was known before":  {nil, after, false},
		"the update changes none":   {after, after, false},
		"the row has neither":       {before, []string{"http://c"}, false},
		"nothing before, old there": {nil, before, false},
	} {
		m := logged(1, 7, 10, 5)
		m.DB.Members = append(m.DB.Members, dumpdb.Member{ID: 2, PeerURLs: c.row})
		m.WAL.Summary.HardState = &dumplog.HardState{Commit: 5}
		m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: 4,
			ConfState: &dumplog.ConfState{Voters: []dumplog.ID{1, 2}}}}
		m.WAL.Conf = []ConfEntry{{Index: 7, Change: dumplog.ConfChange{Type: dumplog.ConfChangeUpdateNode, ID: 9,
			NodeID: 2, Member: &dumplog.MemberContext{ID: 2, PeerURLs: after}}}}
		if c.before != nil {
			m.WAL.Conf = append([]ConfEntry{{Index: 3, Change: dumplog.ConfChange{
				Type: dumplog.ConfChangeAddNode, ID: 8, NodeID: 2,
				Member: &dumplog.MemberContext{ID: 2, PeerURLs: c.before}}}}, m.WAL.Conf...)
		}
		m.membershipLoading().load()
		if (m.confApplied == 7) != c.want || m.confApplied != 0 && m.confApplied != 7 {
			t.Errorf("%s: applied up to %d", name, m.confApplied)
		}
	}
	m := logged(1, 7, 10, 5)
	m.DB = nil
	m.WAL.Conf = removal(7)
	if m.membershipLoading().load(); m.confApplied != 0 {
		t.Errorf("without a database: applied up to %d", m.confApplied)
	}
}

// TestRemovalsAbove: a row in members_removed of a member that the log removes above the consistent index.
func TestRemovalsAbove(t *testing.T) {
	for name, c := range map[string]struct {
		removed, commit, snapshot uint64
		voters                    []dumplog.ID
		row, want                 bool
	}{
		"removed above":            {7, 9, 4, []dumplog.ID{1, 9}, true, true},
		"removed at the index":     {5, 9, 4, []dumplog.ID{1, 9}, true, false},
		"no row":                   {7, 9, 4, []dumplog.ID{1, 9}, false, false},
		"a snapshot above the row": {7, 9, 8, []dumplog.ID{1}, true, false},
		"not a member before":      {7, 9, 4, []dumplog.ID{1}, true, false},
		"above the stored commit":  {7, 5, 4, []dumplog.ID{1, 9}, true, true},
	} {
		m := logged(1, 7, 10, 5)
		if c.row {
			m.DB.Removed = []dumpdb.ID{9}
		}
		m.WAL.Summary.HardState = &dumplog.HardState{Commit: c.commit}
		m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: c.snapshot,
			ConfState: &dumplog.ConfState{Voters: c.voters}}}
		m.WAL.Conf = removal(c.removed)
		for range 2 {
			if m.membershipLoading().load(); (len(m.RemovalsAbove) == 1) != c.want {
				t.Errorf("%s: %+v", name, m.RemovalsAbove)
			}
		}
	}
}

// TestAppliedBeyond: what a database holds above its consistent index is committed and may be applied, until the note
// is taken back.
func TestAppliedBeyond(t *testing.T) {
	m := logged(1, 7, 30, 8)
	m.Version = Version{Minor: 6, Text: "3.6.x"}
	m.loading().applied()
	for _, c := range []struct{ beyond, want, commit uint64 }{{0, 8, 8}, {12, 12, 12}, {5, 8, 8}, {0, 8, 8}} {
		if m.AppliedBeyond(c.beyond); m.AppliedMin != 8 || m.AppliedMax != c.want || m.Commit != c.commit {
			t.Errorf("beyond %d: applied %d to %d, commit %d", c.beyond, m.AppliedMin, m.AppliedMax, m.Commit)
		}
	}
}

// TestAppliedInAPartedLog: what a log holds from the first entry on that others committed otherwise was never applied.
func TestAppliedInAPartedLog(t *testing.T) {
	for name, c := range map[string]struct{ others, idle, want uint64 }{"others committed less": {8, 0, 10},
		"others committed more": {25, 0, 25}, "more than its log": {50, 0, 30}, "idle entries": {8, 28, 28},
		"idle, and less than others": {29, 28, 29}} {
		m := logged(1, 7, 30, 8)
		m.Version = Version{Minor: 4, Text: "3.4.x"}
		m.WAL.Summary.HardState = &dumplog.HardState{Commit: 10}
		m.othersCommit, m.WAL.Idle = c.others, []IndexRange{{11, c.idle}}
		if m.loading().applied(); m.AppliedMax != c.want {
			t.Errorf("%s: applied up to %d, want %d", name, m.AppliedMax, c.want)
		}
	}
	for parted, want := range map[uint64]uint64{0: 25, 40: 25, 26: 25, 25: 24, 15: 14, 11: 10} {
		m := logged(1, 7, 30, 8)
		m.Version = Version{Minor: 4, Text: "3.4.x"}
		m.WAL.Summary.HardState = &dumplog.HardState{Commit: 10}
		m.othersCommit, m.parted = 25, parted
		if m.loading().applied(); m.AppliedMax != want || m.AppliedMin != 8 || m.Commit != 10 {
			t.Errorf("parted at %d: applied %d to %d, committed %d; want %d", parted, m.AppliedMin, m.AppliedMax,
				m.Commit,
				want)
		}
	}
}

// TestRowsThatDoNotDecode: a record of bucket key that does not decode leaves no hash to compare, nor does an index. A
// lease that does not is damage, and does not matter for that.
func TestRowsThatDoNotDecode(t *testing.T) {
	for name, c := range map[string]struct {
		bucket, key   string
		hash, damaged bool
	}{
		"a record": {"key", "\x00\x00\x00\x00\x00\x00\x00\x02_\x00\x00\x00\x00\x00\x00\x00\x00", false, false},
		"a lease":  {"lease", "\x00\x00\x00\x00\x00\x00\x00\x07", true, true},
		"an index": {"meta", "consistent_index", false, true},
		"none":     {"", "", true, false},
	} {
		dir := handDir(t)
		if c.bucket != "" {
			clustertest.EditDB(func(tx *bbolt.Tx) error {
				b, err := tx.CreateBucketIfNotExists([]byte(c.bucket))
				if err != nil {
					return err
				}
				return b.Put([]byte(c.key), []byte{0xff})
			})(t, filepath.Join(dir, "member"))
		}
		m, err := loadDir(t.Context(), t, dir, Options{Deep: true})
		if err != nil || m.DB.KVDamaged || (m.DB.HashKV != nil) != c.hash || (len(m.DB.Damage) > 0) != c.damaged {
			t.Errorf("%s: %v, damaged %t, hash %v, %v", name, err, m.DB.KVDamaged, m.DB.HashKV, m.DB.Damage)
		}
	}
}

// TestEndUnread: only damage that reaches to the end of bucket key may hide its newest records.
func TestEndUnread(t *testing.T) {
	key := func(main byte) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, main, '_', 0, 0, 0, 0, 0, 0, 0, 0} }
	for name, c := range map[string]struct {
		damage dumpdb.DamageError
		want   bool
	}{
		"in the middle":        {dumpdb.DamageError{Bucket: "key", FirstKey: key(3), LastKey: key(7)}, false},
		"at the end":           {dumpdb.DamageError{Bucket: "key", FirstKey: key(3)}, true},
		"of the whole bucket":  {dumpdb.DamageError{Bucket: "key"}, true},
		"of an unknown bucket": {dumpdb.DamageError{}, true},
		"of another bucket":    {dumpdb.DamageError{Bucket: "lease"}, false},
	} {
		d := &DB{Damage: []*dumpdb.DamageError{&c.damage}}
		if got := d.endUnread(); got != c.want {
			t.Errorf("damage %s: %v", name, got)
		}
	}
	revision := int64(250)
	for _, c := range []struct {
		db   DBFacts
		want string
	}{{DBFacts{}, "-"}, {DBFacts{CurrentRevision: &revision}, "250"},
		{DBFacts{CurrentRevision: &revision, Partial: true}, "250"},
		{DBFacts{CurrentRevision: &revision, Partial: true, EndUnread: true}, "250?"}} {
		if got := c.db.RevisionText(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.db, got, c.want)
		}
	}
}
