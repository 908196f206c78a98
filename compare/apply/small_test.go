package apply

import (
	"fmt"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

func TestAlarms(t *testing.T) {
	a := Alarms{}
	set := func(action, typ int32, member dumplog.ID) bool {
		return a.Apply(&dumplog.AlarmRequest{Action: action, Alarm: typ, MemberID: member})
	}
	for i, c := range []struct{ got, want bool }{
		{set(alarmActivate, AlarmNoSpace, 1), true}, {set(alarmActivate, AlarmNoSpace, 1), false},
		{set(alarmActivate, AlarmNone, 1), false},
		{set(alarmDeactivate, AlarmNoSpace, 2), false}, {set(0, AlarmNoSpace, 1), false},
		{set(alarmDeactivate, AlarmNoSpace, 1), true},
	} {
		if c.got != c.want {
			t.Errorf("request %d: %v, want %v", i, c.got, c.want)
		}
	}
	if len(a) != 0 {
		t.Error("an alarm is left:", a)
	}
}

func TestAlarmChecks(t *testing.T) {
	p, long := put("k", 0, false), string(make([]byte, 1000))
	deep := nested(p)
	for range MaxTxnDepth - 1 {
		deep = nested(deep)
	}
	noSpace, corrupt := Verdict{Reason: ReasonNoSpace}, Verdict{Reason: ReasonCorrupt}
	for name, c := range map[string]struct {
		r                  *dumplog.Request
		version            string
		onNoSpace, onDirty Verdict
	}{
		"put":              {&dumplog.Request{Put: p.Put}, "", noSpace, corrupt},
		"grant":            {&dumplog.Request{LeaseGrant: &dumplog.LeaseGrantRequest{ID: 1}}, "", noSpace, corrupt},
		"delete":           {&dumplog.Request{DeleteRange: &dumplog.DeleteRangeRequest{}}, "", Verdict{}, corrupt},
		"revoke":           {&dumplog.Request{LeaseRevoke: &dumplog.LeaseRevokeRequest{}}, "", Verdict{}, corrupt},
		"compaction":       {&dumplog.Request{Compaction: &dumplog.CompactionRequest{}}, "", Verdict{}, corrupt},
		"auth":             {authOp(dumplog.KindAuthUserAdd, "u", ""), "", Verdict{}, Verdict{}},
		"txn that puts":    {&dumplog.Request{Txn: txn(p)}, "", noSpace, corrupt},
		"txn without puts": {&dumplog.Request{Txn: txn()}, "", Verdict{}, corrupt},
		"range":            {&dumplog.Request{Range: &dumplog.RangeRequest{}}, "", Verdict{}, corrupt},
		"txn with a put in its failure branch": {&dumplog.Request{Txn: &dumplog.TxnRequest{
			Failure: []dumplog.RequestOp{p}}}, "", noSpace, corrupt},
		"txn with a long key":              {&dumplog.Request{Txn: txn(opPut(long, ""))}, "", noSpace, corrupt},
		"txn with a long value":            {&dumplog.Request{Txn: txn(opPut("k", long))}, "", noSpace, corrupt},
		"put at the bound of the depth":    {&dumplog.Request{Txn: txn(deep)}, "3.5.33", noSpace, corrupt},
		"put below the bound of the depth": {&dumplog.Request{Txn: txn(nested(deep))}, "3.5.33", Verdict{}, corrupt},
		"nested put, old":                  {&dumplog.Request{Txn: txn(nested(p))}, "3.5.32", Verdict{}, corrupt},
		"nested put, new":                  {&dumplog.Request{Txn: txn(nested(p))}, "3.5.33", noSpace, corrupt},
		"nested put, unknown": {&dumplog.Request{Txn: txn(nested(p))}, "3.6",
			Verdict{ReasonNoSpace, release.NestedPutsCost}, corrupt},
		"nested put, 3.4":      {&dumplog.Request{Txn: txn(nested(p))}, "3.4", Verdict{}, corrupt},
		"nested without a put": {&dumplog.Request{Txn: txn(nested())}, "3.6", Verdict{}, corrupt},
	} {
		v := release.Of(c.version)
		if got := (Alarms{}).Check(v, c.r); got.Refused() {
			t.Errorf("%s without an alarm: %+v", name, got)
		}
		if got := (Alarms{{1, 9}: {}}).Check(v, c.r); got.Refused() {
			t.Errorf("%s at an alarm of another type: %+v", name, got)
		}
		if got := (Alarms{{1, AlarmNoSpace}: {}}).Check(v, c.r); got != c.onNoSpace {
			t.Errorf("%s at NOSPACE: %+v, want %+v", name, got, c.onNoSpace)
		}
		if got := (Alarms{{1, AlarmCorrupt}: {}, {1, AlarmNoSpace}: {}}).Check(v, c.r); got != c.onDirty {
			t.Errorf("%s at CORRUPT: %+v, want %+v", name, got, c.onDirty)
		}
	}
}

func TestLeaseAndCompaction(t *testing.T) {
	for _, c := range []struct {
		id, ttl int64
		exists  bool
		want    Reason
	}{{1, 10, false, ReasonNone}, {1, 9_000_000_000, false, ReasonNone}, {0, 10, false, ReasonInvalid},
		{1, 9_000_000_001, false, ReasonInvalid},
		{1, 10, true, ReasonLeaseExists}} {
		if got := CheckGrant(&dumplog.LeaseGrantRequest{ID: c.id, TTL: c.ttl}, c.exists); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	for rev, want := range map[int64]Reason{4: ReasonCompacted, 5: ReasonCompacted, 6: ReasonNone, 9: ReasonNone,
		10: ReasonFuture} {
		if got := CheckCompaction(&dumplog.CompactionRequest{Revision: rev}, 5, 9); got != want {
			t.Errorf("revision %d: %q, want %q", rev, got, want)
		}
	}
}

func add(id dumplog.ID, learner bool, urls ...string) *dumplog.ConfChange {
	c := &dumplog.ConfChange{NodeID: id, Member: &dumplog.MemberContext{ID: id, PeerURLs: urls, IsLearner: learner}}
	if learner {
		c.Type = dumplog.ConfChangeAddLearnerNode
	}
	return c
}

func promote(id dumplog.ID) *dumplog.ConfChange {
	return &dumplog.ConfChange{NodeID: id, Member: &dumplog.MemberContext{ID: id, IsPromote: true}}
}

func change(typ dumplog.ConfChangeType, id dumplog.ID, urls ...string) *dumplog.ConfChange {
	return &dumplog.ConfChange{Type: typ, NodeID: id, Member: &dumplog.MemberContext{ID: id, PeerURLs: urls}}
}

func TestConfChanges(t *testing.T) {
	ms := NewMembers(release.AnyOf(5))
	for i, c := range []struct {
		change *dumplog.ConfChange
		want   Refusal
	}{
		{add(1, false, "a"), Accepted}, {add(2, false, "b"), Accepted},
		{add(2, false, "x"), IDExists}, {add(3, false, "x", "b"), PeerURLExists}, {add(3, true, "c"), Accepted},
		{add(4, true, "d"), TooManyLearners}, {promote(1), NoLearner}, {promote(4), NoSuchMember},
		{promote(3), Accepted}, {add(4, true, "d"), Accepted},
		{change(dumplog.ConfChangeUpdateNode, 4, "a"), PeerURLExists},
		{change(dumplog.ConfChangeUpdateNode, 4, "d", "e", "e"), Accepted},
		{change(dumplog.ConfChangeUpdateNode, 4, "e", "d"), Accepted},
		{change(dumplog.ConfChangeUpdateNode, 9, "z"), NoSuchMember}, {add(5, false, "e"), PeerURLExists},
		{change(dumplog.ConfChangeRemoveNode, 9), NoSuchMember}, {change(dumplog.ConfChangeRemoveNode, 2), Accepted},
		{change(dumplog.ConfChangeRemoveNode, 2), WasRemoved},
		{add(2, false, "b"), WasRemoved}, {add(6, false, "b"), Accepted}, {&dumplog.ConfChange{NodeID: 7}, NoContext},
		{&dumplog.ConfChange{Type: dumplog.ConfChangeUpdateNode, NodeID: 4}, NoContext},
	} {
		if got := ms.Apply(c.change); got != c.want {
			t.Errorf("change %d: %q, want %q", i, got, c.want)
		}
	}
	voters, learners := ms.IDs()
	if len(voters) != 3 || voters[0] != 1 || voters[1] != 3 || voters[2] != 6 || len(learners) != 1 ||
		learners[0] != 4 || !ms.Removed[2] {
		t.Errorf("voters %v, learners %v, removed %v", voters, learners, ms.Removed)
	}
}

// TestTakeUnchecked: what conf changes do that raft executes although the checks refuse them.
func TestTakeUnchecked(t *testing.T) {
	learner := func(url ...string) Member { return Member{PeerURLs: url, IsLearner: true} }
	update, bare := dumplog.ConfChangeUpdateNode, dumplog.ConfChange{Type: dumplog.ConfChangeUpdateNode, NodeID: 2}
	for name, c := range map[string]struct {
		change *dumplog.ConfChange
		want   Member
		listed bool
	}{
		"update":                   {change(update, 2, "x"), learner("x"), true},
		"update without a context": {&bare, learner("b"), true},
		"update of no member":      {change(update, 9, "x"), Member{}, false},
		"add what is a learner":    {add(2, false, "x"), Member{PeerURLs: []string{"b"}}, true},
		"add a learner again":      {add(2, true, "x"), learner("b"), true},
		"add a voter as a learner": {add(1, true, "x"), Member{PeerURLs: []string{"a"}}, true},
		"add without a context":    {&dumplog.ConfChange{NodeID: 3}, Member{}, true},
		"learner without a context": {&dumplog.ConfChange{Type: dumplog.ConfChangeAddLearnerNode, NodeID: 3}, learner(),
			true},
		"remove": {change(dumplog.ConfChangeRemoveNode, 1), Member{}, false},
	} {
		ms := NewMembers(release.AnyOf(7))
		ms.Set(1, Member{PeerURLs: []string{"a"}})
		ms.Set(2, Member{PeerURLs: []string{"b"}, IsLearner: true})
		ms.Take(c.change)
		got, listed := ms.Get(c.change.NodeID)
		if fmt.Sprint(got) != fmt.Sprint(c.want) || listed != c.listed {
			t.Errorf("%s: %+v, listed %t; want %+v", name, got, listed, c.want)
		}
	}
}

// TestLearnerLimit: where it is an option only other evidence shows whether a second learner was taken.
func TestLearnerLimit(t *testing.T) {
	for _, c := range []struct {
		version string
		admits  bool
		want    Refusal
	}{{"3.5", true, TooManyLearners}, {"3.6", true, Accepted}, {"3.6", false, TooManyLearners}, {"", true, Accepted},
		{"3.4", false, TooManyLearners}} {
		ms := NewMembers(release.Of(c.version))
		ms.Admits = func(dumplog.ID) release.Answer { return release.AnswerOf(c.admits) }
		ms.Apply(add(1, true, "a"))
		// The type of the change or its context makes the new member a learner.
		byType := change(dumplog.ConfChangeAddLearnerNode, 2, "b")
		byContext := add(2, true, "b")
		byContext.Type = dumplog.ConfChangeAddNode
		if got := ms.Check(byType); got != c.want {
			t.Errorf("%+v, by type: %q", c, got)
		}
		if c.version == "3.6" {
			c.want = Accepted // the limit is for changes of the learners' type
		}
		if got := ms.Check(byContext); got != c.want {
			t.Errorf("%+v, by context: %q", c, got)
		}
	}
}

// TestUnknownURL: a new member whose peer URL may belong to a member without known URLs was refused if other evidence
// shows that it did not become a member.
func TestUnknownURL(t *testing.T) {
	for admits, want := range map[release.Answer]Refusal{release.Yes: Accepted, release.Unknown: Accepted,
		release.No: PeerURLExists} {
		ms := NewMembers(release.Of("3.7"))
		ms.Reset([]dumplog.ID{1, 2}, nil)
		ms.Set(1, Member{PeerURLs: []string{"a"}})
		ms.Admits = func(dumplog.ID) release.Answer { return admits }
		if got := ms.Check(add(3, false, "b")); got != want {
			t.Errorf("%s: %q, want %q", admits, got, want)
		}
		ms.Set(2, Member{PeerURLs: []string{"c"}})
		if got := ms.Check(add(3, false, "b")); got != Accepted {
			t.Errorf("%s, all URLs known: %q", admits, got)
		}
	}
}

// TestUpdateOfLearner: 3.4 lists an updated learner as a voter, and refuses to promote it.
func TestUpdateOfLearner(t *testing.T) {
	for version, want := range map[string]struct {
		clears  release.Answer
		promote Refusal
	}{"3.4": {release.Yes, NoLearner}, "3.5": {release.Unknown, Accepted}, "3.5.31": {release.No, Accepted},
		"3.7": {release.No, Accepted}} {
		ms := NewMembers(release.Of(version))
		ms.Apply(add(1, true, "a"))
		u := change(dumplog.ConfChangeUpdateNode, 1, "b")
		keeps := change(dumplog.ConfChangeUpdateNode, 1, "b")
		keeps.Member.IsLearner = true
		for _, c := range []*dumplog.ConfChange{keeps, add(1, false, "b"), change(dumplog.ConfChangeUpdateNode, 2, "b"),
			{Type: dumplog.ConfChangeUpdateNode, NodeID: 1}} {
			if got := ms.UpdateClearsLearner(c); got != release.No {
				t.Errorf("%s: change %+v clears %s", version, c, got)
			}
		}
		if got := ms.UpdateClearsLearner(u); got != want.clears {
			t.Errorf("%s: clears %s", version, got)
		}
		ms.Apply(u)
		if _, learners := ms.IDs(); len(learners) != 1 {
			t.Errorf("%s: raft keeps the learner", version)
		}
		if got := ms.Check(promote(1)); got != want.promote {
			t.Errorf("%s: promotion %q", version, got)
		}
		// The limit is for learners of the list.
		second := map[Refusal]Refusal{NoLearner: Accepted, Accepted: TooManyLearners}[want.promote]
		if got := ms.Check(add(3, true, "c")); got != second {
			t.Errorf("%s: another learner %q", version, got)
		}
	}
}

// TestListAsVoter: the list may have a learner as a voter from the beginning.
func TestListAsVoter(t *testing.T) {
	ms := NewMembers(release.Of("3.6"))
	ms.Set(1, Member{PeerURLs: []string{"a"}, IsLearner: true})
	ms.Set(2, Member{PeerURLs: []string{"b"}})
	for _, id := range []dumplog.ID{1, 2, 3} {
		ms.ListAsVoter(id)
	}
	voters, learners := ms.IDs()
	if len(voters) != 1 || voters[0] != 2 || len(learners) != 1 || ms.Check(promote(1)) != NoLearner ||
		ms.Check(add(3, true, "c")) != Accepted {
		t.Errorf("voters %v, learners %v", voters, learners)
	}
	ms.Take(add(1, false))
	if _, learners := ms.IDs(); len(learners) != 0 || ms.Check(add(3, true, "c")) != Accepted {
		t.Errorf("learners %v", learners)
	}
}

// TestReset: a snapshot gives raft's configuration, and peer URLs stay known.
func TestReset(t *testing.T) {
	ms := NewMembers(release.AnyOf(5))
	ms.Apply(add(1, false, "a"))
	ms.Apply(add(2, false, "b"))
	ms.Apply(change(dumplog.ConfChangeRemoveNode, 2))
	ms.Apply(add(3, false, "c"))
	ms.Apply(change(dumplog.ConfChangeRemoveNode, 3))
	ms.Reset([]dumplog.ID{1}, []dumplog.ID{3})
	if got := ms.Check(add(2, false, "d")); got != WasRemoved {
		t.Errorf("a removed member that is not in the snapshot: %q", got)
	}
	if got := ms.Check(add(4, false, "a")); got != PeerURLExists {
		t.Errorf("the URL of member 1: %q", got)
	}
	if got := ms.Check(add(4, false, "b")); got != Accepted {
		t.Errorf("the URL of a member that is gone: %q", got)
	}
	if got := ms.Check(promote(3)); got != Accepted {
		t.Errorf("promotion of the learner: %q", got)
	}
}
