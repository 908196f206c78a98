package plan

import (
	"cmp"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestJudgeAbsent: a voter whose data dir is not given is replaced if it is lost, or may be bad; it is kept if nothing
// says that contents differ. One that never started is removed, and a learner is kept unless it never started.
func TestJudgeAbsent(t *testing.T) {
	for name, c := range map[string]struct {
		m      Member
		gone   []string
		health check.Health
		class  check.Class
		want   Action
		why    string
	}{
		"it never started":        {m: Member{Name: "n1", ID: 9}, want: Remove, why: "never started"},
		"a learner never started": {m: Member{Name: "n1", ID: 9, Learner: true}, want: Remove, why: "never started"},
		"it is lost":              {m: Member{Name: "n1", ID: 1}, gone: []string{"n2", "n1"}, want: Replace, why: "lost"},
		"lost, the others healthy": {m: Member{Name: "n1", ID: 1}, gone: []string{"n1"}, health: check.Healthy,
			want: Replace},
		"another is lost": {m: Member{Name: "n1", ID: 1}, gone: []string{"n2"}, want: Replace,
			why: "could not be judged"},
		"a learner": {m: Member{Name: "n1", ID: 1, Learner: true}, gone: []string{"n1"}, want: Keep,
			why: "learner"},
		"the others are healthy": {m: Member{Name: "n1", ID: 1}, health: check.Healthy, want: Keep, why: "not judged"},
		"members differ in who they are": {m: Member{Name: "n1", ID: 1}, class: check.ClassMembership, want: Keep,
			why: "not judged"},
		"contents differ": {m: Member{Name: "n1", ID: 1}, class: check.ClassMemberLostData, want: Replace,
			why: "could not be judged"},
	} {
		r := &compare.Report{}
		r.Verdict.Health = c.health
		ro := &roster{sources: &sources{r: r}, p: &Plan{Verdict: Verdict{Class: c.class}}, o: Options{Gone: c.gone},
			dead: map[dumplog.ID]bool{9: true}}
		m := c.m
		ro.judgeAbsent(&m)
		if m.Action != c.want || !strings.Contains(m.Why, c.why) || m.Obstacle != ObstacleNotGiven {
			t.Errorf("%s: %s (%s), want %s (%s)", name, m.Action, m.Why, c.want, c.why)
		}
	}
}

// TestBreaksPromise: which findings show that a member must not vote with what it has.
func TestBreaksPromise(t *testing.T) {
	for name, c := range map[string]struct {
		fd   check.Finding
		want bool
	}{
		"it lost data":         {check.Finding{Class: check.ClassMemberLostData, Members: []string{"n1"}}, true},
		"one of two lost data": {check.Finding{Class: check.ClassMemberLostData, Members: []string{"n1", "n2"}}, false},
		"both lack committed ones": {check.Finding{Class: check.ClassMemberLostData, Members: []string{"n2", "n1"},
			Check: check.R07}, true},
		"another one lost data":   {check.Finding{Class: check.ClassMemberLostData, Members: []string{"n2"}}, false},
		"its files are torn":      {check.Finding{Class: check.ClassTornCopy, Members: []string{"n1"}}, true},
		"torn, and of others too": {check.Finding{Class: check.ClassTornCopy, Members: []string{"n1", "n2"}}, false},
		"it lags":                 {check.Finding{Class: check.ClassLagging, Members: []string{"n1"}}, false},
	} {
		for _, severity := range []check.Severity{check.Warning, check.Error, check.Critical} {
			c.fd.Severity = severity
			if got := breaksPromise(&c.fd, "n1"); got != (c.want && severity != check.Warning) {
				t.Errorf("%s, %s: %t", name, severity, got)
			}
		}
	}
}

// TestObstacle: no server is started on a source that is no data dir, that the server refuses, that lost what it had
// promised, or of which this is not known. The same holds where the comparison found its content unusable, unless it
// has none: then the server fills it from the log.
func TestObstacle(t *testing.T) {
	usable := &compare.Rank{Usable: true}
	lost := check.Finding{Class: check.ClassMemberLostData, Severity: check.Error, Members: []string{"n1"},
		Title: "rolled back"}
	for name, c := range map[string]struct {
		kind   evidence.Kind
		rank   *compare.Rank
		change func(f *evidence.Facts)
		lost   bool
		want   Obstacle
		why    string
	}{
		"usable":      {rank: usable},
		"not ranked":  {},
		"no data dir": {kind: evidence.KindBackup, rank: usable, want: ObstacleNoDataDir, why: "is a backup"},
		"unusable": {rank: &compare.Rank{Reasons: []string{"one", "two"}}, want: ObstacleUnknown,
			why: "one; two"},
		"unusable, without bytes":      {rank: &compare.Rank{}, change: func(f *evidence.Facts) { f.DB.Size = 0 }},
		"unusable, without a database": {rank: &compare.Rank{}, change: func(f *evidence.Facts) { f.DB = nil }},
		"the server refuses it": {rank: usable, change: func(f *evidence.Facts) { f.DB.Metas = nil },
			want: ObstacleRefused, why: "meta page"},
		"it knew of a later entry": {rank: usable, change: func(f *evidence.Facts) { f.Commit = 12 },
			want: ObstacleForgot, why: "10 to 12"},
		"it has no log": {rank: usable, change: func(f *evidence.Facts) { f.WAL = nil },
			want: ObstacleUnknown, why: "no log"},
		"a finding says that data went": {rank: usable, lost: true,
			want: ObstacleForgot, why: "rolled back"},
	} {
		f := evidence.Facts{Name: "n1", WAL: &evidence.WALFacts{FirstIndex: 1, LastIndex: 9},
			DB: &evidence.DBFacts{Size: 100, Metas: []dumpdb.Meta{{Valid: true}}}}
		if c.change != nil {
			c.change(&f)
		}
		r := &compare.Report{Members: []evidence.Facts{f}}
		if c.lost {
			r.Findings = []check.Finding{lost}
		}
		ss := &sources{r: r, kinds: map[string]evidence.Kind{"n1": cmp.Or(c.kind, evidence.KindDataDir)},
			ranks: map[string]*compare.Rank{"n1": c.rank}}
		if got, why := ss.obstacle("n1"); got != c.want || !strings.Contains(why, c.why) || (got == "") != (why == "") {
			t.Errorf("%s: %q, %q; want %q, %q", name, got, why, c.want, c.why)
		}
	}
}

// TestContentDiffers: a member that lags is said to differ in what both have applied, not at one applied index.
func TestContentDiffers(t *testing.T) {
	for applied, want := range map[uint64]string{
		9: "its content differs from that of n1 at the same applied index",
		5: "its content differs from that of n1 in writes that both have applied (it up to entry 5, n1 up to 9)",
	} {
		r := &compare.Report{Members: []evidence.Facts{{Name: "n1", AppliedIndex: 9}, {Name: "n2", AppliedIndex: applied}},
			Findings: []check.Finding{{Severity: check.Error, Class: check.ClassDataDivergence,
				Members: []string{"n1", "n2"}, Evidence: []check.Evidence{
					{Member: "n1", Bucket: "key", Key: check.Bytes("a"), Observed: "1"},
					{Member: "n2", Bucket: "key", Key: check.Bytes("a"), Observed: "2"}}}}}
		ro := &roster{sources: &sources{r: r}, p: &Plan{Best: Choice{Name: "n1"}}, best: &r.Members[0]}
		if got := ro.mustReplace(&Member{Source: "n2"}, &r.Members[1]); got != want {
			t.Errorf("applied %d: %q, want %q", applied, got, want)
		}
	}
}
