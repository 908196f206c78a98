//go:build e2e

package run_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/lab"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
	"github.com/etcd-medic/etcd-medic/repair/surgery"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

// TestE2EWrongRecordsOfTheBest: every member holds values that are proven wrong, the best the fewest. Its own are made
// right
// with the help of the others, as the plan says, and a plan with the mended data dir loses nothing. The repair with it
// ends with the right values on all members.
func TestE2EWrongRecordsOfTheBest(t *testing.T) { onTwoLines(t, wrongRecordsOfTheBest) }

func wrongRecordsOfTheBest(ctx context.Context, t *testing.T, server node.Server) {
	dir := t.TempDir()
	c, err := lab.Start(ctx, lab.Options{Dir: filepath.Join(dir, "lab"), Server: server})
	noError(t, err)
	defer func() { _ = c.Close() }()
	if n, err := c.Write(ctx, 0, "/k/", 40); err != nil || n != 40 {
		t.Fatalf("%d of 40 writes, %v", n, err)
	}
	copies := filepath.Join(dir, "copies")
	noError(t, c.Copies(ctx, copies))
	altered := map[string][]int64{"node1": {5}, "node2": {20, 21}, "node3": {30, 31}}
	all := []int64{5, 20, 21, 30, 31}
	right := valuesOf(t, filepath.Join(copies, "node1"), all)
	for name, revs := range altered {
		casetest.EditDB(t, filepath.Join(copies, name), casetest.AlterRecords(revs...))
	}

	before := planWith(ctx, t, copies, nil)
	if before.Best.Name != "node1" || before.Lost.Records.Count != 1 || before.Lost.Mend == "" {
		t.Fatalf("keeps %s, %d wrong records, mended by %q", before.Best.Name, before.Lost.Records.Count,
			before.Lost.Mend)
	}
	mended := filepath.Join(dir, "mended")
	at := func(name string) evidence.Spec { return evidence.Spec{Name: name, Where: filepath.Join(copies, name)} }
	_, err = surgery.Run(ctx, surgery.Options{Source: at("node1"), Out: mended,
		With: []evidence.Spec{at("node2"), at("node3")}}, surgery.DB{Proven: true})
	noError(t, err)

	after := planWith(ctx, t, copies, map[string]string{"node1": mended})
	if l := &after.Lost; after.Best.Name != "node1" || l.Records.Count > 0 || l.CommittedEntries > 0 ||
		len(l.Unproven) > 0 {
		t.Fatalf("after: keeps %s, loses %+v", after.Best.Name, l)
	}
	file := filepath.Join(dir, "plan.yaml")
	noError(t, after.Save(file))
	o := run.Options{EtcdBinary: server.Path, Rehearse: plan.Clone}
	out, err := run.Rehearse(ctx, file, o)
	if err != nil || !out.Reached {
		t.Fatalf("%v: %+v", err, out)
	}
	o.Rehearse = ""
	out, err = run.Apply(ctx, file, run.ApplyOptions{Mode: plan.Clone, Out: filepath.Join(dir, "new"), Options: o})
	if err != nil || !out.Reached || len(out.Dirs) != 3 {
		t.Fatalf("%v: %+v", err, out)
	}
	var dirs []string
	for name, d := range out.Dirs {
		if got := valuesOf(t, d, all); !slices.Equal(got, right) {
			t.Errorf("%s holds %q, want %q", name, got, right)
		}
		dirs = append(dirs, name+"="+d)
	}
	wantHealthy(t, dirs)
}

// planWith is the plan for the members of a folder, some of them in other places.
func planWith(ctx context.Context, t *testing.T, copies string, instead map[string]string) *plan.Plan {
	t.Helper()
	var specs []evidence.Spec
	for _, name := range []string{"node1", "node2", "node3"} {
		where := filepath.Join(copies, name)
		if w := instead[name]; w != "" {
			where = w
		}
		specs = append(specs, evidence.Spec{Name: name, Where: where})
	}
	p, err := plan.New(ctx, specs, try.In(""), plan.Options{})
	noError(t, err)
	return p
}

// valuesOf are the values of a data dir at revisions.
func valuesOf(t *testing.T, dir string, revs []int64) (out []string) {
	t.Helper()
	db, err := dumpdb.Open(filepath.Join(dir, "member", "snap", "db"))
	noError(t, err)
	defer func() { _ = db.Close() }() // only read
	for _, rev := range revs {
		for rec, err := range db.Query(t.Context(), dumpdb.Query{FromRev: rev, ToRev: rev}) {
			noError(t, err)
			out = append(out, string(rec.KV.Value))
		}
	}
	return out
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
