package confirm_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/confirm"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// The server in the sandbox is this test's own binary, run again.
func TestMain(m *testing.M) {
	if handled, code := node.RunHidden(os.Args); handled {
		os.Exit(code)
	}
	evidencetest.Main(m)
}

// ask diagnoses sources with a second opinion. Sources and scratch folder must be as before.
func ask(t *testing.T, o confirm.Options, sources ...string) *compare.Report {
	t.Helper()
	evidencetest.Unchanged(t, sources...)
	var specs []evidence.Spec
	for _, s := range sources {
		specs = append(specs, evidence.Spec{Where: s})
	}
	o.Dir = t.TempDir()
	r, err := compare.Diagnose(t.Context(), specs,
		compare.Options{NoDigests: true, Confirm: func(ctx context.Context, ms []*evidence.Member,
			rp *replay.Result) (*compare.Confirmation, error) {
			return confirm.Run(ctx, ms, rp, o)
		}})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
		t.Errorf("scratch is left: %v %v", left, err)
	}
	return r
}

// statuses are by member.
func statuses(c *compare.Confirmation) map[string]compare.ConfirmStatus {
	out := map[string]compare.ConfirmStatus{}
	for _, m := range c.Members {
		out[m.Member] = m.Status
	}
	return out
}

func want(t *testing.T, r *compare.Report, status map[string]compare.ConfirmStatus) {
	t.Helper()
	if got := statuses(r.Confirm); !maps.Equal(got, status) {
		t.Errorf("%v, want %v\n%s %s", got, status, r.Confirm.Reason, r.Confirm.Notes)
		for _, m := range r.Confirm.Members {
			t.Logf("%+v", m)
		}
	}
}

func all(s compare.ConfirmStatus, names ...string) map[string]compare.ConfirmStatus {
	out := map[string]compare.ConfirmStatus{}
	for _, n := range names {
		out[n] = s
	}
	return out
}

func member(t *testing.T, r *compare.Report, name string) compare.ConfirmedMember {
	t.Helper()
	i := slices.IndexFunc(r.Confirm.Members, func(m compare.ConfirmedMember) bool { return m.Member == name })
	if i < 0 {
		t.Fatalf("no %s in %+v", name, r.Confirm)
	}
	return r.Confirm.Members[i]
}

func finding(r *compare.Report, id string) bool {
	for _, f := range r.Findings {
		if string(f.Check) == id {
			return true
		}
	}
	return false
}

// TestConfirmsSoundMembers: clusters of each line that the server in this program executes, with auth, leases, alarms,
// compactions, learners, removed members, and a member that lags.
func TestConfirmsSoundMembers(t *testing.T) {
	for incident, names := range map[string][]string{
		"gen-healthy-3.4":   {"node1", "node2", "node3"},
		"m-healthy-3.5":     {"node1", "node2", "node4"},
		"m-healthy-3.6":     {"node1", "node2", "node4"},
		"k-lagging-node":    {"node1", "node2", "node3"},
		"l-compaction-skew": {"node1", "node2", "node3"},
		"e-torn-wal-tail":   {"node1", "node2", "node3"},
	} {
		t.Run(incident, func(t *testing.T) {
			r := ask(t, confirm.Options{}, evidencetest.Incident(t, incident))
			want(t, r, all(compare.Confirmed, names...))
			c := r.Confirm
			if c.Base == nil || c.Base.Kind != "new-cluster" || c.Server == "" || len(c.Sandbox) == 0 ||
				finding(r, "X10") {
				t.Errorf("%+v", c)
			}
			for _, m := range c.Members {
				if m.Replay != compare.ReplayAgrees || m.Index == 0 || m.Revision == 0 || m.Records == 0 ||
					m.First != nil {
					t.Errorf("%+v", m)
				}
			}
		})
	}
}

// TestStretches: a log that is executed in parts, each from the database that the one before left, comes to the same.
func TestStretches(t *testing.T) {
	for _, most := range []int{1 << 20, 23} {
		r := ask(t, confirm.Options{MaxEntries: most}, evidencetest.Incident(t, "m-healthy-3.6"))
		want(t, r, all(compare.Confirmed, "node1", "node2", "node4"))
	}
}

// TestNewestLine: a log of 3.7 is executed where a server of it is at hand, and nowhere else.
func TestNewestLine(t *testing.T) {
	r := ask(t, confirm.Options{}, evidencetest.Incident(t, "m-healthy-3.7"))
	status := compare.NotPossible
	if _, ok := node.Embedded(7); ok {
		status = compare.Confirmed
	}
	want(t, r, all(status, "node1", "node2", "node4"))
	if r.Verdict.Health != check.Healthy {
		t.Errorf("%+v", r.Verdict)
	}
	if status == compare.NotPossible && !strings.Contains(r.Confirm.Reason, "3.7") {
		t.Errorf("%+v", r.Confirm)
	}
}

// TestRefutesAlteredMember: one bit of one value differs on one member.
func TestRefutesAlteredMember(t *testing.T) {
	r := ask(t, confirm.Options{}, evidencetest.Incident(t, "n-silent-kv-divergence"))
	want(t, r, map[string]compare.ConfirmStatus{"node1": compare.Confirmed, "node2": compare.Refuted,
		"node3": compare.Confirmed})
	m := member(t, r, "node2")
	if m.First == nil || m.First.Revision != 67 || m.First.Index != 81 || len(m.Differences) != 1 || m.More != 0 ||
		m.Replay != compare.ReplayDiffers {
		t.Fatalf("%+v", m)
	}
	if d := m.Differences[0]; d.Bucket != "key" || string(d.Key) != "/acct/065" || d.Revision.Main != 67 ||
		d.Observed == d.Expected || !strings.Contains(d.Observed, "digest") {
		t.Errorf("%+v", d)
	}
	if finding(r, "X10") {
		t.Error("the diagnosis says the same")
	}
	r = ask(t, confirm.Options{Values: true}, evidencetest.Incident(t, "n-silent-kv-divergence"))
	if d := member(t, r, "node2").Differences[0]; !strings.Contains(d.Observed, `value "`) {
		t.Errorf("values were asked for: %+v", d)
	}
}

// TestRefutesWrongAuthRevision: the real defect of etcd up to 3.4.7. The member that the diagnosis calls best is the
// one that a server makes.
func TestRefutesWrongAuthRevision(t *testing.T) {
	r := ask(t, confirm.Options{}, evidencetest.Incident(t, "a-auth-revision-replay"))
	want(t, r, map[string]compare.ConfirmStatus{"node1": compare.Refuted, "node2": compare.Refuted,
		"node3": compare.Confirmed})
	for _, name := range []string{"node1", "node2"} {
		m := member(t, r, name)
		if m.Differences[0].Bucket != "auth" || m.First == nil || m.More == 0 {
			t.Errorf("%+v", m)
		}
	}
	if !slices.Equal(r.Best.Members, []string{"node3"}) {
		t.Errorf("best: %v", r.Best.Members)
	}
}

// TestSmallBuckets: what one member's database holds otherwise in any bucket refutes that member and no other.
func TestSmallBuckets(t *testing.T) {
	const incident = "m-healthy-3.6"
	for name, c := range map[string]struct {
		edit   datadir.Edit
		bucket string
	}{
		"auth switched off": {datadir.PutBucketKey("auth", []byte("authEnabled"), []byte{0}), "auth"},
		"a lease gone":      {datadir.DropBucketKeys("lease"), "lease"},
		"an alarm gone":     {datadir.ClearAlarm(0, 0), "alarm"},
		"a user gone":       {datadir.DropBucketKeys("authUsers"), "authUsers"},
		"a role gone":       {datadir.DropBucketKeys("authRoles"), "authRoles"},
		"members gone":      {datadir.DropBucketKeys("members"), "members"},
		"cluster version":   {datadir.SetClusterVersion("3.5.0"), "cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := evidencetest.Copy(t, evidencetest.Incident(t, incident))
			edit(t, filepath.Join(dir, "node2"), c.edit)
			r := ask(t, confirm.Options{}, dir)
			want(t, r, map[string]compare.ConfirmStatus{"node1": compare.Confirmed, "node2": compare.Refuted,
				"node4": compare.Confirmed})
			m := member(t, r, "node2")
			if len(m.Differences) == 0 || m.First != nil {
				t.Fatalf("%+v", m)
			}
			for _, d := range m.Differences {
				if d.Bucket != c.bucket || len(d.Key) == 0 || d.Observed == d.Expected {
					t.Errorf("%+v", d)
				}
			}
			if r.Verdict.Health == check.Healthy {
				t.Errorf("a refuted member in a set that is called healthy: %+v", r.Verdict)
			}
		})
	}
}

// TestNotPossible: why, in words that name what is missing.
func TestNotPossible(t *testing.T) {
	dir, _ := purged(t, "m-healthy-3.6", "node1", 150)
	for name, c := range map[string]struct {
		sources []string
		says    string
	}{
		"purged": {[]string{dir}, "the logs begin with entry 151"},
		"no log": {[]string{filepath.Join(evidencetest.Incident(t, "o-backup-good"), "backup.db")},
			"no source brings a log"},
		"two clusters": {[]string{filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node1"),
			filepath.Join(evidencetest.Incident(t, "k-lagging-node"), "node1")}, "different clusters"},
		"no other base": {[]string{dir, filepath.Join(evidencetest.Incident(t, "o-backup-bit-flip"), "backup.db")},
			"different clusters"},
	} {
		t.Run(name, func(t *testing.T) {
			r := ask(t, confirm.Options{}, c.sources...)
			for _, m := range r.Confirm.Members {
				if m.Status != compare.NotPossible || !strings.Contains(m.Reason, c.says) {
					t.Errorf("%+v", m)
				}
			}
			if !strings.Contains(r.Confirm.Reason, c.says) || r.Confirm.Server != "" || finding(r, "X10") {
				t.Errorf("%+v", r.Confirm)
			}
		})
	}
}

// TestDamagedDatabase: a member whose database cannot be read in full gets no status, the others do.
func TestDamagedDatabase(t *testing.T) {
	r := ask(t, confirm.Options{}, evidencetest.Incident(t, "f-bbolt-page-corruption"))
	want(t, r, map[string]compare.ConfirmStatus{"node1": compare.NotPossible, "node2": compare.Confirmed,
		"node3": compare.Confirmed})
	r = ask(t, confirm.Options{}, evidencetest.Incident(t, "d-wiped-member"))
	want(t, r, map[string]compare.ConfirmStatus{"node1": compare.Confirmed, "node2": compare.Confirmed,
		"node3": compare.NotPossible})
}

// TestUnknownRequest: no server executes an entry that no release knows; members at a lower index are compared all the
// same.
func TestUnknownRequest(t *testing.T) {
	dir := evidencetest.Copy(t, filepath.Join(evidencetest.Incident(t, "k-lagging-node"), "node1"))
	lagging := filepath.Join(evidencetest.Incident(t, "k-lagging-node"), "node3")
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: dir}, {Where: lagging}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	wal := filepath.Join(dir, "member", "wal")
	m := set.Members[0]
	var entries []datadir.Entry
	for e, err := range replay.Log(t.Context(), set.Members[:1]) {
		if err != nil {
			t.Fatal(err)
		}
		one := datadir.Entry{Type: e.Type, Term: e.Term, Index: e.Index, Data: slices.Clone(e.Data)}
		if e.Index == set.Members[1].AppliedMin+1 {
			one.Data = []byte{0xfa, 0xff, 0x07, 1, 0} // a field that InternalRaftRequest does not have
		}
		entries = append(entries, one)
	}
	writeLog(t, wal, m, entries)
	r := ask(t, confirm.Options{}, dir, lagging)
	want(t, r, map[string]compare.ConfirmStatus{"node1": compare.NotPossible, "node3": compare.Confirmed})
	if one := member(t, r, "node1"); !strings.Contains(one.Reason, "no server can execute entry") {
		t.Errorf("%+v", one)
	}
}

// writeLog replaces the segments of a log.
func writeLog(t *testing.T, wal string, m *evidence.Member, entries []datadir.Entry) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(wal, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if err := os.Remove(n); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(filepath.Join(wal, "0000000000000000-0000000000000000.wal"))
	if err != nil {
		t.Fatal(err)
	}
	l := datadir.NewLogWriter(f, 0)
	l.Metadata(uint64(m.MemberID), uint64(m.ClusterID))
	l.Snapshot(0, 0, nil)
	for i := range entries {
		l.Entry(&entries[i])
	}
	last := entries[len(entries)-1]
	l.State(last.Term, 0, last.Index)
	if err := errors.Join(l.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDisputedEntry: where two logs hold different entries, a difference there refutes no one.
func TestDisputedEntry(t *testing.T) {
	root := evidencetest.Copy(t, evidencetest.Incident(t, "n-silent-kv-divergence"))
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: filepath.Join(root, "node2")}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	var entries []datadir.Entry
	for e, err := range replay.Log(t.Context(), set.Members) {
		if err != nil {
			t.Fatal(err)
		}
		one := datadir.Entry{Type: e.Type, Term: e.Term, Index: e.Index, Data: slices.Clone(e.Data)}
		if e.Index == 81 { // makes revision 67, at which node2 differs
			one.Data[len(one.Data)-1] ^= 1
		}
		entries = append(entries, one)
	}
	writeLog(t, filepath.Join(root, "node2", "member", "wal"), set.Members[0], entries)
	r := ask(t, confirm.Options{}, root)
	got := statuses(r.Confirm)
	if got["node2"] == compare.Refuted || got["node1"] == compare.Refuted || got["node3"] == compare.Refuted {
		t.Errorf("%v %+v", got, r.Confirm.Members)
	}
}

// TestBounds: no room, no server, no time, and an end by the user.
func TestBounds(t *testing.T) {
	dir := evidencetest.Incident(t, "m-healthy-3.6")
	for name, c := range map[string]struct {
		o    confirm.Options
		says string
	}{
		"no room": {confirm.Options{Room: func(string) (int64, bool) { return 1 << 20, true }}, "MiB are needed"},
		"no server": {confirm.Options{EtcdBinary: filepath.Join(t.TempDir(), "etcd")},
			"does not answer like an etcd server"},
		"no time": {confirm.Options{Timeout: time.Millisecond}, "not done within 1ms"},
		"it ends": {confirm.Options{EtcdBinary: program(t,
			`[ "$1" = --version ] && echo "etcd Version: 3.6.1" && exit; echo "panic: it cannot"; exit 2`)},
			"panic: it cannot"},
	} {
		t.Run(name, func(t *testing.T) {
			r := ask(t, c.o, dir)
			want(t, r, all(compare.NotPossible, "node1", "node2", "node4"))
			if !strings.Contains(r.Confirm.Reason, c.says) || r.Verdict.Health != check.Healthy {
				t.Errorf("%q %+v", r.Confirm.Reason, r.Verdict)
			}
		})
	}
	scratch := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := compare.Diagnose(ctx, []evidence.Spec{{Where: dir}},
		compare.Options{NoDigests: true, Confirm: func(ctx context.Context, ms []*evidence.Member,
			rp *replay.Result) (*compare.Confirmation, error) {
			return confirm.Run(ctx, ms, rp, confirm.Options{Dir: scratch, Progress: func(what string) {
				if strings.Contains(what, "has executed") {
					cancel()
				}
			}})
		}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after ^C: %v", err)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("scratch is left: %v %v", left, err)
	}
}

// program is a shell script.
func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "etcd")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPlan: what is possible is known before anything is started.
func TestPlan(t *testing.T) {
	plan := func(sources ...string) *confirm.Plan {
		var specs []evidence.Spec
		for _, s := range sources {
			specs = append(specs, evidence.Spec{Where: s})
		}
		set, err := evidence.Open(t.Context(), specs, evidence.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { set.Close() })
		p, err := confirm.NewPlan(t.Context(), set.Members)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := plan(evidencetest.Incident(t, "k-lagging-node"))
	if p.Reason != "" || p.Base.Kind != confirm.NewCluster || p.Base.Index != 1 || p.Minor != 5 ||
		p.Need.Version().Line() != "3.5" || len(p.Stops) != 2 || p.Stops[0] >= p.Stops[1] {
		t.Errorf("%+v", p)
	}
	for _, x := range p.Targets {
		if x.Reason != "" || x.Index != x.Late || !slices.Contains(p.Stops, x.Index) {
			t.Errorf("%+v", x)
		}
	}
	// Up to 3.4 the consistent index moves with key writes only.
	p = plan(evidencetest.Incident(t, "gen-healthy-3.4"))
	for _, x := range p.Targets {
		if x.Index != x.Member.AppliedMin || x.Late < x.Index || !slices.Contains(p.Stops, x.Late) {
			t.Errorf("%+v", x)
		}
	}
	// Of a new cluster and a backup, the one that leaves more to the server; of two backups, the older one.
	_, old := purged(t, "m-healthy-3.6", "node1", 120)
	dir, young := purged(t, "m-healthy-3.6", "node1", 110)
	if p = plan(evidencetest.Incident(t, "m-healthy-3.6"), old); p.Base.Kind != confirm.NewCluster {
		t.Errorf("%+v", p.Base)
	}
	if p = plan(dir, old, young); p.Base.Index != 110 || p.Base.Owner != 2 {
		t.Errorf("%+v", p.Base)
	}
	if x := p.Targets[1]; x.Reason != "" || x.Index != 120 {
		t.Errorf("the other backup is compared as well: %+v", x)
	}
}
