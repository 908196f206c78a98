package confirm

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// TestTranslate: requests of the v2 API become v3 requests where the server does not know them, and requests for user
// keys become empty entries everywhere. All other entries stay as they are.
func TestTranslate(t *testing.T) {
	v2 := func(path, value string) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindV2,
			V2: &dumplog.V2Request{ID: 9, Method: "PUT", Path: path, Val: value}}
	}
	attr := v2("/0/members/7/attributes", `{"name":"n","clientURLs":["c"]}`)
	const same, empty, changed = "same", "empty", "changed"
	for name, c := range map[string]struct {
		r     *dumplog.Request
		minor int
		want  string
	}{
		"a put":                  {put, 6, same},
		"not decoded":            {nil, 6, same},
		"v2 without a request":   {&dumplog.Request{Kind: dumplog.KindV2}, 6, same},
		"another kind":           {&dumplog.Request{Kind: dumplog.KindPut, V2: attr.V2}, 7, same},
		"a user key":             {v2("/1/x", "v"), 5, empty},
		"a user key, 3.6":        {v2("/1/x", "v"), 6, empty},
		"attributes, 3.5":        {attr, 5, same},
		"attributes, 3.6":        {attr, 6, same},
		"attributes, 3.7":        {attr, 7, changed},
		"a cluster version, 3.4": {v2("/0/version", "3.4.0"), 4, same},
		"a cluster version, 3.6": {v2("/0/version", "3.4.0"), 6, same},
		"a cluster version, 3.7": {v2("/0/version", "3.4.0"), 7, changed},
	} {
		e := entry(8, 3, c.r)
		got, err := translate(&e, c.minor)
		if err != nil || got.Index != 8 || got.Term != 3 || got.Type != e.Type {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		is := changed
		switch {
		case len(got.Data) == 0:
			is = empty
		case slices.Equal(got.Data, e.Data):
			is = same
		}
		if is != c.want {
			t.Errorf("%s: %s, want %s", name, is, c.want)
		}
		if c.want != changed {
			continue
		}
		var r etcdserverpb.InternalRaftRequest
		if err := r.Unmarshal(got.Data); err != nil || r.Header.ID != 9 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		set, version := r.ClusterMemberAttrSet, r.ClusterVersionSet
		if is := set != nil; is != (c.r == attr) || is && (set.Member_ID != 7 || set.MemberAttributes.Name != "n" ||
			!slices.Equal(set.MemberAttributes.ClientUrls, []string{"c"})) {
			t.Errorf("%s: attributes %+v", name, set)
		}
		if is := version != nil; is != (c.r != attr) || is && version.Ver != "3.4.0" {
			t.Errorf("%s: version %+v", name, version)
		}
	}
}

// TestFeed: entries come once and in order, up to an index and at most so many, or so many bytes, at a time. A log that
// does not give the next entry a second time is an error.
func TestFeed(t *testing.T) {
	large := func(index uint64) replay.Entry {
		e := entry(index, 1, put)
		e.Data = make([]byte, maxBytes/2)
		return e
	}
	for name, c := range map[string]struct {
		log  []replay.Entry
		most int
		to   []uint64
		want [][2]uint64 // the first and the last entry of each part
		says string
	}{
		"after the base": {[]replay.Entry{entry(4, 1, put), entry(5, 1, put), entry(6, 1, put), entry(7, 1, put)}, 9,
			[]uint64{6, 7}, [][2]uint64{{6, 6}, {7, 7}}, ""},
		"all": {[]replay.Entry{entry(6, 1, put), entry(7, 1, put), entry(8, 1, put)}, 3, []uint64{8},
			[][2]uint64{{6, 8}}, ""},
		"in parts": {[]replay.Entry{entry(6, 1, put), entry(7, 1, put), entry(8, 1, put)}, 2, []uint64{8, 8},
			[][2]uint64{{6, 7}, {8, 8}}, ""},
		"an entry again": {[]replay.Entry{entry(6, 1, put), entry(6, 1, put), entry(7, 1, put)}, 9, []uint64{7},
			[][2]uint64{{6, 7}}, ""},
		"large ones": {[]replay.Entry{large(6), large(7), large(8)}, 9, []uint64{8, 8},
			[][2]uint64{{6, 7}, {8, 8}}, ""},
		"a gap": {[]replay.Entry{entry(6, 1, put), entry(8, 1, put)}, 9, []uint64{8}, nil,
			"does not give entry 7 a second time"},
		"an end": {[]replay.Entry{entry(6, 1, put)}, 9, []uint64{7}, nil, "does not give entry 7 a second time"},
	} {
		at := 0
		f := &feed{most: c.most, minor: 6, at: 5, next: func() (replay.Entry, error, bool) {
			if at++; at > len(c.log) {
				return replay.Entry{}, nil, false
			}
			return c.log[at-1], nil, true
		}}
		var got [][2]uint64
		var err error
		for _, to := range c.to {
			var part []datadir.Entry
			if part, err = f.take(to); err != nil {
				break
			}
			got = append(got, [2]uint64{part[0].Index, part[len(part)-1].Index})
		}
		if !slices.Equal(got, c.want) || (err == nil) != (c.says == "") || err != nil &&
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	f := &feed{most: 9,
		next: func() (replay.Entry, error, bool) { return replay.Entry{}, errors.New("unreadable"), true }}
	if _, err := f.take(1); err == nil || err.Error() != "unreadable" {
		t.Error(err)
	}
}

// TestReplaySays: what the replay says of a database is that it differs if it finds anything wrong, and nothing if it
// did not check it.
func TestReplaySays(t *testing.T) {
	counts := func(s replay.State) (m replay.MemberResult) {
		m.Counts[s] = 1
		return m
	}
	for name, c := range map[string]struct {
		m    replay.MemberResult
		want string
	}{
		"sound":         {replay.MemberResult{}, compare.ReplayAgrees},
		"applied":       {counts(replay.Applied), compare.ReplayAgrees},
		"not applied":   {counts(replay.NotApplied), compare.ReplayAgrees},
		"missing":       {counts(replay.Missing), compare.ReplayDiffers},
		"contradicted":  {counts(replay.Contradicted), compare.ReplayDiffers},
		"applied twice": {counts(replay.AppliedTwice), compare.ReplayDiffers},
		"extra":         {replay.MemberResult{Extra: []int64{5}}, compare.ReplayDiffers},
		"a row":         {replay.MemberResult{StateDiffs: []replay.StateDiff{{}}}, compare.ReplayDiffers},
		"a jump":        {replay.MemberResult{Jumps: []replay.Jump{{}}}, compare.ReplayDiffers},
		"too high":      {replay.MemberResult{Unexplained: 1}, compare.ReplayDiffers},
		"too low":       {replay.MemberResult{Unexplained: -1}, compare.ReplayDiffers},
	} {
		m := c.m
		if got := replaySays(&replay.Result{Members: []*replay.MemberResult{&m}}, 0); got != "" {
			t.Errorf("%s, not checked: %s", name, got)
		}
		m.Checked = true
		rp := &replay.Result{Members: []*replay.MemberResult{&m}}
		if got := replaySays(rp, 0); got != c.want || replaySays(rp, 1) != "" || replaySays(nil, 0) != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestSmallBucketsAtTheEnd: a source up to 3.4 may have applied more than its index says. A row counts only if it
// differs from the states at both ends of that range, and only if one entry of it changes the bucket.
func TestSmallBucketsAtTheEnd(t *testing.T) {
	state := func(revision uint64) *smallState { return &smallState{auth: dumpdb.Auth{Revision: revision}} }
	for name, c := range map[string]struct {
		early, late uint64
		touched     []uint64
		total       int
		left        string
	}{
		"neither, one entry": {2, 3, []uint64{7}, 1, ""},
		"neither, no entry":  {2, 3, []uint64{5, 9}, 1, ""},
		"neither, two entries": {2, 3, []uint64{6, 8}, 0, "auth: 1 rows differ; several entries from 6 to 8 " +
			"change it, and which of them the database holds is not known"},
		"as at the start": {9, 3, []uint64{7}, 0, ""},
		"as at the end":   {2, 9, []uint64{7}, 0, ""},
	} {
		m := &evidence.Member{DB: &evidence.DB{Auth: dumpdb.Auth{Revision: 9}}}
		r := &run{plan: &Plan{sv: &survey{touched: map[string][]uint64{"auth": c.touched}},
			Targets: []Target{{Member: m, Index: 5, Late: 8}}, Minor: 4},
			seen: []*contents{{}}, late: map[int]*smallState{0: state(c.early)}}
		r.lateSmall(0, state(c.late))
		if got := r.seen[0]; got.total != c.total || got.small["auth"] != c.total ||
			strings.Join(got.leftOut, "\n") != c.left {
			t.Errorf("%s: %+v", name, got)
		}
	}
	none := &run{plan: &Plan{Targets: []Target{{}, {}}}, seen: []*contents{nil, {}},
		late: map[int]*smallState{0: state(2)}}
	none.lateSmall(0, state(3)) // not compared, or not up to 3.4
	none.lateSmall(1, state(3))
	if none.seen[1].total != 0 {
		t.Errorf("%+v", none.seen[1])
	}
}

// TestReasonOfAll: members without a reason of their own get the common one. It is that of the whole run if no member
// has a status.
func TestReasonOfAll(t *testing.T) {
	one := func(s compare.ConfirmStatus, reason string) compare.ConfirmedMember {
		return compare.ConfirmedMember{Status: s, Reason: reason}
	}
	type of = []compare.ConfirmedMember
	for name, c := range map[string]struct {
		members of
		want    string
		common  string
	}{
		"none":      {of{one(compare.NotPossible, ""), one(compare.NotPossible, "")}, "why why", "why"},
		"one has":   {of{one(compare.NotPossible, "own"), one(compare.NotPossible, "")}, "own why", "why"},
		"confirmed": {of{one(compare.Confirmed, "own"), one(compare.NotPossible, "")}, "own why", ""},
		"refuted":   {of{one(compare.NotPossible, ""), one(compare.Refuted, "own")}, "why own", ""},
	} {
		r := &run{res: &compare.Confirmation{Members: c.members}}
		r.impossible("why")
		if got := r.res.Members[0].Reason + " " + r.res.Members[1].Reason; got != c.want || r.res.Reason != c.common {
			t.Errorf("%s: %q, in common %q", name, got, r.res.Reason)
		}
	}
}

// TestScratchSpace: the scratch must hold the largest data dir and its copy, and what the log adds.
func TestScratchSpace(t *testing.T) {
	small, big := based(t, 3, 0, 1), database(t, func() (rows []rec) {
		for i := range int64(2000) {
			rows = append(rows, rec{i + 2, "key", strings.Repeat("v", 50)})
		}
		return rows
	}()...)
	if big.Size() <= small.Size() {
		t.Fatalf("%d and %d bytes", big.Size(), small.Size())
	}
	with := func(db *dumpdb.DB) Target {
		return Target{Member: &evidence.Member{DB: &evidence.DB{Handle: db}}}
	}
	logOnly := Target{Member: &evidence.Member{}}
	for name, c := range map[string]struct {
		base    *dumpdb.DB
		targets []Target
		want    int64
	}{
		"no database":          {nil, []Target{logOnly}, 0},
		"a new cluster":        {nil, []Target{with(small), with(big), logOnly}, 2 * big.Size()},
		"in any order":         {nil, []Target{with(big), with(small)}, 2 * big.Size()},
		"a larger base":        {big, []Target{with(small)}, 2 * big.Size()},
		"a smaller base":       {small, []Target{with(big)}, 2 * big.Size()},
		"a base and a log":     {small, []Target{logOnly}, 2 * small.Size()},
		"a source of its size": {nil, []Target{with(small)}, 2 * small.Size()},
	} {
		r := &run{plan: &Plan{Base: &Base{db: c.base}, Targets: c.targets, sv: &survey{bytes: 1000}}}
		if got := r.size(); got != c.want+3000+128<<20 {
			t.Errorf("%s: %d, want %d and what the log adds", name, got, c.want)
		}
	}
}

// TestProgress: the server has executed everything once its database has the marker; its index may lag.
func TestProgress(t *testing.T) {
	for name, c := range map[string]struct {
		index uint64
		id    uint64
		done  bool
	}{
		"nothing":        {0, 0, false},
		"an index":       {7, 0, false},
		"another member": {7, selfID, false},
		"the marker":     {7, markerID, true},
		"without index":  {0, markerID, true},
	} {
		path := filepath.Join(t.TempDir(), "db")
		b, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = b.Update(func(tx *bbolt.Tx) error {
			meta, err1 := tx.CreateBucket([]byte("meta"))
			members, err2 := tx.CreateBucket([]byte("members"))
			_, err3 := tx.CreateBucket([]byte("key"))
			if err := errors.Join(err1, err2, err3); err != nil {
				return err
			}
			if c.index > 0 {
				err1 = meta.Put([]byte("consistent_index"), binary.BigEndian.AppendUint64(nil, c.index))
			}
			m := datadir.Member{ID: c.id, PeerURLs: []string{markerURL}}
			row, err2 := m.JSON()
			if c.id > 0 {
				err3 = members.Put([]byte(dumplog.ID(c.id).String()), row)
			}
			return errors.Join(err1, err2, err3)
		})
		if err := errors.Join(err, b.Close()); err != nil {
			t.Fatal(err)
		}
		if index, done := progress(path); index != c.index || done != c.done {
			t.Errorf("%s: at %d, done %v", name, index, done)
		}
	}
	if index, done := progress(filepath.Join(t.TempDir(), "none")); index != 0 || done {
		t.Errorf("no database: at %d, done %v", index, done)
	}
}

// TestMembersOfTheScratchCluster: the members that exist only there are in no result.
func TestMembersOfTheScratchCluster(t *testing.T) {
	var list []datadir.Member
	for _, id := range []uint64{7, selfID, absentID, markerID, 8} {
		list = append(list, datadir.Member{ID: id})
	}
	if got := realMembers(list); len(got) != 2 || got[0].ID != 7 || got[1].ID != 8 {
		t.Errorf("%+v", got)
	}
	if firstOf(nil) != "its log does not say why" || firstOf([]string{"a", "b"}) != "a" {
		t.Errorf("%q, %q", firstOf(nil), firstOf([]string{"a", "b"}))
	}
	e, err := marker(7, 3)
	if err != nil || e.Index != 8 || e.Term != 3 || e.Type != dumplog.EntryConfChange {
		t.Errorf("marker %+v, %v", e, err)
	}
	var no *refusal.Error
	if errors.As(error(&errServer{"x"}), &no) || (&errServer{"x"}).Error() != "x" {
		t.Error("a server that fails is no refusal, and says why")
	}
}
