//go:build e2e

package run_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
	"github.com/etcd-medic/etcd-medic/repair/lab"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

// TestE2ERehearseUnderCorruptAlarm: the alarm accuses a good member, as it does when the bad one leads. It decides
// nothing, it does not stop the repair, and it is disarmed at the end.
func TestE2ERehearseUnderCorruptAlarm(t *testing.T) { onTwoLines(t, rehearseUnderCorruptAlarm) }

func rehearseUnderCorruptAlarm(ctx context.Context, t *testing.T, server node.Server) {
	dir := t.TempDir()
	c, err := lab.Start(ctx, lab.Options{Dir: filepath.Join(dir, "lab"), Server: server})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	broken(ctx, t, c)
	cli, err := c.Client(0)
	if err != nil {
		t.Fatal(err)
	}
	list, err := cli.MemberList(ctx)
	if err != nil {
		t.Fatal(err)
	}
	accused := list.Members[slices.IndexFunc(list.Members,
		func(m *etcdserverpb.Member) bool { return m.Name == "node3" })]
	alarm := etcdserverpb.AlarmMember{MemberID: accused.ID, Alarm: etcdserverpb.AlarmType_CORRUPT}
	key, err := alarm.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	copies := filepath.Join(dir, "copies")
	if err := c.Copies(ctx, copies); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"node1", "node2", "node3"} {
		if err := datadir.EditNew(filepath.Join(copies, n, "member", "snap", "db"),
			datadir.PutBucketKey("alarm", key, nil)); err != nil {
			t.Fatal(err)
		}
	}
	p, err := plan.New(ctx, []evidence.Spec{{Where: copies}}, try.In(""), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Member("node2").Action != plan.Replace || p.Member("node3").Action == plan.Replace {
		t.Errorf("the alarm was taken for evidence: %+v", p.Members)
	}
	file := filepath.Join(dir, "plan.yaml")
	if err := p.Save(file); err != nil {
		t.Fatal(err)
	}
	out, err := run.Rehearse(ctx, file, run.Options{EtcdBinary: server.Path})
	if err != nil || !out.Reached {
		t.Fatalf("%v: %+v", err, out)
	}
	if !slices.ContainsFunc(out.Steps, func(s run.StepResult) bool {
		return s.Detail == "disarmed CORRUPT of "+
			hexOf(accused.ID)
	}) {
		t.Errorf("the alarm was not disarmed: %+v", out.Steps)
	}
}
