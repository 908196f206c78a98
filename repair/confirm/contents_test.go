package confirm

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// rec is one record of bucket key: a put of a value, or a tombstone when the value is "-".
type rec struct {
	main       int64
	key, value string
}

// database writes bucket key.
func database(t *testing.T, rows ...rec) *dumpdb.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	b, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = b.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{"key", "meta"} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		for _, r := range rows {
			at := append(append(binary.BigEndian.AppendUint64(nil, uint64(r.main)), '_'), make([]byte, 8)...)
			kv := mvccpb.KeyValue{Key: []byte(r.key), Value: []byte(r.value), ModRevision: r.main,
				CreateRevision: r.main, Version: 1}
			if r.value == "-" {
				at, kv = append(at, 't'), mvccpb.KeyValue{Key: []byte(r.key)}
			}
			v, err := kv.Marshal()
			if err != nil {
				return err
			}
			if err := tx.Bucket([]byte("key")).Put(at, v); err != nil {
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
	db, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// TestKeys: what is a difference above and below the compact revision, and what is none.
func TestKeys(t *testing.T) {
	base := []rec{{2, "a", "1"}, {3, "b", "1"}, {4, "a", "2"}, {5, "c", "1"}, {6, "c", "-"}, {7, "b", "2"},
		{8, "a", "3"}}
	without := func(mains ...int64) []rec {
		return slices.DeleteFunc(slices.Clone(base), func(r rec) bool { return slices.Contains(mains, r.main) })
	}
	other := func(main int64, value string) []rec {
		out := slices.Clone(base)
		for i := range out {
			if out[i].main == main {
				out[i].value = value
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		own, server []rec
		compact     int64
		first       int64
		total       int
	}{
		"equal":                                   {base, base, -1, 0, 0},
		"a value above":                           {other(8, "x"), base, 6, 8, 1},
		"a superseded value below":                {other(2, "x"), base, 6, 2, 1},
		"a record missing above":                  {without(7), base, 6, 7, 1},
		"a record too many above":                 {base, without(7), 6, 7, 1},
		"a superseded record compacted here":      {without(2), base, 6, 0, 0},
		"a superseded record compacted there":     {base, without(2), 6, 0, 0},
		"a live record missing below":             {without(4), base, 6, 4, 1},
		"a live record too many below":            {base, without(4), 6, 4, 1},
		"a tombstone at the compact revision":     {without(5, 6), without(5), 6, 0, 0},
		"a deleted key and its tombstone":         {without(5, 6), base, 6, 0, 0},
		"a tombstone missing above":               {without(6), base, 5, 6, 1},
		"what the tombstone deleted":              {without(5), base, 5, 5, 1},
		"everything missing":                      {nil, base, -1, 2, 7},
		"put and tombstone change places":         {other(6, "x"), base, 5, 6, 1},
		"nothing compacted, superseded is needed": {without(2), base, -1, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := &contents{compact: c.compact}
			if err := got.keys(t.Context(), database(t, c.own...), database(t, c.server...)); err != nil {
				t.Fatal(err)
			}
			got.trim()
			want := map[int64]bool{}
			for _, r := range append(slices.Clone(c.own), c.server...) {
				want[r.main] = true
			}
			if got.records != int64(len(want)) {
				t.Errorf("%d records, want %d", got.records, len(want))
			}
			if got.first != c.first || got.total != c.total || len(got.list) != c.total {
				t.Errorf("first %d, %d differences: %+v", got.first, got.total, got.list)
			}
			if len(got.list) > 0 && got.list[0].Revision.Main != c.first {
				t.Errorf("not in order: %+v", got.list)
			}
		})
	}
}

// TestOrderOfList: small buckets come first, then the records by revision.
func TestOrderOfList(t *testing.T) {
	at := func(main, sub int64) *check.Rev { return &check.Rev{Main: main, Sub: sub} }
	c := &contents{}
	for _, r := range []*check.Rev{at(5, 0), at(3, 2), nil, at(3, 1), at(4, 9), nil} {
		c.differ(compare.ConfirmDifference{Revision: r})
	}
	c.trim()
	var got []string
	for _, d := range c.list {
		if d.Revision == nil {
			got = append(got, "-")
			continue
		}
		got = append(got, fmt.Sprintf("%d.%d", d.Revision.Main, d.Revision.Sub))
	}
	if have := strings.Join(got, " "); have != "- - 3.1 3.2 4.9 5.0" || c.total != 6 {
		t.Error(have)
	}
}

// TestListIsBounded: all differences are counted, the first ones are kept.
func TestListIsBounded(t *testing.T) {
	var rows []rec
	for i := range int64(500) {
		rows = append(rows, rec{i + 2, "k", "v"})
	}
	c := &contents{compact: -1}
	if err := c.keys(t.Context(), database(t), database(t, rows...)); err != nil {
		t.Fatal(err)
	}
	c.row("auth", "authRevision", "2", "1")
	c.trim()
	if c.total != 501 || len(c.list) != maxListed || c.list[0].Bucket != "auth" || c.list[1].Revision.Main != 2 ||
		c.list[maxListed-1].Revision.Main != maxListed {
		t.Errorf("%d, %+v", c.total, c.list)
	}
}

// TestLeases: a TTL comes from the log, except where a server raised it to its own minimum.
func TestLeases(t *testing.T) {
	lease := func(id, ttl int64) dumpdb.Lease { return dumpdb.Lease{ID: dumpdb.ID(id), TTL: ttl} }
	for name, c := range map[string]struct {
		own, server   []dumpdb.Lease
		total, leftBy int
	}{
		"equal":             {[]dumpdb.Lease{lease(1, 100)}, []dumpdb.Lease{lease(1, 100)}, 0, 0},
		"lower":             {[]dumpdb.Lease{lease(1, 99)}, []dumpdb.Lease{lease(1, 100)}, 1, 0},
		"higher":            {[]dumpdb.Lease{lease(1, 101)}, []dumpdb.Lease{lease(1, 100)}, 1, 0},
		"raised":            {[]dumpdb.Lease{lease(1, 8)}, []dumpdb.Lease{lease(1, 5)}, 0, 1},
		"raised to 75":      {[]dumpdb.Lease{lease(1, 75)}, []dumpdb.Lease{lease(1, 5)}, 0, 1},
		"raised above":      {[]dumpdb.Lease{lease(1, 76)}, []dumpdb.Lease{lease(1, 5)}, 1, 0},
		"raised by ours":    {[]dumpdb.Lease{lease(1, 1)}, []dumpdb.Lease{lease(1, 2)}, 0, 0},
		"no longer raised":  {[]dumpdb.Lease{lease(1, 1)}, []dumpdb.Lease{lease(1, 3)}, 1, 0},
		"missing":           {nil, []dumpdb.Lease{lease(1, 100)}, 1, 0},
		"too many":          {[]dumpdb.Lease{lease(1, 100)}, nil, 1, 0},
		"remaining is free": {[]dumpdb.Lease{{ID: 1, TTL: 100, RemainingTTL: 7}}, []dumpdb.Lease{lease(1, 100)}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := &contents{}
			got.leases(&smallState{leases: c.own}, &smallState{leases: c.server})
			if got.total != c.total || len(got.leftOut) != c.leftBy || got.small["lease"] != c.total {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestRows: each row of the small buckets is compared by what matters of it, in any order of lists.
func TestRows(t *testing.T) {
	state := func(change func(*smallState)) *smallState {
		s := &smallState{cluster: dumpdb.Cluster{Version: "3.6.0"}, removed: []dumpdb.ID{9},
			auth: dumpdb.Auth{Enabled: true, Revision: 4, Users: []dumpdb.User{{Name: "u", Roles: []string{"r"}}},
				Roles: []dumpdb.Role{{Name: "r", Perms: []dumpdb.Permission{{Type: 2, Key: []byte("b")},
					{Type: 1, Key: []byte("a")}}}}},
			alarms: []dumpdb.Alarm{{MemberID: 7, Type: 1}}, leases: []dumpdb.Lease{{ID: 5, TTL: 100}},
			members: []dumpdb.Member{{ID: 7, Name: "n", PeerURLs: []string{"p1", "p2"},
				ClientURLs: []string{"c1", "c2"}}}}
		change(s)
		return s
	}
	member := func(change func(*dumpdb.Member)) func(*smallState) {
		return func(s *smallState) { change(&s.members[0]) }
	}
	const perms = `READWRITE key "b", WRITE key "a"`
	const peers, row = "peer URLs p1,p2", "peer URLs p1,p2, name n, client URLs c1,c2"
	for name, c := range map[string]struct {
		change func(*smallState)
		want   string
	}{
		"nothing":    {func(*smallState) {}, ""},
		"order":      {func(s *smallState) { slices.Reverse(s.auth.Roles[0].Perms) }, ""},
		"order of p": {member(func(m *dumpdb.Member) { slices.Reverse(m.PeerURLs) }), ""},
		"order of c": {member(func(m *dumpdb.Member) { slices.Reverse(m.ClientURLs) }), ""},
		"auth":       {func(s *smallState) { s.auth.Enabled = false }, "auth authEnabled: false, true"},
		"revision":   {func(s *smallState) { s.auth.Revision = 0 }, "auth authRevision: 1, 4"},
		"no user":    {func(s *smallState) { s.auth.Users = nil }, "authUsers u: no row, roles [r]"},
		"roles":      {func(s *smallState) { s.auth.Users[0].Roles = nil }, "authUsers u: roles [], roles [r]"},
		"no password": {func(s *smallState) { s.auth.Users[0].NoPassword = true },
			"authUsers u: roles [r], no password, roles [r]"},
		"permission": {func(s *smallState) { s.auth.Roles[0].Perms[0].Type = 0 },
			`authRoles r: READ key "b", WRITE key "a", ` + perms},
		"role": {func(s *smallState) { s.auth.Roles = nil }, "authRoles r: no row, " + perms},
		"alarm": {func(s *smallState) { s.alarms[0].Type = 2 },
			"alarm 7 CORRUPT: raised, no row; alarm 7 NOSPACE: no row, raised"},
		"learner": {member(func(m *dumpdb.Member) { m.IsLearner = true }),
			"members 7: " + peers + ", learner, name n, client URLs c1,c2, " + row},
		"name": {member(func(m *dumpdb.Member) { m.Name = "x" }),
			"members 7: " + peers + ", name x, client URLs c1,c2, " + row},
		"removed": {func(s *smallState) { s.removed = nil }, "members_removed 9: no row, removed"},
		"version": {func(s *smallState) { s.cluster.Version = "3.5.0" }, "cluster clusterVersion: 3.5.0, 3.6.0"},
		"downgrade": {func(s *smallState) { s.cluster.DowngradeEnabled, s.cluster.DowngradeTarget = true, "3.5.0" },
			"cluster downgrade: 3.5.0, no row"},
		"no downgrade": {func(s *smallState) { s.cluster.DowngradeTarget = "3.5.0" }, ""},
	} {
		got := &contents{}
		rules := smallRules{minor: 6, plain: map[string]bool{"u": true}}
		got.compareSmall(state(c.change), state(func(*smallState) {}), rules)
		var rows []string
		for _, d := range got.list {
			rows = append(rows, d.Bucket+" "+string(d.Key)+": "+d.Observed+", "+d.Expected)
		}
		if have := strings.Join(rows, "; "); have != c.want || got.total != len(rows) {
			t.Errorf("%s: %s\nwant %s", name, have, c.want)
		}
		// Up to 3.5 names and client URLs of members are not in this bucket.
		got = &contents{}
		got.compareSmall(state(c.change), state(func(*smallState) {}), smallRules{minor: 5, plain: rules.plain})
		bucket, _, _ := strings.Cut(c.want, " ")
		left := slices.Contains([]string{"members", "members_removed", "cluster"}, bucket) && name != "name"
		if (len(got.leftOut) == 1) != left || left && got.total != 0 {
			t.Errorf("%s, 3.5: %+v", name, got)
		}
	}
}

// TestDescribe: a value is shown only if that was asked for.
func TestDescribe(t *testing.T) {
	kv := dumpdb.KeyValue{CreateRevision: 2, ModRevision: 4, Version: 3, Value: []byte("secret")}
	leased := kv
	leased.Lease = 0x1f
	for _, c := range []struct {
		r      dumpdb.Revision
		values bool
		want   string
	}{
		{dumpdb.Revision{KV: kv, Raw: []byte{1}}, true,
			`create revision 2, mod revision 4, version 3, value "secret"`},
		{dumpdb.Revision{KV: leased, Raw: []byte{1}}, true,
			`create revision 2, mod revision 4, version 3, lease 1f, value "secret"`},
		{dumpdb.Revision{KV: kv, Raw: []byte{1}}, false,
			"create revision 2, mod revision 4, version 3, value of 6 bytes, digest "},
		{dumpdb.Revision{Raw: []byte{1}, Err: context.Canceled}, true, "a record that cannot be decoded"},
		{dumpdb.Revision{Tombstone: true}, true, "deleted"},
		{dumpdb.Revision{}, true, "the mark of a raised revision"},
	} {
		got := (&contents{values: c.values}).describe(&c.r)
		if c.values && got != c.want || !strings.HasPrefix(got, c.want) || !c.values && strings.Contains(got, "secret") {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// TestPasswords: the hash comes from the log from 3.5 on, and from every server's own salt where the log has the plain
// text.
func TestPasswords(t *testing.T) {
	state := func(hash string) *smallState {
		return &smallState{auth: dumpdb.Auth{Users: []dumpdb.User{{Name: "app", Password: []byte(hash)}}}}
	}
	for name, c := range map[string]struct {
		rules smallRules
		total int
	}{
		"3.5":            {smallRules{minor: 5}, 1},
		"3.4":            {smallRules{minor: 4}, 0},
		"plain in a log": {smallRules{minor: 6, plain: map[string]bool{"app": true}}, 0},
	} {
		got := &contents{}
		got.compareSmall(state("one"), state("other"), c.rules)
		if got.total != c.total {
			t.Errorf("%s: %+v", name, got)
		}
		for _, d := range got.list {
			if strings.Contains(d.Observed+d.Expected, "other") {
				t.Errorf("a secret is shown: %+v", d)
			}
		}
	}
}

// TestMembersOfOlderReleases: up to 3.5 the bucket is not what a server starts with, so that it refutes no one.
func TestMembersOfOlderReleases(t *testing.T) {
	own, server := &smallState{}, &smallState{members: []dumpdb.Member{{ID: 7, PeerURLs: []string{"http://a"}}}}
	old, now := &contents{}, &contents{}
	old.compareSmall(own, server, smallRules{minor: 5})
	now.compareSmall(own, server, smallRules{minor: 6})
	if old.total != 0 || len(old.leftOut) != 1 || len(old.list) != 0 || now.total != 1 || len(now.leftOut) != 0 {
		t.Errorf("%+v\n%+v", old, now)
	}
}

// TestExcuse: where both histories are equal up to a revision, only an entry executed there can explain that the next
// one differs.
func TestExcuse(t *testing.T) {
	d := &doubts{byRev: map[int64]doubt{10: {100, "x"}, 20: {200, "y"}}, buckets: map[string]doubt{}, base: 1,
		made: []entryID{{index: 5}, {index: 6}}}
	for _, c := range []struct {
		rev   int64
		exact bool
		index uint64
	}{{11, true, 100}, {12, true, 0}, {10, true, 0}, {21, true, 200}, {12, false, 100}, {10, false, 0},
		{30, false, 100}} {
		x, ok := d.excuse(c.rev, c.exact)
		if x.index != c.index || ok != (c.index > 0) {
			t.Errorf("%+v: %+v %v", c, x, ok)
		}
	}
	if e, ok := d.maker(3); !ok || e.index != 6 {
		t.Errorf("%+v", e)
	}
	if _, ok := d.maker(4); ok {
		t.Error("an entry for a revision that none was seen to make")
	}
	if _, ok := d.unseen(3, true); ok {
		t.Error("no entry was doubtful")
	}
	d.buckets["lease"] = doubt{5, "a lease"}
	if x, ok := d.unseen(3, false); !ok || x.index != 5 {
		t.Errorf("%+v", x)
	}
	if _, ok := d.unseen(2, false); ok {
		t.Error("the doubtful entry makes the revision itself")
	}
	d.buckets = map[string]doubt{"auth": {5, "rights"}}
	if _, ok := d.unseen(3, false); ok {
		t.Error("equal rights: the entry ended alike")
	}
	if x, ok := d.unseen(3, true); !ok || x.index != 5 {
		t.Errorf("%+v", x)
	}
}

// TestLearnersInDoubt: one learner is taken by every server, a second by those that were told to.
func TestLearnersInDoubt(t *testing.T) {
	add := func(id dumplog.ID) *dumplog.ConfChange {
		return &dumplog.ConfChange{Type: dumplog.ConfChangeAddLearnerNode, NodeID: id,
			Member: &dumplog.MemberContext{ID: id, PeerURLs: []string{id.String()}, IsLearner: true}}
	}
	update := &dumplog.ConfChange{Type: dumplog.ConfChangeUpdateNode, NodeID: 1,
		Member: &dumplog.MemberContext{ID: 1, PeerURLs: []string{"new"}}}
	promote := &dumplog.ConfChange{Type: dumplog.ConfChangeAddNode, NodeID: 1,
		Member: &dumplog.MemberContext{ID: 1, IsPromote: true}}
	remove := &dumplog.ConfChange{Type: dumplog.ConfChangeRemoveNode, NodeID: 2}
	for name, c := range map[string]struct {
		minors  []int
		changes []*dumplog.ConfChange
		want    []bool
	}{
		"3.6": {[]int{6}, []*dumplog.ConfChange{update, add(1), update, add(2), promote, remove, update},
			[]bool{false, false, true, true, false, false, false}},
		"3.7":         {[]int{7}, []*dumplog.ConfChange{add(1), update, add(2)}, []bool{false, false, true}},
		"3.4":         {[]int{4}, []*dumplog.ConfChange{add(1), update, add(2)}, []bool{false, false, false}},
		"3.5 and 3.6": {[]int{5, 6}, []*dumplog.ConfChange{add(1), add(2), promote}, []bool{false, true, false}},
		"3.4 and 3.7": {[]int{4, 7}, []*dumplog.ConfChange{add(1), update, promote}, []bool{false, false, true}},
	} {
		d := &doubts{lists: listsOf(&Base{}, c.minors)}
		for i, x := range c.changes {
			if got := d.confChange(x) != ""; got != c.want[i] {
				t.Errorf("%s, step %d: %v", name, i, got)
			}
		}
	}
	base := &Base{Members: []datadir.Member{{ID: 5, PeerURLs: []string{"http://a"}, IsLearner: true}},
		Removed: []uint64{6}}
	if ms := listsOf(base, []int{5})[0]; ms.Check(add(6)) != apply.WasRemoved ||
		ms.Check(add(7)) != apply.TooManyLearners {
		t.Error("the base's members do not count")
	}
}

// TestDoubtfulRequests: what releases are known to execute differently, and what is like it and is not.
func TestDoubtfulRequests(t *testing.T) {
	machine := func(minor int, authOn, alarm bool) *replay.Machine {
		m, err := replay.NewMachine(t.Context(), nil, replay.MachineOptions{Version: release.AnyOf(minor)})
		if err != nil {
			t.Fatal(err)
		}
		if authOn {
			for _, r := range []*dumplog.Request{
				{Kind: dumplog.KindAuthUserAdd, Auth: &dumplog.AuthRequest{User: "root", HashedPassword: "x"}},
				{Kind: dumplog.KindAuthRoleAdd, Auth: &dumplog.AuthRequest{Role: "root"}},
				{Kind: dumplog.KindAuthRoleAdd, Auth: &dumplog.AuthRequest{Role: "r"}},
				{Kind: dumplog.KindAuthUserGrantRole, Auth: &dumplog.AuthRequest{User: "root", Role: "root"}},
				{Kind: dumplog.KindAuthEnable, Auth: &dumplog.AuthRequest{}},
			} {
				m.Apply(m.Prepare(replay.Entry{Entry: &dumplog.Entry{}, Req: r}))
			}
			if !m.AuthEnabled() || m.AuthRevision() != 5 {
				t.Fatalf("auth %v, revision %d", m.AuthEnabled(), m.AuthRevision())
			}
		}
		for _, r := range []*dumplog.Request{
			{Kind: dumplog.KindLeaseGrant, LeaseGrant: &dumplog.LeaseGrantRequest{ID: 7, TTL: 60}},
			{Kind: dumplog.KindPut, Put: &dumplog.PutRequest{Key: []byte("k"), Lease: 7},
				Header: dumplog.Header{Username: "root", AuthRevision: 5}},
			{Kind: dumplog.KindAlarm, Alarm: &dumplog.AlarmRequest{Action: 1, Alarm: 1, MemberID: 1}},
		} {
			if r.Alarm == nil || alarm {
				m.Apply(m.Prepare(replay.Entry{Entry: &dumplog.Entry{}, Req: r}))
			}
		}
		return m
	}
	revoke := func(rev uint64) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindLeaseRevoke, LeaseRevoke: &dumplog.LeaseRevokeRequest{ID: 7},
			Header: dumplog.Header{Username: "root", AuthRevision: rev}}
	}
	put := []dumplog.RequestOp{{Put: &dumplog.PutRequest{Key: []byte("k")}}}
	nested := &dumplog.Request{Kind: dumplog.KindTxn,
		Txn: &dumplog.TxnRequest{Failure: []dumplog.RequestOp{{Txn: &dumplog.TxnRequest{Success: put}}}}}
	plain := &dumplog.Request{Kind: dumplog.KindTxn, Txn: &dumplog.TxnRequest{Success: put}}
	addRole := func(name string) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindAuthRoleAdd, Auth: &dumplog.AuthRequest{Role: name}}
	}
	byRoot := func(r *dumplog.Request) *dumplog.Request {
		r.Header.Username = "root"
		return r
	}
	grant := func(key, end string) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindAuthRoleGrantPermission,
			Auth: &dumplog.AuthRequest{Role: "r", Perm: &dumplog.Permission{Key: []byte(key), RangeEnd: []byte(end)}}}
	}
	for name, c := range map[string]struct {
		r             *dumplog.Request
		authOn, alarm bool
		minors        []int
		doubt         bool
	}{
		"old revoke":                  {revoke(4), true, false, []int{5}, true},
		"old revoke, newer line":      {revoke(4), true, false, []int{6}, false},
		"old revoke, 3.3 and 3.6":     {revoke(4), true, false, []int{3, 6}, true},
		"revoke of now":               {revoke(5), true, false, []int{5}, false},
		"revoke without auth":         {revoke(0), false, false, []int{4}, false},
		"nested put, alarm":           {nested, false, true, []int{6}, true},
		"nested put":                  {nested, false, false, []int{6}, false},
		"put, alarm":                  {plain, false, true, []int{6}, false},
		"auth change, alarm":          {addRole("a"), true, true, []int{5}, true},
		"by root, alarm":              {byRoot(addRole("a")), true, true, []int{5}, false},
		"auth change, alarm, 3.6":     {addRole("a"), true, true, []int{6}, false},
		"role without a name":         {byRoot(addRole("")), true, false, []int{3, 4}, true},
		"role without a name, 3.5 on": {byRoot(addRole("")), true, false, []int{5, 6}, false},
		"empty permission":            {byRoot(grant("b", "a")), true, false, []int{5}, true},
		"empty permission, 3.6":       {byRoot(grant("b", "a")), true, false, []int{6}, false},
		"permission to the end":       {byRoot(grant("b", "\x00")), true, false, []int{5}, false},
		"permission":                  {byRoot(grant("a", "b")), true, false, []int{5}, false},
	} {
		d := &doubts{byRev: map[int64]doubt{}, buckets: map[string]doubt{}}
		var models []*replay.Machine
		for _, minor := range c.minors {
			models = append(models, machine(minor, c.authOn, c.alarm))
		}
		d.entry(&replay.Entry{Entry: &dumplog.Entry{Index: 9}, Req: c.r}, models, models[0])
		if got := len(d.byRev)+len(d.buckets) > 0; got != c.doubt {
			t.Errorf("%s: %v %v", name, d.byRev, d.buckets)
		}
	}
}

// TestJudge: every way in which a difference ends.
func TestJudge(t *testing.T) {
	founded, restored, lagging := &Base{Kind: NewCluster, Revision: 1}, &Base{Kind: Backup, Source: "b", Revision: 10},
		&Base{Kind: MemberDB, Source: "m"}
	clean := func() *doubts { return &doubts{byRev: map[int64]doubt{}, buckets: map[string]doubt{}} }
	auth := &doubts{byRev: map[int64]doubt{}, buckets: map[string]doubt{"auth": {50, "x"}}}
	rights := &doubts{byRev: map[int64]doubt{},
		buckets: map[string]doubt{"auth": {50, "x"}, "authUsers": {50, "x"}, "authRoles": {50, "x"}}}
	late := &doubts{byRev: map[int64]doubt{}, buckets: map[string]doubt{"auth": {101, "x"}}}
	at19 := &doubts{byRev: map[int64]doubt{19: {60, "x"}}, buckets: map[string]doubt{}}
	for name, c := range map[string]struct {
		base   *Base
		d      *doubts
		c      contents
		status compare.ConfirmStatus
		says   string
	}{
		"equal": {founded, clean(), contents{}, compare.Confirmed, "this content"},
		"a key": {founded, clean(), contents{first: 20, total: 1}, compare.Refuted,
			"revision 20"},
		"a bucket": {founded, clean(), contents{small: map[string]int{"auth": 1}, total: 1},
			compare.Refuted, "bucket auth"},
		"a bucket in doubt": {founded, auth, contents{small: map[string]int{"auth": 1}, total: 1},
			compare.NotPossible, "entry 50"},
		"a bucket in doubt and one not": {founded, auth,
			contents{small: map[string]int{"auth": 1, "lease": 1}, total: 2}, compare.Refuted, "lease"},
		"a key in doubt": {founded, at19, contents{first: 20, total: 1}, compare.NotPossible,
			"entry 60"},
		"a key after the doubt": {founded, at19, contents{first: 21, total: 1}, compare.Refuted, "21"},
		"a key below compaction": {founded, at19, contents{first: 21, compact: 30, total: 1},
			compare.NotPossible, "entry 60"},
		"a key at compaction": {founded, at19, contents{first: 21, compact: 21, total: 1}, compare.NotPossible,
			"entry 60"},
		"a key, the doubt changes rights": {founded, auth, contents{first: 60, total: 1}, compare.Refuted,
			"makes other content of the log, from the first entry on: bucket key from revision 60 on"},
		"a key and the users": {founded, rights, contents{first: 60, small: map[string]int{"authUsers": 1}, total: 2},
			compare.NotPossible, "entry 50"},
		"a key and the roles": {founded, rights, contents{first: 60, small: map[string]int{"authRoles": 1}, total: 2},
			compare.NotPossible, "entry 50"},
		"a doubt after it": {founded, late, contents{small: map[string]int{"auth": 1}, total: 1}, compare.Refuted,
			"makes other content of the log, from the first entry on: bucket auth"},
		"backup, a key after it": {restored, clean(), contents{first: 20, total: 1}, compare.Refuted,
			"100 entries from the database of b"},
		"backup, a key in it": {restored, clean(), contents{first: 10, total: 1}, compare.NotPossible,
			"base holds already"},
		"backup, a bucket": {restored, clean(), contents{small: map[string]int{"lease": 1}, total: 1},
			compare.NotPossible, "bucket lease"},
		"a member's database": {lagging, clean(), contents{first: 20, total: 1}, compare.NotPossible,
			"not known"},
		"a member's database, equal": {lagging, clean(), contents{}, compare.Confirmed, "from the database of m"},
	} {
		t.Run(name, func(t *testing.T) {
			v := &verdict{target: target(t), base: c.base, doubts: c.d, content: &c.c, revision: 40, modelled: 40}
			got := v.judge()
			if got.Status != c.status || !strings.Contains(got.Reason, c.says) ||
				(got.First != nil) != (c.c.first > 0) {
				t.Errorf("%+v", got)
			}
		})
	}
	v := &verdict{target: target(t), base: founded, doubts: at19, content: &contents{first: 25, total: 1}, revision: 40,
		modelled: 41}
	if got := v.judge(); got.Status != compare.NotPossible {
		t.Errorf("the rules of this program come to another revision than the server: %+v", got)
	}
}

func target(t *testing.T) *Target {
	t.Helper()
	return &Target{Member: &evidence.Member{Source: &evidence.Source{Name: "node1"}}, Index: 100, Late: 100}
}

// TestValuesOf: a value is read at its own revision only, and only if the record there is of the key.
func TestValuesOf(t *testing.T) {
	values := valuesOf(database(t, rec{5, "a", "1"}, rec{7, "b", "2"}))
	for _, c := range []struct {
		key  string
		at   dumpdb.Rev
		want string
		ok   bool
	}{{"a", dumpdb.Rev{Main: 5}, "1", true}, {"b", dumpdb.Rev{Main: 7}, "2", true},
		{"b", dumpdb.Rev{Main: 5}, "", false},
		{"a", dumpdb.Rev{Main: 6}, "", false}, {"a", dumpdb.Rev{Main: 5, Sub: 1}, "", false}} {
		if got, ok := values(c.key, c.at); string(got) != c.want || ok != c.ok {
			t.Errorf("%s at %s: %q, %t", c.key, c.at, got, ok)
		}
	}
}
