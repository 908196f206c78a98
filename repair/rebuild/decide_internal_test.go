package rebuild

import (
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// twoPuts is a member of 3.5 at entry 9: revision 2 has a put of k, revision 3 puts of a and b.
func twoPuts(t *testing.T, edit func(*clustertest.Hand)) *evidence.Member {
	t.Helper()
	h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
	h.Found(false, 0xa1)
	h.Revision("k", "1")
	for sub, key := range []string{"a", "b"} {
		b, err := (&mvccpb.KeyValue{Key: []byte(key), Value: []byte("1"), CreateRevision: 3, ModRevision: 3,
			Version: 1}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		h.Row("key", string(dumpdb.Rev{Main: 3, Sub: int64(sub)}.Bytes()), string(b))
	}
	if edit != nil {
		edit(h)
	}
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: h.Close(9, 2)}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	return set.Members[0]
}

// step is a transaction at an entry that puts keys into an empty store.
func step(t *testing.T, index uint64, keys ...string) *replay.Step {
	t.Helper()
	m, err := replay.NewMachine(t.Context(), nil, replay.MachineOptions{Version: release.Exact(5, 9)})
	if err != nil {
		t.Fatal(err)
	}
	txn := &dumplog.TxnRequest{}
	for _, k := range keys {
		txn.Success = append(txn.Success, dumplog.RequestOp{Put: &dumplog.PutRequest{Key: []byte(k),
			Value: []byte("1")}})
	}
	e := replay.Entry{Entry: &dumplog.Entry{Index: index}, Req: &dumplog.Request{Kind: dumplog.KindTxn, Txn: txn}}
	st := m.Prepare(e)
	if st.Writes() != len(keys) {
		t.Fatalf("%d records of %v", st.Writes(), keys)
	}
	return &st
}

// TestWroteAt: a database shows what an entry did by the records of its revision. A revision that a compaction may have
// thinned, that damage may have taken, or that the database has not reached shows nothing.
func TestWroteAt(t *testing.T) {
	compacted := func(rev int64) func(*clustertest.Hand) {
		return func(h *clustertest.Hand) {
			h.Row("meta", "finishedCompactRev", string(dumpdb.Rev{Main: rev}.Bytes()))
		}
	}
	whole := twoPuts(t, nil)
	damaged, bare := twoPuts(t, nil), twoPuts(t, nil)
	damaged.DB.KVDamaged = true
	bare.DB = nil
	for name, c := range map[string]struct {
		m       *evidence.Member
		rev     int64
		st      *replay.Step
		did, ok bool
	}{
		"its record":           {whole, 2, step(t, 5, "k"), true, true},
		"both records":         {whole, 3, step(t, 6, "a", "b"), true, true},
		"one of two":           {whole, 3, step(t, 6, "a", "b", "c"), false, true},
		"another key":          {whole, 2, step(t, 5, "z"), false, true},
		"a second key":         {whole, 3, step(t, 6, "a"), false, true},
		"no record at it":      {whole, 4, step(t, 9, "k"), false, true},
		"no record after it":   {whole, 4, step(t, 10, "k"), false, false},
		"above the compaction": {twoPuts(t, compacted(2)), 3, step(t, 6, "a", "b"), true, true},
		"at the compaction":    {twoPuts(t, compacted(3)), 3, step(t, 6, "a", "b"), false, false},
		"damage":               {damaged, 2, step(t, 5, "k"), false, false},
		"no database":          {bare, 2, step(t, 5, "k"), false, false},
		"a record that does not decode": {twoPuts(t, func(h *clustertest.Hand) {
			h.Row("key", string(dumpdb.Rev{Main: 4}.Bytes()), "\xff")
		}), 4, step(t, 8, "k"), false, false},
	} {
		if did, ok := wroteAt(c.m, c.st, c.rev); did != c.did || ok != c.ok {
			t.Errorf("%s: %v %v, want %v %v", name, did, ok, c.did, c.ok)
		}
	}
}

// TestWitness: databases decide between two outcomes of which one writes, whichever that is. Where both write, neither
// does, no database shows the revision, or two contradict each other, nothing is decided.
func TestWitness(t *testing.T) {
	has, lacks := twoPuts(t, nil), twoPuts(t, func(h *clustertest.Hand) { h.Revision("z", "1") })
	writes, none, behind := step(t, 6, "a", "b"), step(t, 6), step(t, 12, "n")
	absent := step(t, 6, "n")
	for name, c := range map[string]struct {
		members        []*evidence.Member
		yes, no        *replay.Step
		rev            int64
		follows, shown bool
	}{
		"yes writes, and was":   {[]*evidence.Member{has}, writes, none, 3, true, true},
		"yes writes, was not":   {[]*evidence.Member{has}, absent, none, 3, false, true},
		"no writes, and was":    {[]*evidence.Member{has}, none, writes, 3, false, true},
		"no writes, was not":    {[]*evidence.Member{has}, none, absent, 3, true, true},
		"both write":            {[]*evidence.Member{has}, writes, writes, 3, false, false},
		"neither writes":        {[]*evidence.Member{has}, none, none, 3, false, false},
		"not reached":           {[]*evidence.Member{has}, behind, none, 9, false, false},
		"no member":             {nil, writes, none, 3, false, false},
		"they contradict":       {[]*evidence.Member{has, lacks}, writes, none, 3, false, false},
		"two of one mind":       {[]*evidence.Member{has, has}, writes, none, 3, true, true},
		"one that is not there": {[]*evidence.Member{has, {}}, writes, none, 3, true, true},
	} {
		e := &engine{b: &builder{members: c.members}}
		follows, shown := e.witness(c.yes, c.no, c.rev)
		if follows != c.follows || shown != c.shown {
			t.Errorf("%s: %v %v, want %v %v", name, follows, shown, c.follows, c.shown)
		}
	}
}

// TestAdmits: a member that any source lists was admitted by every server. One that none lists may have been refused
// as one learner too many.
func TestAdmits(t *testing.T) {
	row := func(h *clustertest.Hand) { h.Member(0xb2, true, false); h.Removed(0xb3) }
	b := &builder{set: &evidence.Set{Members: []*evidence.Member{twoPuts(t, nil), twoPuts(t, row)}}}
	for range 2 {
		for id, want := range map[dumplog.ID]release.Answer{0xb2: release.Yes, 0xb4: release.Unknown} {
			if got := b.admits(id); got != want {
				t.Errorf("%s: %v, want %v", id, got, want)
			}
		}
	}
}

// TestReadRaft: from 3.5 on meta/confState says who is a learner for raft. Where a row of bucket members says
// otherwise, the next conf change finds what raft has; a member that raft does not list stays what its row says.
func TestReadRaft(t *testing.T) {
	for name, c := range map[string]struct{ stored, want string }{
		"up to 3.4":      {"", `{"voters":[1,2],"learners":[3],"auto_leave":false}`},
		"as the rows":    {`{"voters":[1,2],"learners":[3]}`, `{"voters":[1,2],"learners":[3],"auto_leave":false}`},
		"promoted":       {`{"voters":[1,2,3]}`, `{"voters":[1,2,3],"auto_leave":false}`},
		"row of a voter": {`{"voters":[1],"learners":[2,3]}`, `{"voters":[1],"learners":[2,3],"auto_leave":false}`},
		"not listed":     {`{"voters":[1]}`, `{"voters":[1,2],"learners":[3],"auto_leave":false}`},
		"no JSON":        {`{`, "error"},
	} {
		ms := &members{byID: map[uint64]*member{1: {ID: 1}, 2: {ID: 2}, 3: {ID: 3, IsLearner: true}},
			rules: apply.NewMembers(release.AnyOf(5))}
		for id, m := range ms.byID {
			ms.rules.Set(dumplog.ID(id), apply.Member{IsLearner: m.IsLearner})
		}
		var stored []byte
		if c.stored != "" {
			stored = []byte(c.stored)
		}
		got, err := "error", ms.readRaft(stored)
		if err == nil {
			b, err := ms.encodeRaft()
			if err != nil {
				t.Fatal(err)
			}
			got = string(b)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
