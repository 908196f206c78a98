package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// mendingOf is a run that mends the given members of n: the others are as the plan of the fakes has them.
func mendingOf(t *testing.T, n int, bad string, mended ...string) *mending {
	t.Helper()
	p := fakePlan(t, n, bad)
	for _, name := range mended {
		p.Member(name).Startable = false
		p.Mends = append(p.Mends, plan.Mend{Member: name, Works: true, Repairs: []string{plan.MendDB},
			Promise: &plan.Promise{}})
	}
	return &mending{s: &session{plan: p, out: &Outcome{}}, set: &evidence.Set{}, out: t.TempDir(),
		specs: map[string]evidence.Spec{}}
}

// TestRoomForMending: a mended data dir takes three times its source and a log, a copy of another member that runs with
// it takes its size and a log, and what is replaced or unknown takes nothing.
func TestRoomForMending(t *testing.T) {
	m := mendingOf(t, 4, "node4", "node1", "node2")
	set := &evidence.Set{}
	for label, size := range map[string]int64{"node1": 100, "node2": 10, "node3": 1000, "node4": 50_000,
		"other": 700_000} {
		set.Members = append(set.Members, &evidence.Member{Source: &evidence.Source{Name: label,
			Manifest: &evidence.Manifest{Bytes: size}}})
	}
	if got, want := (mendFiles{m.s}).needs(set), int64(3*110+1000+3*plan.WALRoom); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

// TestMendedMajority: copies run together where the voters among them are a majority. Learners do not count.
func TestMendedMajority(t *testing.T) {
	m := mendingOf(t, 4, "node4", "node1", "node2")
	var there []string
	for _, p := range m.there() {
		there = append(there, p.Name)
	}
	if d := cmp.Diff([]string{"node1", "node2", "node3"}, there); d != "" {
		t.Errorf("the members that run (-want +got):\n%s", d)
	}
	if !m.majority() {
		t.Error("three of four voters are no majority")
	}
	m.s.plan.Member("node3").Learner = true
	if m.majority() {
		t.Error("two of four voters and a learner are a majority")
	}
}

// TestMendedDirsAreListed: the outcome names the mended data dirs that exist, and says how to put them in place only if
// their proofs hold.
func TestMendedDirsAreListed(t *testing.T) {
	m := mendingOf(t, 4, "node4", "node1", "node2")
	m.s.plan.Ways = []plan.Way{{Mode: plan.MendFiles, Steps: []plan.Step{{Kind: plan.StepHandOut,
		ByHand: []plan.Command{{With: "note", Note: plan.CopyOut}}}}}}
	for _, name := range []string{"node1", "node3"} { // node3 stays, so its folder is not of this run
		if err := os.Mkdir(filepath.Join(m.out, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		outcome  string // "" is no proof
		commands int
	}{{"", 0}, {violated, 0}, {holds, 1}} {
		m.s.out = &Outcome{}
		if tc.outcome != "" {
			m.s.out.prove("it works", tc.outcome, "")
		}
		mendFiles{m.s}.listDirs(m.out, nil)
		if d := cmp.Diff(map[string]string{"node1": filepath.Join(m.out, "node1")}, m.s.out.Dirs); d != "" {
			t.Errorf("data dirs (-want +got):\n%s", d)
		}
		if len(m.s.out.Install) != tc.commands {
			t.Errorf("a proof that %q: commands %v", tc.outcome, m.s.out.Install)
		}
	}
}

// TestMendedBefore: a data dir that an earlier process has completed is not made again.
func TestMendedBefore(t *testing.T) {
	m := mendingOf(t, 3, "", "node1")
	if err := os.Mkdir(filepath.Join(m.out, "node1"), 0o700); err != nil {
		t.Fatal(err)
	}
	detail, err := m.makeDir(t.Context(), &plan.Step{Member: "node1"})
	if err != nil || detail != "it is there" {
		t.Errorf("%q, %v", detail, err)
	}
}

// promisedDB writes the database of a mended data dir, and returns what it holds at its revision and at the one before.
func promisedDB(t *testing.T, dir string) (now, before plan.Promise) {
	t.Helper()
	path := filepath.Join(dir, "member", "snap", "db")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
		os.MkdirAll(filepath.Join(dir, "member", "wal"), 0o700)); err != nil {
		t.Fatal(err)
	}
	clustertest.Synth{Members: 1, Entries: 40, Keys: 5, Value: 16}.WriteDB(t, path)
	db, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // only read
	rev, err := db.CurrentRev()
	if err != nil {
		t.Fatal(err)
	}
	at := func(rev int64) plan.Promise {
		h, err := db.HashKV(t.Context(), rev)
		if err != nil {
			t.Fatal(err)
		}
		return plan.Promise{Revision: rev, HashKV: h.Hash, Compact: h.CompactRev}
	}
	return at(rev), at(rev - 1)
}

// TestMendedAsPromised: revision, hash and compact revision of a mended data dir are all those of the plan.
func TestMendedAsPromised(t *testing.T) {
	m := mendingOf(t, 3, "", "node1")
	now, before := promisedDB(t, filepath.Join(m.out, "node1"))
	for name, tc := range map[string]struct {
		change func(p *plan.Promise)
		want   string
	}{
		"as promised": {func(*plan.Promise) {}, holds},
		// The hash of an earlier revision is right; the data dir only holds more than that.
		"an earlier revision":   {func(p *plan.Promise) { *p = before }, violated},
		"another hash":          {func(p *plan.Promise) { p.HashKV++ }, violated},
		"another compact point": {func(p *plan.Promise) { p.Compact++ }, violated},
	} {
		promise := now
		tc.change(&promise)
		m.s.plan.Mends[0].Promise, m.s.out = &promise, &Outcome{}
		if err := m.kept(t.Context(), m.s.plan.Member("node1")); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := []Proof{{What: "the mended data dir of node1 holds what the plan says", Outcome: tc.want,
			Detail: fmt.Sprintf("HashKV %d at revision %d", now.HashKV, now.Revision)}}
		if tc.want == violated {
			want[0].Detail = fmt.Sprintf("HashKV is %d at revision %d, compacted at %d; the plan says %d at %d, "+
				"compacted at %d", m.hashAt(t, promise.Revision), now.Revision, now.Compact, promise.HashKV,
				promise.Revision, promise.Compact)
		}
		if d := cmp.Diff(want, m.s.out.Proofs); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// hashAt is HashKV of the mended data dir of node1.
func (m *mending) hashAt(t *testing.T, rev int64) uint32 {
	t.Helper()
	db, err := dumpdb.Open(filepath.Join(m.out, "node1", "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // only read
	h, err := db.HashKV(t.Context(), rev)
	if err != nil {
		t.Fatal(err)
	}
	return h.Hash
}

// TestDamageOfOthers: damage of a mended data dir violates its proof. Damage of a member that runs with it does not,
// and is noted.
func TestDamageOfOthers(t *testing.T) {
	set := evidencetest.Incident(t, "f-bbolt-page-corruption") // node1 is damaged
	for _, tc := range []struct {
		mended, with, replaced, want string
		notes                        int
	}{{"node1", "node2", "node3", violated, 0}, {"node2", "node1", "node3", holds, 1},
		{"node2", "node3", "node1", holds, 0}} {
		m := mendingOf(t, 3, "", tc.mended)
		m.s.plan.Member(tc.replaced).Action = plan.Replace
		m.out = set // its folders are those of the members
		m.specs[tc.with] = evidence.Spec{Name: "a source", Where: filepath.Join(set, tc.with)}
		if _, err := m.diagnose(t.Context()); err != nil {
			t.Fatal(err)
		}
		p := m.s.out.Proofs
		if len(p) != 1 || p[0].Outcome != tc.want || len(m.s.out.Notes) != tc.notes || m.s.out.Bytes == 0 {
			t.Errorf("%s mended, with %s: %d bytes, notes %q, %+v", tc.mended, tc.with, m.s.out.Bytes, m.s.out.Notes, p)
		}
		if slices.ContainsFunc(m.s.out.Notes, func(n string) bool {
			return !strings.HasPrefix(n, "with the mended data dirs the diagnosis is: ")
		}) {
			t.Errorf("notes %q", m.s.out.Notes)
		}
	}
}

// mendedAlone is a run that has mended the data dir of the only source.
func mendedAlone(t *testing.T) *mending {
	t.Helper()
	p, err := planIncident(t, "f-bbolt-page-corruption", plan.Options{}, "node1")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{}
	o.fill()
	s := &session{plan: p, file: filepath.Join(t.TempDir(), "plan.yaml"), o: o, out: &Outcome{}}
	if err := s.journal(rehearsal); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.j.close() })
	st := &sandboxHost{dir: t.TempDir(), say: o.Progress, patience: o.limits.step}
	m := &mending{s: s, st: st, r: newRunner(s.state(), st, o.limits), set: &evidence.Set{}, out: t.TempDir(),
		specs: map[string]evidence.Spec{"node1": {Name: "node1", Where: "node1"}}}
	m.r.sandbox = true
	if did, err := m.makeDir(t.Context(), &plan.Step{Member: "node1"}); err != nil || did == "" {
		t.Fatal(did, err)
	}
	return m
}

// TestServesAsPromised: a server on a copy of a mended data dir that serves another hash violates its proof. If it was
// compacted since, or does not have the revision, the hashes cannot be compared.
func TestServesAsPromised(t *testing.T) {
	m := mendedAlone(t)
	promise := *m.s.plan.Mends[0].Promise
	for name, tc := range map[string]struct {
		change       func(p *plan.Promise)
		want, detail string
	}{
		"another hash": {func(p *plan.Promise) { p.HashKV++ }, violated,
			fmt.Sprintf("HashKV is %d at revision %d, the plan says %d", promise.HashKV, promise.Revision,
				promise.HashKV+1)},
		"compacted since": {func(p *plan.Promise) { p.HashKV, p.Compact = p.HashKV+1, p.Compact+7 }, notChecked,
			"the server is compacted at "},
		"a later revision": {func(p *plan.Promise) { p.Revision += 1_000_000 }, notChecked, "etcdserver: "},
	} {
		x := promise
		tc.change(&x)
		m.s.plan.Mends[0].Promise, m.s.out.Proofs = &x, nil
		if err := os.RemoveAll(filepath.Join(m.st.dir, "members")); err != nil {
			t.Fatal(err)
		}
		if err := m.alone(t.Context(), m.s.plan.Member("node1")); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if p := m.s.out.Proofs; len(p) != 1 || p[0].Outcome != tc.want || !strings.HasPrefix(p[0].Detail, tc.detail) {
			t.Errorf("%s: %+v", name, p)
		}
		if len(m.s.out.Isolation) == 0 {
			t.Errorf("%s: the isolation of the sandbox is not said", name)
		}
	}
}
