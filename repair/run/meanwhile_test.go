package run

import (
	"errors"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestAlarmThatWasRaisedMeanwhile: a run leaves a CORRUPT alarm that its plan does not know. It says whether the
// members hold the same now, and how to clear it.
func TestAlarmThatWasRaisedMeanwhile(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	c.alarms = []*etcdserverpb.AlarmMember{{MemberID: 0xa, Alarm: etcdserverpb.AlarmType_CORRUPT},
		{MemberID: 0xb, Alarm: etcdserverpb.AlarmType_NOSPACE}, {MemberID: 0xc, Alarm: etcdserverpb.AlarmType_CORRUPT}}
	p := &proof{cluster: c.r.cluster}
	_, err := p.noAlarm(t.Context(), c.r.present())
	wantError(t, "alarms", err, "alarm CORRUPT of member a, c is raised")
	wantError(t, "alarms", err, "etcdctl --endpoints http://node1:2379 alarm disarm")
	p.sandbox = true
	_, err = p.noAlarm(t.Context(), c.r.present())
	if err == nil || strings.Contains(err.Error(), "etcdctl") {
		t.Errorf("copies: %v", err)
	}
	c.alarms = c.alarms[1:2]
	if _, err = p.noAlarm(t.Context(), c.r.present()); err != nil {
		t.Errorf("NOSPACE alone: %v", err)
	}
}

// TestOwnLearner: a learner that an earlier call of this step added, without an answer, is not someone else's.
func TestOwnLearner(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	m := c.r.plan.Member("node2")
	c.list[1].ID, c.list[1].IsLearner = 99, true
	if err := c.r.noOtherLearner(t.Context(), m); err != nil {
		t.Error(err)
	}
}

// TestDataDirThatWasNotMoved: a hook that says it moved the data dir, and did not, is found out before the member is
// added.
func TestDataDirThatWasNotMoved(t *testing.T) {
	p, err := planIncident(t, "a-auth-revision-replay", plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := p.Member("node3")
	c := newFake(t, p)
	c.set(uint64(m.ID), false)
	c.r.live.DataDirs = map[string]string{m.Name: m.Source}
	_, err = doSetAside(t.Context(), c.r, &plan.Step{ID: "x", Kind: plan.StepSetAside, Member: m.Name})
	wantError(t, "set aside", err, "is still at "+m.Source)
}

// TestLearnersToAdd: a learner that gave way to the voters is not forgotten.
func TestLearnersToAdd(t *testing.T) {
	p := fakePlan(t, 4, "node2")
	p.Cluster.Voters, p.Cluster.Quorum = 3, 2
	p.Members[3].Learner, p.Members[3].Action = true, plan.Remove
	c := newFake(t, p)
	if got := c.r.learnersToAdd(); len(got) > 0 {
		t.Errorf("before it was removed: %q", got)
	}
	c.list[3].IsLearner = true
	if err := c.r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	const add = "member add --learner --peer-urls=http://node4:2380 -- node4"
	if got := c.r.learnersToAdd(); len(got) != 1 || !strings.Contains(got[0], add) {
		t.Errorf("%q, want %q in one of them", got, add)
	}
}

// TestUnlistedForWantOfAMajority: a cluster that lost its majority between two runs is refused with the voters that are
// missing and how they are started.
func TestUnlistedForWantOfAMajority(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node3"))
	f := &liveCheck{liveHost: &liveHost{r: c.r}}
	late := errors.New("too late")
	if r := wantRefusal(t, f.unlisted(t.Context(), late)); !strings.Contains(r.Error(), "too late") {
		t.Errorf("with a majority: %v", r)
	}
	c.set(2, false)
	c.set(3, false)
	r := wantRefusal(t, f.unlisted(t.Context(), late))
	wantError(t, "without", r, "needed to elect a leader; it waits for")
	if a := r.Advice(); !strings.Contains(a, "[node2] systemctl start etcd") || strings.Contains(a, "[node1]") {
		t.Errorf("the advice is %q", r.Advice())
	}
}
