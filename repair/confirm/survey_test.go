package confirm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/node"
)

// surveyed is the survey of entries, given by index, term and request; an entry without a request cannot be decoded.
func surveyed(entries ...replay.Entry) *survey {
	s := &survey{plain: map[string]bool{}, touched: map[string][]uint64{}}
	for i := range entries {
		s.add(&entries[i])
	}
	return s
}

func entry(index, term uint64, r *dumplog.Request) replay.Entry {
	e := replay.Entry{Entry: &dumplog.Entry{Index: index, Term: term, Data: []byte{1, 2}}, Req: r}
	if r == nil {
		e.Err = errors.New("senseless")
	}
	return e
}

var put = &dumplog.Request{Kind: dumplog.KindPut, Put: &dumplog.PutRequest{Key: []byte("k")}}

// TestSurvey: what a pass over the logs finds, and what it says about spans of them.
func TestSurvey(t *testing.T) {
	user := func(name, password, hash string, kind dumplog.Kind) *dumplog.Request {
		return &dumplog.Request{Kind: kind,
			Auth: &dumplog.AuthRequest{User: name, Password: password, HashedPassword: hash}}
	}
	version := func(v string) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindClusterVersionSet, ClusterVer: &dumplog.ClusterVersionSet{Version: v}}
	}
	v2 := func(path, value string) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindV2, V2: &dumplog.V2Request{Method: "PUT", Path: path, Val: value}}
	}
	founder := &dumplog.Request{Kind: dumplog.KindConfChange, ConfChange: &dumplog.ConfChange{NodeID: 7,
		Member: &dumplog.MemberContext{ID: 7, PeerURLs: []string{"http://a"}}}}
	s := surveyed(entry(1, 1, founder), entry(2, 2, put), entry(3, 2, nil), entry(5, 2, version("3.5.0")),
		entry(6, 4, version("3.5.0")), entry(7, 4, v2("/0/version", "3.4.0")), entry(8, 4, v2("/1/x", "v")),
		entry(9, 4, v2("/0/members/7/attributes", `{"name":"n"}`)),
		entry(10, 4, user("plain", "p", "", dumplog.KindAuthUserAdd)),
		entry(11, 4, user("hashed", "p", "h", dumplog.KindAuthUserAdd)),
		entry(12, 4, user("none", "", "", dumplog.KindAuthUserAdd)),
		entry(13, 4, user("login", "p", "", dumplog.KindAuthenticate)),
		entry(14, 4, &dumplog.Request{Kind: dumplog.KindUnknown}),
		entry(15, 4, &dumplog.Request{Kind: dumplog.KindConfChange, ConfChangeV2: &dumplog.ConfChangeV2{}}))
	if d := cmp.Diff([]span{{1, 3}, {5, 15}}, s.spans, cmp.AllowUnexported(span{})); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]termStart{{1, 1}, {2, 2}, {6, 4}}, s.terms, cmp.AllowUnexported(termStart{})); d != "" {
		t.Error(d)
	}
	if !slices.Equal(s.minors, []int{5, 4}) || s.v2 != 1 || s.bytes != 28 || len(s.plain) != 1 || !s.plain["plain"] ||
		!slices.Equal(s.urls, []string{"http://a"}) || s.founder == nil || s.founder.NodeID != 7 || s.last() != 15 {
		t.Errorf("%+v", s)
	}
	for index, want := range map[uint64]uint64{0: 3, 2: 3, 3: 3, 4: 15, 5: 15, 14: 15, 15: 15, 16: 16} {
		if got := s.reach(index); got != want {
			t.Errorf("after entry %d up to %d, want %d", index, got, want)
		}
	}
	for index, want := range map[uint64]uint64{0: 0, 1: 1, 2: 2, 3: 2, 4: 0, 5: 2, 6: 4, 15: 4, 16: 0} {
		if got := s.termAt(index); got != want {
			t.Errorf("term %d of entry %d, want %d", got, index, want)
		}
	}
	for between, want := range map[[2]uint64]string{{0, 2}: "", {2, 3}: "entry 3: it cannot be decoded: senseless",
		{3, 13}: "", {3, 14}: "entry 14: it holds a request that no known release has",
		{14, 15}: "entry 15: it is a ConfChangeV2", {15, 20}: ""} {
		if got := s.brokenBetween(between[0], between[1]); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%v: %q", between, got)
		}
	}
	for between, want := range map[[2]uint64]int{{0, 9}: 0, {9, 10}: 1, {10, 12}: 2, {9, 12}: 3, {12, 20}: 0} {
		if got := s.touches("authUsers", between[0], between[1]); got != want {
			t.Errorf("%v: %d entries change users, want %d", between, got, want)
		}
	}
}

// TestNewCluster: only the first entry of a cluster that began empty tells with what it began.
func TestNewCluster(t *testing.T) {
	conf := func(change func(*dumplog.ConfChange)) *dumplog.Request {
		c := &dumplog.ConfChange{NodeID: 7, Member: &dumplog.MemberContext{ID: 7, Name: "n", PeerURLs: []string{"p"},
			ClientURLs: []string{"c"}}}
		change(c)
		return &dumplog.Request{Kind: dumplog.KindConfChange, ConfChange: c}
	}
	same := func(*dumplog.ConfChange) {}
	const no = "entry 1 does not add the first member"
	for name, c := range map[string]struct {
		first replay.Entry
		start dumplog.StartKind
		why   string
	}{
		"new":         {first: entry(1, 3, conf(same))},
		"not entry 1": {entry(2, 3, conf(same)), "", "none"},
		"restored":    {entry(1, 3, conf(same)), dumplog.StartRestore, "begins with a restore"},
		"a put":       {entry(1, 3, put), "", no},
		"a removal":   {entry(1, 3, conf(func(c *dumplog.ConfChange) { c.Type = dumplog.ConfChangeRemoveNode })), "", no},
		"no context":  {entry(1, 3, conf(func(c *dumplog.ConfChange) { c.Member = nil })), "", no},
		"another ID":  {entry(1, 3, conf(func(c *dumplog.ConfChange) { c.Member.ID = 8 })), "", no},
		"no URL":      {entry(1, 3, conf(func(c *dumplog.ConfChange) { c.Member.PeerURLs = nil })), "", no},
	} {
		m := &evidence.Member{WAL: evidence.WAL{Log: &dumplog.Log{}, Summary: dumplog.Summary{Start: c.start}}}
		b, why := newCluster([]*evidence.Member{m}, surveyed(c.first))
		switch {
		case c.why == "":
			if b == nil || why != "" || b.Kind != NewCluster || b.Owner != -1 || b.Index != 1 || b.Term != 3 ||
				b.Revision != 1 || len(b.Members) != 1 || fmt.Sprintf("%+v", b.Members[0]) !=
				"{ID:7 Name:n PeerURLs:[p] ClientURLs:[c] IsLearner:false}" {
				t.Errorf("%s: %+v, %s", name, b, why)
			}
		case b != nil || (why == "") != (c.why == "none") || why != "" && !strings.Contains(why, c.why):
			t.Errorf("%s: %+v, %q", name, b, why)
		}
	}
}

// based is a database with rows of bucket meta, and a member unless it should have none.
func based(t *testing.T, index, term uint64, members int) *dumpdb.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	b, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = b.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{"key", "meta", "members", "members_removed", "cluster"} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		for i := range members {
			row := fmt.Appendf(nil, `{"id":%d,"peerURLs":["p%d"],"name":"n","isLearner":%v}`, i+1, i+1, i > 0)
			if err := tx.Bucket([]byte("members")).Put(fmt.Append(nil, i+1), row); err != nil {
				return err
			}
		}
		for name, n := range map[string]uint64{"consistent_index": index, "term": term} {
			if n == 0 {
				continue
			}
			if err := tx.Bucket([]byte("meta")).Put([]byte(name), binary.BigEndian.AppendUint64(nil, n)); err != nil {
				return err
			}
		}
		return errors.Join(tx.Bucket([]byte("members_removed")).Put([]byte("1f"), []byte("removed")),
			tx.Bucket([]byte("cluster")).Put([]byte("clusterVersion"), []byte("3.5.0")))
	})
	if err := errors.Join(err, b.Close()); err != nil {
		t.Fatal(err)
	}
	db, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// TestDatabaseAsBase: a database is a base if the log continues from it. Its term is the log's, else its own as far as
// the next entry allows.
func TestDatabaseAsBase(t *testing.T) {
	sv := surveyed(entry(5, 4, put), entry(6, 4, put), entry(7, 6, put))
	for _, c := range []struct {
		index, own uint64
		members    int
		term       uint64
		why        string
	}{
		{6, 4, 2, 4, ""}, {6, 0, 2, 4, ""}, {5, 4, 1, 4, ""},
		{4, 3, 2, 3, ""}, {4, 4, 2, 4, ""}, {4, 5, 2, 4, ""}, {4, 0, 2, 4, ""},
		{6, 5, 2, 0, "they are of different histories"}, {7, 6, 2, 0, "no log holds entry 8"},
		{3, 3, 2, 0, "no log holds entry 4"}, {0, 3, 2, 0, "it has no consistent index"},
		{6, 4, 0, 0, "it names no member"},
	} {
		b, err := dbBase(t.Context(), based(t, c.index, c.own, c.members), sv)
		if c.why != "" {
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || b.Index != c.index || b.Term != c.term || b.Revision != 1 || b.ClusterVersion != "3.5.0" ||
			len(b.Members) != c.members || b.Members[0].PeerURLs[0] != "p1" || b.Members[c.members-1].IsLearner !=
			(c.members > 1) || !slices.Equal(b.Removed, []uint64{0x1f}) {
			t.Errorf("%+v: %+v, %v", c, b, err)
		}
	}
}

// TestTargets: which sources can be compared with what a server makes of the log, and up to which entry.
func TestTargets(t *testing.T) {
	sv := surveyed(entry(1, 1, put), entry(2, 1, put), entry(3, 1, put), entry(4, 1, nil), entry(5, 1, put),
		entry(8, 1, put), entry(9, 1, put))
	for name, c := range map[string]struct {
		change   func(*evidence.Member, *Base)
		min, max uint64
		late     uint64
		why      string
	}{
		"same":     {nil, 3, 3, 3, ""},
		"later":    {nil, 2, 3, 3, ""},
		"unfit":    {nil, 2, 5, 2, ""},
		"broken":   {nil, 4, 4, 0, "no server can execute entry 4"},
		"base":     {nil, 1, 1, 0, "not after the base at 1"},
		"no index": {nil, 0, 0, 0, "no consistent index"},
		"hole":     {nil, 6, 6, 0, "no log holds entry 6"},
		"end":      {func(_ *evidence.Member, b *Base) { b.Index = 7 }, 10, 10, 0, "the logs end with entry 9"},
		"the last": {func(_ *evidence.Member, b *Base) { b.Index = 7 }, 9, 9, 9, ""},
		"owner":    {func(_ *evidence.Member, b *Base) { b.Owner = 0 }, 3, 3, 0, "it is the base"},
		"no db":    {func(m *evidence.Member, _ *Base) { m.DB = nil }, 3, 3, 0, "no database that opens"},
		"damaged":  {func(m *evidence.Member, _ *Base) { m.DB.KVDamaged = true }, 3, 3, 0, "cannot be read"},
		"no log":   {func(m *evidence.Member, b *Base) { m.WAL, b.Index = evidence.WAL{}, 7 }, 8, 8, 9, ""},
		"no log, with a term": {func(m *evidence.Member, b *Base) {
			m.WAL, b.Index, m.DB.Meta.Term = evidence.WAL{}, 7, new(uint64)
		}, 8, 8, 8, ""},
	} {
		db := based(t, 3, 0, 1)
		m := &evidence.Member{DB: &evidence.DB{Handle: db},
			WAL: evidence.WAL{Log: &dumplog.Log{}, Summary: dumplog.Summary{LastIndex: 9}}}
		m.AppliedMin, m.AppliedMax = c.min, c.max
		b := &Base{Index: 1, Owner: -1}
		if c.change != nil {
			c.change(m, b)
		}
		p := &Plan{sv: sv, Targets: []Target{{Member: m}}}
		got := p.target(b, 0)
		if got.Index != c.min || c.why == "" && (got.Reason != "" || got.Late != c.late) || c.why != "" &&
			!strings.Contains(got.Reason, c.why) {
			t.Errorf("%s: %+v", name, got)
		}
		if n := p.reached(b); (n == 1) != (c.why == "") {
			t.Errorf("%s: %d sources", name, n)
		}
	}
}

// TestNoBase: the reason that is given names where the logs begin, or what is wrong with each base.
func TestNoBase(t *testing.T) {
	for _, c := range []struct {
		first uint64
		found bool
		why   []string
		want  string
	}{
		{5, false, nil, "the logs begin with entry 5, and no backup"},
		{5, false, []string{"x", "y"}, "is at an index from which they continue (x; y)"},
		{5, true, nil, "no member's database is newer than a base"},
		{5, true, []string{"x"}, "the logs begin with entry 5"},
		{1, false, []string{"x", "y"}, "x; y"},
		{1, true, nil, "no member's database is newer than a base"},
		{1, false, nil, "the logs begin with entry 1"},
	} {
		p := &Plan{sv: surveyed(entry(c.first, 1, put))}
		got := p.noBase(c.found, c.why)
		if !strings.Contains(got, c.want) || c.want == "x; y" && got != c.want || len(c.why) == 1 && !strings.HasSuffix(got, "(x)") ||
			len(c.why) == 0 && strings.Contains(got, "(") {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestNeed: the server must be able to open the newest database, and the log after it.
func TestNeed(t *testing.T) {
	v := func(minor int) node.Version { return node.Version{Major: 3, Minor: minor} }
	with := func(cluster, storage string) *evidence.Member {
		return &evidence.Member{DB: &evidence.DB{Handle: &dumpdb.DB{}, Cluster: dumpdb.Cluster{Version: cluster},
			Meta: dumpdb.MetaBucket{StorageVersion: storage}}}
	}
	for name, c := range map[string]struct {
		p       Plan
		members []*evidence.Member
		want    node.Need
	}{
		"members": {Plan{Base: &Base{}, sv: &survey{}},
			[]*evidence.Member{with("3.6.0", "3.6.0"), {}, with("3.5.0", "3.7.0")}, node.Need{Cluster: v(6), Storage: v(7)}},
		"the base": {Plan{Base: &Base{db: &dumpdb.DB{}, ClusterVersion: "3.7.0",
			needs: dumpdb.MetaBucket{StorageVersion: "3.6.0"}}, sv: &survey{}},
			[]*evidence.Member{with("3.6.0", "")}, node.Need{Cluster: v(7), Storage: v(6)}},
		"the log": {Plan{Base: &Base{ClusterVersion: "3.7.0"}, sv: &survey{minors: []int{5, 6, 4}}},
			[]*evidence.Member{with("3.5.0", "")}, node.Need{Cluster: v(6)}},
		"the requests": {Plan{Base: &Base{}, sv: &survey{}, Minor: 4}, nil, node.Need{Cluster: v(4)}},
		"known":        {Plan{Base: &Base{}, sv: &survey{minors: []int{5}}, Minor: 4}, nil, node.Need{Cluster: v(5)}},
		"v2":           {Plan{Base: &Base{}, sv: &survey{v2: 3}}, nil, node.Need{}},
	} {
		c.p.need(c.members)
		if c.p.Need != c.want || (len(c.p.Notes) == 1) != (name == "v2") {
			t.Errorf("%s: %+v, %q", name, c.p.Need, c.p.Notes)
		}
	}
}
