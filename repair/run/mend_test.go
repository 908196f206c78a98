package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

// mendCase is a set with damaged files, and what mends them.
type mendCase struct {
	name, incident string
	members        []string
	o              plan.Options
	damage         func(t *testing.T, dir string)
	// mended are the members that get a new data dir, by the repairs; recommended is false where the cluster can be
	// repaired while it runs.
	mended      map[string]string
	recommended bool
	// others are diagnosed with the mended data dirs.
	others []string
}

func mendCases() []mendCase {
	return []mendCase{
		{"one member, one page", "f-bbolt-page-corruption", []string{"node1"}, plan.Options{}, nil,
			map[string]string{"node1": "db"}, true, nil},
		{"log and database", "f-bbolt-page-corruption", []string{"node1", "node2"},
			plan.Options{Gone: []string{"node3"}}, flipLog("node1"), map[string]string{"node1": "wal db"}, true,
			[]string{"node2"}},
		{"an empty database", "f2-empty-db", nil, plan.Options{}, nil, map[string]string{"node3": "db"}, false,
			[]string{"node1", "node2"}},
		{"no database", "f2-empty-db", []string{"node3"}, plan.Options{}, dropDB("node3"),
			map[string]string{"node3": "db"}, true, nil},
		{"a missing segment", "e3-wal-missing-last-segment", []string{"node1", "node3"}, plan.Options{}, nil,
			map[string]string{"node1": "wal"}, true, []string{"node3"}},
		{"two of three", "m-healthy-3.6", nil, plan.Options{}, spoilTwo,
			map[string]string{"node1": "db", "node2": "wal"}, true, []string{"node4"}},
		{"members that raft does not know", "m-healthy-3.6", nil, plan.Options{}, haunt,
			map[string]string{"node1": "meta", "node2": "meta", "node4": "meta"}, true, nil},
		{"such members, and a log", "m-healthy-3.6", nil, plan.Options{}, func(t *testing.T, dir string) {
			haunt(t, dir)
			flipLog("node2")(t, dir)
		}, map[string]string{"node1": "meta", "node2": "wal meta", "node4": "meta"}, true, nil},
	}
}

// haunt puts three members into bucket members that raft does not know.
func haunt(t *testing.T, dir string) {
	t.Helper()
	for _, member := range []string{"node1", "node2", "node4"} {
		editDB(t, filepath.Join(dir, member), zombieRows(3))
	}
}

// flipLog flips one bit of a record in the middle of a member's log.
func flipLog(member string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		flip(t, oneOf(t, filepath.Join(dir, member, "member", "wal", "*.wal")), 6000)
	}
}

func dropDB(member string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		if err := os.Remove(filepath.Join(dir, member, "member", "snap", "db")); err != nil {
			t.Fatal(err)
		}
	}
}

// spoilTwo makes a database empty and flips a bit of another member's log: each can be mended, and the third member has
// no majority.
func spoilTwo(t *testing.T, dir string) {
	t.Helper()
	if err := os.Truncate(filepath.Join(dir, "node1", "member", "snap", "db"), 0); err != nil {
		t.Fatal(err)
	}
	flipLog("node2")(t, dir)
}

func oneOf(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", pattern, err)
	}
	return files[0]
}

func flip(t *testing.T, file string, at int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{b[0] ^ 0x10}, at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMend: the plan mends, the rehearsal does the same to copies and starts servers on them, and the application hands
// the data dirs out. The sources stay as they are.
func TestMend(t *testing.T) {
	for _, tc := range mendCases() {
		t.Run(tc.name, func(t *testing.T) { mendsAndProves(t, &tc) })
	}
}

func mendsAndProves(t *testing.T, tc *mendCase) {
	t.Helper()
	file, dir := mendPlan(t, tc)
	out, err := Rehearse(t.Context(), file, Options{Rehearse: plan.MendFiles})
	mustReach(t, out, err)
	applied := filepath.Join(t.TempDir(), "mended")
	out, err = Apply(t.Context(), file, ApplyOptions{Mode: plan.MendFiles, Out: applied})
	mustReach(t, out, err)
	if len(out.Dirs) != len(tc.mended) || len(out.Install) == 0 {
		t.Errorf("data dirs %v, commands %v", out.Dirs, out.Install)
	}
	wantServed(t, out)
	for name := range tc.mended {
		wantProof(t, out, "the mended data dir of "+name+" holds what the plan says")
	}
	wantProof(t, out, "diagnose finds no damage in the mended data dirs")
	if left, _ := filepath.Glob(applied + ".work"); len(left) > 0 {
		t.Errorf("scratch is left behind: %v", left)
	}
	_, err = Apply(t.Context(), file, ApplyOptions{Mode: plan.MendFiles, Out: applied})
	wantRefusal(t, err)
	wantSound(t, dir, applied, tc)
}

// wantProof wants a proof that begins with these words, and that holds.
func wantProof(t *testing.T, out *Outcome, what string) {
	t.Helper()
	if !slices.ContainsFunc(out.Proofs, func(p Proof) bool {
		return strings.HasPrefix(p.What, what) && p.Outcome == holds
	}) {
		t.Errorf("nothing proves that %s: %+v", what, out.Proofs)
	}
}

// wantServed wants a proof that servers run on copies of the result, and the isolation of their sandbox.
func wantServed(t *testing.T, out *Outcome) {
	t.Helper()
	if len(out.Isolation) == 0 {
		t.Error("the isolation of the sandbox is not said")
	}
	if !slices.ContainsFunc(out.Proofs, func(p Proof) bool {
		return p.Outcome == holds && (strings.HasPrefix(p.What, "HashKV is equal on all members") ||
			strings.HasPrefix(p.What, "a server starts on a copy of the mended data dir"))
	}) {
		t.Errorf("no server proves the result: %+v", out.Proofs)
	}
}

// mendPlan damages the set and saves the plan, which has to mend what the case says.
func mendPlan(t *testing.T, tc *mendCase) (file, dir string) {
	t.Helper()
	dir = evidencetest.Incident(t, tc.incident)
	if tc.damage != nil {
		dir = evidencetest.Copy(t, dir)
		tc.damage(t, dir)
	}
	evidencetest.Unchanged(t, dir)
	specs := specsOf(dir)
	if tc.members != nil {
		specs = nil
	}
	for _, m := range tc.members {
		specs = append(specs, evidence.Spec{Name: m, Where: filepath.Join(dir, m)})
	}
	p, err := plan.New(t.Context(), specs, try.In(""), tc.o)
	if err != nil {
		t.Fatal(err)
	}
	if w := p.Way(plan.MendFiles); w == nil || !w.Possible || w.Recommended != tc.recommended {
		t.Fatalf("mode %s (%s), mends %+v; want them mended, recommended %v", p.Mode, p.Why, p.Mends, tc.recommended)
	}
	got := map[string]string{}
	for _, m := range p.ToMend() {
		got[m.Name] = strings.Join(p.MendOf(m.Source).Repairs, " ")
	}
	for name, repairs := range tc.mended {
		if got[name] != repairs || len(got) != len(tc.mended) {
			t.Fatalf("mends %v, want %v", got, tc.mended)
		}
	}
	file = filepath.Join(t.TempDir(), "plan.yaml")
	if err := p.Save(file); err != nil {
		t.Fatal(err)
	}
	return file, dir
}

// wantSound diagnoses the mended data dirs in the place of the old ones.
func wantSound(t *testing.T, dir, applied string, tc *mendCase) {
	t.Helper()
	specs := specsOf(applied)
	for _, m := range tc.others {
		specs = append(specs, evidence.Spec{Name: m, Where: filepath.Join(dir, m)})
	}
	r, err := compare.Diagnose(t.Context(), specs, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict.Health != check.Healthy || len(r.Members) != len(tc.mended)+len(tc.others) {
		t.Errorf("%d members, %s: %s", len(r.Members), r.Verdict.Class, r.Verdict.Summary)
	}
}

// TestMendOfAChangedPromise: what does not hold what the plan says is not called mended.
func TestMendOfAChangedPromise(t *testing.T) {
	p, err := planIncident(t, "f-bbolt-page-corruption", plan.Options{}, "node1")
	if err != nil {
		t.Fatal(err)
	}
	p.Mends[0].Promise.HashKV++
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := p.Save(file); err != nil {
		t.Fatal(err)
	}
	out, err := Rehearse(t.Context(), file, Options{})
	if err == nil || out == nil || out.Reached {
		t.Fatalf("outcome %+v, error %v; want it not reached", out, err)
	}
	if !slices.ContainsFunc(out.Proofs, func(p Proof) bool {
		return p.Outcome == violated &&
			strings.Contains(p.What, "what the plan says")
	}) {
		t.Errorf("proofs %+v", out.Proofs)
	}
}
