package rebuild

import (
	"errors"
	"fmt"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestMayMatter: what an extract or a restore contains depends on keys, leases and auth, not on members or alarms.
func TestMayMatter(t *testing.T) {
	for name, c := range map[string]struct {
		r          dumplog.Request
		small, all bool
	}{
		"put": {dumplog.Request{Kind: dumplog.KindPut, Put: &dumplog.PutRequest{}}, true, true},
		"txn": {dumplog.Request{Kind: dumplog.KindTxn, Txn: &dumplog.TxnRequest{}}, true, true},
		"lease": {dumplog.Request{Kind: dumplog.KindLeaseGrant, LeaseGrant: &dumplog.LeaseGrantRequest{ID: 1}},
			false, true},
		"user": {dumplog.Request{Kind: dumplog.KindAuthUserAdd, Auth: &dumplog.AuthRequest{User: "u"}}, false, true},
		"checkpoint": {dumplog.Request{Kind: dumplog.KindLeaseCheckpoint,
			LeaseCheckpoint: &dumplog.LeaseCheckpointRequest{}}, false, false},
		"alarm": {dumplog.Request{Kind: dumplog.KindAlarm, Alarm: &dumplog.AlarmRequest{Action: 1}}, false, false},
		"member": {dumplog.Request{Kind: dumplog.KindConfChange,
			ConfChange: &dumplog.ConfChange{Member: &dumplog.MemberContext{}}}, false, false},
		"version": {dumplog.Request{Kind: dumplog.KindClusterVersionSet,
			ClusterVer: &dumplog.ClusterVersionSet{Version: "3.5.0"}}, false, false},
	} {
		if got, all := mayMatter(&c.r, false), mayMatter(&c.r, true); got != c.small || all != c.all {
			t.Errorf("%s: %v, with small buckets %v", name, got, all)
		}
	}
}

// TestProvenBy: the only voter needs no one to commit its log, unless a member may be about to join it.
func TestProvenBy(t *testing.T) {
	conf := func(index uint64) evidence.ConfEntry {
		var c evidence.ConfEntry
		c.Index = index
		return c
	}
	for name, c := range map[string]struct {
		change func(*evidence.Member)
		want   uint64
	}{
		"only voter":      {func(*evidence.Member) {}, 9},
		"two voters":      {func(m *evidence.Member) { m.Membership.Voters = append(m.Membership.Voters, 2) }, 5},
		"another voter":   {func(m *evidence.Member) { m.MemberID = 2 }, 5},
		"raft is unknown": {func(m *evidence.Member) { m.Membership.RaftKnown = false }, 5},
		"no log":          {func(m *evidence.Member) { m.WAL = evidence.WAL{} }, 5},
		"a later change":  {func(m *evidence.Member) { m.WAL.Conf = []evidence.ConfEntry{conf(4), conf(6)} }, 5},
		"earlier changes": {func(m *evidence.Member) { m.WAL.Conf = []evidence.ConfEntry{conf(4), conf(5)} }, 9},
		"a shorter log":   {func(m *evidence.Member) { m.WAL.Summary.LastIndex = 3 }, 5},
	} {
		m := &evidence.Member{MemberID: 1, Commit: 5,
			WAL: evidence.WAL{Log: &dumplog.Log{}, Summary: dumplog.Summary{LastIndex: 9}}}
		m.Membership.RaftKnown, m.Membership.Voters = true, []dumplog.ID{1}
		c.change(m)
		if got := provenBy(m); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestGapUpTo: what is missing up to an entry is named, and no more.
func TestGapUpTo(t *testing.T) {
	for end, want := range map[uint64]string{4: "[]", 5: "[5]", 6: "[5..6]", 8: "[5..6]", 9: "[5..6 9]", 20: "[5..6 9]",
		21: "[5..6 9 21]", 25: "[5..6 9 21..25]"} {
		b := &builder{sv: &survey{first: 3, last: 20, gaps: []Gap{{5, 6}, {9, 9}}}, from: Point{Index: 2}}
		err := b.gapUpTo(end)
		var m *MissingError
		if got := "[]"; errors.As(err, &m) {
			if got = fmt.Sprint(m.Missing); got != want {
				t.Errorf("up to %d: %s", end, got)
			}
		} else if want != got || err != nil {
			t.Errorf("up to %d: %v, want %s", end, err, want)
		}
	}
	b := &builder{sv: &survey{}, from: Point{Index: 7}}
	if err := b.gapUpTo(7); err != nil {
		t.Error(err)
	}
	if err := b.gapUpTo(8); err == nil {
		t.Error("an entry after the base that no log has")
	}
}

// TestSameCluster: a log belongs to a base that names its owner, or one of the members that the log names.
func TestSameCluster(t *testing.T) {
	log := func(id dumplog.ID, changes ...dumplog.ID) *evidence.Member {
		m := &evidence.Member{MemberID: id, WAL: evidence.WAL{Log: &dumplog.Log{}}}
		for i, c := range changes {
			var e evidence.ConfEntry
			e.Index, e.Change.NodeID = uint64(4+i), c
			m.WAL.Conf = append(m.WAL.Conf, e)
		}
		return m
	}
	bare := log(9)
	bare.WAL = evidence.WAL{}
	for name, c := range map[string]struct {
		logs    []*evidence.Member
		base    []dumpdb.Member
		removed []dumpdb.ID
		fits    bool
	}{
		"owner":               {[]*evidence.Member{log(1)}, []dumpdb.Member{{ID: 1}}, nil, true},
		"removed owner":       {[]*evidence.Member{log(1)}, nil, []dumpdb.ID{1}, true},
		"unknown owner":       {[]*evidence.Member{log(0)}, []dumpdb.Member{{ID: 1}}, nil, true},
		"another":             {[]*evidence.Member{log(9)}, []dumpdb.Member{{ID: 1}}, nil, false},
		"another without WAL": {[]*evidence.Member{bare}, []dumpdb.Member{{ID: 1}}, nil, false},
		"one of two":          {[]*evidence.Member{bare, log(1)}, []dumpdb.Member{{ID: 1}}, nil, true},
		"names a member":      {[]*evidence.Member{log(9, 8, 1)}, []dumpdb.Member{{ID: 1}}, nil, true},
		"joined later":        {[]*evidence.Member{log(9, 8, 9)}, []dumpdb.Member{{ID: 1}}, nil, true},
		"joined before":       {[]*evidence.Member{log(9, 9)}, []dumpdb.Member{{ID: 1}}, nil, false},
		"no member is known":  {[]*evidence.Member{log(9)}, nil, nil, true},
	} {
		b := &builder{from: Point{Index: 4}, logs: c.logs,
			base: &evidence.Member{DB: &evidence.DB{Members: c.base, Removed: c.removed}}}
		if err := b.sameCluster(); (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLogsOfACluster: a source that does not show its cluster may belong to any log.
func TestLogsOfACluster(t *testing.T) {
	a, b, other, bare := &evidence.Member{ClusterID: 7}, &evidence.Member{ClusterID: 7}, &evidence.Member{ClusterID: 8},
		&evidence.Member{}
	for _, c := range []struct {
		source, x *evidence.Member
		want      bool
	}{{a, a, true}, {a, b, true}, {a, other, false}, {bare, other, true}, {bare, bare, true}, {a, bare, false}} {
		if got := sameCluster(c.source, c.x); got != c.want {
			t.Errorf("%s and %s: %v", c.source.ClusterID, c.x.ClusterID, got)
		}
	}
}

// TestSettles: only a lease revoke has no effect a second time.
func TestSettles(t *testing.T) {
	step := func(r *dumplog.Request) *replay.Step { return &replay.Step{Entry: replay.Entry{Req: r}} }
	revoke, put := &dumplog.Request{LeaseRevoke: &dumplog.LeaseRevokeRequest{}}, &dumplog.Request{}
	const never = 1<<64 - 1
	for _, c := range []struct {
		r     *dumplog.Request
		until uint64
		want  uint64
	}{{revoke, 7, 7}, {revoke, 0, 0}, {put, 0, 0}, {put, 7, never}} {
		if got := settles(step(c.r), c.until); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
