package run

import (
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
