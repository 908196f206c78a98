package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

func corrupt(id uint64) *etcdserverpb.AlarmMember {
	return &etcdserverpb.AlarmMember{MemberID: id, Alarm: etcdserverpb.AlarmType_CORRUPT}
}

func noSpace(id uint64) *etcdserverpb.AlarmMember {
	return &etcdserverpb.AlarmMember{MemberID: id, Alarm: etcdserverpb.AlarmType_NOSPACE}
}

// TestDisarm: CORRUPT is disarmed of every member, NOSPACE of none.
func TestDisarm(t *testing.T) {
	for _, tc := range []struct {
		alarms []*etcdserverpb.AlarmMember
		left   int
		detail string
	}{
		{nil, 0, "no CORRUPT alarm is raised"},
		{[]*etcdserverpb.AlarmMember{noSpace(1)}, 1, "no CORRUPT alarm is raised"},
		{[]*etcdserverpb.AlarmMember{corrupt(2), noSpace(2), corrupt(0xa3)}, 1, "disarmed CORRUPT of 2, a3"},
	} {
		c := newFake(t, fakePlan(t, 3))
		c.alarms = tc.alarms
		detail, err := doDisarm(t.Context(), c.r, nil)
		if err != nil || detail != tc.detail || len(c.alarms) != tc.left {
			t.Errorf("%q %v, left %v; want %q, %d left", detail, err, c.alarms, tc.detail, tc.left)
		}
	}
	c := newFake(t, fakePlan(t, 3))
	c.r.limits.step = 20 * time.Millisecond
	c.set(1, false)
	if _, err := doDisarm(t.Context(), c.r, nil); err == nil {
		t.Error("the best member is down, and its alarms are said to be disarmed")
	}
}

// TestVerify: each thing that is wrong in the running cluster is found by its proof.
func TestVerify(t *testing.T) {
	learner := func(c *fakeCluster) {
		c.r.plan.Member("node3").Learner = true
		find(c.list, 3).IsLearner = true
	}
	for _, tc := range []struct {
		name  string
		set   func(c *fakeCluster)
		wrong string // "" is none
		holds int
		says  string
	}{
		{"all is well", func(c *fakeCluster) { c.of(1).auth, c.of(2).auth, c.of(3).auth = 4, 4, 4 }, "", 5,
			"auth revision 4"},
		{"a member is missing", func(c *fakeCluster) { c.list = c.list[:2] },
			"2 members are listed, 3 are planned: node3 (3) was removed meanwhile", 0, ""},
		{"a member too many", func(c *fakeCluster) {
			c.list = append(c.list, &etcdserverpb.Member{ID: 0xee})
		}, "ee is not a member of the plan", 0, ""},
		{"a learner is left", func(c *fakeCluster) { find(c.list, 2).IsLearner = true }, "2 is a learner", 0, ""},
		{"CORRUPT", func(c *fakeCluster) { c.alarms = append(c.alarms, noSpace(1), corrupt(0xa2)) },
			"alarm CORRUPT of member a2 is raised", 1, ""},
		{"NOSPACE", func(c *fakeCluster) { c.alarms = append(c.alarms, noSpace(1)) }, "", 5,
			"3 members; alarm NOSPACE is raised, so writes were not tried"},
		{"another hash", func(c *fakeCluster) { c.of(2).hash = 8 },
			"at revision 10 HashKV is 7 on node1 and 8 on node2", 3, ""},
		{"another auth revision", func(c *fakeCluster) { c.of(2).auth = 5 }, "auth revisions differ", 4, ""},
		{"a learner follows", learner, "", 6, "node3"},
		{"a learner has less", func(c *fakeCluster) { learner(c); c.of(3).applied = 9 },
			"learner node3 follows: not within 50ms: applied 9 of 10", 5, ""},
		{"a learner has fewer keys", func(c *fakeCluster) { learner(c); c.of(1).keys["k"] = "v" },
			"at revision 10 node1 holds 1 keys and node3 0", 5, ""},
		{"a member is down", func(c *fakeCluster) { c.up[3] = false }, "read through node3", 2, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newFake(t, fakePlan(t, 3))
			c.r.limits.step, c.r.write = 50*time.Millisecond, true
			c.mu.Lock()
			tc.set(c)
			c.mu.Unlock()
			_, err := doVerify(t.Context(), c.r, nil)
			if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("%v; want %q", err, tc.wrong)
			}
			hold, violations, details := 0, 0, []string{}
			for _, p := range c.r.out.Proofs {
				details = append(details, p.Detail)
				switch p.Outcome {
				case holds:
					hold++
				case violated:
					violations++
				}
			}
			if hold != tc.holds || (violations == 1) != (err != nil) {
				t.Errorf("%+v", c.r.out.Proofs)
			}
			if !slices.ContainsFunc(details, func(d string) bool { return d == tc.says }) && tc.says != "" {
				t.Errorf("details %q, want %q", details, tc.says)
			}
			full := len(c.alarms) > 0
			if wrote := slices.Equal(c.puts, []string{"through node1", "through node2", "through node3"}); err == nil &&
				wrote == (full || tc.holds == 6) || full && len(c.puts) > 0 {
				t.Errorf("wrote %q", c.puts)
			}
			for id := range c.contents {
				if v, ok := c.of(id).keys[probeKey]; ok && err == nil {
					t.Errorf("%q is left on member %d", v, id)
				}
			}
		})
	}
}

// TestVerifyWritesNothing: where the cluster is the real one, nothing is written.
func TestVerifyWritesNothing(t *testing.T) {
	c := newFake(t, fakePlan(t, 3))
	if _, err := doVerify(t.Context(), c.r, nil); err != nil || len(c.puts) > 0 {
		t.Errorf("%v, wrote %q", err, c.puts)
	}
	// Members that the plan leaves where they are may be elsewhere while copies are tried.
	for _, sandbox := range []bool{false, true} {
		c := newFake(t, fakePlan(t, 3))
		c.r.sandbox, c.r.plan.Member("node3").Source = sandbox, ""
		p := &proof{cluster: c.r.cluster}
		_, err := p.listIsPlanned(t.Context(), []*plan.Member{c.r.plan.Member("node1"), c.r.plan.Member("node2")})
		if (err == nil) != sandbox {
			t.Errorf("sandbox %v: %v", sandbox, err)
		}
	}
	if _, err := (&proof{cluster: c.r.cluster}).learnersFollow(t.Context(), c.r.present()); !errors.Is(err,
		errNothingToCheck) {
		t.Errorf("there is no learner: %v", err)
	}
}

// TestServersThatDoNotTell: up to 3.4 servers do not say their auth revision; any other failure is one.
func TestServersThatDoNotTell(t *testing.T) {
	for what, tc := range map[string]struct {
		err  error
		open bool
	}{
		"unknown":  {status.Error(codes.Unimplemented, "unknown method AuthStatus"), true},
		"failed":   {status.Error(codes.Internal, "broken"), false},
		"withheld": {rpctypes.ErrPermissionDenied, false},
	} {
		c := newFake(t, fakePlan(t, 3))
		c.noAuthStatus = tc.err
		_, err := doVerify(t.Context(), c.r, nil)
		last := c.r.out.Proofs[len(c.r.out.Proofs)-1]
		if (err == nil) != tc.open || tc.open != (last.Outcome == notChecked) ||
			tc.open && last.Detail != "these servers do not tell it" || !tc.open && last.Outcome != violated {
			t.Errorf("%s: %v, %+v", what, err, last)
		}
	}
}

// TestKept: a data dir holds what the best member held if HashKV at its revision says so.
func TestKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	clustertest.Synth{Members: 1, Entries: 40, Keys: 5, Value: 16}.WriteDB(t, path)
	db, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	rev, err := db.CurrentRev()
	if err != nil {
		t.Fatal(err)
	}
	h, err := db.HashKV(t.Context(), rev)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		best          plan.Choice
		want, details string
	}{
		"the same": {plan.Choice{Revision: rev, HashKV: h.Hash, Compact: h.CompactRev}, holds, "HashKV "},
		"another hash": {plan.Choice{Revision: rev, HashKV: h.Hash + 1, Compact: h.CompactRev}, violated,
			fmt.Sprintf("HashKV is %d, was %d", h.Hash, h.Hash+1)},
		"compacted since": {plan.Choice{Revision: rev, HashKV: h.Hash + 1, Compact: h.CompactRev + 1}, notChecked,
			"it was compacted at"},
		"a revision that it lacks": {plan.Choice{Revision: rev + 1, HashKV: h.Hash, Compact: h.CompactRev}, notChecked,
			""},
	} {
		s := dirsProof{&session{plan: &plan.Plan{Best: tc.best}, out: &Outcome{}}}
		if err := s.kept(t.Context(), evidence.Spec{Name: "a", Where: path}); err != nil {
			t.Fatal(err)
		}
		if p := s.out.Proofs; len(p) != 1 || p[0].Outcome != tc.want || !strings.HasPrefix(p[0].Detail, tc.details) {
			t.Errorf("%s: %+v", name, p)
		}
	}
	s := dirsProof{&session{plan: &plan.Plan{}, out: &Outcome{}}}
	if err := s.kept(t.Context(), evidence.Spec{Where: path + "-missing"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestRowsNotMended: a restart that was to mend bucket members and did not is no success, although the set is healthy.
func TestRowsNotMended(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		for _, severity := range []check.Severity{check.Info, check.Warning} {
			p := fakePlan(t, 3)
			if restarts {
				p.Members[1].Action, p.Members[1].RestartOn = plan.Restart, "etcd 3.5.26"
			}
			s := dirsProof{&session{plan: p, out: &Outcome{Server: "etcd 3.5.1"}}}
			s.healthy(&compare.Report{Findings: []check.Finding{{ID: "M07-1", Check: check.M07, Severity: severity}},
				Verdict: compare.Verdict{Health: check.Healthy}})
			want := holds
			if restarts && severity == check.Warning {
				want = violated
			}
			if p := s.out.Proofs; len(p) != 1 || p[0].Outcome != want || want == violated && p[0].Detail !=
				"bucket members is as it was: etcd 3.5.1 does not mend it (M07-1)" {
				t.Errorf("restarts %v, %s: %+v", restarts, severity, p)
			}
		}
	}
}

// TestHashOfCompacted: hashes of members that are compacted differently cannot be compared yet.
func TestHashOfCompacted(t *testing.T) {
	c := newFake(t, fakePlan(t, 3))
	c.r.limits.step = 30 * time.Millisecond
	c.of(3).compact, c.of(2).revision = 5, 12
	_, err := c.r.sameHash(t.Context(), c.r.present())
	if err == nil || !strings.Contains(err.Error(), "node1 is compacted at 0, node3 at 5") || errors.Is(err,
		errHashes) {
		t.Errorf("%v", err)
	}
	c.of(3).compact = 0
	if detail, err := c.r.sameHash(t.Context(), c.r.present()); err != nil || detail != "HashKV 7 at revision 10" {
		t.Errorf("%q %v: the lowest revision is that of all", detail, err)
	}
	c.of(3).hash = 8
	if _, err := c.r.sameHash(t.Context(), c.r.present()); !errors.Is(err, errHashes) {
		t.Errorf("%v", err)
	}
}

// TestHealthyDirs: what diagnose finds in the new data dirs is accepted only where the best member had it.
func TestHealthyDirs(t *testing.T) {
	finding := func(id check.ID) check.Finding {
		return check.Finding{ID: string(id) + "-1", Check: id, Class: "x", Severity: check.Error}
	}
	for _, tc := range []struct {
		name     string
		health   check.Health
		findings []check.Finding
		known    []check.ID
		auth     bool
		minor    int
		want     string
	}{
		{"nothing", check.Healthy, nil, nil, false, 5, holds},
		{"it is not known", check.HealthUnknown, nil, nil, false, 5, notChecked},
		{"a new finding", check.Unhealthy, []check.Finding{finding("D01")}, []check.ID{"D02"}, false, 5, violated},
		{"one that came with the best member", check.Unhealthy, []check.Finding{finding("D01")}, []check.ID{"D01"},
			false, 5,
			holds},
		{"one of both", check.Unhealthy, []check.Finding{finding("D01"), finding("D02")}, []check.ID{"D01"}, false, 5,
			violated},
		{"the auth revision up to 3.4", check.Unhealthy, []check.Finding{finding(check.A02)}, nil, true, 4, holds},
		{"the auth revision of 3.5", check.Unhealthy, []check.Finding{finding(check.A02)}, nil, true, 5, violated},
		{"the auth revision without auth", check.Unhealthy, []check.Finding{finding(check.A02)}, nil, false, 4,
			violated},
		{"no finding, and not healthy", check.Unhealthy, nil, nil, false, 5, violated},
	} {
		p := fakePlan(t, 3)
		p.Best.Known, p.Cluster.Auth, p.Cluster.Minor = tc.known, tc.auth, tc.minor
		s := dirsProof{&session{plan: p, out: &Outcome{}}}
		s.healthy(&compare.Report{Findings: tc.findings, Verdict: compare.Verdict{Health: tc.health, Class: "x"}})
		if len(s.out.Proofs) != 1 || s.out.Proofs[0].Outcome != tc.want {
			t.Errorf("%s: %+v, want %s", tc.name, s.out.Proofs, tc.want)
		}
		if (len(s.out.Notes) > 0) != (tc.want == holds && tc.health != check.Healthy) {
			t.Errorf("%s: notes %q", tc.name, s.out.Notes)
		}
	}
}

// TestWatchEnds: a watch that ends with the run is no complete history.
func TestWatchEnds(t *testing.T) {
	c := newFake(t, fakePlan(t, 3))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.r.changes(ctx, c.r.best(), 11, 12, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
